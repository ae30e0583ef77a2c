# SPDX-License-Identifier: Apache-2.0
"""What pages are made of: dots, curves, series, vendored files."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from itertools import accumulate, pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import strategies as st
from support.properties import for_all
from support.rundata import RATE, side
from support.runs import REPOSITORY
from wbscope.compare.comparison import compare_sides
from wbscope.plot.dots import Strip, dots_svg, ecdf_svg, ticks
from wbscope.plot.figures import FIGURES
from wbscope.plot.panels import PanelData, Series, thin
from wbscope.render.compare_html import compare_html
from wbscope.render.figures import DRAWN_ELSEWHERE, FIGURES_OF_PAGE, drawn_of, extent_of, record_of
from wbscope.render.sections import asset, json_for_script, open_command, policy

# The dots of a comparison's page: where they are drawn, and round ticks below them.

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


# The curves of a comparison's page: where they are drawn, in whose colour, and without styles.


def _drawn(sides: dict[str, list[list[tuple[float, float]]]]) -> ElementTree.Element:
    return ElementTree.fromstring(ecdf_svg(sides, lambda length: f"{length / 1e6:g} ms", 1000))


def _texts(drawn: ElementTree.Element) -> dict[str, tuple[float, float]]:
    found = drawn.iter("text")
    return {t.text or "": (float(t.get("x", "")), float(t.get("y", ""))) for t in found}


def test_a_curve_steps_where_the_ticks_say() -> None:
    drawn = _drawn({"B": [[(100e6, 0.25), (200e6, 1.0)]], "A": [[(50e6, 0.5), (100e6, 1.0)]] * 2})
    places = _texts(drawn)
    groups = [g for g in drawn.iter("g") if g.get("stroke")]
    assert [len(g.findall("path[@class='curve']")) for g in groups] == [1, 2]
    assert len({g.get("stroke") for g in groups}) == 2
    curve = groups[0].find("path[@class='curve']")
    assert curve is not None
    steps = re.findall(r"H([\d.]+)V([\d.]+)", curve.get("d", ""))
    # The ticks were written with `label`, so they tell where a length and a share are.
    assert [float(x) for x, _ in steps] == pytest.approx(
        [places["100 ms"][0], places["200 ms"][0]], abs=0.1
    )
    assert [float(y) for _, y in steps] == pytest.approx(
        [places["25 %"][1], places["100 %"][1]], abs=0.1
    )
    assert {"A", "B"} <= set(places)


def test_no_element_has_a_style_of_its_own() -> None:
    text = ecdf_svg({"B": [[(1e6, 1.0)]], "<b>&": [[(0.0, 1.0)]]}, str, 1000)
    assert "style" not in text
    assert "<b>" not in text
    ElementTree.fromstring(text)


def test_pauses_without_a_length_are_drawn() -> None:
    assert len(list(_drawn({"B": [[(0.0, 1.0)]]}).iter("path"))) > 3


# What pages have inside them: uPlot as it was published, JSON that ends no script.

_FOLDER = REPOSITORY / "analyzers/wbscope/render/assets"


def test_uplot_is_unchanged() -> None:
    told = re.findall(
        r"\| `(uPlot\S+)` \| `([0-9a-f]{64})` \|", (_FOLDER / "README.md").read_text()
    )
    assert {name for name, _ in told} == {path.name for path in _FOLDER.glob("uPlot*")}
    for name, digest in told:
        assert hashlib.sha256((_FOLDER / name).read_bytes()).hexdigest() == digest


def test_its_licence_is_with_the_others() -> None:
    assert (REPOSITORY / "LICENSES/MIT-uPlot.txt").read_text().rstrip() == asset("uPlot.LICENSE")
    assert "--" not in asset("uPlot.LICENSE")  # it stands in a comment of every page


@pytest.mark.parametrize("name", sorted(path.name for path in _FOLDER.glob("*.[cj]s*")))
def test_no_asset_ends_its_element_or_loads_anything(name: str) -> None:
    text = asset(name)
    assert not re.search(r"</script|</style|<!--", text, re.IGNORECASE)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(", text)


@pytest.mark.parametrize(
    "text",
    ["</script><img src=x onerror=alert(1)>", "<!--<script>", "]]>&amp;", "\u2028\u2029\x00\\\"'"],
)
def test_json_in_a_script_is_text(text: str) -> None:
    made = json_for_script({text: [text]})
    assert not re.search(r"[<>&\u2028\u2029\x00]", made)
    assert json.loads(made) == {text: [text]}


def test_the_policy_lets_only_these_texts_run() -> None:
    made = policy(["alert(1)"], ["p {}"])
    assert made.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in made
    assert "bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=" in made


# The series of a page: few, whatever a run has, and no peak left out.

_SECOND = 10**9


def _panel(series: list[Series], unit: str = "bytes") -> PanelData:
    return PanelData("title", "", unit, "time", tuple(series), window_ns=_SECOND)


def _tasks(kind: Any, count: int, points: int) -> list[Series]:
    times = tuple(i * _SECOND for i in range(points))
    return [
        Series(kind, "y", f"dd-{task}", ("dd", str(task)), times,
               tuple((task * 7919 + i * 104729) % 1000 for i in range(points)))
        for task in range(count)
    ]  # fmt: skip


def test_every_figure_is_of_the_page_or_named_as_missing() -> None:
    assert {figure.name for figure in FIGURES} == {*FIGURES_OF_PAGE, *DRAWN_ELSEWHERE}


@pytest.mark.parametrize("kind", ["line", "step"])
def test_many_tasks_are_five_and_the_range_of_the_others(kind: Any) -> None:
    series = _tasks(kind, 40, 100)
    series[33] = Series(kind, "y", "dd-33", ("dd", "33"), series[33].x, (*series[33].y[:99], 10**6))
    drawn = drawn_of(_panel(series), {})
    assert [one.series.label for one in drawn[:-1]] == [f"dd-{task}" for task in range(5)]
    rest = drawn[-1].series
    assert (rest.kind, rest.label) == ("band", "35 others, lowest to highest")
    others = [one for one in series if int(one.key[1]) >= 5]
    for place, (low, high) in enumerate(zip(rest.y, rest.upper, strict=True)):
        values = [one.y[place] for one in others]
        assert (low, high) == (min(values), max(values))
    assert rest.upper[-1] == 10**6
    told = record_of(_panel(series), drawn, 500)["series"]
    assert [one.get("stepped", False) for one in told] == [kind == "step"] * 6
    assert len(told[-1]["upper"]) == len(told[-1]["y"]) == 100 + (kind == "step")


def test_points_of_many_tasks_are_the_highest_and_the_lowest() -> None:
    series = _tasks("points", 40, 100)
    highest, lowest = (one.series for one in drawn_of(_panel(series), {})[-2:])
    assert (highest.kind, highest.label) == ("points", "35 others, highest")
    others = series[5:]
    assert highest.y == tuple(max(one.y[i] for one in others) for i in range(100))
    assert lowest.y == tuple(min(one.y[i] for one in others) for i in range(100))


def test_many_holders_are_a_sum() -> None:
    series = _tasks("area", 40, 50)
    drawn = drawn_of(_panel(series), {})
    rest = drawn[-1].series
    assert (rest.kind, rest.label) == ("area", "35 others")
    for place in range(50):
        shown = sum(one.series.y[place] for one in drawn)
        assert shown == sum(one.y[place] for one in series)
    assert extent_of(_panel(series)) == (
        0,
        max(sum(ys) for ys in zip(*(s.y for s in series), strict=True)),
    )


def test_a_record_has_the_numbers() -> None:
    series = _tasks("line", 2, 1000)
    record = record_of(_panel(series), drawn_of(_panel(series), {}), 500)
    assert len(record["times"]) == 1
    for one, told in zip(series, record["series"], strict=True):
        assert tuple(accumulate(record["times"][told["x"]])) == one.x
        assert tuple(told["y"]) == one.y
    json.dumps(record, allow_nan=False)


def test_fewer_pixels_keep_every_peak() -> None:
    (series,) = _tasks("line", 1, 10_000)
    spiky = Series("line", "y", "", (), series.x, (*series.y[:4321], 10**9, *series.y[4322:]))
    (told,) = record_of(_panel([spiky]), drawn_of(_panel([spiky]), {}), 50)["series"]
    assert len(told["y"]) <= 250
    assert max(told["y"]) == 10**9
    assert min(told["y"]) == min(spiky.y)


def test_the_last_window_of_a_step_is_drawn() -> None:
    (series,) = _tasks("step", 1, 3)
    record = record_of(_panel([series]), drawn_of(_panel([series]), {}), 50)
    assert list(accumulate(record["times"][0])) == [0, _SECOND, 2 * _SECOND, 3 * _SECOND]
    assert record["series"][0]["y"] == [*series.y, series.y[-1]]


@pytest.mark.parametrize(
    ("start", "end", "at"),
    [
        (12_345_678_901, None, "12.345678s"),
        (12_345_678_901, 13_000_000_000, "12.345678s..13.000000s"),
        (12_345_678_901, 12_345_678_950, "12.345678s"),
        (-5, _SECOND, "0.000000s..1.000000s"),
    ],
)
def test_a_command_opens_at_a_time(start: int, end: int | None, at: str) -> None:
    assert open_command("a run", start, end) == f"wbscope open 'a run' --at {at}"


# Thinning: of each pixel the lowest and the highest value stay, and order and gaps.

_X = st.integers(0, 10**12) | st.integers(0, 20)
_VALUE = st.floats(-1e9, 1e9) | st.sampled_from((None, 0.0, 1.0))
_POINT = st.tuples(_X, _VALUE, st.floats(0, 1e6))
_POINTS = st.integers(1, 300).flatmap(lambda n: st.lists(_POINT, min_size=n, max_size=n))


def _series(kind: Any, points: list[tuple[int, float | None, float]]) -> Series:
    x, y, more = zip(*sorted(points, key=lambda point: point[0]), strict=True)
    upper = [None if low is None else low + by for low, by in zip(y, more, strict=True)]
    return Series(kind, "value", "a", (), x, y, tuple(upper) if kind == "band" else ())


def _pixel(series: Series, pixels: int, x: Any) -> int:
    low, high = series.x[0], series.x[-1]
    assert isinstance(low, int)
    assert isinstance(high, int)
    return min(int((x - low) / ((high - low) / pixels or 1)), pixels - 1)


@for_all(
    100,
    kind=st.sampled_from(["line", "step", "points", "limit", "ecdf", "band"]),
    points=_POINTS,
    pixels=st.integers(1, 30),
)
def test_no_peak_is_lost(
    kind: str, points: list[tuple[int, float | None, float]], pixels: int
) -> None:
    whole = _series(kind, points)
    few = thin(whole, pixels)
    assert len(few.x) <= max(5 * pixels, pixels * (7 if kind == "band" else 5))
    assert (few.kind, few.label, few.column) == (whole.kind, whole.label, whole.column)
    given = list(zip(whole.x, whole.y, strict=True))
    kept = list(zip(few.x, few.y, strict=True))
    # Points of the series, in their order.
    rest = iter(given)
    assert all(point in rest for point in kept)
    for edge in (whole.y, whole.upper) if whole.upper else (whole.y,):
        other = few.upper if edge is whole.upper else few.y
        before: dict[int, list[float]] = {}
        after: dict[int, list[float]] = {}
        for into, xs, ys in ((before, whole.x, edge), (after, few.x, other)):
            for x, y in zip(xs, ys, strict=True):
                if isinstance(y, int | float):
                    into.setdefault(_pixel(whole, pixels, x), []).append(y)
        assert {p: (min(v), max(v)) for p, v in before.items()} == {
            p: (min(v), max(v)) for p, v in after.items()
        }
    gaps = {_pixel(whole, pixels, x) for x, y in given if y is None}
    assert gaps == {_pixel(whole, pixels, x) for x, y in kept if y is None}


def test_what_is_small_or_no_curve_stays_as_it_is() -> None:
    series = Series("line", "v", "", (), tuple(range(50)), tuple(range(50)))
    assert thin(series, 10) is series
    bars = Series("bars", "v", "", (), tuple("abc"), (1, 2, 3))
    assert thin(bars, 1) is bars


def test_points_at_one_time() -> None:
    series = Series("points", "v", "", (), (7,) * 100, tuple(range(100)))
    assert thin(series, 5).y == (0, 99)
