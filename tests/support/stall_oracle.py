# SPDX-License-Identifier: Apache-2.0
"""Waits of tasks worked out from `trace-cmd report -t` text, to compare the project's own with.

Nothing here uses the project's code. Each wait is an interval of a task with a rank; every moment
of a task goes to the wait of the highest rank that covers it, and among those to the one that
began first. Times in ns.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from .oracle import read_pauses
from .report import ReportEvent, key_values

__all__ = ["Sleep", "Wait", "global_pos_ratio", "own_times", "reclaim_waits", "waits_of_sleeps"]

_SWITCH = re.compile(r"^.*:(?P<prev>\d+) \[-?\d+\] (?P<state>\S+) ==> .*:(?P<next>\d+) \[-?\d+\]$")
_REQUEST = re.compile(r"^(?P<dev>\d+,\d+) (?P<rwbs>\w+) (?:\d+ )?\(.*\) (?P<sector>\d+) \+ ")
_RANKS = {"throttle": 4, "folio wait": 4, "reclaim throttle": 4, "direct reclaim": 3}
_RANKS |= {"journal": 4, "memcg reclaim": 3, "block queue": 2, "fsync": 1, "sync": 1, "write": 1}


@dataclass(frozen=True)
class Wait:
    """An interval in which a task waited for one thing."""

    tid: int
    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class Sleep:
    """A sleep in state D."""

    start: int
    end: int


def own_times(waits: Iterable[Wait]) -> dict[tuple[int, str], int]:
    """(tid, kind) -> time that is left to it, moment by moment."""
    by_tid: dict[int, list[Wait]] = defaultdict(list)
    for wait in waits:
        by_tid[wait.tid].append(wait)
    totals: dict[tuple[int, str], int] = defaultdict(int)
    for tid, own in by_tid.items():
        borders = sorted({border for wait in own for border in (wait.start, wait.end)})
        own.sort(key=lambda wait: wait.start)
        going_on: list[Wait] = []
        position = 0
        for start, end in itertools.pairwise(borders):
            while position < len(own) and own[position].start <= start:
                going_on.append(own[position])
                position += 1
            going_on = [wait for wait in going_on if wait.end > start]
            if going_on:
                owner = max(going_on, key=lambda wait: (_RANKS[wait.kind], -wait.start))
                totals[tid, owner.kind] += end - start
    return {key: total for key, total in totals.items() if total}


def reclaim_waits(events: Iterable[ReportEvent]) -> list[Wait]:
    """Direct reclaim from begin to end, and throttles of the length that they report."""
    begun: dict[int, int] = {}
    waits = []
    for event in events:
        if event.name == "mm_vmscan_direct_reclaim_begin":
            begun[event.tid] = event.ts
        elif event.name == "mm_vmscan_direct_reclaim_end":
            waits.append(Wait(event.tid, "direct reclaim", begun.pop(event.tid), event.ts))
        elif event.name == "mm_vmscan_throttled":
            delayed = int(key_values(event.text)["usect_delayed"]) * 1000
            waits.append(Wait(event.tid, "reclaim throttle", event.ts - delayed, event.ts))
    return waits


def waits_of_sleeps(events: list[ReportEvent], end_ts: int) -> list[Wait]:
    """What each task waited for, where sched_switch tells when it slept."""
    finished = _completions(events, end_ts)
    slept_at: dict[int, tuple[int, str | None, int | None, bool]] = {}
    # Of each task: the event that its next sleep is for, its last request's end, its open calls.
    cause: dict[int, str] = {}
    request_end: dict[int, int] = {}
    calls: dict[tuple[int, str], int] = {}
    waits = []

    def woke(tid: int, ts: int) -> None:
        start, kind, completed, writing = slept_at.pop(tid)
        if kind is not None:
            waits.append(Wait(tid, kind, start, ts))
        if completed is not None and completed > start:
            waits.append(Wait(tid, "block queue", start, min(completed, ts)))
        if writing:
            waits.append(Wait(tid, "write", start, ts))

    for index, event in enumerate(events):
        if event.name == "balance_dirty_pages":
            (pause,) = read_pauses([event])
            cause.pop(event.tid, None)
            if pause.pause > 0:
                cause[event.tid] = "throttle"
        elif event.name == "folio_wait_writeback":
            cause[event.tid] = "folio wait"
        elif event.name in ("block_rq_insert", "block_rq_issue") and index in finished:
            request_end[event.tid] = finished[index]
        elif event.name in ("sys_enter_fsync", "sys_enter_write"):
            calls[event.tid, event.name.removeprefix("sys_enter_")] = event.ts
        elif event.name == "sys_exit_write":
            calls.pop((event.tid, "write"), None)
        elif event.name == "sys_exit_fsync":
            waits.append(Wait(event.tid, "fsync", calls.pop((event.tid, "fsync")), event.ts))
        elif event.name == "sched_switch" and (match := _SWITCH.match(event.text)):
            prev, following = int(match["prev"]), int(match["next"])
            if following in slept_at:
                woke(following, event.ts)
            if match["state"].startswith("D") and prev:
                slept_at[prev] = (
                    event.ts,
                    cause.pop(prev, None),
                    request_end.get(prev),
                    (prev, "write") in calls,
                )
    for tid in list(slept_at):
        woke(tid, end_ts)
    return waits


def _completions(events: list[ReportEvent], end_ts: int) -> dict[int, int]:
    """Index of the event that submits a request which somebody waits for -> its completion."""
    open_requests: dict[tuple[str, str], int] = {}
    finished: dict[int, int] = {}
    for index, event in enumerate(events):
        if not event.name.startswith("block_rq_") or not (match := _REQUEST.match(event.text)):
            continue
        key = (match["dev"], match["sector"])
        if event.name == "block_rq_complete":
            if key in open_requests:
                finished[open_requests.pop(key)] = event.ts
        elif key not in open_requests:
            rwbs = match["rwbs"]
            if set(rwbs) & set("SF") or ("R" in rwbs and "A" not in rwbs):
                open_requests[key] = index
    return finished | dict.fromkeys(open_requests.values(), end_ts)


def global_pos_ratio(limit: int, setpoint: int, dirty: int) -> float:
    """The kernel's own fixed-point arithmetic: mm/page-writeback.c pos_ratio_polynom()."""
    numerator, denominator = (setpoint - dirty) << 10, (limit - setpoint) | 1
    x = abs(numerator) // denominator * (1 if numerator >= 0 else -1)
    ratio = x
    ratio = ratio * x >> 10
    ratio = ratio * x >> 10
    return max(0, min(ratio + (1 << 10), 2 << 10)) / 1024
