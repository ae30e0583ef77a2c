# SPDX-License-Identifier: Apache-2.0
"""What a timeline draws adds up to the answers; its arrows; events of a patched kernel."""

from __future__ import annotations

import importlib
import os
import re
import sqlite3
from bisect import bisect_left, bisect_right
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.cli import Document, Wbscope
from support.parity import assert_same
from support.pftrace import PerfettoEngine
from support.timeline import Slice, curves_of, drawn_path, engine_counters, engine_slices
from wbscope.perfetto.package import PACKAGE, modules
from wbscope.perfetto.perfetto_library import perfetto_library
from wbscope.run.run import open_run

from .conftest import Exported

# What the slices and counters of a timeline add up to is what the queries answer.

STALLS = "Writeback stalls"
JIFFIES_NS = 20_000_000
JIFFY_NS = 4_000_000


@pytest.fixture(scope="module")
def slices(exported: Exported) -> list[tuple[Slice, dict[str, Any]]]:
    """Those of threads, with their arguments."""
    found = engine_slices(exported.engine)
    return [(one, dict(one.args)) for one in found if one.track == STALLS]


def answer(wbscope: Wbscope, exported: Exported, query: str) -> list[Document]:
    """The rows of a query; none where its events were not recorded."""
    done = wbscope.run("query", query, exported.database, "--json")
    return [] if done.returncode == 4 else wbscope.query(query, exported.database)


def test_own_time_of_waits(
    exported: Exported, wbscope: Wbscope, slices: list[tuple[Slice, dict[str, Any]]]
) -> None:
    """By task, kind and cause, as stalls_by_task has it; a call is no wait, nor is its end."""
    found: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for one, args in slices:
        if "own_ns" in args:
            found[one.tid, args["comm"], args["kind"], args["cause"]].append(args["own_ns"])
    wanted: dict[tuple[Any, ...], int] = defaultdict(int)
    counts: dict[tuple[Any, ...], int] = defaultdict(int)
    for row in answer(wbscope, exported, "stalls_by_task"):
        key = row["tid"], row["comm"], row["kind"], row["cause"]
        wanted[key] += row["total_ns"]
        counts[key] += row["stalls_count"]
    assert wanted
    assert {key: sum(times) for key, times in found.items()} == wanted
    assert {key: len(times) for key, times in found.items()} == counts


def test_calls_are_those_of_throttle_by_task(
    exported: Exported, wbscope: Wbscope, slices: list[tuple[Slice, dict[str, Any]]]
) -> None:
    """The longest of each task and device is the hold of a write that its user felt."""
    lengths: dict[tuple[int, str], list[tuple[str, int]]] = defaultdict(list)
    for one, args in slices:
        if args["kind"] == "call":
            match = re.fullmatch(r"balance_dirty_pages (\S+ m?s): (.*)", one.name)
            assert match is not None
            assert match[2] == args["cause"]
            lengths[one.tid, args["bdi"]].append((match[1], one.dur))
    longest: dict[tuple[int, str], int] = defaultdict(int)
    for row in answer(wbscope, exported, "throttle_by_task"):
        if row["slept_total_ns"]:
            key = row["tid"], row["bdi"]
            longest[key] = max(longest[key], row["call_max_ns"] or 0)
    assert lengths.keys() == longest.keys()
    for key, call_ns in longest.items():
        dur = max(dur for _, dur in lengths[key])
        told = f"{call_ns / 1e9:.2f} s" if call_ns >= 1e9 else f"{round(call_ns / 1e6)} ms"
        assert (told, dur) in lengths[key]
        # The query adds up jiffies.
        assert abs(dur - call_ns) <= JIFFIES_NS, key


def test_calls_have_their_pauses_in_them(
    exported: Exported, slices: list[tuple[Slice, dict[str, Any]]]
) -> None:
    """In the engine too: the pause is below the call, and their time is what the call says."""
    rows = exported.engine.query(
        "SELECT s.id, a.id AS call, s.dur, extract_arg(a.arg_set_id, 'debug.pauses_count') AS n,"
        " extract_arg(a.arg_set_id, 'debug.slept_ns') AS slept"
        " FROM slice AS s JOIN thread_track AS t ON t.id = s.track_id"
        " LEFT JOIN ancestor_slice(s.id) AS a"
        " ON extract_arg(a.arg_set_id, 'debug.kind') = 'call'"
        f" WHERE t.name = '{STALLS}' AND extract_arg(s.arg_set_id, 'debug.kind') = 'throttle'"
    )
    calls: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        calls[row["call"]].append(dict(row))
    assert None not in calls, calls[None][:2]
    for pauses in calls.values():
        assert len(pauses) == pauses[0]["n"]
        # One that is only known as intended is cut where the next thing begins.
        cut = pauses[0]["slept"] - sum(pause["dur"] for pause in pauses)
        assert 0 <= cut <= JIFFY_NS, pauses
    assert len(calls) == sum(args["kind"] == "call" for _, args in slices)


@pytest.mark.quick("deep")
def test_calls_are_in_their_system_calls(exported: Exported) -> None:
    rows = exported.engine.query(
        "SELECT p.name AS above FROM slice AS s JOIN slice AS p ON p.id = s.parent_id"
        " WHERE s.name GLOB 'balance_dirty_pages *'"
    )
    above = {re.sub(r"\d+", "N", str(row["above"])) for row in rows}
    if exported.run.folder.name == "deep":
        assert above == {"write(N, N)"}
        longest = exported.engine.query(
            "SELECT count(*) AS n FROM slice WHERE name GLOB 'balance_dirty_pages *'"
        )
        # Of a part of the run the first writes were entered before it.
        assert len(rows) == longest[0]["n"] or (os.environ.get("WBSCOPE_QUICK") and rows)
    elif exported.run.folder.name.startswith("four-equal"):
        assert above == set()


def test_written_by_reclaim(exported: Exported, wbscope: Wbscope) -> None:
    """The last value of each sum is what reclaim_writes has of the zone."""
    found = {}
    for track, points in curves_of(engine_counters(exported.engine)).items():
        if match := re.fullmatch(
            r"(?:Writeback/)?Reclaim/vmscan_write (\S+)(?: node (\d+))?", track
        ):
            found[match[1], match[2]] = points[-1].value
    wanted: dict[tuple[str, str | None], int] = defaultdict(int)
    for row in answer(wbscope, exported, "reclaim_writes"):
        if row["events_count"]:
            node = row["node"]
            wanted[row["zone"], None if node is None else str(node)] += row["events_count"]
    assert found == wanted
    if exported.run.folder.name == "reclaim-writes":
        assert sum(found.values()) > 10_000


def test_written_by_reclaim_a_second(exported: Exported, wbscope: Wbscope) -> None:
    """Of each second, so added up they are all."""
    sums: dict[tuple[str, str, str], float] = defaultdict(float)
    pattern = r"(?:Writeback/)?Reclaim/write\\/s (\w+)(?::\d+)? (\w+) (\w+)"
    for track, points in curves_of(engine_counters(exported.engine)).items():
        if match := re.fullmatch(pattern, track):
            ends = [*(point.ts for point in points[1:]), None]
            for point, end in zip(points, ends, strict=True):
                # A value that goes on for several seconds is drawn once.
                seconds = 1 if end is None else round((end - point.ts) / 1e9)
                sums[match[1], match[2], match[3]] += point.value * seconds
    wanted: dict[tuple[str, str, str], int] = defaultdict(int)
    for row in answer(wbscope, exported, "reclaim_writes"):
        if row["events_count"]:
            wanted[row["zone"], row["reclaimer"], row["kind"]] += row["events_count"]
    assert sums == wanted


# Arrows of the timeline: forward in time, and from what ended the wait that they lead to.
#
# What ended is worked out here again from the records of the trace: requests of block_rq_issue and
# block_rq_complete, commits of jbd2_start_commit and jbd2_end_commit, works of writeback_start and
# writeback_written.

SHORTEST_NS = 1_000_000
_HELD = ("throttle", "direct reclaim", "memcg reclaim", "reclaim throttle")


@dataclass(frozen=True)
class Arrow:
    """Both ends of one: slices with the paths of their tracks."""

    source: str
    source_track: str
    source_ts: int
    source_end: int
    target: str
    target_tid: int
    target_ts: int
    target_dur: int


@dataclass(frozen=True)
class Wait:
    """One that may be the target of an arrow."""

    tid: int
    ts: int
    end_ts: int
    kind: str
    cause: str
    bdi: str | None


@pytest.fixture(scope="module")
def arrows(exported: Exported) -> list[Arrow]:
    paths = r"""
      WITH RECURSIVE path(id, text) AS (
        SELECT id, name FROM track WHERE parent_id IS NULL
        UNION ALL
        SELECT t.id, p.text || '/' || t.name FROM track AS t JOIN path AS p ON t.parent_id = p.id
      )
      SELECT o.name AS source, p.text AS track, o.ts AS out_ts, o.ts + o.dur AS out_end,
        i.name AS target, h.tid AS tid, i.ts AS in_ts, i.dur AS in_dur
      FROM flow AS f
      JOIN slice AS o ON o.id = f.slice_out
      JOIN slice AS i ON i.id = f.slice_in
      JOIN path AS p ON p.id = o.track_id
      LEFT JOIN thread_track AS t ON t.id = i.track_id
      LEFT JOIN thread AS h USING (utid)
    """
    return [Arrow(*row) for row in exported.engine.table(paths)[1]]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def waits(exported: Exported, wbscope: Wbscope) -> list[Wait]:
    """Waits that something else ends, by the answer of the query stalls."""
    rows = wbscope.sql(
        exported.database,
        "SELECT tid, ts, ts + span_ns AS end_ts, kind, cause, bdi FROM wb_stall"
        " WHERE span_ns IS NOT NULL",
    )
    return [Wait(**row) for row in rows if row["kind"] not in _HELD]


def test_arrows_run_forward(arrows: list[Arrow]) -> None:
    """The UI draws them from the end of one slice to the begin of the other."""
    assert [arrow for arrow in arrows if arrow.source_end > arrow.target_ts] == []


def test_arrows_lead_to_the_ends_of_waits(arrows: list[Arrow], waits: list[Wait]) -> None:
    """Each to one of a millisecond or more, in which its source ended; one for each."""
    ends = defaultdict(list)
    for wait in waits:
        if wait.end_ts - wait.ts >= SHORTEST_NS:
            ends[wait.tid, wait.end_ts].append(wait)
    reached: dict[tuple[int, int], int] = defaultdict(int)
    for arrow in arrows:
        assert arrow.target_dur == 0
        assert arrow.target.startswith("ended by ")
        found = ends[arrow.target_tid, arrow.target_ts]
        assert any(wait.ts <= arrow.source_end <= wait.end_ts for wait in found), arrow
        reached[arrow.target_tid, arrow.target_ts] += 1
    assert all(count <= len(ends[end]) for end, count in reached.items())


def test_every_mark_has_its_arrow(exported: Exported, arrows: list[Arrow]) -> None:
    marks = [slice_ for slice_ in exported.wanted.slices if slice_.name.startswith("ended by ")]
    targets = [(arrow.target_tid, arrow.target_ts, arrow.target) for arrow in arrows]
    assert sorted(targets) == sorted((mark.tid, mark.ts, mark.name) for mark in marks)


def test_sources_are_what_the_marks_say(exported: Exported, arrows: list[Arrow]) -> None:
    tops = {name for name, is_top in exported.wanted.places.items() if is_top}
    requests, works = (
        drawn_path(f"Writeback/{group}", tops) for group in ("Block requests", "Flusher work")
    )
    for arrow in arrows:
        what = arrow.target.removeprefix("ended by ")
        in_device = arrow.source_track.startswith(requests) and arrow.source_track.endswith(
            " in the device"
        )
        is_commit = arrow.source_track.startswith(f"{works}/journal of ")
        is_work = arrow.source_track.startswith(works) and not is_commit
        assert {"request": in_device, "commit": is_commit, "work": is_work}[what], arrow


class Ends:
    """When requests, commits and works of the raw records ended, by device."""

    def __init__(self, database: Path) -> None:
        self.of: dict[str, dict[str, list[int]]] = {"request": {}, "commit": {}, "work": {}}
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            self._connection = connection
            self._numbers("request", "block_rq_complete")
            self._numbers("commit", "jbd2_end_commit")
            if self._has("writeback_written"):
                rows = connection.execute("SELECT name, ts FROM ev_writeback_written")
                for name, ts in rows:
                    self.of["work"].setdefault(name, []).append(ts)
        for devices in self.of.values():
            for times in devices.values():
                times.sort()

    def _has(self, event: str) -> bool:
        found = "SELECT count(*) FROM sqlite_schema WHERE name = ?"
        return bool(self._connection.execute(found, (f"ev_{event}",)).fetchone()[0])

    def _numbers(self, source: str, event: str) -> None:
        if self._has(event):
            for dev, ts in self._connection.execute(f"SELECT dev, ts FROM ev_{event}"):
                self.of[source].setdefault(f"{dev >> 20}:{dev & 0xFFFFF}", []).append(ts)

    def last_in(self, source: str, device: str, start: int, end: int) -> int | None:
        """The last end of this device from start to end, both included."""
        times = self.of[source].get(device, [])
        at = bisect_right(times, end)
        return times[at - 1] if at > bisect_left(times, start) else None


@pytest.fixture(scope="module")
def raw_ends(exported: Exported) -> Ends:
    return Ends(exported.database)


def test_sources_ended_then_by_the_records(arrows: list[Arrow], raw_ends: Ends) -> None:
    ended = {
        source: {ts for times in devices.values() for ts in times}
        for source, devices in raw_ends.of.items()
    }
    for arrow in arrows:
        assert arrow.source_end in ended[arrow.target.removeprefix("ended by ")], arrow


@pytest.mark.quick("deep")
def test_a_wait_ends_with_the_last_of_its_device(
    exported: Exported, arrows: list[Arrow], waits: list[Wait], raw_ends: Ends
) -> None:
    """Of a wait for a commit the last commit in it, of one for a device the last request."""
    by_end: dict[tuple[int, int], list[Arrow]] = defaultdict(list)
    for arrow in arrows:
        by_end[arrow.target_tid, arrow.target_ts].append(arrow)
    checked = 0
    for wait in waits:
        if wait.kind == "block queue" or wait.bdi is None or wait.end_ts - wait.ts < SHORTEST_NS:
            continue
        if wait.cause not in ("journal commit", "device latency"):
            continue
        is_commit = wait.cause == "journal commit" and raw_ends.of["commit"]
        if wait.cause == "journal commit" and os.environ.get("WBSCOPE_QUICK"):
            continue  # of a part of the run the first commit began before it
        source = "commit" if is_commit else "request"
        last = raw_ends.last_in(source, wait.bdi, wait.ts, wait.end_ts)
        found = by_end[wait.tid, wait.end_ts]
        if any(arrow.target == "ended by work" for arrow in found):
            continue
        if last is not None:
            assert last in {arrow.source_end for arrow in found}, (wait, last, found)
            checked += 1
        else:
            assert not any(wait.ts <= arrow.source_end for arrow in found), (wait, found)
    is_part = bool(os.environ.get("WBSCOPE_QUICK"))
    assert checked or is_part or exported.run.folder.name not in ("deep", "four-equal-writers")


def test_own_requests_end_the_waits_for_them(
    exported: Exported, arrows: list[Arrow], waits: list[Wait]
) -> None:
    """A wait in the block queue is from the issue of a request, or before, to its end."""
    ends = {(a.target_tid, a.target_ts): a for a in arrows if a.target == "ended by request"}
    own = [w for w in waits if w.kind == "block queue" and w.end_ts - w.ts >= SHORTEST_NS]
    for wait in own:
        arrow = ends.get((wait.tid, wait.end_ts))
        assert arrow is None or arrow.source_end == wait.end_ts
    if exported.run.folder.name == "four-equal-writers":
        assert any((wait.tid, wait.end_ts) in ends for wait in own)


# Events of a patched kernel give the same answers in both engines.
#
# The golden cases say what is right; here it is only that trace processor, with the trace that
# `wbscope convert` makes, answers as SQLite does.

LIBRARY = perfetto_library()
_THROTTLE = ("throttle_by_task", "throttle_summary", "throttle_windows", "stalls", "stalls_by_task")
_RECLAIM = ("reclaim_writes", "reclaim_efficiency", "reclaim_dirty_state")
# Files beside the trace, and words of the trace's own formats, are not in a Perfetto trace.
_NOT_THERE = ("zone", "cgroup_path")


@pytest.mark.parametrize(
    ("case", "queries", "rows"),
    [
        ("measured_wait", _THROTTLE, 7),
        ("reclaim_exact", _RECLAIM, 4),
        ("dirty_domains", ("dirty_domains", "throttle_by_task"), 2),
    ],
)
def test_a_case(
    case: str, queries: tuple[str, ...], rows: int, wbscope: Wbscope, tmp_path: Path
) -> None:
    importlib.import_module(f"golden.{case}.case").make(tmp_path)
    source, trace = tmp_path / "trace.dat", tmp_path / "trace.pftrace"
    done = wbscope.run("convert", source, "-o", trace)
    assert done.returncode == 0, done.stderr
    alone = tmp_path / "alone"
    alone.mkdir()
    source.rename(alone / "trace.dat")
    with open_run(alone / "trace.dat") as run, PerfettoEngine() as engine:
        engine.load(trace)
        engine.register(PACKAGE, modules(LIBRARY))
        engine.query(f"INCLUDE PERFETTO MODULE {PACKAGE}.library")
        for place, name in enumerate(queries):
            columns, ours = engine.table(f"SELECT * FROM wbscope_{name}")
            theirs = run.query(name)
            assert tuple(columns) == theirs.columns
            assert len(ours) >= (1 if place else rows)
            kept = [column not in _NOT_THERE for column in columns]
            known = [column for column in columns if column not in _NOT_THERE]
            assert_same(known, _sorted(ours, kept), _sorted(theirs.rows, kept))
        basis = {row[0] for row in engine.table("SELECT t.slept_basis FROM wb_throttle AS t")[1]}
        assert case != "measured_wait" or basis == {"measured", "intended"}


def _sorted(rows: list[tuple[Any, ...]], kept: list[bool]) -> list[tuple[Any, ...]]:
    """Without the columns that differ, which rows may be ordered by."""
    chosen = [tuple(cell for cell, keep in zip(row, kept, strict=True) if keep) for row in rows]
    return sorted(chosen, key=repr)
