# SPDX-License-Identifier: Apache-2.0
"""More answers worked out from `trace-cmd report -t` text: requests, flusher, reclaim, rates.

Nothing here uses the project's code. Times in ns.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from .oracle import Pause, TaskKey
from .report import ReportEvent, key_values

__all__ = ["Request", "bio_reads", "calls", "flusher_pages", "mean_rates", "requests", "scans"]
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
