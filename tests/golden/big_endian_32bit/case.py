# SPDX-License-Identifier: Apache-2.0
"""A file of version 6 from a big-endian machine with a 32-bit kernel: longs are 4 bytes.

By hand, 4 KiB pages: pauses 20 and 40 ms; the third event's pause is -4 (4 bytes, negative) and
its period is 8: no pause, but its pages are consumed. 3 calls, 60 ms in all, longest 40 ms;
dirtied 10 + 20 + 5 = 35 pages = 143360 bytes. The first write() returned 4096, the second -11.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000


def make(folder: Path) -> None:
    trace = Trace(
        formats("balance_dirty_pages", "sys_exit_write", long_bytes=4),
        version=6,
        endian="big",
        long_bytes=4,
        cmdlines={11: "dd"},
        uname="Linux board 3.10.40 ppc",
    )
    for index, (pause, period, dirtied) in enumerate(((20, 20, 10), (40, 40, 20), (-4, 8, 5))):
        values = {"pause": pause, "period": period, "dirtied": dirtied, "task_ratelimit": 1000}
        event = {"bdi": "8:0", "cgroup_ino": 1, "limit": 4_000_000_000, **values}
        trace.event(0, (10_000 + 100 * index) * _MS, 11, "balance_dirty_pages", event)
    trace.event(0, 10_500 * _MS, 11, "sys_exit_write", {"ret": 4096})
    trace.event(0, 10_600 * _MS, 11, "sys_exit_write", {"ret": -11})
    trace.write(folder / "trace.dat")


CHECKS = [
    Check(
        query="throttle_by_task",
        rows=[
            {
                "tid": 11,
                "comm": "dd",
                "bdi": "8:0",
                "calls_count": 3,
                "pauses_count": 2,
                "pause_total_ns": 60 * _MS,
                "pause_max_ns": 40 * _MS,
                "dirtied_bytes": 143_360,
            }
        ],
    ),
    Check(
        sql='SELECT pause, "limit" FROM ev_balance_dirty_pages ORDER BY ts',
        ordered=True,
        rows=[{"pause": pause, "limit": 4_000_000_000} for pause in (20, 40, -4)],
    ),
    Check(
        sql="SELECT ret FROM ev_sys_exit_write ORDER BY ts",
        ordered=True,
        rows=[{"ret": 4096}, {"ret": -11}],
    ),
    Check(
        sql="SELECT key, value FROM meta WHERE key IN ('endian', 'kernel_release')",
        rows=[{"key": "endian", "value": "big"}, {"key": "kernel_release", "value": "3.10.40"}],
    ),
]
