# SPDX-License-Identifier: Apache-2.0
"""A call that loops while task_ratelimit is 0 is one call, and its dirtied counts once.

By hand, 4 KiB pages:
  dd, tid 11, bdi 8:0. Call 1 is e1 e2 e3: the event before has task_ratelimit 0 and pause > 0, and
  bdi and dirtied are the same. Call 2 is e4.
    pauses 200 + 200 + 100 + 20 = 520 ms, longest 200 ms; sorted 20 100 200 200:
    p50 is the 2nd (ceil(0.50 * 4) = 2), p95 and p99 the 4th (ceil(3.8) = ceil(3.96) = 4)
    dirtied 32 + 40 = 72 pages = 294912 bytes (a sum over events would give 136 pages)
  cp, tid 12: the second event is on another bdi: a call on each, 16 pages = 65536 bytes each.
  tar, tid 13: the second event has paused 0: a new call. 2 calls, 2 * 8 pages = 65536 bytes.
  sh, tid 14: the call leaves after two sleeps although task_ratelimit is 0, as its wb had hardly a
  dirty page. A jiffy late, the next one has paused 4, which has not the 200 ms before in it: a new
  call, of two events. 2 calls, 2 * 8 pages.
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
    trace = Trace(
        formats("balance_dirty_pages"), cmdlines={11: "dd", 12: "cp", 13: "tar", 14: "sh"}
    )

    def pause(ms: int, tid: int, bdi: str, **fields: Value) -> None:
        values = {"bdi": bdi, "cgroup_ino": 1, "period": 200, **fields}
        trace.event(0, _START + ms * _MS, tid, "balance_dirty_pages", values)

    pause(0, 11, "8:0", task_ratelimit=0, dirtied=32, paused=0, pause=200)
    pause(1, 13, "8:0", task_ratelimit=0, dirtied=8, paused=0, pause=200)
    pause(204, 11, "8:0", task_ratelimit=0, dirtied=32, paused=204, pause=200)
    pause(300, 13, "8:0", task_ratelimit=400, dirtied=8, paused=0, pause=52)
    pause(408, 11, "8:0", task_ratelimit=400, dirtied=32, paused=408, pause=100)
    pause(600, 11, "8:0", task_ratelimit=400, dirtied=40, paused=0, pause=20, period=24, think=4)
    pause(700, 12, "8:0", task_ratelimit=0, dirtied=16, paused=0, pause=200)
    pause(904, 12, "8:16", task_ratelimit=400, dirtied=16, paused=204, pause=12)
    pause(1000, 14, "8:0", task_ratelimit=0, dirtied=8, paused=0, pause=200)
    pause(1204, 14, "8:0", task_ratelimit=0, dirtied=8, paused=204, pause=200)
    pause(1412, 14, "8:0", task_ratelimit=0, dirtied=8, paused=4, pause=200)
    pause(1616, 14, "8:0", task_ratelimit=400, dirtied=8, paused=208, pause=52)
    trace.write(folder / "trace.dat")


def _row(
    tid: int, comm: str, bdi: str, calls: int, pauses: list[int], pages: int
) -> dict[str, int | str]:
    return {
        "tid": tid,
        "comm": comm,
        "bdi": bdi,
        "cgroup_ino": 1,
        "calls_count": calls,
        "pauses_count": len(pauses),
        "pause_total_ns": sum(pauses) * _MS,
        "pause_max_ns": max(pauses) * _MS,
        "dirtied_bytes": pages * 4096,
    }


CHECKS = [
    Check(
        query="throttle_by_task",
        rows=[
            _row(11, "dd", "8:0", 2, [200, 200, 100, 20], 72),
            _row(12, "cp", "8:0", 1, [200], 16),
            _row(12, "cp", "8:16", 1, [12], 16),
            _row(13, "tar", "8:0", 2, [200, 52], 16),
            _row(14, "sh", "8:0", 2, [200, 200, 200, 52], 16),
        ],
    ),
    Check(
        query="throttle_by_task",
        options=("--tid", "11"),
        rows=[
            {"pause_p50_ns": 100 * _MS, "pause_p95_ns": 200 * _MS, "pause_p99_ns": 200 * _MS},
        ],
    ),
]
