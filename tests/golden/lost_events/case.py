# SPDX-License-Identifier: Apache-2.0
"""Events that the ring buffer lost are shown before any number, with and without a count.

By hand: CPU 0 lost 23 events before its second page; CPU 1 lost some before its second page, of
which the kernel kept no number, and that page begins with a time extend (where trace-cmd stays
silent). The buffers' own statistics say that CPU 0 overran 23 times.
  4 events on CPU 0, 2 on CPU 1: 6 in all; 2 gaps; 23 events known to be lost.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.ringbuffer import Stamp
from support.tracedat import Trace

_MS = 1_000_000


def make(folder: Path) -> None:
    trace = Trace(
        formats("balance_dirty_pages"),
        cpus=2,
        cmdlines={11: "dd"},
        cpu_stats={0: {"entries": 4, "overrun": 23}, 1: {"entries": 2, "overrun": 0}},
    )

    def pause(cpu: int, ms: int, *, extend: bool = False) -> None:
        values = {"bdi": "8:0", "cgroup_ino": 1, "task_ratelimit": 400}
        values |= {"dirtied": 32, "pause": 12, "period": 12}
        stamp: Stamp = "extend" if extend else "auto"
        trace.event(cpu, ms * _MS, 11, "balance_dirty_pages", values, stamp=stamp)

    pause(0, 10_000)
    pause(0, 10_020)
    trace.lost(0, 23)
    pause(0, 10_900)
    pause(0, 10_920)
    pause(1, 10_050)
    trace.lost(1)
    pause(1, 10_950, extend=True)
    trace.write(folder / "trace.dat")


CHECKS = [
    Check(
        query="event_counts",
        rows=[{"event": "writeback:balance_dirty_pages", "count": 6, "loaded_count": 6}],
        warning_words=("lost",),
    ),
    Check(
        sql="SELECT ts, cpu, buffer, count FROM lost_events ORDER BY cpu",
        rows=[
            {"ts": 10_900 * _MS, "cpu": 0, "buffer": 0, "count": 23},
            {"ts": 10_950 * _MS, "cpu": 1, "buffer": 0, "count": None},
        ],
    ),
    Check(
        sql="SELECT key, CAST(value AS INTEGER) AS value FROM meta WHERE key LIKE 'lost%'",
        rows=[{"key": "lost_events_count", "value": 23}, {"key": "lost_gaps_count", "value": 2}],
    ),
    Check(
        sql="SELECT cpu, key, CAST(value AS INTEGER) AS value FROM cpu_stat WHERE key = 'overrun'",
        rows=[{"cpu": 0, "key": "overrun", "value": 23}, {"cpu": 1, "key": "overrun", "value": 0}],
    ),
    Check(
        query="throttle_by_task",
        rows=[{"tid": 11, "pauses_count": 6, "pause_total_ns": 72 * _MS}],
        warning_words=("lost",),
    ),
]
