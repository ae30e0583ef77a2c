# SPDX-License-Identifier: Apache-2.0
"""Calls of balance_dirty_pages() by the probes on its entry and return, on a stock kernel.

By hand, 4 KiB pages, ms from 10 s; bdi_writeback 0xa is 8:0, 0xb is 8:16. A call counts its pages
less those that the last call left: a call leaves none in free run (no event), after a pause above 0
or with a period above 0; else all of its pages, as does one that returns -EAGAIN.
  dd, tid 1:  0 to 1, 100 pages, no event: free run, 100
             10 to 11, 50 pages, an event with pause 0 and period 0: 50, and they are left
             20 to 65, 80 pages, pause 44: 80 - 50 = 30; held 45 ms
            100 to 150, 20 pages, two events (rate 0, pause 20 at 100 and at 122): 20; held 50 ms
    200 pages. Its events alone charge 80 + 20. Calls with an event 3, pauses 3, slept 95 ms.
    Rate: the first call's 100 are older than it; 100 pages in the 100 ms to the last call.
  fio, tid 2, io_uring: 30 to 30.5, 10 pages, pause 100, -EAGAIN: 10, left; nobody slept
            200 to 222, 14 pages, pause 20: 14 - 10 = 4; held 22 ms.  14 pages
    Rate: 4 pages in 170 ms.
  cp, tid 3:  50, 32 pages, free run, of 0xa, so of 8:0; 51, 6 pages, free run, of 0xc: of no known
    bdi. No event, so it is not among the throttled.
  tar, tid 5, on 8:16: its entry is lost: pause 20 at 60, the return at 82 tells nothing. So all is
    as without probes: 7 pages charged, slept 20 ms and half a jiffy = 22 ms (HZ is 250: all times
    are multiples of 4, not of 10), bound.
  mv, tid 6: the trace ends in its call of 5 pages: pause 12 at 300, cut to 0 ms; its bytes count.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.wait_events import MS, Waits, at

_PAGE = 4096
_AGAIN = -11


def make(folder: Path) -> None:
    names = ("balance_dirty_pages_entry", "balance_dirty_pages", "balance_dirty_pages_return")
    tasks = {1: "dd", 2: "fio", 3: "cp", 5: "tar", 6: "mv"}
    waits = Waits(*names, cmdlines=tasks)

    def enter(ms: float, tid: int, pages: int, wb: int = 0xA) -> None:
        waits.add(ms, tid, names[0], wb=wb, pages=pages)

    def leave(ms: float, tid: int, ret: int = 0) -> None:
        waits.add(ms, tid, names[2], ret=ret)

    def pause(
        ms: float, tid: int, pause: int, pages: int, *, paused: int = 0, rate: int = 100
    ) -> None:
        values = {"cgroup_ino": 1, "dirty_ratelimit": 1000, "task_ratelimit": rate}
        values |= {"dirtied": pages, "paused": paused, "pause": pause, "period": pause}
        waits.add(ms, tid, names[1], bdi="8:16" if tid == 5 else "8:0", **values)

    enter(0, 1, 100)
    leave(1, 1)
    enter(10, 1, 50)
    pause(10, 1, 0, 50)
    leave(11, 1)
    enter(20, 1, 80)
    pause(20, 1, 44, 80)
    leave(65, 1)
    enter(30, 2, 10)
    pause(30, 2, 100, 10)
    leave(30.5, 2, _AGAIN)
    enter(50, 3, 32)
    leave(50.5, 3)
    enter(51, 3, 6, 0xC)
    leave(51.5, 3)
    pause(60, 5, 20, 7)
    leave(82, 5)
    enter(100, 1, 20)
    pause(100, 1, 20, 20, rate=0)
    pause(122, 1, 20, 20, paused=20, rate=0)
    leave(150, 1)
    enter(200, 2, 14)
    pause(200, 2, 20, 14)
    leave(222, 2)
    enter(300, 6, 5)
    pause(300, 6, 12, 5)
    waits.write(folder)


def _call(
    ms: float, tid: int, held: float | None, pages: int, events: int, bdi: str | None = "8:0"
) -> dict[str, int | float | str | None]:
    return {
        "ts": at(ms),
        "tid": tid,
        "call_ns": None if held is None else int(held * MS),
        "dirtied_bytes": pages * _PAGE,
        "events_count": events,
        "bdi": bdi,
        "is_async": int((tid, ms) == (2, 30)),
    }


def _task(
    tid: int, bdi: str, slept: float, longest: float, charged: int, pages: int, measure: str
) -> dict[str, int | float | str | None]:
    return {
        "tid": tid,
        "bdi": bdi,
        "slept_total_ns": int(slept * MS),
        "slept_basis": "probe" if measure == "probe" and tid != 6 else "intended",
        "call_max_ns": int(longest * MS),
        "dirtied_bytes": charged * _PAGE,
        "dirtied_estimate_bytes": pages * _PAGE,
        "dirtied_basis": measure,
    }


CHECKS = [
    Check(
        sql="SELECT *, end_ts - ts AS call_ns, device AS bdi FROM wb_call"
        " WHERE call = 'balance_dirty_pages' ORDER BY seq",
        rows=[
            _call(0, 1, 1, 100, 0),
            _call(10, 1, 1, 50, 1),
            _call(20, 1, 45, 30, 1),
            _call(30, 2, 0.5, 10, 1),
            _call(50, 3, 0.5, 32, 0),
            _call(51, 3, 0.5, 6, 0, None),
            _call(100, 1, 50, 20, 2),
            _call(200, 2, 22, 4, 1),
            _call(300, 6, None, 5, 1),
        ],
    ),
    Check(
        query="throttle_by_task",
        rows=[
            _task(1, "8:0", 95, 50, 100, 200, "probe"),
            _task(2, "8:0", 22, 22, 14, 14, "probe"),
            _task(5, "8:16", 22, 22, 7, 7, "bound"),
            _task(6, "8:0", 0, 0, 5, 5, "probe"),
        ],
    ),
    Check(
        query="fairness_tasks",
        rows=[
            {"tid": 1, "rate_bytes_per_s": 100 * _PAGE / 0.1, "dirtied_basis": "probe"},
            {"tid": 2, "rate_bytes_per_s": 4 * _PAGE / 0.17, "dirtied_basis": "probe"},
        ],
    ),
]
