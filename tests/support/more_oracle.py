# SPDX-License-Identifier: Apache-2.0
"""More answers worked out from `trace-cmd report -t` text: requests, flusher, reclaim, rates.

Nothing here uses the project's code. Times in ns.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from .oracle import Pause, TaskKey
from .report import ReportEvent, key_values

__all__ = ["Request", "bio_reads", "calls", "flusher_pages", "mean_rates", "requests", "scans"]

_REQUEST = re.compile(
    r"(?P<major>\d+),(?P<minor>\d+) (?P<rwbs>\S+) (?:\d+ )?\(.*?\) "
    r"(?P<sector>\d+) \+ (?P<count>\d+) "
)
_SECTOR_BYTES = 512


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
    """Reclaimer -> pages scanned and freed, by the spans that each task is in."""
    spans: dict[int, list[str]] = defaultdict(list)
    totals: dict[str, tuple[int, int]] = {}
    for event in events:
        match = re.fullmatch(r"mm_vmscan_(direct|memcg)_reclaim_(begin|end)", event.name)
        if match and match[2] == "begin":
            spans[event.tid].append(match[1])
        elif match and spans[event.tid]:
            spans[event.tid].pop()
        elif event.name == "mm_vmscan_lru_shrink_inactive":
            values = key_values(event.text)
            kswapd = re.fullmatch(r"kswapd\d+", event.comm.strip()) is not None
            who = "kswapd" if kswapd else (spans[event.tid] or ["other"])[-1]
            scanned, freed = totals.get(who, (0, 0))
            totals[who] = (
                scanned + int(values["nr_scanned"]),
                freed + int(values["nr_reclaimed"]),
            )
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
