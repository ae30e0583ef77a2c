# SPDX-License-Identifier: Apache-2.0
"""All pauses of all tasks as one list, and a pause of 0 or less is none.

By hand, HZ unknown, pauses in whole ms:
  dd, tid 11: pauses 200 100 40; cp, tid 12: 20 0 -4 0. Pauses above 0: 20 40 100 200.
    4 pauses of 7 events, 360 ms, longest 200; p50 is the 2nd of 4 = 40 ms (ceil(0.5 * 4) = 2),
    p95 and p99 the 4th = 200 ms.
  Each event has paused 0, so each is a call of its own and a task is held up by its pause alone,
  plus half a jiffy when HZ can be told: 20, 40, 100 and 200 fit HZ 100 and 250, so it cannot.
    slept 360 ms, longest call 200 ms.
  dd lives from its event at 0 ms to the end of its sleep of 40 ms at 1040 ms: 340 of 1040 ms;
  cp from 10 ms to its last event at 1100 ms: 20 of 1090 ms. Together 360 / 2130 ms.
"""

from __future__ import annotations

from pathlib import Path

from support.formats import Value
from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_START = 10_000 * _MS


def make(folder: Path) -> None:
    trace = Trace(formats("balance_dirty_pages"), cmdlines={11: "dd", 12: "cp"})
    for ms, tid, pause in (
        (0, 11, 200),
        (10, 12, 20),
        (500, 12, 0),
        (600, 11, 100),
        (700, 12, -4),
        (1000, 11, 40),
        (1100, 12, 0),
    ):
        values: dict[str, Value] = {
            "bdi": "8:0",
            "cgroup_ino": 1,
            "period": 200,
            "task_ratelimit": 400,
            "dirtied": 8,
            "paused": 0,
            "pause": pause,
        }
        trace.event(0, _START + ms * _MS, tid, "balance_dirty_pages", values)
    trace.write(folder / "trace.dat")


CHECKS = [
    Check(
        query="throttle_summary",
        rows=[
            {
                "tasks_count": 2,
                "events_count": 7,
                "pauses_count": 4,
                "pause_total_ns": 360 * _MS,
                "pause_p50_ns": 40 * _MS,
                "pause_p95_ns": 200 * _MS,
                "pause_p99_ns": 200 * _MS,
                "pause_max_ns": 200 * _MS,
                "slept_total_ns": 360 * _MS,
                "call_max_ns": 200 * _MS,
                "throttled_ratio": 360 / 2130,
            }
        ],
    ),
    Check(
        query="pause_distribution",
        rows=[
            {"pause_ns": 20 * _MS, "pauses_count": 1, "at_most_ratio": 0.25},
            {"pause_ns": 40 * _MS, "pauses_count": 1, "at_most_ratio": 0.5},
            {"pause_ns": 100 * _MS, "pauses_count": 1, "at_most_ratio": 0.75},
            {"pause_ns": 200 * _MS, "pauses_count": 1, "at_most_ratio": 1.0},
        ],
    ),
]
