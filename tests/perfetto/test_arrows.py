# SPDX-License-Identifier: Apache-2.0
"""Arrows of the timeline: forward in time, and from what ended the wait that they lead to.

What ended is worked out here again from the records of the trace: requests of block_rq_issue and
block_rq_complete, commits of jbd2_start_commit and jbd2_end_commit, works of writeback_start and
writeback_written.
"""

from __future__ import annotations

import os
import sqlite3
from bisect import bisect_left, bisect_right
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.timeline import drawn_path

from .conftest import Exported

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
