# SPDX-License-Identifier: Apache-2.0
"""The curves of a comparison's page: where they are drawn, in whose colour, and without styles."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from wbscope.plot.dots import ecdf_svg


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
