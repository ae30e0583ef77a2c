# SPDX-License-Identifier: Apache-2.0
"""What the slices and counters of a timeline add up to is what the queries answer."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from typing import Any

import pytest
from support.cli import Document, Wbscope
from support.timeline import Slice, curves_of, engine_counters, engine_slices

from .conftest import Exported

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
