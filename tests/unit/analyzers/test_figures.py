# SPDX-License-Identifier: Apache-2.0
"""Figures as data: what they name exists, and what becomes of rows, gaps, names and strangers."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from support.runs import REPOSITORY
from wbscope.base.errors import UsageError
from wbscope.base.result import Result, unit_of
from wbscope.library.library import load_library
from wbscope.plot.draw import styled
from wbscope.plot.figures import FIGURES, Figure, Mark, Panel, find_figures
from wbscope.plot.panels import Grid, PanelData, Series, as_json, panels, with_gaps, with_zeros
from wbscope.plot.picture import picture

_S = 10**9
_GRID = Grid(0, 10 * _S, _S)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_columns_are_those_of_the_query(figure: Figure) -> None:
    query = load_library(REPOSITORY / "sql").query(figure.query)
    columns = {column.name for column in query.columns}
    for panel in figure.panels:
        named = {*panel.by, *panel.each, *panel.names, *(column for column, _ in panel.only)}
        named |= {name for mark in panel.marks for name in (mark.y, mark.upper) if name}
        named |= {panel.x} if not panel.names or panel.marks[0].kind == "spans" else set()
        named |= {panel.longest} if panel.longest else set()
        assert named <= columns, named - columns
        for mark in panel.marks:
            if mark.kind not in ("spans", "heat") and mark.y:
                unit = unit_of(mark.y)
                assert unit == panel.unit or (unit, panel.unit) == ("count", "pages"), mark
    assert bool(figure.windows) == query.is_of_windows()
    assert figure.title
    assert not figure.title.endswith(".")


def test_names_of_figures() -> None:
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)
    assert find_figures([]) == FIGURES
    assert [f.name for f in find_figures(["vmstat", "task-wait", "vmstat"])] == [
        "vmstat",
        "task-wait",
    ]
    with pytest.raises(UsageError) as error:
        find_figures(["global_dirty_stat"])
    assert str(error.value.have).startswith("did you mean global_dirty_state or ")
    assert error.value.exit_code == 2
    with pytest.raises(UsageError, match="is none of the"):
        find_figures(["qqqqqq"])


def test_numbers_need_no_matplotlib() -> None:
    code = (
        "import sys, wbscope.plot.panels, wbscope.plot.panels; print('matplotlib' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"


def _figure(*marks: Mark, **values: Any) -> Figure:
    return Figure("f", "Title", "q", (Panel("panel", "bytes", marks, **values),), windows=10)


def _result(columns: str, *rows: tuple[Any, ...], **values: Any) -> Result:
    return Result("q", tuple(columns.split()), {}, list(rows), start_ns=100 * _S, **values)


def test_times_count_from_the_first_event() -> None:
    result = _result("window_start_ns a_bytes", (100 * _S, 5), (102 * _S, None), (103 * _S, 7))
    [panel] = panels(_figure(Mark("line", "a_bytes", "a")), result, _GRID)
    [series] = panel.series
    assert (series.x, series.y) == ((0, 2 * _S, 3 * _S), (5, None, 7))
    assert (panel.x_axis, panel.window_ns, series.label, series.key) == ("time", _S, "a", ())


def test_what_is_not_known_for_long_is_a_gap() -> None:
    assert with_gaps([(0, 1, None), (5, 2, None), (9, 3, None)], 4) == [
        (0, 1, None), (2, None, None), (5, 2, None), (9, 3, None),
    ]  # fmt: skip
    rows = ((100 * _S, 5), (101 * _S, None), (102 * _S, 6), (106 * _S, 7))
    result = _result("window_start_ns a_bytes", *rows)
    [panel] = panels(_figure(Mark("line", "a_bytes"), gap_ns=2 * _S), result, _GRID)
    assert list(zip(panel.series[0].x, panel.series[0].y, strict=True)) == [
        (0, 5), (2 * _S, 6), (4 * _S, None), (6 * _S, 7),
    ]  # fmt: skip


def test_windows_without_a_row_are_zeros_where_nothing_happened() -> None:
    assert with_zeros([(20, 3, None)], 10, 0, 65) == [
        (0, 0, 0), (10, 0, 0), (20, 3, None), (30, 0, 0), (60, 0, 0),
    ]  # fmt: skip
    # A sample before the first event.
    assert with_zeros([(-10, 1, None), (0, 2, None)], 10, 0, 10) == [(-10, 1, None), (0, 2, None)]


def test_series_are_called_as_people_call_them() -> None:
    labels = {"bdi": {"8:0": "sda (/data)"}, "cgroup_ino": {7: "/small"}}
    result = _result(
        "window_start_ns bdi cgroup_ino comm tid a_bytes",
        (100 * _S, "8:0", 1, "dd", 11, 1),
        (100 * _S, "8:0", 7, "cp", 12, 9),
        (100 * _S, None, None, "cp", 13, 2),
        labels=labels,
    )
    figure = _figure(Mark("line", "a_bytes"), each=("bdi", "cgroup_ino"), by=("comm", "tid"))
    made = panels(figure, result, _GRID)
    assert [(p.about, p.place, p.of, p.series[0].label) for p in made] == [
        ("sda (/data), cgroup /small", 0, 3, "cp-12"),
        ("unknown", 1, 3, "cp-13"),
        ("sda (/data)", 2, 3, "dd-11"),
    ]
    assert json.loads(json.dumps(as_json(made)))[0]["series"][0]["key"] == ["cp", "12"]


def test_panel_without_values_is_left_out() -> None:
    result = _result("window_start_ns a_bytes limit_bytes", (100 * _S, None, 5))
    figure = _figure(Mark("line", "a_bytes"), Mark("limit", "limit_bytes"))
    assert panels(figure, result, _GRID) == ()


def test_lost_events_mark_their_windows() -> None:
    columns = "window_start_ns a_bytes lost_gaps_count"
    result = _result(columns, (100 * _S, 1, 0), (101 * _S, 1, 3))
    [panel] = panels(_figure(Mark("line", "a_bytes")), result, _GRID)
    assert panel.lost == ((_S, 2 * _S),)


def test_lengths_without_an_end_are_no_lengths() -> None:
    result = _result("dur kind", (5, "a"), (None, "a"), (5, "a"), (9, "a"), (20, "a"))
    figure = _figure(Mark("ecdf", ""), x="dur", by=("kind",))
    [panel] = panels(figure, result, Grid(0, _S))
    assert (panel.series[0].x, panel.series[0].y) == ((5, 9, 20), (0.5, 0.75, 1.0))
    assert panel.x_axis == "length"


def test_areas_of_one_panel_have_the_same_times() -> None:
    rows = ((100 * _S, "a", 1), (101 * _S, "a", 2), (101 * _S, "b", 5))
    figure = _figure(Mark("area", "a_bytes"), by=("bdi",))
    [panel] = panels(figure, _result("window_start_ns bdi a_bytes", *rows), _GRID)
    assert [(one.label, one.x, one.y) for one in panel.series] == [
        ("b", (0, _S), (0, 5)),
        ("a", (0, _S), (1, 2)),
    ]


def test_many_tasks_are_few_colours() -> None:
    made = [Series("line", "v", f"dd-{n}", (str(n),), (0,), (n,)) for n in range(30)]
    panel = PanelData("p", "", "bytes", "time", tuple(made))
    styles = styled(panel, {})
    told = [style.label for style in styles if style.label]
    assert told == ["dd-0", "dd-1", "dd-2", "dd-3", "dd-4", "25 others"]
    assert len({style.color for style in styles}) == 6


_EXTREME = [0, 1, -1, 2**63 - 1, -(2**63), 0.1, 1e300, None]


@pytest.mark.dealt
@pytest.mark.parametrize("kind", ["line", "step", "points", "area", "ecdf", "bars", "spans"])
@pytest.mark.parametrize("value", _EXTREME)
def test_any_number_can_be_drawn(kind: Any, value: Any) -> None:
    x: tuple[Any, ...] = ("a", "_b$x^2$\x01") if kind in ("bars",) else (0, 2 * _S)
    y: tuple[Any, ...] = ("a", "_b$x^2$\x01") if kind == "spans" else (1, value)
    upper = (3 * _S, value) if kind == "spans" else ()
    series = Series(kind, "v_bytes", "_$\\frac\x00 \ud800", ("k",), x, y, upper)
    axis = {"bars": "names", "ecdf": "length"}.get(kind, "time")
    panel = PanelData("panel", "a$b", "bytes", axis, (series,), window_ns=_S)
    made = picture([panel], Grid(0, _S, _S), "T", ["below\x02"], ["doubt <&>"], ["svg", "png"])
    texts = ["".join(one.itertext()) for one in ElementTree.fromstring(made["svg"]).iter()]
    assert any("doubt <&>" in text for text in texts)
    assert made["png"].startswith(b"\x89PNG")


def test_heat_of_one_cell() -> None:
    series = Series("heat", "at_least_ns", "", (), (0,), (0,), (1,))
    panel = PanelData("panel", "", "ns", "time", (series,), window_ns=_S, log="y")
    assert picture([panel], Grid(0, 1), "T", [], [], ["png"])["png"]


def test_a_long_text_of_a_stranger_is_cut() -> None:
    """Else a picture takes minutes, and has the size of a poster."""
    long = "A" * 1_000_000
    series = Series("line", "v_bytes", long, (long,), (0, _S), (1, 2))
    panel = PanelData("panel", long, "bytes", "time", (series,), window_ns=_S)
    made = picture([panel], Grid(0, _S, _S), "T", [long, f"Linux {long}"], [long], ["svg"])
    assert len(made["svg"]) < 100_000
    texts = [one.text or "" for one in ElementTree.fromstring(made["svg"]).iter()]
    assert 0 < sum(text.count("A") for text in texts) < 10_000
