# SPDX-License-Identifier: Apache-2.0
"""The series of a page: few, whatever a run has, and no peak left out."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any

import pytest
from wbscope.plot.figures import FIGURES
from wbscope.plot.panels import PanelData, Series
from wbscope.render.figures import DRAWN_ELSEWHERE, FIGURES_OF_PAGE, drawn_of, extent_of, record_of
from wbscope.render.sections import open_command

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
