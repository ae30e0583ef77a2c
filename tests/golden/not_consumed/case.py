# SPDX-License-Identifier: Apache-2.0
"""Pages of a call that neither pauses nor costs a period are counted again by the next call.

By hand, 4 KiB pages, one task; each event is a call of its own (8 calls):
  pause   period  dirtied  counted
      0        0       32  no: not consumed, the next event has these pages again
      0        0       64  no
      0        0       96  no
     12       16      128  yes, 128: a pause
     -8       40       32  yes, 32: no pause, but a period was charged
  -1004        0       10  yes, 10: more than 1000 ms of credit resets the clock
  -1000        0       20  no: just not more than 1000 ms
     -8        0       52  no
  128 + 32 + 10 = 170 pages = 696320 bytes (the sum of all would be 434 pages).
  One pause of 12 ms: all percentiles are 12 ms.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_EVENTS = (
    (0, 0, 32),
    (0, 0, 64),
    (0, 0, 96),
    (12, 16, 128),
    (-8, 40, 32),
    (-1004, 0, 10),
    (-1000, 0, 20),
    (-8, 0, 52),
)


def make(folder: Path) -> None:
    trace = Trace(formats("balance_dirty_pages"), cmdlines={11: "dd"})
    for index, (pause, period, dirtied) in enumerate(_EVENTS):
        values = {"pause": pause, "period": period, "dirtied": dirtied, "task_ratelimit": 4000}
        event = {"bdi": "8:0", "cgroup_ino": 1, **values}
        trace.event(0, (10_000 + 40 * index) * _MS, 11, "balance_dirty_pages", event)
    trace.write(folder / "trace.dat")


CHECKS = [
    Check(
        query="throttle_by_task",
        rows=[
            {
                "tid": 11,
                "calls_count": 8,
                "pauses_count": 1,
                "pause_total_ns": 12 * _MS,
                "pause_max_ns": 12 * _MS,
                "pause_p50_ns": 12 * _MS,
                "pause_p95_ns": 12 * _MS,
                "pause_p99_ns": 12 * _MS,
                "dirtied_bytes": 696_320,
                "written_bytes": None,
            }
        ],
    ),
]
