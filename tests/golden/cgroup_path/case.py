# SPDX-License-Identifier: Apache-2.0
"""Kernels 4.3 to 4.5 record the cgroup's path: it becomes the inode that the cgroups file has.

By hand: "/" is 1; "/small" ends the path that the file has for inode 27; "/other" is in no file: -2
(paths in order: "/", "/other", "/small"; minus its place).
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import pause_of_4_4
from support.tracedat import Trace

_MS = 1_000_000


def make(folder: Path) -> None:
    trace = Trace([pause_of_4_4()], cmdlines={11: "dd"}, uname="Linux phone 4.4.88 aarch64")
    for index, path in enumerate(("/", "/small", "/other", "/small")):
        values = {"bdi": "8:0", "cgroup": path, "dirtied": 8, "pause": 20, "period": 20}
        trace.event(0, (10_000 + 100 * index) * _MS, 11, "balance_dirty_pages", values)
    trace.write(folder / "trace.dat")
    (folder / "cgroups").write_text("1 /sys/fs/cgroup\n27 /sys/fs/cgroup/small\n")


CHECKS = [
    Check(
        query="throttle_by_task",
        rows=[
            {"cgroup_ino": 1, "pauses_count": 1, "dirtied_bytes": 32_768},
            {"cgroup_ino": 27, "pauses_count": 2, "dirtied_bytes": 65_536},
            {"cgroup_ino": -2, "pauses_count": 1, "dirtied_bytes": 32_768},
        ],
        warning_words=("/other", "-2"),
    ),
    Check(
        query="throttle_by_task",
        options=("--cgroup", "27"),
        rows=[{"cgroup_ino": 27, "pauses_count": 2, "dirtied_bytes": 65_536}],
    ),
]
