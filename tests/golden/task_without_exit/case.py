# SPDX-License-Identifier: Apache-2.0
"""Tasks whose sched_process_exit is not in the trace, while that of others is.

By hand, 4 KiB pages, ms from 10 s. sched_switch with state Z is the end of a task, too:
  tid 11: dd pauses 40 ms at 10 (asleep from 11 to 51) and leaves its CPU for good at 100. The next
    dd with this tid pauses 20 ms at 500 (asleep from 501 to 521) and is gone at 600: two rows of
    40 and 20 ms, 8 and 4 pages, although no exit, no fork and no other name tells them apart.
  tid 12: cp has both, the exit at 150 and the switch at 160: one task, 10 ms (asleep 121 to 131).
  tid 13: of cat only the exit at 250 is left, of sort, which has the tid then, only the switch at
    800: the switch is not cat's. cat pauses 12 ms at 200 (asleep 201 to 213), sort 16 ms at 700
    (asleep 701 to 717).
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import MS, Waits

_DEAD = 32
_SLEEP = 2


def make(folder: Path) -> None:
    names = ("balance_dirty_pages", "sched_switch", "sched_process_exit")
    waits = Waits(*names, cmdlines={11: "dd", 12: "cp", 13: "sort"})

    def switch(ms: float, out: str, tid: int, state: int, back: str, back_tid: int) -> None:
        values = {"prev_comm": out, "prev_pid": tid, "prev_state": state}
        values |= {"next_comm": back, "next_pid": back_tid}
        waits.add(ms, tid, "sched_switch", **values)

    def pause(ms: float, tid: int, comm: str, length: int, pages: int) -> None:
        values = {"cgroup_ino": 1, "task_ratelimit": 1000, "dirty_ratelimit": 1000}
        values |= {"dirtied": pages, "pause": length, "period": length}
        waits.add(ms, tid, "balance_dirty_pages", bdi="8:0", **values)
        switch(ms + 1, comm, tid, _SLEEP, "swapper/0", 0)
        switch(ms + 1 + length, "swapper/0", 0, 0, comm, tid)

    pause(10, 11, "dd", 40, 8)
    switch(100, "dd", 11, _DEAD, "swapper/0", 0)
    pause(120, 12, "cp", 10, 2)
    waits.add(150, 12, "sched_process_exit", comm="cp", pid=12)
    switch(160, "cp", 12, _DEAD, "swapper/0", 0)
    pause(200, 13, "cat", 12, 3)
    waits.add(250, 13, "sched_process_exit", comm="cat", pid=13)
    pause(500, 11, "dd", 20, 4)
    switch(600, "dd", 11, _DEAD, "swapper/0", 0)
    pause(700, 13, "sort", 16, 5)
    switch(800, "sort", 13, _DEAD, "swapper/0", 0)
    waits.write(folder)


def _row(tid: int, comm: str, slept: int, pages: int) -> Expected:
    return {
        "tid": tid,
        "comm": comm,
        "pauses_count": 1,
        "slept_total_ns": slept * MS,
        "slept_basis": "sched",
        "dirtied_bytes": pages * 4096,
    }


CHECKS = [
    Check(
        query="throttle_by_task",
        ordered=True,
        rows=[
            _row(11, "dd", 40, 8),
            _row(11, "dd", 20, 4),
            _row(13, "sort", 16, 5),
            _row(13, "cat", 12, 3),
            _row(12, "cp", 10, 2),
        ],
    ),
]
