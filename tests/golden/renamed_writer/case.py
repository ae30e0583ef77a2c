# SPDX-License-Identifier: Apache-2.0
"""A thread that loses time under two names is one thread, under the name that it lost most under.

By hand, ms from 10 s: every pause is 200 ms, slept in state D from 1 ms after its event.
  tid 11: "sh" at 0 and 300 ms, "dd" from 600 ms on, at 600, 900 and 1200: 400 ms and 600 ms
  tid 12: "cp" at 0, 300, 600 and 900 ms: 800 ms
Two threads lost 1800 ms, 11 the most: "dd and cp", not "cp, dd and 1 more".
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.wait_events import MS, Waits


def make(folder: Path) -> None:
    waits = Waits("balance_dirty_pages", "sched_switch", cmdlines={11: "sh", 12: "cp"})

    def pause(ms: int, tid: int) -> None:
        values = {"cgroup_ino": 1, "task_ratelimit": 4000, "dirty_ratelimit": 4000}
        values |= {"dirtied": 100, "pause": 200, "period": 200}
        waits.add(ms, tid, "balance_dirty_pages", bdi="8:0", **values)
        waits.sleep(ms + 1, ms + 201, tid)

    for ms in (0, 300, 600, 900):
        pause(ms + 10, 12)
    pause(0, 11)
    pause(300, 11)
    waits.name(11, "dd")
    for ms in (600, 900, 1200):
        pause(ms, 11)
    waits.write(folder)


CHECKS = [
    Check(
        sql="SELECT tasks_count, tasks, cost_task_ns FROM wb_loss_total",
        rows=[{"tasks_count": 2, "tasks": "dd and cp", "cost_task_ns": 1800 * MS}],
    ),
]
