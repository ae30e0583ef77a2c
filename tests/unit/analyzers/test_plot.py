# SPDX-License-Identifier: Apache-2.0
"""Figures as data, and wbscope plot."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from golden.figure_rows import case as golden
from golden.lost_in_between import case as golden_lost
from support.cli import Wbscope, line_of
from support.faults import foreign_files, snapshot
from support.runs import REPOSITORY
from wbscope.base.errors import UsageError
from wbscope.base.result import Result, unit_of
from wbscope.library.library import load_library
from wbscope.plot.draw import styled
from wbscope.plot.figures import FIGURES, Figure, Mark, Panel, find_figures
from wbscope.plot.panels import (
    Asked,
    Grid,
    PanelData,
    Series,
    as_json,
    ask_figure,
    panels,
    with_gaps,
    with_zeros,
)
from wbscope.plot.picture import picture
from wbscope.run.run import open_run

# wbscope plot: what it lists, writes, refuses, and leaves alone.

_MS = 1_000_000
_S = 1000 * _MS
_PAGE = 4096
_KIB = 1024


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The golden trace whose rows were worked out by hand; see its case.py."""
    folder = tmp_path / "figure-rows"
    folder.mkdir()
    golden.make(folder)
    return folder


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wbscope:
    """The real command, with the real library."""
    monkeypatch.delenv("WBSCOPE_SQL_DIR", raising=False)
    monkeypatch.delenv("WBSCOPE_INGEST", raising=False)
    return Wbscope(tmp_path / "plot-cache")


def test_values_worked_out_by_hand(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WBSCOPE_INGEST", raising=False)
    with open_run(run, library=load_library(REPOSITORY / "sql")) as opened:
        asked = {f.name: ask_figure(opened, f) for f in FIGURES}

    def series(name: str, panel: int, column: str) -> list[tuple[object, object]]:
        figure = asked[name]
        assert isinstance(figure, Asked)
        one = next(s for s in figure.panels[panel].series if s.column == column)
        return [point for point in zip(one.x, one.y, strict=True) if point[1] is not None]

    # Windows of 10 ms: one event each.
    pause = asked["balance_dirty_pages-pause"]
    assert isinstance(pause, Asked)
    assert pause.window == "10ms"
    assert {one.label: list(zip(one.x, one.y, strict=True)) for one in pause.panels[0].series} == {
        "dd-11": [
            (100 * _MS, 100 * _MS),
            (1200 * _MS, 200 * _MS),
            (1400 * _MS, 40 * _MS),
            (2500 * _MS, 12 * _MS),
        ],
        "cp-12": [(500 * _MS, -20 * _MS)],
    }
    assert series("balance_dirty_pages-task-bw", 0, "dirtied_so_far_bytes") == [
        (110 * _MS, 40 * _PAGE),
        (1210 * _MS, 60 * _PAGE),
        (2510 * _MS, 68 * _PAGE),
    ]
    assert series("balance_dirty_pages-bandwidth", 0, "write_bw_bytes_per_s") == [
        (600 * _MS, 1000 * _KIB),
        (900 * _MS, 3000 * _KIB),
    ]
    assert series("balance_dirty_pages-pages", 0, "freerun_bytes")[0] == (100 * _MS, 800 * _PAGE)
    assert series("global_dirty_state", 1, "nr_writeback_bytes") == [
        (0, 50 * _PAGE),
        (1000 * _MS, 150 * _PAGE),
        (3000 * _MS, 0),
    ]
    heat = asked["latency-heatmap"]
    assert isinstance(heat, Asked)
    assert [(p.about, p.series[0].x, p.series[0].y, p.series[0].upper) for p in heat.panels] == [
        ("8:0 write", (200 * _MS, 300 * _MS, 2100 * _MS), (1 << 23, 1 << 23, 1 << 29), (1, 1, 1)),
        ("8:0 read", (400 * _MS,), (1 << 19,), (1,)),
    ]


def test_list(command: Wbscope, run: Path) -> None:
    plain = command.run("plot", "--list")
    assert (plain.returncode, plain.stderr) == (0, "")
    names = [line for line in plain.stdout.splitlines() if not line.startswith(" ")]
    assert names == [figure.name for figure in FIGURES]
    assert max(map(len, plain.stdout.splitlines())) <= 80
    of_run = command.run("plot", run)
    assert of_run.stdout == command.run("plot", run, "--list").stdout
    lines = of_run.stdout.splitlines()
    assert "global_dirty_state" in lines
    assert "copy-and-sync: not in this run" in lines
    document = command.document("plot", run, "--list")
    assert document["schema"] == "wbscope.figures/1"
    there = {row["name"]: row["is_there"] for row in document["rows"]}
    assert (there["task-wait"], there["vmstat"], there["copy-and-sync"]) == (True, False, False)
    why = next(row["why_not"] for row in document["rows"] if row["name"] == "copy-and-sync")
    assert why.startswith("needs syscalls:sys_exit_write")


def test_figures_that_lack_events_are_told(command: Wbscope, run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    done = command.run("plot", run, "copy-and-sync", "task-wait", "-o", folder, "--format", "svg")
    assert done.returncode == 0
    assert [path.name for path in folder.iterdir()] == ["task-wait.svg"]
    lines = done.stderr.splitlines()
    line_of(lines[0], "warning[missing-event]: copy-and-sync ", "syscalls:sys_exit_write")
    line_of(lines[1], "wrote ", 1, folder)
    assert len(lines) == 2
    assert done.stdout == ""


def test_nothing_to_draw_is_an_error(command: Wbscope, run: Path, tmp_path: Path) -> None:
    one = command.run("plot", run, "copy-and-sync", "-o", tmp_path / "new")
    assert (one.returncode, one.stdout) == (4, "")
    line_of(one.stderr, "error[missing-event]: copy_and_sync: ", "syscalls:sys_exit_write")
    two = command.run("plot", run, "copy-and-sync", "vmstat", "-o", tmp_path / "new")
    assert two.returncode == 4
    assert two.stderr.splitlines()[-2].startswith("error[nothing-to-draw]: ")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("words", "code", "slug"),
    [
        (["{run}", "task-wayt", "-o", "{folder}"], 2, "unknown-figure"),
        (["{run}", "-o", "{folder}", "--format", "gif"], 2, "usage"),
        (["{run}", "-o", "{folder}/no/such"], 5, "no-output-folder"),
        (["{run}", "-o", "{run}/trace.dat"], 2, "output-is-file"),
        (["{run}", "-o", "{run}/trace.dat/pictures"], 5, "no-output-folder"),
        (["{run}", "-o", ""], 2, "no-output"),
        (["{run}", "-o", "-"], 2, "output-is-stdout"),
        (["{run}", "-o", "all.png"], 2, "output-is-picture"),
        (["{run}", "task-wait", "-o", "it.png", "--format", "svg"], 2, "output-is-picture"),
        (["{run}", "task-wait", "-o", "no/such/it.png"], 5, "no-output-folder"),
        (["-o", "-"], 2, "output-is-stdout"),
        (["{run}.none", "-o", "/proc/pictures"], 5, "cannot-write"),  # before any work
        (["{run}.none", "-o", "/proc"], 5, "cannot-write"),
        (["{run}.none", "-o", "x" * 300], 5, "cannot-write"),
        (["{run}", "-o", "{folder}", "--from", "9s"], 2, "empty-range"),
        (["{run}", "-o", "{folder}", "--list"], 2, "two-choices"),
        (["{run}.none", "-o", "{folder}"], 3, "no-such-file"),
        (["-o", "{folder}"], 2, "usage"),
        ([], 2, "usage"),
    ],
)
def test_wrong_input(
    command: Wbscope, run: Path, tmp_path: Path, words: list[str], code: int, slug: str
) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    words = [word.format(run=run, folder=folder) for word in words]
    before = sorted(tmp_path.iterdir())
    done = command.run("plot", *words, "--json", cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert [path for path in sorted(tmp_path.iterdir()) if path.name != "plot-cache"] == before
    assert json.loads(done.stderr.splitlines()[-1])["error"]["slug"] == slug
    assert list(folder.iterdir()) == []


def test_one_picture_by_its_name(command: Wbscope, run: Path, tmp_path: Path) -> None:
    words = ("plot", run, "task-wait", "-o", tmp_path / "waits.svg")
    done = command.run(*words)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    line_of(done.stderr, "wrote ", 1, tmp_path / "waits.svg")
    assert (tmp_path / "waits.svg").read_text().startswith("<?xml")
    again = command.run(*words)
    assert (again.returncode, "error[output-exists]" in again.stderr) == (2, True)
    # A folder may be called so, too.
    (tmp_path / "of.png").mkdir()
    assert command.run("plot", run, "task-wait", "-o", tmp_path / "of.png").returncode == 0
    assert [path.name for path in (tmp_path / "of.png").iterdir()] == ["task-wait.png"]


def test_other_files_stay(command: Wbscope, run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    before = foreign_files(folder)
    done = command.run("plot", run, "task-wait", "global_dirty_state", "-o", folder)
    assert done.returncode == 0, done.stderr
    after = snapshot(folder)
    made = {"task-wait.png", "global_dirty_state.png"}
    assert after.keys() - before.keys() == made
    assert {path: seen for path, seen in after.items() if path not in made} == before
    # Nothing is replaced, not even one of several, until asked to.
    again = command.run("plot", run, "iostat-bw", "task-wait", "-o", folder)
    assert again.returncode == 2
    assert "error[output-exists]" in again.stderr
    assert snapshot(folder) == after
    forced = command.run("plot", run, "iostat-bw", "task-wait", "-o", folder, "--force")
    assert forced.returncode == 0, forced.stderr
    new = snapshot(folder)
    assert new.keys() - after.keys() == {"iostat-bw.png"}
    assert new["task-wait.png"][2] == after["task-wait.png"][2], "the same picture"
    assert new["task-wait.png"][1] != after["task-wait.png"][1], "another file, made whole"


def test_a_part_of_the_time(command: Wbscope, run: Path, tmp_path: Path) -> None:
    words = ("plot", run, "balance_dirty_pages-pause", "-o", tmp_path / "part", "--format", "svg")
    done = command.run(*words, "--from", "1s", "--to", "2s")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "part" / "balance_dirty_pages-pause.svg").read_text()
    assert "wbscope query task_pauses RUN --window 2ms --from 1s --to 2s" in text
    assert "figure-rows" in text
    assert str(tmp_path) not in text, "the same run, the same bytes, wherever it lies"


def test_lost_events_and_damage_are_told_first_and_in_the_picture(
    command: Wbscope, tmp_path: Path
) -> None:
    lost = tmp_path / "lost"
    lost.mkdir()
    golden_lost.make(lost)
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    whole = (REPOSITORY / "examples/four-equal-writers/trace.dat").read_bytes()
    half = len(whole) // 2
    (damaged / "trace.dat").write_bytes(whole[:half] + b"\xff" * 64 + whole[half + 64 :])
    figure = "balance_dirty_pages-pause"
    for folder, slug in ((lost, "lost-events"), (damaged, "damaged-trace")):
        done = command.run("plot", folder, figure, "-o", folder / "a", "--format", "svg")
        assert done.returncode == 0, done.stderr
        first = done.stderr.splitlines()[0]
        assert first.startswith(f"warning[{slug}]: ")
        texts = ElementTree.parse(folder / "a" / f"{figure}.svg").getroot().iter()
        told = " ".join(one.text or "" for one in texts)
        assert f"warning: {first.split(': ', 1)[1][:40]}" in told
        listed = command.run("plot", folder)
        assert listed.stderr.splitlines()[0] == first


# Figures as data: what they name exists, and what becomes of rows, gaps, names and strangers.

_SEC = 10**9
_GRID = Grid(0, 10 * _SEC, _SEC)


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
    return Result("q", tuple(columns.split()), {}, list(rows), start_ns=100 * _SEC, **values)


def test_times_count_from_the_first_event() -> None:
    result = _result(
        "window_start_ns a_bytes", (100 * _SEC, 5), (102 * _SEC, None), (103 * _SEC, 7)
    )
    [panel] = panels(_figure(Mark("line", "a_bytes", "a")), result, _GRID)
    [series] = panel.series
    assert (series.x, series.y) == ((0, 2 * _SEC, 3 * _SEC), (5, None, 7))
    assert (panel.x_axis, panel.window_ns, series.label, series.key) == ("time", _SEC, "a", ())


def test_what_is_not_known_for_long_is_a_gap() -> None:
    assert with_gaps([(0, 1, None), (5, 2, None), (9, 3, None)], 4) == [
        (0, 1, None), (2, None, None), (5, 2, None), (9, 3, None),
    ]  # fmt: skip
    rows = ((100 * _SEC, 5), (101 * _SEC, None), (102 * _SEC, 6), (106 * _SEC, 7))
    result = _result("window_start_ns a_bytes", *rows)
    [panel] = panels(_figure(Mark("line", "a_bytes"), gap_ns=2 * _SEC), result, _GRID)
    assert list(zip(panel.series[0].x, panel.series[0].y, strict=True)) == [
        (0, 5), (2 * _SEC, 6), (4 * _SEC, None), (6 * _SEC, 7),
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
        (100 * _SEC, "8:0", 1, "dd", 11, 1),
        (100 * _SEC, "8:0", 7, "cp", 12, 9),
        (100 * _SEC, None, None, "cp", 13, 2),
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
    result = _result("window_start_ns a_bytes limit_bytes", (100 * _SEC, None, 5))
    figure = _figure(Mark("line", "a_bytes"), Mark("limit", "limit_bytes"))
    assert panels(figure, result, _GRID) == ()


def test_lost_events_mark_their_windows() -> None:
    columns = "window_start_ns a_bytes lost_gaps_count"
    result = _result(columns, (100 * _SEC, 1, 0), (101 * _SEC, 1, 3))
    [panel] = panels(_figure(Mark("line", "a_bytes")), result, _GRID)
    assert panel.lost == ((_SEC, 2 * _SEC),)


def test_lengths_without_an_end_are_no_lengths() -> None:
    result = _result("dur kind", (5, "a"), (None, "a"), (5, "a"), (9, "a"), (20, "a"))
    figure = _figure(Mark("ecdf", ""), x="dur", by=("kind",))
    [panel] = panels(figure, result, Grid(0, _SEC))
    assert (panel.series[0].x, panel.series[0].y) == ((5, 9, 20), (0.5, 0.75, 1.0))
    assert panel.x_axis == "length"


def test_areas_of_one_panel_have_the_same_times() -> None:
    rows = ((100 * _SEC, "a", 1), (101 * _SEC, "a", 2), (101 * _SEC, "b", 5))
    figure = _figure(Mark("area", "a_bytes"), by=("bdi",))
    [panel] = panels(figure, _result("window_start_ns bdi a_bytes", *rows), _GRID)
    assert [(one.label, one.x, one.y) for one in panel.series] == [
        ("b", (0, _SEC), (0, 5)),
        ("a", (0, _SEC), (1, 2)),
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
    x: tuple[Any, ...] = ("a", "_b$x^2$\x01") if kind in ("bars",) else (0, 2 * _SEC)
    y: tuple[Any, ...] = ("a", "_b$x^2$\x01") if kind == "spans" else (1, value)
    upper = (3 * _SEC, value) if kind == "spans" else ()
    series = Series(kind, "v_bytes", "_$\\frac\x00 \ud800", ("k",), x, y, upper)
    axis = {"bars": "names", "ecdf": "length"}.get(kind, "time")
    panel = PanelData("panel", "a$b", "bytes", axis, (series,), window_ns=_SEC)
    made = picture([panel], Grid(0, _SEC, _SEC), "T", ["below\x02"], ["doubt <&>"], ["svg", "png"])
    texts = ["".join(one.itertext()) for one in ElementTree.fromstring(made["svg"]).iter()]
    assert any("doubt <&>" in text for text in texts)
    assert made["png"].startswith(b"\x89PNG")


def test_heat_of_one_cell() -> None:
    series = Series("heat", "at_least_ns", "", (), (0,), (0,), (1,))
    panel = PanelData("panel", "", "ns", "time", (series,), window_ns=_SEC, log="y")
    assert picture([panel], Grid(0, 1), "T", [], [], ["png"])["png"]


def test_a_long_text_of_a_stranger_is_cut() -> None:
    """Else a picture takes minutes, and has the size of a poster."""
    long = "A" * 1_000_000
    series = Series("line", "v_bytes", long, (long,), (0, _SEC), (1, 2))
    panel = PanelData("panel", long, "bytes", "time", (series,), window_ns=_SEC)
    made = picture([panel], Grid(0, _SEC, _SEC), "T", [long, f"Linux {long}"], [long], ["svg"])
    assert len(made["svg"]) < 100_000
    texts = [one.text or "" for one in ElementTree.fromstring(made["svg"]).iter()]
    assert 0 < sum(text.count("A") for text in texts) < 10_000
