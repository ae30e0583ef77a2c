# SPDX-License-Identifier: Apache-2.0
"""The kernel's dirty-throttling law, replayed from `trace-cmd report -t` text.

Nothing here uses the project's code. Written from mm/page-writeback.c: the functions have the
kernel's names. Rates of the text are KiB/s; everything here is pages and pages/s.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .report import ReportEvent, key_values

__all__ = ["EVENTS", "Replayed", "replay", "wb_position_ratio"]

EVENTS = (
    "balance_dirty_pages",
    "bdi_dirty_ratelimit",
    "global_dirty_state",
    "wb_domain_dirty_state",
)
_SHIFT = 10
_NEAR_PAGES = 64
_BANDWIDTH_INTERVAL_NS = 200_000_000


class Domain(NamedTuple):
    """The machine or a memory cgroup: its thresholds at one time."""

    thresh: int
    bg_thresh: int
    dirty_limit: int


@dataclass(frozen=True)
class Replayed:
    """One balance_dirty_pages event; predicted is None where an input is not in the text.

    is_exact: the bandwidth cannot have changed untold, or does not matter.
    """

    ts: int
    tid: int
    predicted: int | None
    recorded: int
    is_exact: bool

    @property
    def agrees(self) -> bool:
        assert self.predicted is not None
        return abs(self.predicted - self.recorded) <= 0.01 * self.recorded


def div64(a: int, b: int) -> int:
    """C division, towards zero."""
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def pos_ratio_polynom(setpoint: int, dirty: int, limit: int) -> int:
    x = div64((setpoint - dirty) << _SHIFT, (limit - setpoint) | 1)
    ratio = x
    ratio = ratio * x >> _SHIFT
    ratio = ratio * x >> _SHIFT
    return min(max(ratio + (1 << _SHIFT), 0), 2 << _SHIFT)


def wb_position_ratio(
    domain: Domain, dirty: int, wb_thresh: int, wb_dirty: int, write_bw: int, *, has_floor: bool
) -> int:
    limit = max(domain.thresh, domain.dirty_limit)
    if dirty >= limit:
        return 0
    setpoint = ((domain.thresh + domain.bg_thresh) // 2 + limit) // 2
    ratio = pos_ratio_polynom(setpoint, dirty, limit)
    wb_thresh = min(wb_thresh, domain.thresh)
    if has_floor:
        wb_thresh = max(wb_thresh, (limit - dirty) // 8)
    share = (wb_thresh << 16) // (domain.thresh | 1)
    wb_setpoint = setpoint * share >> 16
    span = (domain.thresh - wb_thresh + 8 * write_bw) * share >> 16
    x_intercept = wb_setpoint + span
    if wb_dirty < x_intercept - span // 4:
        ratio = ratio * (x_intercept - wb_dirty) // ((x_intercept - wb_setpoint) | 1)
    else:
        ratio //= 4
    reserve = wb_thresh // 2
    if wb_dirty < reserve:
        ratio = ratio * reserve // wb_dirty if wb_dirty > reserve // 8 else ratio * 8
    return ratio


@dataclass
class _Bandwidth:
    """avg_write_bw of a wb: each update tells it as it was before."""

    places: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    def after(self, place: int) -> int:
        return self.values[min(bisect_right(self.places, place), len(self.places) - 1)]

    def is_told_soon(self, place: int, ts: int) -> bool:
        """Whether nobody can have updated it before the next update that is told."""
        index = bisect_right(self.places, place)
        return index < len(self.places) and self.times[index] - ts <= _BANDWIDTH_INTERVAL_NS


class _Task(NamedTuple):
    """What the current call of a task has told so far."""

    place: int
    machine_dirty: int
    machine: Domain
    cgroup: Domain | None


def replay(
    events: Iterable[ReportEvent], release: tuple[int, int], page_kib: int = 4
) -> list[Replayed]:
    """All balance_dirty_pages events, in the order of the text."""
    listed = [event for event in events if event.name in EVENTS]
    bandwidths = _bandwidths(listed, page_kib)
    tasks: dict[int, _Task] = {}
    replayed = []
    for place, event in enumerate(listed):
        keys = key_values(event.text)
        if event.name == "global_dirty_state":
            machine = Domain(int(keys["thresh"]), int(keys["bg_thresh"]), int(keys["limit"]))
            dirty = int(keys["dirty"]) + int(keys["writeback"])
            tasks[event.tid] = _Task(place, dirty, machine, None)
        elif event.name == "wb_domain_dirty_state":
            if _is_memcg(keys) and event.tid in tasks:
                limit = keys.get("dirty_limit") or keys["limit"]
                cgroup = Domain(int(keys["thresh"]), int(keys["bg_thresh"]), int(limit))
                tasks[event.tid] = tasks[event.tid]._replace(cgroup=cgroup)
        elif event.name == "balance_dirty_pages":
            call = tasks.pop(event.tid, None)
            bandwidth = bandwidths.get(_wb(event))
            predicted = _predicted(keys, call, bandwidth, release, page_kib)
            recorded = int(keys["task_ratelimit"]) // page_kib
            exact = 0 in (predicted, recorded)
            exact = exact or (bandwidth is not None and bandwidth.is_told_soon(place, event.ts))
            replayed.append(Replayed(event.ts, event.tid, predicted, recorded, exact))
    return replayed


def _predicted(
    keys: dict[str, str],
    call: _Task | None,
    bandwidth: _Bandwidth | None,
    release: tuple[int, int],
    page_kib: int,
) -> int | None:
    if call is None:
        return None
    dirty = int(keys["dirty"])
    domain: Domain | None = call.machine
    if keys["cgroup_ino"] != "1" and not _is_near(keys, call):
        domain = call.cgroup
        # From 6.15 on the event's limit is that of the domain.
        if domain is None and release >= (6, 15) and dirty >= int(keys["limit"]):
            return 0
    if domain is None:
        return None
    if dirty >= max(domain.thresh, domain.dirty_limit):
        return 0
    if bandwidth is None:
        return None
    setpoint = int(keys["setpoint"])
    wb_setpoint = int(keys.get("wb_setpoint") or keys["bdi_setpoint"])
    # setpoint * wb_thresh / (thresh + 1), turned round.
    wb_thresh = -(-wb_setpoint * (domain.thresh + 1) // setpoint)
    ratio = wb_position_ratio(
        domain,
        dirty,
        wb_thresh,
        int(keys.get("wb_dirty") or keys["bdi_dirty"]),
        bandwidth.after(call.place),
        has_floor=release < (6, 14),
    )
    return int(keys["dirty_ratelimit"]) // page_kib * ratio >> _SHIFT


def _is_near(keys: dict[str, str], call: _Task) -> bool:
    """Whether the machine's limits threw the event: it sees what the machine has."""
    limit = max(call.machine.thresh, call.machine.dirty_limit)
    setpoint = ((call.machine.thresh + call.machine.bg_thresh) // 2 + limit) // 2
    near = max(_NEAR_PAGES, call.machine_dirty // 16)
    return (
        abs(int(keys["dirty"]) - call.machine_dirty) <= near
        and abs(int(keys["setpoint"]) - setpoint) <= setpoint // 16
    )


def _bandwidths(events: list[ReportEvent], page_kib: int) -> dict[tuple[str, str], _Bandwidth]:
    found: dict[tuple[str, str], _Bandwidth] = defaultdict(_Bandwidth)
    for place, event in enumerate(events):
        if event.name == "bdi_dirty_ratelimit":
            bandwidth = found[_wb(event)]
            bandwidth.places.append(place)
            bandwidth.times.append(event.ts)
            bandwidth.values.append(int(key_values(event.text)["awrite_bw"]) // page_kib)
    return found


def _wb(event: ReportEvent) -> tuple[str, str]:
    """bdi and cgroup, of "bdi 8:0: limit=... cgroup_ino=1"."""
    return event.text.split()[1].rstrip(":"), key_values(event.text)["cgroup_ino"]


def _is_memcg(keys: dict[str, str]) -> bool:
    return keys["domain"] in ("1", "memcg")
