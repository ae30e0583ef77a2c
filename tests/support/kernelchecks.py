# SPDX-License-Identifier: Apache-2.0
"""The checks of make kernel-test, and patched kernels."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .cli import Wbscope

__all__ = [
    "RUNS",
    "Call",
    "Done",
    "Limits",
    "Off",
    "Throttle",
    "Zone",
    "asleep",
    "calls_by_the_rule",
    "calls_in",
    "calls_of",
    "domain_of_throttle",
    "dones_in",
    "fetched",
    "freerun",
    "killed_asleep",
    "runs_of_calls",
    "setpoint_of",
    "thresholds_of",
    "told_calls",
    "unexplained_waits",
    "without_returns",
    "wrong_zones",
    "zones_of",
]


# What the events of the patched kernel have to say, given everything else that was recorded.
#
# Plain rows in, differences out: tests/unit/test_kernel.py tries them on rows made by
# hand, tests/kernel on what a guest recorded. Times are ns, amounts are pages.

RUNS = ("throttle", "reclaim")
"""What tests/kernel/scenario.sh records."""


@dataclass(frozen=True)
class Zone:
    """A zone of /proc/zoneinfo."""

    nid: int
    name: str
    start_pfn: int
    spanned: int

    def has(self, pfn: int) -> bool:
        return self.start_pfn <= pfn < self.start_pfn + self.spanned


@dataclass(frozen=True)
class Throttle:
    """A balance_dirty_pages event."""

    ts: int
    tid: int
    pause_ms: int = 0
    limit: int = 0
    setpoint: int = 0
    dirty: int = 0
    cgroup_ino: int = 1
    task_ratelimit: int = 0


@dataclass(frozen=True)
class Done:
    """A balance_dirty_pages_done event."""

    ts: int
    tid: int
    wait_ns: int = 0
    total_ns: int = 0
    intended_ms: int = 0
    loops: int = 1
    sleeps: int = 0
    domain: int = 0
    exit: int = 2
    cgroup_ino: int = 1

    @property
    def start(self) -> int:
        return self.ts - self.total_ns


@dataclass(frozen=True)
class Call:
    """A balance_dirty_pages_done event with the balance_dirty_pages events before it."""

    done: Done
    events: tuple[Throttle, ...]

    @property
    def start(self) -> int:
        """Before its first sleep."""
        return self.events[0].ts if self.events else self.done.start


@dataclass(frozen=True)
class Off:
    """A time in which a task had no CPU: asleep, or (not asleep) waiting for one."""

    start: int
    end: int
    asleep: bool


def fetched(database: sqlite3.Connection, statement: str) -> list[tuple[int, ...]]:
    return database.execute(statement).fetchall()


def zones_of(text: str) -> list[Zone]:
    """The zones of /proc/zoneinfo that have pages."""
    zones, nid, name, spanned = [], 0, "", 0
    for line in text.splitlines():
        words = line.replace(",", " ").split()
        if words[:1] == ["Node"] and "zone" in words:
            nid, name, spanned = int(words[1]), words[-1], 0
        elif words[:1] == ["spanned"]:
            spanned = int(words[1])
        elif words[:1] == ["start_pfn:"] and spanned:
            zones.append(Zone(nid, name, int(words[1]), spanned))
    return zones


def wrong_zones(
    told: Iterable[tuple[int, int, str]], zones: Sequence[Zone]
) -> list[tuple[int, int, str]]:
    """Of (pfn, nid, zone name) those that /proc/zoneinfo puts elsewhere, or nowhere."""
    return [
        (pfn, nid, name)
        for pfn, nid, name in told
        if not any(z.has(pfn) and (z.nid, z.name) == (nid, name) for z in zones)
    ]


def calls_of(
    events: Iterable[Throttle], dones: Iterable[Done]
) -> tuple[list[Call], list[Throttle]]:
    """Each done event with its thread's old events since the done event before; those of none.

    Not by the done event's entry: the clock of the trace is read after the kernel's own, and
    a task can lose its CPU between the two.
    """
    by_tid: dict[int, list[Throttle]] = defaultdict(list)
    for event in events:
        by_tid[event.tid].append(event)
    calls, last = [], {}
    for done in sorted(dones, key=lambda one: one.ts):
        own = by_tid[done.tid]
        first = last.get(done.tid, 0)
        last[done.tid] = bisect_right([event.ts for event in own], done.ts)
        calls.append(Call(done, tuple(own[first : last[done.tid]])))
    left = [event for tid, own in by_tid.items() for event in own[last.get(tid, 0) :]]
    return calls, left


def asleep(
    switches: Iterable[tuple[int, int, int, int]], sleeping: int = 2
) -> dict[int, list[Off]]:
    """By thread, when it had no CPU, of (ts, prev_pid, prev_state, next_pid) in time order.

    A state with the bit `sleeping` (D) is a sleep, 0 is a task that was preempted.
    """
    out: dict[int, tuple[int, bool]] = {}
    found: dict[int, list[Off]] = defaultdict(list)
    for ts, prev, state, following in switches:
        out[prev] = (ts, bool(state & sleeping))
        if following in out:
            start, slept = out.pop(following)
            found[following].append(Off(start, ts, slept))
    return found


def unexplained_waits(
    calls: Iterable[Call], off: Mapping[int, Sequence[Off]], slack_ns: int
) -> list[tuple[Call, int, int]]:
    """Calls whose wait_ns is not what sched_switch tells, with the least and most it could be.

    The wait goes from before the task leaves its CPU to after it is back: it is the sleep,
    which sched_switch ends when the task runs again, so run-queue delay is in both. On top
    come the way into the scheduler and out of it, up to `slack_ns` a sleep, and times in
    which the task was preempted on that way.
    """
    wrong = []
    for call in calls:
        done = call.done
        inside = [
            piece
            for piece in off.get(done.tid, ())
            if call.start <= piece.start and piece.end <= done.ts
        ]
        least = sum(piece.end - piece.start for piece in inside if piece.asleep)
        most = sum(piece.end - piece.start for piece in inside) + done.sleeps * slack_ns
        if not least <= done.wait_ns <= most:
            wrong.append((call, least, most))
    return wrong


def killed_asleep(
    calls: Iterable[Call], off: Mapping[int, Sequence[Off]], kills: Iterable[tuple[int, int]]
) -> list[Call]:
    """Of the kills (ts, tid) that met a task in a sleep of a call, those calls."""
    by_tid: dict[int, list[int]] = defaultdict(list)
    for ts, tid in kills:
        by_tid[tid].append(ts)
    return [
        call
        for call in calls
        if any(
            piece.asleep
            and call.start <= piece.start <= ts <= piece.end
            and piece.end <= call.done.ts
            for ts in by_tid[call.done.tid]
            for piece in off.get(call.done.tid, ())
        )
    ]


def runs_of_calls(rows: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Of (tid, ts, is_first) in the order of tid and ts: tid, first ts and number of events."""
    calls: list[tuple[int, int, int]] = []
    for tid, ts, is_first in rows:
        if is_first or not calls or calls[-1][0] != tid:
            calls.append((tid, ts, 1))
        else:
            calls[-1] = (*calls[-1][:2], calls[-1][2] + 1)
    return calls


def freerun(thresh: int, bg_thresh: int) -> int:
    return (thresh + bg_thresh) // 2


def setpoint_of(limit: int, thresh: int, bg_thresh: int) -> int:
    """As the balance_dirty_pages event of 6.1 calculates it."""
    return (limit + freerun(thresh, bg_thresh)) // 2


def thresholds_of(
    avail: int, ratio: int, bg_ratio: int, boosted_by: int | None = None
) -> tuple[int, int]:
    """thresh and bg_thresh as domain_dirty_limits() of 6.1 has them from ratios in percent.

    `boosted_by` is the machine's smoothed limit, for a real-time task.
    """
    thresh, bg_thresh = (percent * 4096 // 100 * avail // 4096 for percent in (ratio, bg_ratio))
    if boosted_by is not None:
        thresh += thresh // 4 + boosted_by // 32
        bg_thresh += bg_thresh // 4 + boosted_by // 32
    return thresh, thresh // 2 if bg_thresh >= thresh else bg_thresh


@dataclass(frozen=True)
class Limits:
    """A wb_domain_dirty_state event, or the thresholds of a global_dirty_state event."""

    ts: int
    tid: int
    domain: int
    dirty: int
    bg_thresh: int
    thresh: int
    dirty_limit: int
    cgroup_ino: int = 0
    caller: int = 0


def domain_of_throttle(
    calls: Iterable[Call], limits: Iterable[Limits]
) -> list[tuple[Throttle, Limits | None]]:
    """The last event of each call beside the limits, of the domain that decided it, before it."""
    by_key: dict[tuple[int, int], list[Limits]] = defaultdict(list)
    for one in limits:
        by_key[one.tid, one.domain].append(one)
    pairs = []
    for call in calls:
        if not call.events:
            continue
        event = call.events[-1]
        own = by_key[event.tid, call.done.domain]
        at = bisect_right([one.ts for one in own], event.ts)
        pairs.append((event, own[at - 1] if at else None))
    return pairs


# Calls of balance_dirty_pages() of a patched kernel: as it tells, and as the rule has them.

Told = list[tuple[int, int, int]]
"""tid, time of the first event, number of events"""


def dones_in(database: sqlite3.Connection) -> list[Done]:
    columns = "ts, tid, wait_ns, total_ns, intended, loops, sleeps, domain, exit, cgroup_ino"
    return [
        Done(*row)
        for row in fetched(
            database, f"SELECT {columns} FROM ev_balance_dirty_pages_done ORDER BY ts, seq"
        )
    ]


def calls_in(database: sqlite3.Connection) -> tuple[list[Call], list[Throttle]]:
    """Each call with its events; events of none."""
    events = fetched(
        database,
        'SELECT ts, tid, pause, "limit", setpoint, dirty, cgroup_ino, task_ratelimit'
        " FROM ev_balance_dirty_pages ORDER BY ts, seq",
    )
    return calls_of((Throttle(*row) for row in events), dones_in(database))


def told_calls(database: sqlite3.Connection) -> Told:
    """As balance_dirty_pages_done has them."""
    calls, _ = calls_in(database)
    return sorted((call.done.tid, call.events[0].ts, call.done.loops) for call in calls)


def without_returns(database: sqlite3.Connection, path: Path) -> Path:
    """The run as a kernel without the patches has it."""
    with sqlite3.connect(path) as copy:
        database.backup(copy)
        copy.execute("DELETE FROM ev_balance_dirty_pages_done")
    return path


def calls_by_the_rule(wbscope: Wbscope, stock: Path) -> Told:
    """As wbscope groups the events of a stock kernel."""
    rows = wbscope.sql(stock, "SELECT tid, ts, is_first, slept_basis FROM wb_throttle")
    # It was the rule: nothing that balance_dirty_pages_done tells.
    assert "measured" not in {row["slept_basis"] for row in rows}
    return runs_of_calls(sorted((row["tid"], row["ts"], row["is_first"]) for row in rows))
