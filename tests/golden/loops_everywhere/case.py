# SPDX-License-Identifier: Apache-2.0
"""A call that loops, a call that is not paused and one that costs nothing, in every query of tasks.

By hand, 4 KiB pages, ms from 10 s; the times are whole jiffies of HZ = 250, so an intended pause
lasts half a jiffy = 2 ms longer:
      at  task_ratelimit  dirtied  paused  pause  period  slept
       0             400        8       0    100     100  102
    1000               0       32       0    200     200  204, the next event's paused
    1204               0       32     204    200     200  408 - 204 = 204
    1408             400       32     408    100     100  102
    2000             400       40       0     -8       0  0: not held up, and not consumed
    2400             400       48       0     12      16  14
  4 calls, 5 pauses of 612 ms, slept 626 ms; the longest call is the one that loops: 510.
  8 + 32 + 48 = 88 pages, of which 80 after the first event, in 2400 ms: 400 / 3 KiB/s
  told 400 KiB/s for 1000 + 592 + 400 ms of 2400 and 0 for 408: mean 332 KiB/s; stopped 0.17
  windows of 2 s: slept 612 ms of the first, 14 ms of the second, of which the trace has 1 s and
    1 ns; 40 and 48 pages
  wb_dirty is the mean of the events, also of those of a loop: 4 and 2 of them
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.wait_events import MS, Waits, at

_EVENTS = (
    (0, 400, 8, 0, 100, 100),
    (1000, 0, 32, 0, 200, 200),
    (1204, 0, 32, 204, 200, 200),
    (1408, 400, 32, 408, 100, 100),
    (2000, 400, 40, 0, -8, 0),
    (2400, 400, 48, 0, 12, 16),
)


def make(folder: Path) -> None:
    names = ("balance_dirty_pages", "global_dirty_state")
    waits = Waits(*names, cmdlines={11: "dd", 50: "kworker/u4:1"})
    for ms, rate, dirtied, paused, length, period in _EVENTS:
        values = {"cgroup_ino": 1, "dirty_ratelimit": 400, "task_ratelimit": rate}
        values |= {"dirtied": dirtied, "paused": paused, "pause": length, "period": period}
        waits.add(ms, 11, "balance_dirty_pages", bdi="8:0", **values)
    waits.add(3000, 50, "global_dirty_state", dirty_thresh=1000, background_thresh=500)
    waits.write(folder)


CHECKS = [
    Check(
        query="throttle_by_task",
        rows=[
            {
                "calls_count": 4,
                "pauses_count": 5,
                "pause_total_ns": 612 * MS,
                "slept_total_ns": 626 * MS,
                "slept_basis": "intended",
                "call_max_ns": 510 * MS,
                "dirtied_bytes": 88 * 4096,
            }
        ],
    ),
    Check(
        query="throttle_windows",
        ordered=True,
        rows=[
            {"throttled_ratio": 0.306, "slept_max_ns": 204 * MS, "dirtied_bytes": 40 * 4096},
            {
                "throttled_ratio": 14 / 1000.000001,
                "slept_max_ns": 14 * MS,
                "dirtied_bytes": 48 * 4096,
            },
        ],
    ),
    Check(
        query="ratelimit_error",
        rows=[
            {
                "events_count": 5,
                "target_bytes_per_s": 332.0 * 1024,
                "actual_bytes_per_s": 400 / 3 * 1024,
                "error_ratio": 400 / 3 / 332 - 1,
                "stopped_ratio": 0.17,
            }
        ],
    ),
    Check(
        query="fairness_tasks",
        rows=[{"dirtied_bytes": 80 * 4096, "active_ns": 2400 * MS, "is_demand_limited": None}],
    ),
    Check(
        query="bdi_dirty",
        ordered=True,
        rows=[{"events_count": 4}, {"events_count": 2}],
    ),
    Check(
        query="stalls",
        ordered=True,
        rows=[
            {"ts": at(0), "dur": 102 * MS, "basis": "intended"},
            {"ts": at(1000), "dur": 204 * MS, "basis": "paused"},
            {"ts": at(1204), "dur": 204 * MS, "basis": "paused"},
            {"ts": at(1408), "dur": 102 * MS, "basis": "intended"},
            {"ts": at(2400), "dur": 14 * MS, "basis": "intended"},
        ],
    ),
]
