# SPDX-License-Identifier: Apache-2.0
"""Recorded events ride along in a timeline: the ones that were chosen, on the same threads."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from support.archives import unpacked
from support.cli import Wbscope
from support.clockgraph import read_clocks
from support.perfetto_engine import PerfettoEngine
from support.runs import RecordedRun, drawn_runs, example
from wbscope.library.library import load_library

SAMPLES = unpacked("data") / "traces"
RUNS = ["deep", "four-equal-writers-7.2"]
COUNTS = "SELECT name, COUNT(*) AS n FROM ftrace_event GROUP BY name"


def timeline(wbscope: Wbscope, run: Path, output: Path, *options: str) -> Path:
    done = wbscope.run("timeline", run, "-o", output, *options)
    assert done.returncode == 0, done.stderr
    return output


def counts(file: Path) -> dict[str, int]:
    with PerfettoEngine() as engine:
        engine.load(file)
        return dict(engine.table(COUNTS)[1])  # type: ignore[arg-type]


def recorded(database: Path) -> dict[str, int]:
    """Events of the trace by name, loaded or not."""
    with sqlite3.connect(database) as connection:
        rows = connection.execute("SELECT event, count FROM event_counts WHERE count > 0")
        return dict(rows.fetchall())


@pytest.fixture
def database(request: pytest.FixtureRequest, wbscope: Wbscope, tmp_path: Path) -> Path:
    path = tmp_path / "run.db"
    assert wbscope.run("ingest", example(request.param).folder, "-o", path).returncode == 0
    return path


def named(events: dict[str, int]) -> dict[str, int]:
    """By the names that the engine has: without system, sys_enter_... as sys_enter."""
    found: dict[str, int] = {}
    for event, count in events.items():
        name = event.partition(":")[2]
        found[name] = found.get(name, 0) + count
    return found


@pytest.mark.parametrize(("name", "database"), [(n, n) for n in RUNS], indirect=["database"])
def test_events_that_queries_read(
    wbscope: Wbscope, name: str, database: Path, tmp_path: Path
) -> None:
    file = timeline(wbscope, example(name).folder, tmp_path / "run.pftrace")
    wanted = {
        event: count
        for event, count in recorded(database).items()
        if event in load_library().events()
    }
    assert len(wanted) > 5
    with PerfettoEngine() as engine:
        engine.load(file)
        assert dict(engine.table(COUNTS)[1]) == named(wanted)
        complaints = "SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
        assert engine.table(complaints)[1] == []
        switches = wanted.get("sched:sched_switch", 0)
        assert engine.table("SELECT COUNT(*) FROM sched_slice")[1] == [(switches,)]
        # A thread's waits and its time on a CPU are of one thread.
        tracks = (
            "SELECT t.tid, COUNT(DISTINCT t.utid) FROM thread AS t WHERE t.utid IN"
            " (SELECT k.utid FROM thread_track AS k WHERE k.name = 'Writeback stalls')"
            " OR t.utid IN (SELECT s.utid FROM sched_slice AS s) GROUP BY t.tid"
        )
        utids = dict(engine.table(tracks)[1])
        assert utids
        assert {tid: n for tid, n in utids.items() if n > 1 and tid != 0} == {}


@pytest.mark.parametrize("run", drawn_runs(), ids=str)
def test_no_reader_has_anything_to_complain_of(
    wbscope: Wbscope, run: RecordedRun, tmp_path: Path
) -> None:
    """Of the whole timeline as it is by default, with its events."""
    file = timeline(wbscope, run.folder, tmp_path / "run.pftrace")
    with PerfettoEngine() as engine:
        engine.load(file)
        problems = "SELECT name, severity, value FROM stats WHERE value > 0 AND severity <> 'info'"
        assert engine.table(problems)[1] == []
        assert engine.table("SELECT COUNT(*) > 1000 FROM ftrace_event")[1] == [(1,)]
        # Another notion of time than that of the tracks would show here.
        first, last = engine.table("SELECT start_ts, end_ts FROM trace_bounds")[1][0]
        spans = engine.table("SELECT MIN(ts), MAX(ts + dur) FROM slice WHERE dur > 0")[1][0]
    assert first <= spans[0] < spans[1] <= last


def test_events_that_would_be_most_of_the_file(wbscope: Wbscope, tmp_path: Path) -> None:
    """They stay out by default, and that is told; they ride along when they are named."""
    run = example("reclaim-writes").folder
    name = "mm_vmscan_write_folio"
    done = wbscope.run("timeline", run, "-o", tmp_path / "few.pftrace")
    told = " ".join(done.stderr.split())
    assert "warning[events-left-out]: " in told
    assert f"vmscan:{name} (" in told
    found = counts(tmp_path / "few.pftrace")
    assert name not in found
    assert found
    assert max(found.values()) <= 100_000
    assert (tmp_path / "few.pftrace").stat().st_size < 5 << 20
    named_file = timeline(wbscope, run, tmp_path / "all.pftrace", "--events", f"vmscan:{name}")
    assert counts(named_file)[name] > 100_000


def test_events_of_an_instance_are_on_the_threads_of_the_tracks(
    wbscope: Wbscope, tmp_path: Path
) -> None:
    """Of a recording with `-B`, whose top buffer is empty."""
    run = SAMPLES / "6.1-amd64-v7-host/trace.dat"
    file = timeline(wbscope, run, tmp_path / "run.pftrace", "--events", "*")
    with PerfettoEngine() as engine:
        engine.load(file)
        tids = [tid for (tid,) in engine.table("SELECT tid FROM thread")[1]]
        assert len(tids) > 1
        assert sorted(set(tids)) == sorted(tids)
        assert len(engine.table("SELECT id FROM machine")[1]) == 1


@pytest.mark.parametrize("part", [(), ("--from", "0.001s")], ids=["whole", "part"])
def test_times_of_all_machines_are_placed(
    wbscope: Wbscope, tmp_path: Path, part: tuple[str, ...]
) -> None:
    """By the rules that newer engines have of clocks: all are declared before the first track."""
    run = SAMPLES / "6.1-amd64-v7-instances/trace.dat"
    file = timeline(wbscope, run, tmp_path / "run.pftrace", "--events", "*", *part)
    graph = read_clocks(file)
    assert dict(graph.lost) == {}
    assert sorted(graph.placed) == [0, 1, 2]
    alone = timeline(wbscope, run, tmp_path / "alone.pftrace", "--no-events", *part)
    drawn = []
    for each in (file, alone):
        with PerfettoEngine() as engine:
            engine.load(each)
            drawn.append(engine.table("SELECT ts, dur, name FROM slice ORDER BY 1, 2, 3")[1])
            machines = engine.table(
                "SELECT COUNT(DISTINCT COALESCE(c.machine_id, 0)) FROM ftrace_event"
                " JOIN cpu AS c USING (ucpu)"
            )[1]
            assert machines == [(3 if each == file else 0,)]
    assert drawn[0] == drawn[1] != []


@pytest.mark.parametrize("database", ["deep"], indirect=True)
def test_choice_of_events(wbscope: Wbscope, database: Path, tmp_path: Path) -> None:
    run = example("deep").folder
    none = timeline(wbscope, run, tmp_path / "none.pftrace", "--no-events")
    assert counts(none) == {}
    some = timeline(wbscope, run, tmp_path / "some.pftrace", "--events", "sched:*")
    wanted = {e: n for e, n in recorded(database).items() if e.startswith("sched:")}
    assert counts(some) == named(wanted)
    # A database has no records as they were.
    assert counts(timeline(wbscope, database, tmp_path / "db.pftrace")) == {}


def test_two_choices_are_refused(wbscope: Wbscope, tmp_path: Path) -> None:
    done = wbscope.run(
        "timeline",
        example("deep").folder,
        "-o",
        tmp_path / "x.pftrace",
        *("--events", "sched:*", "--no-events"),
    )
    assert done.returncode == 2
    assert "two-choices" in done.stderr
    assert not list(tmp_path.iterdir())
