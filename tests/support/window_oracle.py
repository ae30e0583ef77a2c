# SPDX-License-Identifier: Apache-2.0
"""Answers for windows of time worked out from `trace-cmd report -t` text.

Nothing here uses the project's code. Times in ns, amounts in pages or as the kernel printed them.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .report import ReportEvent, key_values

__all__ = ["Level", "bandwidths", "completions", "idle_times", "levels", "window_of"]

State = tuple[int, dict[str, int]]
_RATES = ("write_bw", "awrite_bw", "dirty_rate", "dirty_ratelimit", "balanced_dirty_ratelimit")
_DONE = re.compile(
    r"(?P<major>\d+),(?P<minor>\d+) (?P<rwbs>\S+) .*\) (?P<sector>\d+) \+ (?P<count>\d+) "
)
_SWITCH = re.compile(r"^.*:(?P<prev>\d+) \[-?\d+\] (?P<state>\S+) ==> .*:(?P<next>\d+) \[-?\d+\]$")


def window_of(ts: int, start: int, length: int) -> int:
    """The start of the window that a time lies in."""
    return start + (ts - start) // length * length


@dataclass
class Level:
    """Dirty pages in a window; each state holds until the next one."""

    ns: int = 0
    dirty: float = 0
    thresh: float = 0
    bg_thresh: float = 0
    limit: float = 0
    most: int = 0
    in_range_ns: int = 0
    above_setpoint_ns: int = 0
    above_limit_ns: int = 0
    samples: int = 0

    def add(self, ns: int, values: dict[str, int]) -> None:
        """A state that was in force for that long."""
        dirty = values["dirty"] + values["writeback"] + values.get("unstable", 0)
        thresh = values["thresh"]
        freerun = (thresh + values["bg_thresh"]) // 2
        limit = max(thresh, values["limit"])
        self.ns += ns
        self.most = max(self.most, dirty)
        self.dirty += dirty * ns
        self.thresh += thresh * ns
        self.bg_thresh += values["bg_thresh"] * ns
        self.limit += limit * ns
        self.in_range_ns += ns * (thresh - thresh / 4 <= dirty <= thresh)
        self.above_setpoint_ns += ns * (dirty > (limit + freerun) // 2)
        self.above_limit_ns += ns * (dirty > limit)

    @property
    def position(self) -> float:
        """Of the mean between the means of freerun and limit."""
        freerun = (self.thresh + self.bg_thresh) / 2
        return (self.dirty - freerun) / (self.limit - freerun)

    @property
    def range_position(self) -> float:
        """Of the mean between three quarters of the mean threshold and all of it."""
        return (self.dirty - 0.75 * self.thresh) / (0.25 * self.thresh)


def levels(states: list[State], start: int, end: int, length: int) -> dict[int, Level]:
    """Start of the window -> the level in it, for windows in which the event fired."""
    found: dict[int, Level] = defaultdict(Level)
    following = [ts for ts, _ in states[1:]] + [end]
    for (ts, values), until in zip(states, following, strict=True):
        found[window_of(ts, start, length)].samples += 1
        for begin, finish in _cut(ts, until, start, length):
            found[window_of(begin, start, length)].add(finish - begin, values)
    return {window: level for window, level in found.items() if level.samples}


def _cut(begin: int, end: int, start: int, length: int) -> Iterator[tuple[int, int]]:
    """A span cut at the borders of windows; one of no length is kept."""
    while True:
        border = window_of(begin, start, length) + length
        if border >= end:
            yield begin, end
            return
        yield begin, border
        begin = border


def bandwidths(
    events: Iterable[ReportEvent], start: int, length: int
) -> dict[tuple[int, str, int], dict[str, float]]:
    """(window, bdi, cgroup) -> the mean of each rate in KiB/s.

    Of two events of one task for one cgroup within a ms the second one is the domain's own.
    """
    by_task: dict[tuple[int, str, int], list[tuple[int, dict[str, str]]]] = defaultdict(list)
    for event in events:
        if event.name == "bdi_dirty_ratelimit":
            bdi = event.text.removeprefix("bdi ").partition(": ")[0]
            values = key_values(event.text)
            by_task[event.tid, bdi, int(values["cgroup_ino"])].append((event.ts, values))
    sums: dict[tuple[int, str, int], list[dict[str, str]]] = defaultdict(list)
    for (_, bdi, cgroup), updates in by_task.items():
        for (ts, values), (next_ts, _) in itertools.pairwise([*updates, (1 << 62, {})]):
            if next_ts - ts > 1_000_000:
                sums[window_of(ts, start, length), bdi, cgroup].append(values)
    return {
        key: {rate: sum(int(v[rate]) for v in group) / len(group) for rate in _RATES}
        for key, group in sums.items()
    }


def completions(
    events: Iterable[ReportEvent], start: int, length: int
) -> dict[tuple[int, str], dict[str, int]]:
    """(window, device) -> completions, sectors read and sectors written."""
    found: dict[tuple[int, str], dict[str, int]] = defaultdict(
        lambda: {"count": 0, "read": 0, "written": 0}
    )
    for event in events:
        if event.name != "block_rq_complete":
            continue
        match = _DONE.match(event.text)
        assert match is not None, event
        sums = found[window_of(event.ts, start, length), f"{match['major']}:{match['minor']}"]
        sums["count"] += 1
        if "D" not in match["rwbs"]:
            kind = "written" if "W" in match["rwbs"] else "read" if "R" in match["rwbs"] else None
            if kind is not None:
                sums[kind] += int(match["count"])
    return dict(found)


def idle_times(events: Iterable[ReportEvent], spans: dict[int, tuple[int, int]]) -> dict[int, int]:
    """tid -> time asleep in state S, within the span of each task, by sched_switch."""
    asleep: dict[int, int] = {}
    totals = dict.fromkeys(spans, 0)
    for event in events:
        if event.name != "sched_switch" or not (match := _SWITCH.match(event.text)):
            continue
        prev, following = int(match["prev"]), int(match["next"])
        if following in asleep:
            since, (begin, end) = asleep.pop(following), spans[following]
            totals[following] += max(0, min(event.ts, end) - max(since, begin))
        if prev in spans and match["state"].startswith("S"):
            asleep[prev] = event.ts
    return totals
