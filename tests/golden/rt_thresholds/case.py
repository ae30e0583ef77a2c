# SPDX-License-Identifier: Apache-2.0
"""Thresholds of a real-time task are no thresholds of the others, however long it is alone.

By hand, 4 KiB pages. rtd (tid 20) runs at priority 49, dd (tid 11) at 120. dd's global_dirty_state
has thresh 1000; rtd's, twelve in a row, 1281: too many for a look at the neighbours. Without them
thresh is 1000 pages = 4096000 bytes all of the time. balance_dirty_pages of dd has limit 1000, that
of rtd 1281: the window's limit is dd's.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000


def make(folder: Path) -> None:
    names = ("balance_dirty_pages", "global_dirty_state", "sched_switch")
    trace = Trace(formats(*names), cmdlines={11: "dd", 20: "rtd"})

    def state(ms: int, tid: int, thresh: int) -> None:
        values = {"nr_dirty": 600, "background_thresh": thresh // 2, "dirty_thresh": thresh}
        event = {**values, "dirty_limit": 1000}
        trace.event(0, (10_000 + ms) * _MS, tid, "global_dirty_state", event)

    def pause(ms: int, tid: int, limit: int) -> None:
        values = {"bdi": "8:0", "cgroup_ino": 1, "limit": limit, "setpoint": limit * 7 // 8}
        event = {**values, "dirty": 900, "bdi_dirty": 800, "pause": 1, "period": 1}
        trace.event(0, (10_000 + ms) * _MS, tid, "balance_dirty_pages", event)

    state(0, 11, 1000)
    pause(1, 11, 1000)
    for ms in range(100, 1300, 100):
        state(ms, 20, 1281)
    pause(1301, 20, 1281)
    switch = {"prev_comm": "rtd", "prev_pid": 20, "prev_prio": 49, "prev_state": 1}
    switch |= {"next_comm": "dd", "next_pid": 11, "next_prio": 120}
    trace.event(0, 11_400 * _MS, 20, "sched_switch", switch)
    state(1500, 11, 1000)
    trace.write(folder / "trace.dat")


CHECKS = [
    Check(query="dirty_position", rows=[{"thresh_bytes": 4_096_000, "limit_bytes": 4_096_000}]),
    Check(query="bdi_dirty", rows=[{"events_count": 2, "limit_bytes": 4_096_000}]),
]
