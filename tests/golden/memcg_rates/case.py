# SPDX-License-Identifier: Apache-2.0
"""Rates of writers in the root cgroup and in a memory cgroup, kept apart on one bdi.

By hand, 4 KiB pages, ms from 10 s, windows of 2 s:
  bdi_dirty_ratelimit of the root cgroup: avg_write_bw 1000 KiB/s. Of cgroup 27 it fires twice in a
    row at 100 ms (4000 of the machine, then 2000, which the kernel keeps) and once at 300 ms
    (1000): 2 updates, mean 1500 KiB/s = 1536000 bytes/s
  each task fires at 0, 1000 and 2000 ms; its pages after the first event count over 2 s:
    dd, tid 11, root: 2 * 100 pages: 100 pages/s = 400 KiB/s, told 800: error -0.5; alone: Jain 1
    dd, tid 12, cgroup 27: 2 * 100 pages: 400 KiB/s, told 400: 0
    cp, tid 13, cgroup 27: 2 * 300 pages: 1200 KiB/s, told 1200: 0
    Jain of cgroup 27: (1 + 3)^2 / (2 * (1 + 9)) = 0.8; slowest to fastest 1/3
  shares of cgroup 27 in the first window: 50 + 100 of 500 pages = 0.3 and 0.7; in the next 1/4, 3/4
  the flusher works for both cgroups in a row: 3 pages for 27, then 7 pages for the root
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import MS, Waits, at

_KIB = 1024


def make(folder: Path) -> None:
    names = ("balance_dirty_pages", "bdi_dirty_ratelimit", "writeback_start", "writeback_written")
    waits = Waits(*names, cmdlines={11: "dd", 12: "dd", 13: "cp", 50: "kworker/u4:1"})
    updates = ((50, 11, 1, 1000), (100, 12, 27, 4000), (100.01, 12, 27, 2000), (300, 12, 27, 1000))
    for ms, tid, cgroup, kib in updates:
        waits.add(ms, tid, "bdi_dirty_ratelimit", bdi="8:0", cgroup_ino=cgroup, avg_write_bw=kib)
    for tid, cgroup, told, pages in ((11, 1, 800, 100), (12, 27, 400, 100), (13, 27, 1200, 300)):
        for ms in (0, 1000, 2000):
            values = {"cgroup_ino": cgroup, "task_ratelimit": told, "dirty_ratelimit": 1000}
            values |= {"dirtied": pages if ms else 50, "pause": 100, "period": 100}
            waits.add(ms + tid / 1000, tid, "balance_dirty_pages", bdi="8:0", **values)
    for ms, step, cgroup, pages in (
        (400, "start", 27, 100),
        (410, "written", 27, 97),
        (410, "start", 1, 100),
        (420, "written", 1, 93),
    ):
        values = {"nr_pages": pages, "reason": 2, "cgroup_ino": cgroup}
        waits.add(ms, 50, f"writeback_{step}", name="8:0", **values)
    waits.write(folder)


def _bandwidth(cgroup: int, updates: int, kib: int) -> Expected:
    rate = {"avg_write_bw_bytes_per_s": float(kib * _KIB)}
    return {"bdi": "8:0", "cgroup_ino": cgroup, "updates_count": updates} | rate


def _error(tid: int, cgroup: int, told: int, actual: int) -> Expected:
    return {
        "tid": tid,
        "cgroup_ino": cgroup,
        "target_bytes_per_s": float(told * _KIB),
        "actual_bytes_per_s": float(actual * _KIB),
        "error_ratio": (actual - told) / told,
    }


def _share(window: int, tid: int, pages: int, share: float) -> Expected:
    return {
        "window_start_ns": at(window) + 11_000,
        "tid": tid,
        "dirtied_bytes": pages * 4096,
        "dirtied_share_ratio": share,
    }


CHECKS = [
    Check(query="bdi_bandwidth", rows=[_bandwidth(1, 1, 1000), _bandwidth(27, 2, 1500)]),
    Check(query="bdi_bandwidth", options=("--cgroup", "27"), rows=[_bandwidth(27, 2, 1500)]),
    Check(
        query="fairness",
        rows=[
            {"cgroup_ino": 1, "tasks_count": 1, "jain_ratio": 1.0}
            | {"slowest_to_fastest_ratio": 1.0},
            {"cgroup_ino": 27, "tasks_count": 2, "jain_ratio": 0.8}
            | {"slowest_to_fastest_ratio": 1 / 3},
        ],
    ),
    Check(
        query="ratelimit_error",
        rows=[_error(11, 1, 800, 400), _error(12, 27, 400, 400), _error(13, 27, 1200, 1200)],
    ),
    Check(
        query="throttle_windows",
        options=("--cgroup", "27"),
        ordered=True,
        rows=[
            _share(0, 12, 150, 0.3),
            _share(0, 13, 350, 0.7),
            _share(2000, 12, 100, 0.25),
            _share(2000, 13, 300, 0.75),
        ],
    ),
    Check(
        query="writeback_work",
        ordered=True,
        rows=[
            {"cgroup_ino": 27, "started_ts": at(400), "dur": 10 * MS, "pages_count": 3},
            {"cgroup_ino": 1, "started_ts": at(410), "dur": 10 * MS, "pages_count": 7},
        ],
    ),
    Check(query="writeback_work", options=("--cgroup", "27"), rows=[{"pages_count": 3}]),
]
