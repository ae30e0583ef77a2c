# SPDX-License-Identifier: Apache-2.0
"""One thread under several names: what it does is its own under the name that it had then.

By hand, 4 KiB pages, ms from 10 s. The trace knows only the last names: dd, worker and cat.
  tid 11 is sh and runs /usr/bin/dd at 100 ms (sched_process_exec): 4 pages and a pause of 20 ms
    before, as sh: no, the name before an exec is not told: tid 11; 8 + 16 pages, 30 + 40 ms, as dd.
    It writes 100 bytes before and 5000 after.
  tid 12 is renamed from main to worker at 300 ms (task_rename): 1 page and 10 ms, 2 pages and 20 ms
  tid 13 has no such event. sched_switch sees it as sh at 400 ms, when it leaves the CPU and comes
    back at 410 ms, and as cat at 500 ms: cat from just after 410 ms on: 0 pages as sh (pause 0 of
    no period), 32 pages and 50 ms as cat
HZ is 100 by the times, so an intended pause lasts half a jiffy = 5 ms longer: 25 ms as tid 11,
35 + 45 = 80 ms as dd, 15 ms as main, 25 ms as worker. In windows of 2 s each name has a row of its
own: 25 and 80 ms of the 510 ms and 1 ns that the trace has of the only window.
A name's rate is that from its first event to its last: dd 16 pages in 100 ms = 655360 bytes/s, told
1000 KiB/s for those 100 ms: -0.36. Other names have one event only.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import MS, WRITE, Waits, at

_COMMS = {11: "dd", 12: "worker", 13: "cat"}


def make(folder: Path) -> None:
    names = ("balance_dirty_pages", "sched_process_exec", "task_rename", "sched_switch", *WRITE)
    waits = Waits(*names, cmdlines=_COMMS)

    def pause(ms: float, tid: int, length: int, pages: int) -> None:
        values = {"cgroup_ino": 1, "task_ratelimit": 1000, "dirty_ratelimit": 1000}
        values |= {"dirtied": pages, "pause": length, "period": length}
        waits.add(ms, tid, "balance_dirty_pages", bdi="8:0", **values)

    pause(0, 11, 20, 4)
    waits.add(50, 11, "sys_enter_write", fd=1)
    waits.add(51, 11, "sys_exit_write", ret=100)
    waits.add(100, 11, "sched_process_exec", filename="/usr/bin/dd", pid=11, old_pid=11)
    pause(150, 11, 30, 8)
    waits.add(200, 11, "sys_enter_write", fd=1)
    waits.add(201, 11, "sys_exit_write", ret=5000)
    pause(250, 11, 40, 16)
    pause(270, 12, 10, 1)
    waits.add(300, 12, "task_rename", pid=12, oldcomm="main", newcomm="worker")
    pause(350, 12, 20, 2)
    waits.name(13, "sh")
    pause(390, 13, 0, 7)
    waits.sleep(400, 410, 13, state=1)
    waits.name(13, "cat")
    pause(420, 13, 50, 32)
    waits.sleep(500, 510, 13, state=1)
    waits.write(folder)


def _row(tid: int, comm: str, pauses: int, total: int, pages: int, written: int) -> Expected:
    return {
        "tid": tid,
        "comm": comm,
        "pauses_count": pauses,
        "pause_total_ns": total * MS,
        "dirtied_bytes": pages * 4096,
        "written_bytes": written,
    }


CHECKS = [
    Check(
        query="throttle_by_task",
        rows=[
            _row(11, "tid 11", 1, 20, 4, 100),
            _row(11, "dd", 2, 70, 24, 5000),
            _row(12, "main", 1, 10, 1, 0),
            _row(12, "worker", 1, 20, 2, 0),
            _row(13, "sh", 0, 0, 0, 0),
            _row(13, "cat", 1, 50, 32, 0),
        ],
    ),
    Check(
        query="throttle_windows",
        options=("--tid", "11"),
        rows=[
            {"comm": "tid 11", "dirtied_bytes": 4 * 4096, "throttled_ratio": 25 / 510.000001},
            {"comm": "dd", "dirtied_bytes": 24 * 4096, "throttled_ratio": 80 / 510.000001},
        ],
    ),
    Check(
        query="ratelimit_error",
        rows=[
            {"tid": 11, "comm": "dd", "actual_bytes_per_s": 655_360.0, "error_ratio": -0.36},
        ],
    ),
    Check(
        query="fairness",
        rows=[{"bdi": "8:0", "tasks_count": 1, "task_rates": "dd-11=655360"}],
    ),
    Check(
        query="copy_and_sync",
        rows=[
            {"tid": 11, "comm": "tid 11", "calls_count": 1, "written_bytes": 100},
            {"tid": 11, "comm": "dd", "calls_count": 1, "written_bytes": 5000},
        ],
    ),
    Check(
        query="stalls_by_task",
        options=("--tid", "12"),
        rows=[
            {"comm": "main", "kind": "throttle", "total_ns": 15 * MS, "stalls_count": 1},
            {"comm": "worker", "kind": "throttle", "total_ns": 25 * MS, "stalls_count": 1},
        ],
    ),
    Check(
        sql="SELECT comm, from_ts, first_ts FROM wb_task WHERE tid > 10 AND from_ts > 0",
        rows=[
            {"comm": "dd", "from_ts": at(100), "first_ts": at(100)},
            {"comm": "worker", "from_ts": at(300), "first_ts": at(300)},
            {"comm": "cat", "from_ts": at(410) + 1, "first_ts": at(410) + 1},
        ],
    ),
]
