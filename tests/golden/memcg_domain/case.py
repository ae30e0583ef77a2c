# SPDX-License-Identifier: Apache-2.0
"""A memory cgroup's writers are kept apart from the root's, on one bdi, with the fields of 7.2.

By hand, 4 KiB pages: dd, tid 11, in the root cgroup (1): pauses 100 and 50 ms, 30 + 10 = 40 pages =
163840 bytes. dd, tid 12, in cgroup 27: pauses 20 and 20 ms, 8 + 8 = 16 pages = 65536 bytes. Then
tid 12 moves to the root cgroup and pauses 10 ms for 4 pages = 16384 bytes: a row of its own.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import new_balance_dirty_pages
from support.tracedat import Trace

_MS = 1_000_000
_EVENTS = (
    (0, 11, 1, 100, 30),
    (50, 12, 27, 20, 8),
    (150, 12, 27, 20, 8),
    (300, 11, 1, 50, 10),
    (400, 12, 1, 10, 4),
)


def make(folder: Path) -> None:
    trace = Trace(
        [new_balance_dirty_pages()],
        cmdlines={11: "dd", 12: "dd"},
        uname="Linux guest 7.2.13-amd64 x86_64",
    )
    for ms, tid, cgroup, pause, dirtied in _EVENTS:
        values = {"cgroup_ino": cgroup, "pause": pause, "period": pause, "dirtied": dirtied}
        event = {"bdi": "8:0", "task_ratelimit": 1000, "wb_dirty": 77, **values}
        trace.event(0, (10_000 + ms) * _MS, tid, "balance_dirty_pages", event)
    trace.write(folder / "trace.dat")
    (folder / "cgroups").write_text("1 /sys/fs/cgroup\n27 /sys/fs/cgroup/small\n")


def _row(tid: int, cgroup: int, total: int, longest: int, size: int) -> dict[str, int | str]:
    return {
        "tid": tid,
        "bdi": "8:0",
        "cgroup_ino": cgroup,
        "pause_total_ns": total * _MS,
        "pause_max_ns": longest * _MS,
        "dirtied_bytes": size,
    }


CHECKS = [
    Check(
        query="throttle_by_task",
        rows=[
            _row(11, 1, 150, 100, 163_840),
            _row(12, 27, 40, 20, 65_536),
            _row(12, 1, 10, 10, 16_384),
        ],
    ),
    Check(
        query="throttle_by_task",
        options=("--cgroup", "27"),
        rows=[_row(12, 27, 40, 20, 65_536)],
    ),
    Check(
        sql="SELECT cgroup_ino, path FROM cgroup WHERE cgroup_ino = 27",
        rows=[{"cgroup_ino": 27, "path": "/sys/fs/cgroup/small"}],
    ),
]
