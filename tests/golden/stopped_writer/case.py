# SPDX-License-Identifier: Apache-2.0
"""Writers that were stopped, by a signal and by a debugger, beside a greedy one: they asked for
nothing meanwhile.

By hand, 4 KiB pages, ms from 10 s. All fire at 0, 1000 and 2000 ms and sleep 200 ms after each
event (state D), from 1 ms on: 600 ms of the 2201 ms from the first event to the end of the last
sleep.
  dd, tid 11: 1000 pages each time: 1000 pages/s; it never sleeps but for the kernel
  cp, tid 12: 200 pages/s; stopped (state T) from 300 to 900 ms and from 1300 to 1900: 1200 ms of
    the 1601 ms in which it was not throttled
  tar, tid 13: the same, traced (state t)
  Jain of the rates 1400^2 / (3 * (1000^2 + 2 * 200^2)) = 49/81. With cp and tar entitled to their
  200 and dd to the rest, each has its share: 1.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.wait_events import Waits

_STATES = {12: 4, 13: 8}  # __TASK_STOPPED, __TASK_TRACED


def make(folder: Path) -> None:
    waits = Waits("balance_dirty_pages", "sched_switch", cmdlines={11: "dd", 12: "cp", 13: "tar"})
    for tid, pages in ((11, 1000), (12, 200), (13, 200)):
        for ms in (0, 1000, 2000):
            values = {"cgroup_ino": 1, "task_ratelimit": 4000, "dirty_ratelimit": 4000}
            values |= {"dirtied": pages, "pause": 200, "period": 200}
            waits.add(ms, tid, "balance_dirty_pages", bdi="8:0", **values)
            waits.sleep(ms + 1, ms + 201, tid)
    for tid, state in _STATES.items():
        for ms in (300, 1300):
            waits.sleep(ms, ms + 600, tid, state)
    waits.write(folder)


CHECKS = [
    Check(
        query="fairness_tasks",
        rows=[
            {"tid": 11, "idle_ratio": 0.0, "is_demand_limited": 0}
            | {"entitlement_bytes_per_s": 4_096_000.0},
            *(
                {"tid": tid, "idle_ratio": 1200 / 1601, "is_demand_limited": 1}
                | {"entitlement_bytes_per_s": 819_200.0}
                for tid in _STATES
            ),
        ],
    ),
    Check(
        query="fairness",
        rows=[{"tasks_count": 3, "jain_ratio": 49 / 81, "jain_weighted_ratio": 1.0}],
    ),
]
