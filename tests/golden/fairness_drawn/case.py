# SPDX-License-Identifier: Apache-2.0
"""Bars of fairness on a timeline: who is compared in a window, and the figure of the run.

By hand, 4 KiB pages; windows of 2 s from 10 s; the trace ends with the event at 16 s. All write to
8:0 and are throttled every 500 ms:
  a (11) from 0 to 6 s, 200 pages; b (12) too, 100 pages; c (13) from 0 to 3 s, 200 pages; each
    sleeps 200 ms
  d (14) from 0.25 to 5.75 s, 40 pages; it sleeps 1 ms of 500, so it got what it asked for
  From 10 s: a, b and c with 800, 400 and 800 pages: (2 + 1 + 2)^2 / (3 * (4 + 1 + 4)) = 25/27
  From 12 s: c ends in the window, and d asked for little: (2 + 1)^2 / (2 * (4 + 1)) = 9/10
  From 14 s: the same. From 16 s: all end in it, no bar
  The run: pages after the first event, in the time from it: a 2400 in 6 s, b 1200 in 6 s, c 1200 in
    3 s, d 440 in 5.5 s are 400, 200, 400 and 80 pages/s: nothing tells what they asked for, so
    1080^2 / (4 * (400^2 + 200^2 + 400^2 + 80^2)) = 1166400 / 1465600
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import MS, Waits, at

# tid: ms of the first event and of the last, pages, pause in ms
_TASKS = {11: (0, 6000, 200, 200), 12: (0, 6000, 100, 200), 13: (0, 3000, 200, 200)}
_LIGHT = {14: (250, 5750, 40, 1)}
_WHOLE = 1_166_400 / 1_465_600


def make(folder: Path) -> None:
    waits = Waits("balance_dirty_pages", cmdlines={11: "a", 12: "b", 13: "c", 14: "d"})
    for tid, (first, last, pages, pause) in (_TASKS | _LIGHT).items():
        for ms in range(first, last + 1, 500):
            values = {"cgroup_ino": 1, "task_ratelimit": 4000, "dirty_ratelimit": 4000}
            values |= {"dirtied": pages, "pause": pause, "period": pause}
            waits.add(ms, tid, "balance_dirty_pages", bdi="8:0", **values)
    waits.write(folder)


def _bar(ms: int, length: int, name: str, jain: float, tasks: int) -> Expected:
    return {
        **{"ts": at(ms), "dur": length, "name": name},
        **{"arg_jain_ratio": jain, "arg_tasks_count": tasks},
    }


_WINDOWS = [
    _bar(0, 2000 * MS, "Jain 93 %", 25 / 27, 3),
    _bar(2000, 2000 * MS, "Jain 90 %", 9 / 10, 2),
    _bar(4000, 2000 * MS, "Jain 90 %", 9 / 10, 2),
]

CHECKS = [
    Check(
        sql="SELECT * FROM tl_jain ORDER BY ts, dur DESC",
        ordered=True,
        rows=[_bar(0, 6000 * MS + 1, "whole run: Jain 79.6 %", _WHOLE, 4), *_WINDOWS],
    ),
    Check(sql="SELECT * FROM tl_fairness ORDER BY ts", ordered=True, rows=_WINDOWS),
    Check(query="fairness", rows=[{"bdi": "8:0", "tasks_count": 4, "jain_ratio": _WHOLE}]),
]
