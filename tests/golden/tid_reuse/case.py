# SPDX-License-Identifier: Apache-2.0
"""Tasks that exit, and others that get their tid: each is a row of its own, also under one name.

By hand, 4 KiB pages, ms from 10 s; HZ = 250 by the times (all are multiples of 4, 4 and 8 not of
10), so an intended pause lasts half a jiffy = 2 ms longer.
  tid 11, the first dd: 0 to 100 ms: forked at 0; pauses of 12 and 20 ms at 10 and 60 ms, 8 and 16
    pages; exits at 100 ms. Slept 14 + 22 = 36 ms of a life of 90 ms (its first event is at 10 ms).
    Rate: 16 pages in 50 ms = 1310720 bytes/s, told 1000 KiB/s = 1024000 for these 50 ms: 0.28. The
    900 ms from its last event to that of the next dd do not count.
  tid 11, the second dd: forked at 950 ms; pauses of 40 and 80 ms at 960 and 1060 ms,
    4 and 2 pages; it exits at 1160 ms, so it lives 210 ms and slept 42 + 82 = 124 ms.
    Rate: 2 pages in 100 ms = 81920 bytes/s, told 1000 KiB/s: -0.92
  tid 12: nothing but its exit tells: cat until 500 ms, a pause of 200 ms at 400 ms ends there;
    whatever has the tid then is known by its last name, sort: 8 ms at 700 ms. Nothing tells when it
    began, so its life is from 500 ms + 1 ns to the end of its pause at 710 ms.
Two tasks have a rate on the bdi (cat and sort have one event each: none).
  tid 13: db enters fsync at 200 ms and is killed in it at 300 ms; the next db with this tid has one
    from 750 to 800 ms: 100 and 50 ms
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import FSYNC, MS, Waits, at


def make(folder: Path) -> None:
    names = ("balance_dirty_pages", "sched_process_exit", "sched_process_fork")
    waits = Waits(*names, *FSYNC, cmdlines={1: "sh", 11: "dd", 12: "sort", 13: "db"})

    def pause(ms: float, tid: int, length: int, pages: int) -> None:
        values = {"cgroup_ino": 1, "task_ratelimit": 1000, "dirty_ratelimit": 1000}
        values |= {"dirtied": pages, "pause": length, "period": length}
        waits.add(ms, tid, "balance_dirty_pages", bdi="8:0", **values)

    def fork(ms: float) -> None:
        waits.add(ms, 1, "sched_process_fork", parent_pid=1, child_comm="dd", child_pid=11)

    fork(0)
    pause(10, 11, 12, 8)
    pause(60, 11, 20, 16)
    waits.add(100, 11, "sched_process_exit", comm="dd", pid=11)
    pause(400, 12, 200, 1)
    waits.add(500, 12, "sched_process_exit", comm="cat", pid=12)
    pause(700, 12, 8, 1)
    fork(950)
    pause(960, 11, 40, 4)
    pause(1060, 11, 80, 2)
    waits.add(1160, 11, "sched_process_exit", comm="dd", pid=11)
    waits.add(200, 13, "sys_enter_fsync", fd=3)
    waits.add(300, 13, "sched_process_exit", comm="db", pid=13)
    waits.span(750, 800, 13, FSYNC)
    waits.write(folder)


def _row(tid: int, comm: str, pauses: int, slept: int, life: float, pages: int) -> Expected:
    return {
        "tid": tid,
        "comm": comm,
        "pauses_count": pauses,
        "slept_total_ns": slept * MS,
        "dirtied_bytes": pages * 4096,
        "throttled_ratio": slept / life if slept < life else 1.0,
    }


def _rate(actual: int, error: float) -> Expected:
    return {"tid": 11, "comm": "dd", "actual_bytes_per_s": float(actual), "error_ratio": error}


CHECKS = [
    Check(
        query="throttle_by_task",
        ordered=True,
        rows=[
            # cat: 202 ms intended, but its life in the trace is 100 ms long.
            _row(12, "cat", 1, 202, 100, 1),
            _row(11, "dd", 2, 124, 210, 6),
            _row(11, "dd", 2, 36, 90, 24),
            _row(12, "sort", 1, 10, 210 - 1e-6, 1),
        ],
    ),
    Check(query="ratelimit_error", rows=[_rate(1_310_720, 0.28), _rate(81_920, -0.92)]),
    Check(
        query="fairness",
        rows=[{"tasks_count": 2, "task_rates": "dd-11=81920 dd-11=1310720"}],
    ),
    Check(
        query="copy_and_sync",
        ordered=True,
        rows=[
            {"phase": "fsync", "tid": 13, "comm": "db", "ts": at(200), "dur": 100 * MS},
            {"phase": "fsync", "tid": 13, "comm": "db", "ts": at(750), "dur": 50 * MS},
        ],
    ),
    Check(
        query="stalls",
        keep=lambda row: row["tid"] == 13,
        ordered=True,
        rows=[
            {"ts": at(200), "dur": 100 * MS, "kind": "fsync", "cut": "exit"},
            {"ts": at(750), "dur": 50 * MS, "kind": "fsync", "cut": None},
        ],
    ),
    Check(
        query="stalls",
        keep=lambda row: row["tid"] != 13,
        ordered=True,
        rows=[
            {"ts": at(10), "comm": "dd", "dur": 14 * MS, "cut": None},
            {"ts": at(60), "comm": "dd", "dur": 22 * MS, "cut": None},
            {"ts": at(400), "comm": "cat", "dur": 100 * MS, "cut": "exit"},
            {"ts": at(700), "comm": "sort", "dur": 10 * MS, "cut": None},
            {"ts": at(960), "comm": "dd", "dur": 42 * MS, "cut": None},
            {"ts": at(1060), "comm": "dd", "dur": 82 * MS, "cut": None},
        ],
    ),
    Check(
        query="stalls_by_task",
        options=("--tid", "11"),
        rows=[
            {"comm": "dd", "stalls_count": 2, "total_ns": 36 * MS, "max_ns": 22 * MS},
            {"comm": "dd", "stalls_count": 2, "total_ns": 124 * MS, "max_ns": 82 * MS},
        ],
    ),
    Check(
        query="throttle_windows",
        options=("--tid", "11", "--window", "500ms"),
        ordered=True,
        rows=[
            # The first dd is gone when the second window begins, the other came in it. The trace
            # has 160 ms and 1 ns of the last.
            {"window_start_ns": at(0), "comm": "dd", "throttled_ratio": 36 / 500},
            {"window_start_ns": at(500), "comm": "dd", "throttled_ratio": 40 / 500},
            {"window_start_ns": at(1000), "comm": "dd", "throttled_ratio": 84 / 160.000001},
        ],
    ),
]
