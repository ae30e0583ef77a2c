# SPDX-License-Identifier: Apache-2.0
"""The exported timeline in the real trace processor: whole, a part, and of hostile runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.cli import Wbscope, check_error
from support.pftrace import PerfettoEngine
from support.runs import REPOSITORY, example
from support.timeline import (
    ROOT,
    Slice,
    TrackInfo,
    curves_of,
    difference_of_curves,
    drawn_path,
    engine_counters,
    engine_slices,
    engine_tracks,
    packets,
    places_of_groups,
    timeline_views,
    verdict_name,
    wanted_timeline,
)
from support.wait_events import Waits

from .conftest import Exported

# The exported timeline in the real Perfetto trace processor equals the rows of the database.

COMPARED = {
    "Dirty pages": {"dirty + writeback", "limit", "setpoint", "thresh", "bg_thresh", "freerun"},
    "Bandwidth": {"write_bw", "avg_write_bw", "dirty_rate", "dirty_ratelimit", "task_ratelimit"},
    "Dirtied and written": {"dirtied since start", "written since start"},
}
PERCENT = {"setpoint of limit", "freerun of limit", "bg_thresh of limit"}
# A small curve on the axis of a large one would be a line at 0.
APART = {
    "Throttled tasks": {"pause", "paused", "dirtied"},
    "Dirtied and written": {"dirtied since start", "dirtied - written"},
}
UNITS = {"%", "MiB", "MiB/s", "ms", "tasks", "requests", "pages", "folios", "folios/s"}


@pytest.fixture(scope="module")
def tracks(exported: Exported) -> list[TrackInfo]:
    return engine_tracks(exported.engine)


def test_the_engine_has_nothing_to_complain_of(exported: Exported) -> None:
    rows = exported.engine.query(
        "SELECT name, severity, value FROM stats "
        "WHERE severity IN ('error', 'data_loss') AND value > 0"
    )
    assert rows == []


def test_slices_equal_the_rows(exported: Exported) -> None:
    assert exported.wanted.slices, "the views have no slice"
    assert engine_slices(exported.engine) == exported.wanted.slices


def test_counters_equal_the_rows(exported: Exported) -> None:
    wanted = exported.wanted
    assert wanted.curves, "the views have no counter"
    found = curves_of(engine_counters(exported.engine))
    assert difference_of_curves(found, wanted.curves, wanted.step_ns) == ""
    if exported.run.folder.name == "reclaim-writes":
        longest = max(wanted.curves, key=lambda track: len(wanted.curves[track]))
        assert len(found[longest]) < len(wanted.curves[longest]), "no counter was thinned out"


def test_counters_have_units_for_people(exported: Exported) -> None:
    assert {point.unit for points in exported.wanted.curves.values() for point in points} <= UNITS


def test_counters_are_somewhere_above_0(exported: Exported) -> None:
    """Or below. The others are left out, and there are some."""
    highest = exported.engine.query(
        "SELECT track_id, max(abs(value)) AS most FROM counter GROUP BY track_id"
    )
    assert highest
    assert all(row["most"] for row in highest)


def test_groups_that_answer_stand_beside_that_of_all(
    exported: Exported, tracks: list[TrackInfo]
) -> None:
    """The UI shows those, and that of all closed: it draws its verdict all the same."""
    tops = {track.name for track in tracks if not track.parent}
    drawn = {track.path.split("/")[0] for track in tracks}
    places = exported.wanted.places
    assert tops == {
        name for name in (*places, ROOT) if places.get(name, True) and name in drawn
    } | {"Writeback stalls"}
    # Tracks of threads have no parent in the engine: they belong to a thread.
    threads = exported.engine.query(
        "SELECT DISTINCT t.name FROM track AS t JOIN thread_track AS h USING (id) "
        "WHERE t.name IS NOT NULL"
    )
    assert threads == [{"name": "Writeback stalls"}]


def test_groups_that_answer_draw_it_themselves(exported: Exported) -> None:
    """Not only the tracks in them."""
    drawn = {slice_.track for slice_ in exported.wanted.slices} | exported.wanted.curves.keys()
    assert ROOT in drawn
    for group in ("Stalls", "Dirty pages", "Reclaim", "Block requests"):
        path = drawn_path(f"{ROOT}/{group}", _tops(exported))
        below = {track for track in drawn if track.startswith(f"{path}/")}
        assert path in drawn or not below, group


def _tops(exported: Exported) -> set[str]:
    return {name for name, is_top in exported.wanted.places.items() if is_top}


def test_the_run_says_which_groups_come_first(exported: Exported, wbscope: Wbscope) -> None:
    """What its tasks waited for longest, by the answer of stalls_by_task."""
    waited = {"Dirty pages": 0, "Reclaim": 0, "Block requests": 0}
    reclaim = ("direct reclaim", "memcg reclaim", "reclaim throttle")
    for row in wbscope.query("stalls_by_task", exported.database):
        if row["kind"] != "block queue":
            subject = "Reclaim" if row["kind"] in reclaim else "Block requests"
            waited["Dirty pages" if row["kind"] == "throttle" else subject] += row["total_ns"]
    first = max(waited, key=lambda group: waited[group])
    assert list(exported.wanted.places)[:3] == ["What to look at", "Stalls", first]
    tops = _tops(exported)
    assert {"Stalls", first} <= tops
    # The UI orders them by name: Fairness would hide reclaim.
    assert ("Fairness" in tops) == (first != "Reclaim")


def test_groups_are_in_order(exported: Exported, tracks: list[TrackInfo]) -> None:
    """Those of the run, then those that the headers state, whatever came first."""
    headers = places_of_groups(REPOSITORY / "sql")
    places = list(exported.wanted.places)
    rest = sorted((name for name in headers if name not in places), key=lambda name: headers[name])
    ranks = {t.name: t.facts["sibling_order_rank"] for t in tracks if t.parent == ROOT}
    found = sorted(ranks, key=lambda name: ranks[name])
    assert found == [name for name in (*places, *rest) if name in found]
    assert len(set(ranks.values())) == len(ranks)
    assert found[0] == "What to look at"


def test_every_track_says_what_it_is(tracks: list[TrackInfo]) -> None:
    for track in tracks:
        assert track.facts.get("description"), track
        if "counter" not in track.type:
            assert track.facts["child_ordering"] == "explicit", track


def test_curves_that_are_compared_share_an_axis(
    exported: Exported, tracks: list[TrackInfo]
) -> None:
    axes: dict[tuple[str, str], str] = {}
    for track in tracks:
        if "counter" in track.type:
            path = track.path.removeprefix(f"{ROOT}/")
            axes[path.split("/")[0], track.name] = str(track.facts.get("y_axis_share_key"))
    for group, names in (*COMPARED.items(), ("Dirty pages", PERCENT)):
        found = {axis for (g, name), axis in axes.items() if g == group and name in names}
        assert len(found) == int(any(g == group for g, _ in axes)), (group, axes)
        assert "None" not in found
    for group, names in APART.items():
        own = [axis for (g, name), axis in axes.items() if g == group and name in names]
        assert len(set(own) - {"None"}) == len([axis for axis in own if axis != "None"])


def test_siblings_of_equal_name_are_not_merged(exported: Exported) -> None:
    """Only the lanes of one track are: they have its key."""
    keys: dict[tuple[int, str], set[int]] = {}
    for packet in packets(exported.file):
        if not packet.HasField("track_descriptor"):
            continue
        track = packet.track_descriptor
        if track.HasField("thread") or track.HasField("process"):
            continue
        assert track.sibling_merge_behavior in (track.SIBLING_MERGE_BEHAVIOR_NONE, 3)
        if track.sibling_merge_behavior == 3:
            keys.setdefault((track.parent_uuid, track.name), set()).add(track.sibling_merge_key_int)
    assert keys
    assert {len(found) for found in keys.values()} == {1}


def test_threads_have_their_names(exported: Exported, wbscope: Wbscope) -> None:
    named = {
        row["tid"]: row["comm"] for row in wbscope.sql(exported.database, "SELECT * FROM wb_thread")
    }
    rows = exported.engine.query(
        "SELECT tid, name FROM thread WHERE utid IN "
        "(SELECT utid FROM thread_track WHERE name IS NOT NULL)"
    )
    assert rows
    assert {row["tid"]: row["name"] for row in rows} == {
        row["tid"]: named[row["tid"]] for row in rows
    }
    waited = {row.tid for row in exported.wanted.slices if row.tid}
    assert {row["tid"] for row in rows} == waited


def test_the_clock_is_declared(exported: Exported) -> None:
    """The file says what its times are: a clock snapshot, and a clock for the packets."""
    declared, used, primary = set(), set(), set()
    for packet in packets(exported.file):
        if packet.HasField("clock_snapshot"):
            declared |= {clock.clock_id for clock in packet.clock_snapshot.clocks}
            primary |= {packet.clock_snapshot.primary_trace_clock}
        used |= {packet.timestamp_clock_id, packet.trace_packet_defaults.timestamp_clock_id}
    assert declared
    assert (used | primary) - {0} <= declared


# `timeline` of a part of the time: the tracks of the whole run, cut, and the events in it.

NAMES = ["deep", "four-equal-writers"]
PART = (1_000_000_000, 2_500_000_000)


def drawn(wbscope: Wbscope, run: Path, output: Path, *options: str) -> PerfettoEngine:
    done = wbscope.run("timeline", run, "-o", output, *options)
    assert done.returncode == 0, done.stderr
    engine = PerfettoEngine()
    engine.load(output)
    return engine


def without_advice(slices: list[Slice]) -> list[Slice]:
    return sorted(
        replace(one, args=tuple(arg for arg in one.args if arg[0] != "advice"))
        for one in slices
        if one.track != ROOT
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_part_of_the_time(wbscope: Wbscope, name: str, tmp_path: Path) -> None:
    run = example(name).folder
    (row,) = wbscope.sql(run, "SELECT value FROM meta WHERE key = 'first_ts'")
    t0, t1 = (int(row["value"]) + ns for ns in PART)
    options = ("--time-range", "1s..2500ms")
    with (
        drawn(wbscope, run, tmp_path / "whole.pftrace") as whole,
        drawn(wbscope, run, tmp_path / "part.pftrace", *options) as part,
    ):
        # Verdict and advice are those of the part: the next test.
        slices = without_advice(engine_slices(whole))
        cut = [s for s in slices if s.ts < t1 and (s.ts >= t0 or s.ts + s.dur > t0)]
        assert without_advice(engine_slices(part)) == cut
        assert 0 < len(cut) < len(slices)
        assert any(s.ts < t0 for s in cut)
        counters = engine_counters(whole)
        cut_counters = {c for c in counters if t0 <= c.ts < t1}
        found = engine_counters(part)
        shown = {c.track for c in cut_counters if c.value}  # one that is 0 is left out
        assert {c for c in cut_counters if c.track in shown} <= set(found)
        assert 0 < len(cut_counters) < len(counters)
        for sample in set(found) - cut_counters:  # as before: left out where the curve goes on
            before = [c for c in counters if c.track == sample.track and c.ts < t0]
            assert t0 <= sample.ts < t1
            assert before[-1].value == sample.value
        find = "SELECT ts, name, cpu FROM ftrace_event ORDER BY ts, name, cpu"
        events = whole.table(find)[1]
        assert part.table(find)[1] == [e for e in events if t0 <= e[0] < t1]  # type: ignore[operator]
        assert len(events) > 1000
        broken = "SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
        assert part.table(broken)[1] == whole.table(broken)[1]
    sizes = [(tmp_path / f"{name}.pftrace").stat().st_size for name in ("part", "whole")]
    assert sizes[0] < sizes[1] / 2


def told(wbscope: Wbscope, run: Path, *options: str) -> set[str]:
    """The first findings, but for those that only give numbers."""
    rows = wbscope.query("findings", run, *options)[:3]
    return {row["text"] for row in rows if row["severity"] in ("severe", "warning", "ok")}


@pytest.mark.parametrize("part", [("1s", "2500ms"), ("1s", None), (None, "2500ms")], ids=str)
def test_the_verdict_is_that_of_the_part(
    wbscope: Wbscope, part: tuple[str | None, str | None], tmp_path: Path
) -> None:
    """As long as the part, or the UI would show the whole time."""
    run = example("deep").folder
    meta = {row["key"]: row["value"] for row in wbscope.sql(run, "SELECT key, value FROM meta")}
    options = [
        word
        for option, at in zip(("--from", "--to"), part, strict=True)
        if at is not None
        for word in (option, at)
    ]
    wanted = told(wbscope, run, *options)
    assert wanted != told(wbscope, run)
    with drawn(wbscope, run, tmp_path / "x.pftrace", *options, "--no-events") as engine:
        found = [one for one in engine_slices(engine) if one.track == ROOT]
    # "warning: TEXT (inferred)", and what to do.
    texts = {
        one.name.partition(": ")[2].removesuffix(" (inferred)")
        for one in found
        if not one.name.startswith("to do: ")
    }
    assert texts == wanted
    start = int(meta["first_ts"]) + (PART[0] if part[0] else 0)
    end = int(meta["first_ts"]) + PART[1] if part[1] else int(meta["last_ts"])
    assert {(one.ts, one.ts + one.dur) for one in found} == {(start, end)}


def test_a_part_without_events(wbscope: Wbscope, tmp_path: Path) -> None:
    run = example("four-equal-writers").folder
    output = tmp_path / "part.pftrace"
    with drawn(wbscope, run, output, "--from", "16s", "--no-events") as part:
        assert part.table("SELECT count(*) FROM ftrace_event")[1] == [(0,)]
        assert part.table("SELECT count(*) > 0 FROM counter")[1] == [(1,)]
    done = wbscope.run("timeline", run, "-o", output, "--from", "1h", "--force")
    assert done.returncode == 2
    check_error(done.stderr, "empty-range", "--from 1h")


def test_any_name_of_the_output(wbscope: Wbscope, tmp_path: Path) -> None:
    """Nothing is made beside it, and a file of another stays."""
    run, part = example("four-equal-writers").folder, ("--from", "1s", "--to", "2s")
    other = tmp_path / "x.pftrace.events"
    other.write_text("somebody else's")
    outputs = [tmp_path / name for name in ("events.pftrace", "x.pftrace")]
    for output in outputs:
        done = wbscope.run("timeline", run, "-o", output, *part)
        assert done.returncode == 0, done.stderr
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    assert other.read_text() == "somebody else's"
    assert sorted(tmp_path.iterdir()) == sorted([*outputs, other])


# Timelines of runs with names that nobody would choose, and of runs that lack most events.

HOSTILE_NAMES = {
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
    waits = Waits("balance_dirty_pages", cmdlines=HOSTILE_NAMES)
    for place, tid in enumerate(HOSTILE_NAMES):
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
    assert any("throttled is unknown" in text for text in told)
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
