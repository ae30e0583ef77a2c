# SPDX-License-Identifier: Apache-2.0
"""Fairness with one writer that asks for less than its share.

By hand, 4 KiB pages; each task has an event every second from 10 s to 14 s, and its pages after the
first event count over the 4 s from its first event to its last:
  a, tid 11: 4 * 1500 pages / 4 s = 6144000 bytes/s (its burst of 5000 pages before is left out)
  b, tid 12: 4 * 1000 pages / 4 s = 4096000
  c, tid 13: 4 *  500 pages / 4 s = 2048000; never made to pause: it asks for no more
  Jain (6 + 4 + 2)^2 / (3 * (36 + 16 + 4)) = 144 / 168; slowest to fastest 2 / 6
  Shares: 12 / 3 = 4 each; c wants only 2, the rest is (12 - 2) / 2 = 5 for a and b each:
  6/5, 4/5, 2/2 give (1.2 + 0.8 + 1)^2 / (3 * (1.44 + 0.64 + 1)) = 9 / 9.24
  (in units of 1024000 bytes/s). d, tid 14, is alone on bdi 8:16: all ratios are 1.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_SECOND = 1_000_000_000
_UNIT = 1_024_000.0


def make(folder: Path) -> None:
    trace = Trace(formats("balance_dirty_pages"), cmdlines={11: "a", 12: "b", 13: "c", 14: "d"})
    pages = {11: 1500, 12: 1000, 13: 500, 14: 100}
    for second in range(10, 15):
        for tid, dirtied in pages.items():
            burst = 5000 if (tid, second) == (11, 10) else dirtied
            values = {"cgroup_ino": 1, "dirtied": burst, "dirty_ratelimit": 4000}
            if tid == 13:
                values |= {"task_ratelimit": 16_000, "pause": -875, "period": 125, "think": 1000}
            else:
                values |= {"task_ratelimit": 4000, "pause": 200, "period": 1000, "think": 800}
            bdi = "8:16" if tid == 14 else "8:0"
            event = {"bdi": bdi, **values}
            trace.event(0, second * _SECOND + tid, tid, "balance_dirty_pages", event)
    trace.write(folder / "trace.dat")


def _task(tid: int, comm: str, rate: float, share: float) -> dict[str, int | float | str]:
    return {
        "bdi": "8:0",
        "cgroup_ino": 1,
        "tid": tid,
        "comm": comm,
        "dirtied_bytes_per_s": rate * _UNIT,
        "entitlement_bytes_per_s": share * _UNIT,
    }


CHECKS = [
    Check(
        query="fairness_tasks",
        keep=lambda row: row["bdi"] == "8:0",
        rows=[_task(11, "a", 6, 5), _task(12, "b", 4, 5), _task(13, "c", 2, 2)],
    ),
    Check(
        query="fairness",
        rows=[
            {
                "bdi": "8:0",
                "cgroup_ino": 1,
                "tasks_count": 3,
                "jain_ratio": 144 / 168,
                "jain_weighted_ratio": 9 / 9.24,
                "slowest_to_fastest_ratio": 2 / 6,
            },
            {
                "bdi": "8:16",
                "cgroup_ino": 1,
                "tasks_count": 1,
                "jain_ratio": 1.0,
                "jain_weighted_ratio": 1.0,
                "slowest_to_fastest_ratio": 1.0,
            },
        ],
    ),
]
