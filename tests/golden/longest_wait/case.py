# SPDX-License-Identifier: Apache-2.0
"""The longest wait that a window has a part of, and each task's share of what was dirtied there.

By hand, 4 KiB pages, windows of 2 s from 10 s; HZ = 100 by the times, so a pause lasts half a jiffy
= 5 ms longer:
  dd, tid 11: 100 ms at 10.0 s; 200 ms at 11.9 s, of which 105 ms lie in the window from 12 s; the
    trace ends at 12.3 s. 105 + 100 = 205 ms of the first window, longest 205 ms in both windows;
    105 ms of the 300 ms and 1 ns that the trace has of the second: 0.35
  cp, tid 12: 50 ms at 10.5 s
  dirtied in the first window: dd 30 + 60, cp 10 of 100 pages: shares 0.9 and 0.1
  5 events are lost before the one at 12.3 s: in the second window
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000


def make(folder: Path) -> None:
    trace = Trace(formats("balance_dirty_pages"), cmdlines={11: "dd", 12: "cp"})
    events = ((0, 11, 100, 30), (500, 12, 50, 10), (1900, 11, 200, 60), (2300, 11, 0, 1))
    for ms, tid, pause, dirtied in events:
        if ms == 2300:
            trace.lost(0, 5)
        values = {"bdi": "8:0", "cgroup_ino": 1, "pause": pause, "dirtied": dirtied}
        event = {**values, "period": pause + 10, "task_ratelimit": 400}
        trace.event(0, (10_000 + ms) * _MS, tid, "balance_dirty_pages", event)
    trace.write(folder / "trace.dat")


def _row(start: int, tid: int, slept: int, longest: int, share: float, lost: int) -> Expected:
    covered = 2000 if start == 10 else 300.000001
    return {
        "window_start_ns": start * 1000 * _MS,
        "tid": tid,
        "throttled_ratio": slept / covered,
        "slept_max_ns": longest * _MS,
        "dirtied_share_ratio": share,
        "lost_gaps_count": lost,
    }


CHECKS = [
    Check(
        query="throttle_windows",
        ordered=True,
        rows=[
            _row(10, 11, 205, 205, 0.9, 0),
            _row(10, 12, 55, 55, 0.1, 0),
            _row(12, 11, 105, 205, 1.0, 1),
        ],
    ),
]
