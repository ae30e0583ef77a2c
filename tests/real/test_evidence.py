# SPDX-License-Identifier: Apache-2.0
"""What stalls are explained with is what trace-cmd prints of the same events."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

import pytest
from support.cli import Wbscope
from support.more_oracle import requests
from support.oracle import dirty_states
from support.report import key_values
from support.runs import RecordedRun, example

# Fields under the names of the newest kernel.
_NAMES = {"bdi_setpoint": "wb_setpoint", "bdi_dirty": "wb_dirty"}


def test_events_are_quoted_as_they_are(wbscope: Wbscope, recorded: RecordedRun) -> None:
    pauses: dict[tuple[int, int], dict[str, str]] = {}
    for event in recorded.events:
        if event.name == "balance_dirty_pages":
            values = key_values(event.text)
            values.pop("bdi", None)
            values.pop("dirtied_pause", None)
            named = {_NAMES.get(key, key): value for key, value in values.items()}
            pauses[event.tid, event.ts] = named
    rows = wbscope.query("stalls_evidence", recorded.folder)
    quoted = 0
    for row in rows:
        if row["evidence"] == "balance_dirty_pages":
            at = row["stall_ts"] - row["before_ns"]
            assert key_values(row["detail"]) == pauses[row["tid"], at], row
            quoted += 1
    assert quoted


def test_state_before_is_the_last_one_that_the_task_fired(
    wbscope: Wbscope, recorded: RecordedRun
) -> None:
    by_tid: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for event in recorded.events:
        if event.name == "global_dirty_state":
            by_tid[event.tid].append((event.ts, event.text))
    checked = 0
    rows = wbscope.query("stalls_evidence", recorded.folder)
    events = {
        (row["stall_ts"], row["tid"]): row["stall_ts"] - row["before_ns"]
        for row in rows
        if row["evidence"] == "balance_dirty_pages"
    }
    for row in rows:
        if row["evidence"] == "global_dirty_state before":
            fired = events[row["stall_ts"], row["tid"]]
            states = by_tid[row["tid"]]
            last = bisect_right(states, fired, key=lambda state: state[0]) - 1
            assert last >= 0
            values = key_values(states[last][1])
            told = key_values(row["detail"])
            assert told == {key: values[key] for key in told}, row
            assert row["stall_ts"] - row["before_ns"] <= fired
            checked += 1
    assert checked
    assert dirty_states(recorded.events)


def test_requests_in_flight(wbscope: Wbscope, recorded: RecordedRun) -> None:
    """Requests issued and not done when a stall begins, of its device or of all."""
    found = requests(recorded.events)
    evidence = wbscope.query("stalls_evidence", recorded.folder)
    rows = [row for row in evidence if row["evidence"] == "requests in flight"]
    step = max(1, len(rows) // 97)
    for row in rows[::step]:
        count, _, device = row["detail"].partition(" on ")
        flying = sum(
            device in (request.device, "all devices")
            and request.issued <= row["stall_ts"]
            and (request.completed is None or request.completed > row["stall_ts"])
            for request in found
        )
        # One that is issued or done at the very time of the stall counts either way.
        at = sum(row["stall_ts"] in (request.issued, request.completed) for request in found)
        assert abs(int(count) - flying) <= at, row


Span = tuple[int, int]


def _without(span: Span, inner: list[Span]) -> list[Span]:
    """A span without those inside it."""
    left = []
    begin = span[0]
    for start, end in sorted(inner):
        if start < span[1] and end > begin:
            left.append((begin, min(start, span[1])))
            begin = max(begin, end)
    return [(a, b) for a, b in [*left, (begin, span[1])] if a < b]


def test_journal_covers_as_much_as_its_commits(wbscope: Wbscope) -> None:
    """Of each fsync: what the waits inside leave of it, and the commits of its journal."""
    recorded = example("deep")
    begun: dict[str, int] = {}
    commits: dict[str, list[Span]] = defaultdict(list)
    for event in recorded.events:
        if event.name in ("jbd2_start_commit", "jbd2_end_commit"):
            device = event.text.split()[1].replace(",", ":")
            if event.name == "jbd2_start_commit":
                begun[device] = event.ts
            elif device in begun:
                commits[device].append((begun.pop(device), event.ts))
    rows = wbscope.query("stalls", recorded.folder)
    inside: dict[int, list[Span]] = defaultdict(list)
    for row in rows:
        if row["kind"] != "fsync":
            inside[row["tid"]].append((row["ts"], row["ts"] + row["span_ns"]))
    checked = 0
    for row in rows:
        if row["kind"] != "fsync":
            continue
        own = _without((row["ts"], row["ts"] + row["span_ns"]), inside[row["tid"]])
        assert row["dur"] == sum(end - start for start, end in own), row
        covered = sum(
            max(0, min(end, b) - max(start, a))
            for start, end in own
            for a, b in commits[row["bdi"]]
        )
        assert row["journal_ratio"] == pytest.approx(covered / row["dur"], abs=1e-6), row
        assert (row["cause"] == "journal commit") == (covered >= row["dur"] / 2), row
        checked += 1
    assert checked == 12
