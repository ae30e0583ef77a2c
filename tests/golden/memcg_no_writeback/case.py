# SPDX-License-Identifier: Apache-2.0
"""Writers over the limits of their memory cgroups: nobody had started to write, or the disk wrote.

By hand, 4 KiB pages, ms from 10 s; sleeps are as intended (no sched_switch, HZ unknown), 200 ms
each. The machine has 500 pages dirty, far below its limits; both cgroups hold 100 of 100. All
disks had a request before the first sleep, so that their requests are known to be recorded.
  dd, tid 11, cgroup 27, 8:0, sleeps at 100, 400 and 700. No page is under writeback, and 8:0 has
    no request any more: 600 ms, no_writeback.
  cp, tid 12, cgroup 28, 8:16, sleeps at 1100 and 1400. No page is under writeback when it is
    decided, but 8:16 has a request from 1110 to 1600: 400 ms, the cgroup's limit.
  tar, tid 13, root cgroup, 8:32, sleeps at 1700 and 2000, below the machine's free run: over the
    strict limit of its bdi, and nothing is written: 400 ms, no_writeback. Only here is there a
    strict limit to lift.
"""

from __future__ import annotations

from pathlib import Path

from support.formats import Value
from support.golden import Check
from support.kernel_events import formats, new_balance_dirty_pages
from support.tracedat import Trace

_MS = 1_000_000
_SDA, _SDB, _SDC = 8 << 20, (8 << 20) + 16, (8 << 20) + 32
_SLEEPS = [
    (100, 11, "8:0", 27), (400, 11, "8:0", 27), (700, 11, "8:0", 27),
    (1100, 12, "8:16", 28), (1400, 12, "8:16", 28),
    (1700, 13, "8:32", 1), (2000, 13, "8:32", 1),
]  # fmt: skip
_REQUESTS = [(0, 10, _SDA), (0, 10, _SDB), (0, 10, _SDC), (1110, 1600, _SDB)]


def make(folder: Path) -> None:
    trace = Trace(
        [
            new_balance_dirty_pages(),
            *formats("global_dirty_state", "block_rq_complete", "block_rq_issue"),
        ],
        cmdlines={7: "kworker/u4:1", 11: "dd", 12: "cp", 13: "tar"},
        uname="Linux guest 7.2.13-bad x86_64",
    )
    events: list[tuple[int, int, str, dict[str, Value]]] = []
    for start, end, device in _REQUESTS:
        request: dict[str, Value] = {"dev": device, "sector": 8, "nr_sector": 8, "rwbs": "W"}
        events += [(start, 7, "block_rq_issue", request), (end, 7, "block_rq_complete", request)]
    state: dict[str, Value] = {"nr_dirty": 500, "nr_writeback": 0, "background_thresh": 5000}
    state |= {"dirty_thresh": 10_000, "dirty_limit": 10_000}
    for start, tid, bdi, cgroup in _SLEEPS:
        event: dict[str, Value] = {"bdi": bdi, "cgroup_ino": cgroup, "dirty": 100, "wb_dirty": 100}
        event |= {"limit": 100, "setpoint": 88, "wb_setpoint": 88, "dirty_ratelimit": 1000}
        if cgroup == 1:
            event |= {"limit": 10_000, "setpoint": 8750, "wb_setpoint": 88, "dirty": 500}
        event |= {"task_ratelimit": 0, "dirtied": 8, "pause": 200, "period": 200}
        events += [(start, tid, "global_dirty_state", state)]
        events += [(start, tid, "balance_dirty_pages", event)]
    for start, tid, name, values in sorted(events, key=lambda event: event[0]):
        trace.event(0, (10_000 + start) * _MS, tid, name, values)
    trace.event(0, 13_000 * _MS, 12, "global_dirty_state", state)
    trace.write(folder / "trace.dat")
    (folder / "cgroups").write_text("1 /sys/fs/cgroup\n27 /sys/fs/cgroup/a\n28 /sys/fs/cgroup/b\n")


_ADVICE = (
    "The trace does not show why the flusher did not write: look at what it waited for (its stack,"
    " the log of the kernel). Kernels with commit 64dd89ae01f2 and without cece9dc61daa (release"
    " candidates of 7.0) do not start it for writers over a strict limit or the limits of their"
    " memory cgroup: do not use these."
)
CHECKS = [
    Check(
        query="lost_time",
        rows=[
            {"finding": "no_writeback", "bdi": "8:0", "total_ns": 600 * _MS},
            {"finding": "small_memcg_limit", "bdi": "8:16", "total_ns": 400 * _MS},
            {"finding": "no_writeback", "bdi": "8:32", "total_ns": 400 * _MS},
        ],
    ),
    Check(
        query="findings",
        rows=[
            {"severity": "severe", "cost_task_ns": 600 * _MS, "advice": _ADVICE},
            {
                "severity": "severe",
                "cost_task_ns": 400 * _MS,
                "advice": f"{_ADVICE} /sys/class/bdi/8:32/strict_limit = 0",
            },
        ],
        keep=lambda row: row["id"] == "no_writeback",
    ),
    Check(
        query="findings",
        rows=[{"severity": "warning", "cost_task_ns": 400 * _MS}],
        keep=lambda row: row["id"] == "small_memcg_limit",
    ),
]
