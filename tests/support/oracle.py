# SPDX-License-Identifier: Apache-2.0
"""The answers worked out from `trace-cmd report -t` text, to compare the project's own with.

Nothing here uses the project's code. Times in ns; pages as the kernel printed them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from .report import ReportEvent, key_values

__all__ = [
    "Pause",
    "TaskKey",
    "Throttle",
    "nearest_rank",
    "read_pauses",
    "sleeps_by_pause",
    "throttle_by_task",
]
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
