# SPDX-License-Identifier: Apache-2.0
"""Timelines of runs with names that nobody would choose, and of runs that lack most events."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import Wbscope
from support.perfetto_engine import PerfettoEngine
from support.runs import REPOSITORY
from support.timeline import (
    curves_of,
    difference_of_curves,
    drawn_path,
    engine_counters,
    engine_slices,
    engine_tracks,
    timeline_views,
    verdict_name,
    wanted_timeline,
)
from support.wait_events import Waits

NAMES = {
    11: "a/b\\",
    12: "x|y=z",
    13: "line\nbreak",
    14: "",
    15: "7",
    16: 'q"uote',
    17: "\\/|\\",
    18: "caf\xe9 \u4e16",
    19: "[a-z]*?",
}
PROBLEMS = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"


def hostile_run(folder: Path, *, bdi: str = "8:0/|\\") -> None:
    """Each task is throttled once, on a bdi whose name is as bad."""
    waits = Waits("balance_dirty_pages", cmdlines=NAMES)
    for place, tid in enumerate(NAMES):
        values = {"limit": 1000, "setpoint": 900, "dirty": 950, "dirty_ratelimit": 1000}
        values |= {"task_ratelimit": 875, "dirtied": 8, "pause": 10, "period": 10}
        waits.add(100 * place, tid, "balance_dirty_pages", bdi=bdi, cgroup_ino=1, **values)
    waits.add(2000, 11, "balance_dirty_pages", bdi=bdi, cgroup_ino=1)  # the last sleep ends before
    waits.write(folder)


def test_names_arrive_as_they_are(wbscope: Wbscope, tmp_path: Path) -> None:
    hostile_run(tmp_path)
    result = wbscope.run("timeline", tmp_path, "-o", tmp_path / "x.pftrace", "--no-events")
    assert result.returncode == 0, result.stderr
    views = timeline_views(REPOSITORY / "sql")
    wanted = wanted_timeline(wbscope, tmp_path / "trace.dat", tmp_path, views)
    shown = {row["tid"]: row["comm"] for row in wbscope.sql(tmp_path, "SELECT * FROM wb_thread")}
    with PerfettoEngine() as engine:
        engine.load(tmp_path / "x.pftrace")
        assert engine.query(PROBLEMS) == []
        assert engine_slices(engine) == wanted.slices
        found = curves_of(engine_counters(engine))
        assert difference_of_curves(found, wanted.curves, wanted.step_ns) == ""
        tracks = {(t.parent, t.name) for t in engine_tracks(engine)}
        comms = dict(engine_comms(engine))
    tops = {name for name, is_top in wanted.places.items() if is_top}
    for tid, comm in shown.items():
        assert (drawn_path("Writeback/Stalls", tops), f"stalls of {comm} {tid}") in tracks
        assert comms[tid] == comm
    bdi = r"Writeback/Bandwidth/8:0\/|\\"
    assert (bdi, f"task_ratelimit of {shown[11]} 11") in tracks


def engine_comms(engine: PerfettoEngine) -> list[tuple[int, str]]:
    """The argument comm of each wait, by thread."""
    return [
        (int(str(row["tid"])), str(row["comm"]))
        for row in engine.query(
            "SELECT h.tid, extract_arg(s.arg_set_id, 'debug.comm') AS comm FROM slice AS s "
            "JOIN thread_track AS t ON t.id = s.track_id JOIN thread AS h USING (utid)"
        )
    ]


@pytest.mark.parametrize("events", [("xfs_log_cil_wait",), ("block_rq_issue",)])
def test_run_with_hardly_any_events(
    wbscope: Wbscope, tmp_path: Path, events: tuple[str, ...]
) -> None:
    """What can be drawn is drawn, and each view that is left out is named."""
    waits = Waits(*events, cmdlines={1: "dd"})
    for name in events:
        waits.add(1, 1, name, dev=8 << 20)
    waits.add(2, 1, events[0], dev=8 << 20)
    waits.write(tmp_path)
    result = wbscope.run("timeline", tmp_path, "-o", tmp_path / "x.pftrace", "--no-events")
    assert result.returncode == 0, result.stderr
    for view in ("tl_throttle", "tl_dirty_pages", "tl_flusher", "tl_reclaim_writes"):
        assert f"warning[missing-event]: {view} needs " in result.stderr
    with PerfettoEngine() as engine:
        engine.load(tmp_path / "x.pftrace")
        assert engine.query(PROBLEMS) == []
        drawn = {row["name"] for row in engine.query("SELECT name FROM slice")}
    told = {verdict_name(row) for row in wbscope.query("findings", tmp_path)}
    assert any("cannot be said" in text for text in told)
    assert told <= drawn
    if events == ("xfs_log_cil_wait",):
        todo = "to do: Record with a profile: record --profile writeback."
        assert drawn == {"journal: journal commit", todo, *told}


def test_gaps_and_slices_cut_at_the_end(wbscope: Wbscope, tmp_path: Path) -> None:
    """A gap is marked; a sleep that the trace's end cuts ends there and says so."""
    waits = Waits("balance_dirty_pages", "sched_switch", cmdlines={1: "dd"})
    for ms in (0, 100):
        waits.add(ms, 1, "balance_dirty_pages", bdi="8:0", cgroup_ino=1, dirtied=8, pause=50)
        waits.switch(ms + 1, 1, 2, 0)
        if ms == 0:
            waits.switch(60, 0, 0, 1)
    waits.add(130, 0, "sched_switch", prev_pid=0, next_pid=0)
    waits.write(tmp_path, lost_before=(100,))
    result = wbscope.run("timeline", tmp_path, "-o", tmp_path / "x.pftrace", "--no-events")
    assert result.returncode == 0, result.stderr
    with PerfettoEngine() as engine:
        engine.load(tmp_path / "x.pftrace")
        assert engine.query(PROBLEMS) == []
        ends = engine.query("SELECT max(ts + dur) AS at, min(dur) AS least FROM slice")
        marks = engine.query("SELECT name, dur FROM slice WHERE name GLOB '*events lost*'")
        cut = engine.query("SELECT DISTINCT string_value AS cut FROM args WHERE key = 'debug.cut'")
    assert ends == [{"at": 10_130_000_000, "least": 0}]
    assert marks == [
        {"name": "3 events lost on cpu 0", "dur": 0},
        {"name": "3 events lost", "dur": 0},
    ]
    assert cut == [{"cut": "end"}]
