# SPDX-License-Identifier: Apache-2.0
"""wbscope plot: what it lists, writes, refuses, and leaves alone."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from golden.figure_rows import case as golden
from golden.lost_in_between import case as golden_lost
from support.cli import Wbscope, line_of
from support.foreign import foreign_files, snapshot
from support.runs import REPOSITORY
from wbscope.library.library import load_library
from wbscope.plot.figures import FIGURES
from wbscope.plot.panels import Asked, ask_figure
from wbscope.run.run import open_run

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
