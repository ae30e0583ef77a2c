# SPDX-License-Identifier: Apache-2.0
"""Fairness of each window: rates over the window, a task that only sleeps, a cut window.

By hand, 4 KiB pages; windows of 2 s from 10 s; the trace ends just before 16.5 s. One unit is
100 pages/s = 409600 bytes/s. On bdi 8:0 are a, b and c (tid 11, 12, 13), on bdi 8:16 is d (14).
  ms from 10 s, pages, sleep: a 0, 300, 200 | 1500, 300, 200 | 2500, 400, 200 | 6000, 100, 200
    b 1000, 200, 100 | 6499.999999, 50, 100; c 1800, 200, 1000; d 1900, 400, 20 | 3900, 400, 1000
  From 10 s, 8:0: a 600 pages / 2 s = 3 units, b and c 200 / 2 s = 1:
    Jain (3 + 1 + 1)^2 / (3 * (9 + 1 + 1)) = 25/33; slowest to fastest 1/3. 8:16: d alone, 2 units
  From 12 s, 8:0: a 400 / 2 s = 2; c sleeps until 12.8 s and is charged nothing: 0; b did nothing
    and is not compared: (2 + 0)^2 / (2 * 4) = 1/2; slowest to fastest 0. 8:16: d 2
  From 14 s, 8:0: no row. 8:16: d sleeps until 14.9 s: 0; the ratios of nothing are NULL
  From 16 s, 0.5 s are left, 8:0: a 100 / 0.5 s = 2, b 50 / 0.5 s = 1: 3^2 / (2 * 5) = 9/10; 1/2
  --to 3s cuts the second window to 1 s: a 400 / 1 s = 4, c 0. From 2 s on, c still sleeps: 0.
Without --window the first event's pages do not count, and a task needs two events: in 8:0 a has
800 pages in 6 s, b 50 in 5.499999999 s; c is not compared. d has 400 in 2 s, and a row of its own.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import Waits, at

_UNIT = 409_600
# tid -> ms, pages, pause in ms
_EVENTS = {
    11: [(0, 300, 200), (1500, 300, 200), (2500, 400, 200), (6000, 100, 200)],
    12: [(1000, 200, 100), (6499.999999, 50, 100)],
    13: [(1800, 200, 1000)],
    14: [(1900, 400, 20), (3900, 400, 1000)],
}


def make(folder: Path) -> None:
    waits = Waits("balance_dirty_pages", cmdlines={11: "a", 12: "b", 13: "c", 14: "d"})
    for tid, events in _EVENTS.items():
        for ms, pages, pause in events:
            values = {"cgroup_ino": 1, "task_ratelimit": 4000, "dirty_ratelimit": 4000}
            values |= {"dirtied": pages, "pause": pause, "period": pause}
            bdi = "8:16" if tid == 14 else "8:0"
            waits.add(ms, tid, "balance_dirty_pages", bdi=bdi, **values)
    waits.write(folder)


def _row(
    start: int,
    bdi: str,
    jain: float | None,
    slowest: float | None,
    **units: int,
) -> Expected:
    names = {"a": "a-11", "b": "b-12", "c": "c-13", "d": "d-14"}
    return {
        "window_start_ns": at(start),
        "bdi": bdi,
        "cgroup_ino": 1,
        "tasks_count": len(units),
        "jain_ratio": jain,
        "jain_weighted_ratio": None,
        "slowest_to_fastest_ratio": slowest,
        "task_rates": " ".join(f"{names[n]}={rate * _UNIT}" for n, rate in units.items()),
    }


_FROM_12_S = [_row(2000, "8:0", 1 / 2, 0.0, c=0, a=2), _row(2000, "8:16", 1.0, 1.0, d=2)]

CHECKS = [
    Check(
        query="fairness",
        options=("--window", "2s"),
        ordered=True,
        rows=[
            _row(0, "8:0", 25 / 33, 1 / 3, b=1, c=1, a=3),
            _row(0, "8:16", 1.0, 1.0, d=2),
            *_FROM_12_S,
            _row(4000, "8:16", None, None, d=0),
            _row(6000, "8:0", 9 / 10, 1 / 2, b=1, a=2),
        ],
    ),
    Check(
        query="fairness",
        options=("--window", "2s", "--from", "2s", "--to", "4s"),
        ordered=True,
        rows=_FROM_12_S,
    ),
    Check(
        query="fairness",
        options=("--window", "2s", "--to", "3s", "--bdi", "8:0"),
        ordered=True,
        rows=[
            _row(0, "8:0", 25 / 33, 1 / 3, b=1, c=1, a=3),
            _row(2000, "8:0", 1 / 2, 0.0, c=0, a=4),
        ],
    ),
    Check(  # what was asked for ends after the trace
        query="fairness",
        options=("--window", "2s", "--from", "6s", "--to", "9s"),
        rows=[_row(6000, "8:0", 9 / 10, 1 / 2, b=1, a=2)],
    ),
    Check(
        query="fairness",
        ordered=True,
        rows=[
            {
                "window_start_ns": None,
                "bdi": "8:0",
                "tasks_count": 2,
                "slowest_to_fastest_ratio": (50 / 5.499999999) / (800 / 6),
            },
            {
                "window_start_ns": None,
                "bdi": "8:16",
                "tasks_count": 1,
                "slowest_to_fastest_ratio": 1.0,
            },
        ],
    ),
]
