# SPDX-License-Identifier: Apache-2.0
"""A writer that asks for little and is held up all the same, beside one that takes all it gets.

By hand, 4 KiB pages; for 4 s a task is throttled for 200 ms (state D) from 1 ms after each event.
Of its pages the first event's are older than its rate's time.
  8:0: light (11), an event each 500 ms, 100 pages: 9 events, 800 pages in 4 s, 200 pages/s. It is
    throttled for 9 * 200 ms of the 4201 ms up to the end of its last sleep, and of the rest sleeps
    200 ms in 500 of its own accord (state S): 8 * 200 of 2401 ms, more than half. It got what it
    asked for. greedy (12), an event each 250 ms, 400 pages: 1600 pages/s, and is never idle.
    It is told, with the rates 200 and 1600 pages/s.
  8:16: the same two, quiet (13) and busy (14), but busy sleeps 40 ms of the 50 ms between two
    sleeps of its own accord, too: it takes no more than it asks for, and is not greedy.
  8:32: the same as 8:0, near (15) and fast (16), but near writes 401 pages at once: 802 pages/s,
    more than half of 1600. With 400 it would be half.
  8:48: half (17) and whole (18), with these 400 pages: told, 800 beside 1600 pages/s.
apart, 8:64: tiny (19), an event each 500 ms, 1 page, and huge (20), each 250 ms, 400, on a disk
    that is busy all the time: slower than both, and tiny, with 9 of 6809 pages, is told apart.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.wait_events import Waits

_PAGE = 4096
# tid: name, bdi, step in ms, pages, when in each step it sleeps of its own accord
_TASKS: dict[int, tuple[str, str, int, int, tuple[int, int] | None]] = {
    11: ("light", "8:0", 500, 100, (250, 450)),
    12: ("greedy", "8:0", 250, 400, None),
    13: ("quiet", "8:16", 500, 100, (250, 450)),
    14: ("busy", "8:16", 250, 400, (205, 245)),
    15: ("near", "8:32", 500, 401, (250, 450)),
    16: ("fast", "8:32", 250, 400, None),
    17: ("half", "8:48", 500, 400, (250, 450)),
    18: ("whole", "8:48", 250, 400, None),
}
_APART: dict[int, tuple[str, str, int, int, tuple[int, int] | None]] = {
    19: ("tiny", "8:64", 500, 1, None),
    20: ("huge", "8:64", 250, 400, None),
}


def make(folder: Path) -> None:
    (folder / "apart").mkdir()
    requests = ("block_rq_issue", "block_rq_complete")
    names = {tid: task[0] for tid, task in (_TASKS | _APART).items()}
    waits = Waits("balance_dirty_pages", "sched_switch", cmdlines=names)
    _write(waits, _TASKS)
    waits.write(folder)
    waits = Waits("balance_dirty_pages", "sched_switch", *requests, cmdlines=names)
    waits.request(20, 0, issue=0, complete=4300, rwbs="W", dev=(8, 64))
    _write(waits, _APART, limit=50_000, dirty=49_000)
    waits.write(folder / "apart")


def _write(
    waits: Waits,
    tasks: dict[int, tuple[str, str, int, int, tuple[int, int] | None]],
    **limits: int,
) -> None:
    for tid, (_, bdi, step, pages, idle) in tasks.items():
        for ms in range(0, 4001, step):
            values = {"cgroup_ino": 1, "task_ratelimit": 4000, "dirty_ratelimit": 4000}
            values |= {"dirtied": pages, "pause": 200, "period": 200, **limits}
            waits.add(ms, tid, "balance_dirty_pages", bdi=bdi, **values)
            waits.sleep(ms + 1, ms + 201, tid)
            if idle is not None and ms < 4000:
                waits.sleep(ms + idle[0], ms + idle[1], tid, state=1)


def _task(tid: int, rate: int, slept: int, is_demand_limited: int) -> dict[str, int | float]:
    return {
        "tid": tid,
        "rate_bytes_per_s": float(rate * _PAGE),
        "slept_ratio": slept / 4201,
        "is_compared": 1,
        "is_demand_limited": is_demand_limited,
    }


CHECKS = [
    Check(
        query="fairness_tasks",
        rows=[
            _task(11, 200, 1800, 1),
            _task(12, 1600, 3400, 0),
            _task(13, 200, 1800, 1),
            _task(14, 1600, 3400, 1),
            _task(15, 802, 1800, 1),
            _task(16, 1600, 3400, 0),
            _task(17, 800, 1800, 1),
            _task(18, 1600, 3400, 0),
        ],
    ),
    # 200, 800 and 1600 pages/s; 1800 of 4201 ms.
    Check(
        query="findings",
        keep=lambda row: row["id"] == "light_writer_held",
        rows=[
            {
                "severity": "note",
                "text": "light 11 dirtied 800 KiB/s of 8:0 and asked for no more, yet it was"
                " throttled for 42.8 % of its time, one write for 200 ms: greedy 12 dirtied"
                " 6.25 MiB/s beside it.",
            },
            {
                "severity": "note",
                "text": "half 17 dirtied 3.12 MiB/s of 8:48 and asked for no more, yet it was"
                " throttled for 42.8 % of its time, one write for 200 ms: whole 18 dirtied"
                " 6.25 MiB/s beside it.",
            },
        ],
    ),
    Check(
        query="findings",
        folder="apart",
        keep=lambda row: row["id"] == "slow_device",
        rows=[
            {
                "text": "huge and tiny waited 5.20 s for 8:64, which writes 953 B/s in requests of"
                " 4.00 KiB; one write was blocked for 200 ms of that; tiny 19 waited 1.80 s of it"
                " and dirtied 36.0 KiB.",
            }
        ],
    ),
]
