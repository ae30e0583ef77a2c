# SPDX-License-Identifier: Apache-2.0
"""The exported timeline in the real Perfetto trace processor equals the rows of the database."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.perfetto_engine import PerfettoEngine
from support.runs import REPOSITORY, RecordedRun, all_runs
from support.timeline import (
    GROUPS,
    CounterSample,
    Slice,
    TrackInfo,
    engine_counters,
    engine_slices,
    engine_tracks,
    expected_tracks,
    packets,
    timeline_rows,
    timeline_views,
)
from support.tools import missing

ROOT = "Writeback"
COMPARED = {
    "Dirty pages": {"dirty + writeback", "limit", "setpoint", "thresh", "bg_thresh", "freerun"},
    "Bandwidth": {"write_bw", "avg_write_bw", "dirty_rate", "dirty_ratelimit", "task_ratelimit"},
    "Throttled tasks": {"pause", "paused"},
    "Dirtied and written": {"dirtied since start", "written since start"},
}


@dataclass(frozen=True)
class Exported:
    """One run's timeline: the file, the engine that loaded it, and what it should show."""

    run: Path
    file: Path
    engine: PerfettoEngine
    tracks: list[TrackInfo]
    slices: list[Slice]
    counters: list[CounterSample]
    found_counters: list[CounterSample]


@pytest.fixture(scope="module", params=all_runs() or (None,), ids=str)
def exported(
    request: pytest.FixtureRequest,
    shortened: Callable[[RecordedRun], RecordedRun],
    wbscope: Wbscope,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Exported]:
    if request.param is None:
        missing("there is no recorded run in examples/ nor in $WBSCOPE_RUNS")
    assert isinstance(request.param, RecordedRun)
    folder = shortened(request.param).folder
    file = tmp_path_factory.mktemp("timeline") / "run.pftrace"
    result = wbscope.run("timeline", folder, "-o", file, "--no-events")
    assert result.returncode == 0, result.stderr
    database = folder_database(wbscope, folder, file.parent)
    slices, counters = expected_tracks(
        timeline_rows(wbscope, database, timeline_views(REPOSITORY / "sql"))
    )
    with PerfettoEngine() as engine:
        engine.load(file)
        tracks = engine_tracks(engine)
        found = engine_counters(engine)
        yield Exported(database, file, engine, tracks, slices, counters, found)


def folder_database(wbscope: Wbscope, folder: Path, into: Path) -> Path:
    """Asking a database is faster than asking a trace, and there are many questions."""
    result = wbscope.run("ingest", folder, "-o", into / "run.db")
    assert result.returncode == 0, result.stderr
    return into / "run.db"


def test_the_engine_has_nothing_to_complain_of(exported: Exported) -> None:
    rows = exported.engine.query(
        "SELECT name, severity, value FROM stats "
        "WHERE severity IN ('error', 'data_loss') AND value > 0"
    )
    assert rows == []


def test_slices_equal_the_rows(exported: Exported) -> None:
    assert exported.slices, "the views have no slice"
    assert engine_slices(exported.engine) == exported.slices


def test_counters_equal_the_rows(exported: Exported) -> None:
    assert exported.counters, "the views have no counter"
    assert len(exported.found_counters) == len(exported.counters)
    for found, expected in zip(exported.found_counters, exported.counters, strict=True):
        assert (found.track, found.ts) == (expected.track, expected.ts)
        assert math.isclose(found.value, expected.value, rel_tol=1e-9), (found, expected)


def test_every_counter_has_its_unit(exported: Exported) -> None:
    units = {row.track: row.unit for row in exported.counters}
    assert all(units.values()), units
    assert {row.track: row.unit for row in exported.found_counters} == units


def test_all_tracks_are_in_one_group(exported: Exported) -> None:
    tops = {track.name for track in exported.tracks if not track.parent}
    assert tops == {"Writeback", "Writeback stalls"}
    # Tracks of threads have no parent in the engine: they belong to a thread.
    threads = exported.engine.query(
        "SELECT DISTINCT t.name FROM track AS t JOIN thread_track AS h USING (id) "
        "WHERE t.name IS NOT NULL"
    )
    assert threads == [{"name": "Writeback stalls"}]


def test_groups_are_in_order(exported: Exported) -> None:
    """In the order that the headers state, whatever came first."""
    ranks = {t.name: t.facts["sibling_order_rank"] for t in exported.tracks if t.parent == ROOT}
    found = sorted(ranks, key=lambda name: ranks[name])
    assert found == [name for name in GROUPS if name in found]
    assert len(set(ranks.values())) == len(ranks)
    assert {"What to look at", "Stalls", "Dirty pages", "Bandwidth"} <= set(found)


def test_every_track_says_what_it_is(exported: Exported) -> None:
    for track in exported.tracks:
        assert track.facts.get("description"), track
        if "counter" not in track.type:
            assert track.facts["child_ordering"] == "explicit", track


def test_curves_that_are_compared_share_an_axis(exported: Exported) -> None:
    axes: dict[tuple[str, str], str] = {}
    for track in exported.tracks:
        if track.parent.startswith(ROOT) and "counter" in track.type:
            group = track.parent.split("/")[1]
            axes[group, track.name] = str(track.facts.get("y_axis_share_key"))
    for group, names in COMPARED.items():
        found = {axis for (g, name), axis in axes.items() if g == group and name in names}
        assert len(found) == 1, (group, axes)
        assert found != {"None"}


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
        row["tid"]: row["comm"] for row in wbscope.sql(exported.run, "SELECT * FROM wb_thread")
    }
    rows = exported.engine.query(
        "SELECT tid, name FROM thread WHERE utid IN "
        "(SELECT utid FROM thread_track WHERE name IS NOT NULL)"
    )
    assert rows
    assert {row["tid"]: row["name"] for row in rows} == {
        row["tid"]: named[row["tid"]] for row in rows
    }
    waited = {row.tid for row in exported.slices if row.tid}
    assert {row["tid"] for row in rows} == waited


def test_arrows_are_those_of_the_view(exported: Exported, wbscope: Wbscope) -> None:
    """From the work to the wait, or from the wait to the work that it ordered."""
    try:
        rows = wbscope.sql(
            exported.run,
            "SELECT r.kind, w.started_ts, s.ts FROM wb_release AS r "
            "JOIN wb_work AS w ON w.seq = r.work_seq JOIN wb_stall AS s ON s.wait_id = r.wait_id "
            "WHERE w.started_ts IS NOT NULL",
        )
    except AssertionError:
        rows = []
    wanted = sorted(
        (row["started_ts"], row["ts"])
        if row["kind"] == "written"
        else (row["ts"], row["started_ts"])
        for row in rows
    )
    found = exported.engine.query(
        "SELECT o.ts AS from_ts, i.ts AS to_ts FROM flow AS f "
        "JOIN slice AS o ON o.id = f.slice_out JOIN slice AS i ON i.id = f.slice_in"
    )
    assert sorted((row["from_ts"], row["to_ts"]) for row in found) == wanted


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
