# SPDX-License-Identifier: Apache-2.0
"""Two runs in one timeline: `wbscope timeline A --against B`, in the engine of the UI."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.perfetto_engine import PerfettoEngine
from support.runs import example
from wbscope.viewer.startup import file_summary

RUNS = ("four-equal-writers", "four-equal-writers-7.2")
OTHERS = tuple(reversed(RUNS))
# When each track below a root begins.
FIRST = """
WITH RECURSIVE below(root, id) AS (
  SELECT name, id FROM track WHERE parent_id IS NULL AND name GLOB '[AB]: *'
  UNION ALL
  SELECT b.root, t.id FROM track AS t JOIN below AS b ON t.parent_id = b.id
),
event AS (
  SELECT track_id, ts FROM slice UNION ALL SELECT track_id, ts FROM counter
)
SELECT b.root, min(e.ts), count(*) FROM below AS b JOIN event AS e ON e.track_id = b.id
GROUP BY b.root ORDER BY b.root
"""


def written(wbscope: Wbscope, output: Path, *words: str | Path) -> Path:
    done = wbscope.run("timeline", *words, "-o", output)
    assert done.returncode == 0, done.stderr
    return output


@pytest.mark.parametrize("names", [RUNS, OTHERS, (RUNS[0], "deep")])
def test_two_groups_begin_together(
    wbscope: Wbscope, tmp_path: Path, names: tuple[str, str]
) -> None:
    """Whichever of them has the later clock."""
    first, second = (example(name).folder for name in names)
    trace = written(wbscope, tmp_path / "two.pftrace", first, "--against", second)
    with PerfettoEngine() as engine:
        engine.load(trace)
        _, wrong = engine.table(
            "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
        )
        assert wrong == []
        _, found = engine.table(FIRST)
        _, roots = engine.table("SELECT count(*) FROM track WHERE parent_id IS NULL")
        _, events = engine.table("SELECT count(*) FROM ftrace_event")
        _, threads = engine.table("SELECT count(*) FROM thread WHERE tid <> 0")
        _, bounds = engine.table("SELECT start_ts FROM trace_bounds")
        begin = bounds[0][0]
    assert [row[0] for row in found] == [f"A: {names[0]}", f"B: {names[1]}"]
    assert {row[1] for row in found} == {begin}
    # Nothing stands beside the groups: no recorded events, no threads that two runs may share.
    assert roots == [(2,)]
    assert events == [(0,)]
    assert threads == [(0,)]


def test_each_has_what_it_has_alone(wbscope: Wbscope, tmp_path: Path) -> None:
    """As many slices and points, those of threads too."""
    counts = "SELECT (SELECT count(*) FROM slice), (SELECT count(*) FROM counter)"
    alone = []
    for name in RUNS:
        trace = written(wbscope, tmp_path / f"{name}.pftrace", example(name).folder, "--no-events")
        with PerfettoEngine() as engine:
            engine.load(trace)
            alone.append(engine.table(counts)[1][0])
    folders = [example(name).folder for name in RUNS]
    both = written(wbscope, tmp_path / "two.pftrace", folders[0], "--against", folders[1])
    with PerfettoEngine() as engine:
        engine.load(both)
        assert engine.table(counts)[1] == [(alone[0][0] + alone[1][0], alone[0][1] + alone[1][1])]


def test_runs_of_one_name(wbscope: Wbscope, tmp_path: Path) -> None:
    """Their groups have the paths, as they were given."""
    folders = [tmp_path / part / "run" for part in ("new", "old")]
    for folder in folders:
        shutil.copytree(example(RUNS[0]).folder, folder)
    trace = written(wbscope, tmp_path / "two.pftrace", folders[0], "--against", folders[1])
    with PerfettoEngine() as engine:
        engine.load(trace)
        _, found = engine.table(FIRST)
        _, told = engine.table(file_summary().arguments[0])
    warnings = [row[2] for row in told if row[0] == "warning"]
    assert {text[:3] for text in warnings} == {"A: ", "B: "}
    assert len({text[3:] for text in warnings}) == len(warnings) / 2
    assert [row[0] for row in found] == [f"A: {folders[0]}", f"B: {folders[1]}"]
    assert found[0][1:] == found[1][1:]


def test_a_part_of_both(wbscope: Wbscope, tmp_path: Path) -> None:
    first, second = (example(name).folder for name in RUNS)
    options = ("--against", second, "--from", "1s", "--to", "2s")
    part = written(wbscope, tmp_path / "part.pftrace", first, *options)
    whole = written(wbscope, tmp_path / "whole.pftrace", first, "--against", second)
    assert part.stat().st_size < whole.stat().st_size / 2
    with PerfettoEngine() as engine:
        engine.load(part)
        _, found = engine.table(FIRST)
    assert [row[0] for row in found] == [f"A: {RUNS[0]}", f"B: {RUNS[1]}"]


def test_recorded_events_of_two_runs_are_refused(wbscope: Wbscope, tmp_path: Path) -> None:
    first, second = (example(name).folder for name in RUNS)
    options = ("--against", second, "--events", "sched:*")
    done = wbscope.run("timeline", first, *options, "-o", tmp_path / "two.pftrace")
    assert done.returncode == 2
    assert "error[two-choices]: --events --against" in done.stderr


def test_the_other_run_is_not_there(wbscope: Wbscope, tmp_path: Path) -> None:
    first = example(RUNS[0]).folder
    for command in (["timeline", first, "-o", tmp_path / "x.pftrace"], ["open", first]):
        done = wbscope.run(
            *command, "--against", tmp_path / "none", *(["--port", "0"] * ("open" in command))
        )
        assert done.returncode == 3
        assert not (tmp_path / "x.pftrace").exists()
