# SPDX-License-Identifier: Apache-2.0
"""Waits that the trace, or the task's end, cuts short; thread ids that are used again.

By hand, ms from 10 s; the first event is at 0, the last at 1000.
  tid 1, direct reclaim  ends at 30, began before the trace: 0 to 30, cut at the start
  tid 2, fsync           from 900, not ended: 900 to 1000, cut at the end
  tid 3, pause of 100    at 200, intended; the task exits at 250: 50, cut by the exit
  tid 4, direct reclaim  300 to 310 by "old", which exits at 320; 420 to 430 by "new" under the same
                         tid, which exits at 500: each wait has the name of its own task
  tid 5, fsync           from 600 by "first", which exits in it at 650: 50, cut by the exit; then
                         "second" has its tid: fsync 700 to 720, whole
  tid 6, pause of 200    at 950, off its CPU at 951 and never back: 951 to 1000, cut at the end
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import DIRECT, FSYNC, MS, Waits, at


def make(folder: Path) -> None:
    comms = {1: "dd", 2: "db", 3: "cp", 4: "new", 5: "second", 6: "tar", 9: "other"}
    waits = Waits(
        *DIRECT,
        *FSYNC,
        "balance_dirty_pages",
        "sched_switch",
        "sched_process_exit",
        cmdlines=comms,
    )
    values = {"bdi": "8:0", "limit": 1000, "setpoint": 900, "dirty": 1000, "dirty_ratelimit": 1000}
    values |= {"cgroup_ino": 1, "dirtied": 32}
    waits.span(0, 1000, 9, DIRECT)
    waits.add(30, 1, DIRECT[1])
    waits.add(900, 2, FSYNC[0])
    waits.add(200, 3, "balance_dirty_pages", pause=100, period=100, **values)
    waits.span(300, 310, 4, DIRECT)
    waits.span(420, 430, 4, DIRECT)
    waits.add(600, 5, FSYNC[0])
    waits.span(700, 720, 5, FSYNC)
    exits = ((250, 3, "cp"), (320, 4, "old"), (500, 4, "new"), (650, 5, "first"))
    for ms, tid, comm in exits:
        waits.add(ms, tid, "sched_process_exit", comm=comm, pid=tid)
    waits.add(950, 6, "balance_dirty_pages", pause=200, period=200, **values)
    waits.add(951, 6, "sched_switch", prev_comm="tar", prev_pid=6, prev_state=2, next_pid=0)
    waits.write(folder)


def _row(ms: float, dur: int, tid: int, comm: str, kind: str, cut: str | None) -> Expected:
    return {"ts": at(ms), "dur": dur * MS, "tid": tid, "comm": comm, "kind": kind, "cut": cut}


CHECKS = [
    Check(
        query="stalls",
        keep=lambda row: row["tid"] != 9,
        ordered=True,
        rows=[
            _row(0, 30, 1, "dd", "direct reclaim", "start"),
            _row(200, 50, 3, "cp", "throttle", "exit"),
            _row(300, 10, 4, "old", "direct reclaim", None),
            _row(420, 10, 4, "new", "direct reclaim", None),
            _row(600, 50, 5, "first", "fsync", "exit"),
            _row(700, 20, 5, "second", "fsync", None),
            _row(900, 100, 2, "db", "fsync", "end"),
            _row(951, 49, 6, "tar", "throttle", "end"),
        ],
    ),
]
