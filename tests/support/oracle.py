# SPDX-License-Identifier: Apache-2.0
"""Answers worked out from trace-cmd's text, without the project's code."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from .report import ReportEvent, key_values

__all__ = [
    "Pause",
    "Request",
    "TaskKey",
    "Throttle",
    "bio_reads",
    "calls",
    "flusher_pages",
    "mean_rates",
    "nearest_rank",
    "read_pauses",
    "requests",
    "scans",
    "sleeps_by_pause",
    "throttle_by_task",
]


# The answers worked out from `trace-cmd report -t` text, to compare the project's own with.
#
# Nothing here uses the project's code. Times in ns; pages as the kernel printed them.

__all__ += ["call_latencies", "dirty_states", "reclaimers", "reclaimers_by_task", "write_calls"]
_MS_NS = 1_000_000
_ASYNC_GAP_NS = 2 * _MS_NS
_ASYNC_PAUSE_NS = 20 * _MS_NS
_CLOCK_RESET_MS = -1000
_SWITCH = re.compile(
    r"^(?P<prev>.*):(?P<prev_tid>\d+) \[-?\d+\] (?P<state>\S+) ==> "
    r"(?P<next>.*):(?P<next_tid>\d+) \[-?\d+\]"
)
TaskKey = tuple[int, str, int]
"""(tid, bdi, cgroup_ino)"""


@dataclass(frozen=True, slots=True)
class Pause:
    """One balance_dirty_pages event. Times in ns, dirtied in pages."""

    ts: int
    tid: int
    comm: str
    bdi: str
    cgroup_ino: int
    task_ratelimit: int
    dirtied: int
    paused: int
    pause: int
    period: int

    @property
    def key(self) -> TaskKey:
        return (self.tid, self.bdi, self.cgroup_ino)

    @property
    def consumed(self) -> bool:
        """Whether the pages count as paid: else the next event's dirtied has them again."""
        return self.pause > 0 or self.period != 0 or self.pause < _CLOCK_RESET_MS * _MS_NS


@dataclass
class Throttle:
    """What the text says of one task on one bdi."""

    comm: str = ""
    pauses: list[int] = field(default_factory=list)
    calls: int = 0
    dirtied_pages: int = 0
    slept: int = 0

    def percentile(self, quantile: float) -> int | None:
        return nearest_rank(self.pauses, quantile)


def nearest_rank(values: list[int], quantile: float) -> int | None:
    """The smallest value that at least that share of the values does not exceed."""
    if not values:
        return None
    ordered = sorted(values)
    rank = -(-len(ordered) * round(quantile * 100) // 100)
    return ordered[max(rank, 1) - 1]


def read_pauses(events: Iterable[ReportEvent]) -> list[Pause]:
    """The balance_dirty_pages events, in the order of the text."""
    pauses = []
    for event in events:
        if event.name != "balance_dirty_pages":
            continue
        bdi, _, rest = event.text.removeprefix("bdi ").partition(": ")
        values = {key: int(value) for key, value in key_values(rest).items()}
        pauses.append(
            Pause(
                ts=event.ts,
                tid=event.tid,
                comm=event.comm.strip(),
                bdi=bdi,
                cgroup_ino=values.get("cgroup_ino", 1),
                task_ratelimit=values["task_ratelimit"],
                dirtied=values["dirtied"],
                paused=values["paused"] * _MS_NS,
                pause=values["pause"] * _MS_NS,
                period=values["period"] * _MS_NS,
            )
        )
    return pauses


def throttle_by_task(pauses: list[Pause]) -> dict[TaskKey, Throttle]:
    """Pauses, calls and the lower bound of the pages dirtied, for each task, bdi and cgroup."""
    result: dict[TaskKey, Throttle] = defaultdict(Throttle)
    by_tid: dict[int, list[Pause]] = defaultdict(list)
    for pause in pauses:
        by_tid[pause.tid].append(pause)
    for events in by_tid.values():
        for index, event in enumerate(events):
            task = result[event.key]
            task.comm = event.comm
            if event.pause > 0:
                task.pauses.append(event.pause)
            if index and _continues(events[index - 1], event):
                continue
            task.calls += 1
            if event.consumed and not _is_async(event, events[index + 1 : index + 2]):
                task.dirtied_pages += event.dirtied
    return dict(result)


def _continues(before: Pause, event: Pause) -> bool:
    """Whether the event is a further loop of the call of the event before it."""
    return (
        before.task_ratelimit == 0
        and before.pause > 0
        and event.paused >= before.paused + before.pause
        and (before.bdi, before.dirtied) == (event.bdi, event.dirtied)
    )


def _is_async(event: Pause, following: list[Pause]) -> bool:
    """A long pause with the task's next event at once after it: nobody slept (BDP_ASYNC)."""
    return (
        bool(following)
        and event.pause >= _ASYNC_PAUSE_NS
        and following[0].ts - event.ts <= _ASYNC_GAP_NS
    )


def sleeps_by_pause(events: Iterable[ReportEvent], end_ts: int) -> list[tuple[Pause, int, int]]:
    """The measured sleep of each pause > 0: (pause, out, in), by sched_switch.

    out: the task's first switch out in state D between the pause and its next one; in: its next
    switch in, or end_ts. Pauses without such a switch are left out.
    """
    waiting: dict[int, Pause] = {}
    asleep: dict[int, tuple[Pause, int]] = {}
    sleeps = []
    for event in events:
        if event.name == "balance_dirty_pages":
            waiting.pop(event.tid, None)
            (pause,) = read_pauses([event])
            if pause.pause > 0:
                waiting[event.tid] = pause
        elif event.name == "sched_switch" and (match := _SWITCH.match(event.text)):
            next_tid, prev_tid = int(match["next_tid"]), int(match["prev_tid"])
            if next_tid in asleep:
                pause, out = asleep.pop(next_tid)
                sleeps.append((pause, out, event.ts))
            if match["state"].startswith("D") and prev_tid in waiting:
                asleep[prev_tid] = (waiting.pop(prev_tid), event.ts)
    return sleeps + [(pause, out, end_ts) for pause, out in asleep.values()]


def call_latencies(
    pauses: list[Pause], sleeps: list[tuple[Pause, int, int]]
) -> dict[TaskKey, list[int]]:
    """How long each call lasted: its last event's paused, and the measured sleep after it."""
    slept = {pause: back - out for pause, out, back in sleeps}
    calls: dict[TaskKey, list[int]] = defaultdict(list)
    previous: dict[int, Pause] = {}
    for event in pauses:
        latency = event.paused + slept.get(event, 0)
        before = previous.get(event.tid)
        if before is not None and _continues(before, event):
            calls[event.key][-1] = latency
        else:
            calls[event.key].append(latency)
        previous[event.tid] = event
    return dict(calls)


def write_calls(events: Iterable[ReportEvent]) -> dict[tuple[int, int], int]:
    """(tid, fd) -> bytes that write() returned; fd -1 where the trace lacks the call's begin."""
    open_fd: dict[int, int] = {}
    totals: dict[tuple[int, int], int] = defaultdict(int)
    for event in events:
        if event.name == "sys_enter_write":
            open_fd[event.tid] = int(event.text.split(",")[0].removeprefix("fd: "), 16)
        elif event.name == "sys_exit_write":
            written = int(event.text, 16)
            if written < 1 << 63:
                totals[event.tid, open_fd.pop(event.tid, -1)] += written
    return dict(totals)


def reclaimers(events: Iterable[ReportEvent]) -> list[tuple[int, str, str]]:
    """(pfn, kind, reclaimer) of each page or folio that reclaim wrote.

    kind: anon or file by the event's own flag. Reclaimer: kswapd by the task's name, else the
    innermost reclaim span that the task is in (memcg or direct), else other.
    """
    spans: dict[int, list[str]] = defaultdict(list)
    writes = []
    for event in events:
        match = re.fullmatch(r"mm_vmscan_(direct|memcg)_reclaim_(begin|end)", event.name)
        if match and match[2] == "begin":
            spans[event.tid].append(match[1])
        elif match and spans[event.tid]:
            spans[event.tid].pop()
        elif event.name in ("mm_vmscan_write_folio", "mm_vmscan_writepage"):
            kind = "anon" if "RECLAIM_WB_ANON" in event.text else "file"
            kswapd = re.fullmatch(r"kswapd\d+", event.comm.strip()) is not None
            who = "kswapd" if kswapd else (spans[event.tid] or ["other"])[-1]
            writes.append((int(key_values(event.text)["pfn"], 0), kind, who))
    return writes


def dirty_states(events: Iterable[ReportEvent]) -> list[tuple[int, dict[str, int]]]:
    """(ts, printed values in pages) of each global_dirty_state."""
    return [
        (event.ts, {key: int(value) for key, value in key_values(event.text).items()})
        for event in events
        if event.name == "global_dirty_state"
    ]


def reclaimers_by_task(events: Iterable[ReportEvent]) -> list[tuple[int, str]]:
    """(tid, anon or file) of each page or folio that reclaim wrote."""
    return [
        (event.tid, "anon" if "RECLAIM_WB_ANON" in event.text else "file")
        for event in events
        if event.name in ("mm_vmscan_write_folio", "mm_vmscan_writepage")
    ]


# More answers worked out from `trace-cmd report -t` text: requests, flusher, reclaim, rates.
#
# Nothing here uses the project's code. Times in ns.

__all__ += ["Told", "told"]
_REQUEST = re.compile(
    r"(?P<major>\d+),(?P<minor>\d+) (?P<rwbs>\S+) (?:\d+ )?\(.*?\) "
    r"(?P<sector>\d+) \+ (?P<count>\d+) "
)
_SECTOR_BYTES = 512
_SHRINK = "mm_vmscan_lru_shrink_inactive"


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was given to the driver; completed is None while it is in flight."""

    device: str
    op: str
    issued: int
    completed: int | None
    bytes: int


def _op(rwbs: str, count: int) -> str:
    if "D" in rwbs:
        return "discard"
    if count == 0 and "F" in rwbs:
        return "flush"
    return "write" if "W" in rwbs else "read" if "R" in rwbs else "other"


def requests(events: Iterable[ReportEvent]) -> list[Request]:
    """Every issued request; it is done when a completion reaches its last sector."""
    waiting: dict[tuple[str, object], tuple[int, str, int]] = {}
    done: list[Request] = []
    for event in events:
        if event.name not in ("block_rq_issue", "block_rq_complete"):
            continue
        match = _REQUEST.match(event.text)
        assert match is not None, event
        device = f"{match['major']}:{match['minor']}"
        count = int(match["count"])
        end: object = int(match["sector"]) + count if count else ("flush" in _op(match["rwbs"], 0))
        if event.name == "block_rq_issue":
            if (device, end) in waiting:  # issued again
                issued, op, size = waiting[device, end]
                done.append(Request(device, op, issued, None, size))
            waiting[device, end] = (event.ts, _op(match["rwbs"], count), count * _SECTOR_BYTES)
        elif (device, end) in waiting:
            issued, op, size = waiting.pop((device, end))
            done.append(Request(device, op, issued, event.ts, size))
    left = [Request(device, op, ts, None, size) for (device, _), (ts, op, size) in waiting.items()]
    return done + left


def flusher_pages(events: Iterable[ReportEvent]) -> dict[tuple[str, str], int]:
    """(bdi, reason) -> pages of its chunks: what nr_pages went down from start to written."""
    started: dict[int, int] = {}
    pages: dict[tuple[str, str], int] = defaultdict(int)
    for event in events:
        if event.name not in ("writeback_start", "writeback_written"):
            continue
        bdi = event.text.removeprefix("bdi ").partition(": ")[0]
        values = key_values(event.text)
        if event.name == "writeback_start":
            started[event.tid] = int(values["nr_pages"])
        elif event.tid in started:
            pages[bdi, values["reason"]] += started.pop(event.tid) - int(values["nr_pages"])
    return dict(pages)


def scans(events: Iterable[ReportEvent]) -> dict[str, tuple[int, int]]:
    """Reclaimer -> pages scanned and freed, by the spans that each task is in.

    MGLRU, which asks for batches of more than SWAP_CLUSTER_MAX (32), scans what it isolates.
    """
    events = list(events)
    isolated = [e for e in events if e.name == "mm_vmscan_lru_isolate"]
    mglru = any(int(key_values(event.text)["nr_requested"]) > 32 for event in isolated)
    counted = ("mm_vmscan_lru_isolate", "nr_taken") if mglru else (_SHRINK, "nr_scanned")
    spans: dict[int, list[str]] = defaultdict(list)
    totals: dict[str, tuple[int, int]] = {}
    for event in events:
        match = re.fullmatch(r"mm_vmscan_(direct|memcg)_reclaim_(begin|end)", event.name)
        if match and match[2] == "begin":
            spans[event.tid].append(match[1])
        elif match and spans[event.tid]:
            spans[event.tid].pop()
        elif event.name in (_SHRINK, counted[0]):
            values = key_values(event.text)
            kswapd = re.fullmatch(r"kswapd\d+", event.comm.strip()) is not None
            who = "kswapd" if kswapd else (spans[event.tid] or ["other"])[-1]
            scanned, freed = totals.get(who, (0, 0))
            scanned += int(values[counted[1]]) if event.name == counted[0] else 0
            freed += int(values["nr_reclaimed"]) if event.name == _SHRINK else 0
            totals[who] = (scanned, freed)
    return totals


def mean_rates(pauses: list[Pause]) -> dict[TaskKey, float]:
    """KiB/s that each task was told, weighted by the time to its next event."""
    by_tid: dict[int, list[Pause]] = defaultdict(list)
    for pause in pauses:
        by_tid[pause.tid].append(pause)
    weighed: dict[TaskKey, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for events in by_tid.values():
        for event, following in itertools.pairwise(events):
            sums = weighed[event.key]
            sums[0] += event.task_ratelimit * (following.ts - event.ts)
            sums[1] += following.ts - event.ts
    return {key: rate / ns for key, (rate, ns) in weighed.items() if ns}


@dataclass
class Told:
    """What a task was told: ns at each rate in KiB/s, and of each kind of time."""

    at_rate: Counter[int] = field(default_factory=Counter)
    ns: Counter[str] = field(default_factory=Counter)
    rate_time: Counter[str] = field(default_factory=Counter)
    pages: Counter[str] = field(default_factory=Counter)

    def rank(self, percent: int) -> int:
        """The smallest rate that was not exceeded for so much of the time."""
        total, so_far = sum(self.at_rate.values()), 0
        for rate, ns in sorted(self.at_rate.items()):
            so_far += ns
            if 100 * so_far >= percent * total:
                return rate
        raise AssertionError(total)


def told(pauses: list[Pause]) -> dict[TaskKey, Told]:
    """A rate holds to the task's next event, which says what the time was and charges pages."""
    by_tid: dict[int, list[Pause]] = defaultdict(list)
    for pause in pauses:
        by_tid[pause.tid].append(pause)
    found: dict[TaskKey, Told] = defaultdict(Told)
    for events in by_tid.values():
        charged: set[TaskKey] = {events[0].key}
        for event, following in itertools.pairwise(events):
            kind = "elsewhere" if following.pause < 0 else "told"
            if event.task_ratelimit == 0:
                kind = "stopped"
            length = following.ts - event.ts
            at = found[event.key]
            at.at_rate[event.task_ratelimit] += length
            at.ns[kind] += length
            at.rate_time[kind] += event.task_ratelimit * length
            goes_on = (
                event.task_ratelimit == 0
                and event.pause > 0
                and (event.bdi, event.dirtied) == (following.bdi, following.dirtied)
                and following.paused >= event.paused + event.pause
            )
            if following.key in charged and following.consumed and not goes_on:
                found[following.key].pages[kind] += following.dirtied
            charged.add(following.key)
    return found


def calls(events: Iterable[ReportEvent], name: str) -> list[tuple[int, int, int]]:
    """(tid, entered, returned) of each finished call of one system call."""
    entered: dict[int, int] = {}
    found = []
    for event in events:
        if event.name == f"sys_enter_{name}":
            entered[event.tid] = event.ts
        elif event.name == f"sys_exit_{name}" and event.tid in entered:
            found.append((event.tid, entered.pop(event.tid), event.ts))
    return found


def bio_reads(events: Iterable[ReportEvent]) -> dict[int, tuple[int, int]]:
    """tid -> bios for reading that it queued, and their bytes."""
    found: dict[int, tuple[int, int]] = {}
    for event in events:
        if event.name == "block_bio_queue":
            match = re.match(
                r"\d+,\d+ (?P<rwbs>\S+) (?P<sector>\d+) \+ (?P<count>\d+) ", event.text
            )
            assert match is not None, event
            if "R" in match["rwbs"]:
                bios, size = found.get(event.tid, (0, 0))
                found[event.tid] = (bios + 1, size + int(match["count"]) * _SECTOR_BYTES)
    return found
