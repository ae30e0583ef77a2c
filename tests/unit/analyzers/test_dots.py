# SPDX-License-Identifier: Apache-2.0
"""The dots of a comparison's page: where they are drawn, and round ticks below them."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from support.rundata import RATE, side
from wbscope.compare.comparison import compare_sides
from wbscope.plot.dots import Strip, dots_svg, ticks
from wbscope.render.compare_html import compare_html

MIB = 1 << 20


@pytest.mark.parametrize(
    ("low", "high", "prefix", "wanted"),
    [
        (0.0, 10.0, 1000, [0, 5, 10]),
        (0.0, 30.0 * MIB, 1024, [0, 10 * MIB, 20 * MIB, 30 * MIB]),
        (3.0 * MIB, 3.5 * MIB, 1024, [3 * MIB, 3.2 * MIB, 3.4 * MIB]),
        (-1.5, 1.5, 1000, [-1, 0, 1]),
        (21e6, 81e6, 1000, [40e6, 60e6, 80e6]),
        (0.12, 0.31, 1000, [0.15, 0.2, 0.25, 0.3]),
    ],
)
def test_ticks_are_round_in_the_unit_that_is_printed(
    low: float, high: float, prefix: int, wanted: list[float]
) -> None:
    assert ticks(low, high, prefix) == pytest.approx(wanted)


@pytest.mark.parametrize("power", range(-6, 16))
@pytest.mark.parametrize("prefix", [1000, 1024])
def test_there_are_one_to_four_ticks_whatever_the_size(power: int, prefix: int) -> None:
    for share in (0.001, 0.3, 1.9):
        low, high = 10.0**power, 10.0**power * (1 + share)
        found = ticks(low, high, prefix)
        assert 1 <= len(found) <= 4
        assert all(low <= tick <= high * (1 + 1e-12) for tick in found)


def test_each_run_is_a_dot_where_its_value_is() -> None:
    strips = [Strip("B", [1, 2, 3], 2), Strip("A", [4, 5], 4.5, (3.5, 5.5))]
    text = dots_svg(strips, lambda value: f"{value:g}", 1000)
    drawn = ElementTree.fromstring(text)
    dots = [float(dot.get("cx", "")) for dot in drawn.iter("circle")]
    steps = [b - a for a, b in pairwise(dots)]
    assert len(dots) == 5
    assert steps == pytest.approx([steps[0]] * 4, abs=0.2)  # rounded to 0.1 in the drawing
    (band,) = [p.get("d", "") for p in drawn.iter("path") if p.get("class") == "band"]
    low, high = map(float, re.findall(r"[MH]([\d.]+)", band))
    assert low == pytest.approx(dots[3] - steps[0] / 2, abs=0.2)
    assert high == pytest.approx(dots[4] + steps[0] / 2, abs=0.2)
    assert drawn.get("aria-label") == "B: 3 runs, median 2; A: 2 runs, median 4.5"


@pytest.mark.parametrize("values", [[5.0], [0.0], [-3.0, -3.0]])
def test_one_value_is_drawn(values: list[float]) -> None:
    drawn = ElementTree.fromstring(dots_svg([Strip("A", values, values[0])], str, 1000))
    assert len(list(drawn.iter("circle"))) == len(values)


def test_a_name_is_text_and_not_markup() -> None:
    text = dots_svg([Strip("<b>&", [1, 2], 1.5)], str, 1000)
    assert "<b>" not in text
    assert [one.text for one in ElementTree.fromstring(text).iter("text")][-1] == "<b>&"


def test_ticks_have_no_needless_digits() -> None:
    rates = [10.0 * MIB + i * MIB for i in range(6)]
    base, other = side("B", {RATE: rates}), side("A", {RATE: [rate * 2 for rate in rates]})
    page = compare_html(compare_sides(base, [other]), {})
    assert ">10 MiB/s<" in page
    assert ">20 MiB/s<" in page


def test_a_page_without_pauses_needs_no_matplotlib() -> None:
    """It was nearly all of the time that a page took."""
    program = (
        "import sys\n"
        "from support.rundata import TIME, side\n"
        "from wbscope.compare.comparison import compare_sides\n"
        "from wbscope.render.compare_html import compare_html\n"
        "values = [float(100 + i) for i in range(6)]\n"
        "found = compare_sides(side('B', {TIME: values}), [side('A', {TIME: values})])\n"
        "assert '<circle' in compare_html(found, {})\n"
        "assert 'matplotlib' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(next(p for p in sys.path if p.endswith("tests")))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
