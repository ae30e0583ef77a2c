# SPDX-License-Identifier: Apache-2.0
"""A copy that ends soon and the sync after it, which does the work.

By hand, 4 KiB pages; cp is tid 11, sync tid 12:
  copy: write calls 10.0 to 10.1 s and 11.0 to 11.2 s: 1.2 s, 0.3 s of it in calls, longest 0.2 s;
    300000 bytes / 1.2 s = 250000 bytes/s. Its line on stderr does not count.
  sync: 11.5 to 14.5 s. fsync by tid 13 enters at 14.0 s and does not come back: to the trace's end.
  dirty: 5 pages at 9.9 s (start), 50 at 10.5 s, 60 at 11.2 s (end); samples in between 50 and 60:
    mean 55 pages = 225280 bytes, most 60 = 245760.
  sync: 60 at 11.2 s (start), 40 at 12.5 s, 20 at 13.5 s, 0 at 14.5 s (end): mean 20, most 40 pages.
  fsync: 20 (start), 0 at 14.5 s, 0 at its end: one sample.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_PAGE = 4096


def make(folder: Path) -> None:
    names = [f"sys_{side}_{call}" for call in ("sync", "fsync") for side in ("enter", "exit")]
    trace = Trace(
        formats("global_dirty_state", "sys_enter_write", "sys_exit_write", *names),
        cmdlines={11: "cp", 12: "sync", 13: "db", 9: "kworker/0:1"},
    )

    def call(ms: int, tid: int, name: str, **values: int) -> None:
        trace.event(0, ms * _MS, tid, f"sys_{name}", values)

    def state(ms: int, pages: int) -> None:
        values = {"nr_dirty": pages, "dirty_thresh": 1000, "background_thresh": 500}
        trace.event(0, ms * _MS, 9, "global_dirty_state", values)

    state(9_900, 5)
    call(10_000, 11, "enter_write", fd=4, count=100_000)
    call(10_100, 11, "exit_write", ret=100_000)
    state(10_500, 50)
    call(11_000, 11, "enter_write", fd=4, count=200_000)
    call(11_200, 11, "exit_write", ret=200_000)
    state(11_200, 60)
    call(11_300, 11, "enter_write", fd=2, count=33)
    call(11_300, 11, "exit_write", ret=33)
    call(11_500, 12, "enter_sync")
    state(12_500, 40)
    state(13_500, 20)
    call(14_000, 13, "enter_fsync", fd=3)
    state(14_500, 0)
    call(14_500, 12, "exit_sync")
    trace.write(folder / "trace.dat")


def _row(
    phase: str,
    tid: int,
    ms: tuple[int, int, int, int],
    calls: int,
    size: int | None,
    pages: tuple[int, ...],
    samples: int,
) -> Expected:
    ts, dur, inside, longest = ms
    start, end, most, mean = pages
    return {
        "phase": phase,
        "tid": tid,
        "ts": ts * _MS,
        "dur": dur * _MS,
        "calls_count": calls,
        "in_calls_ns": inside * _MS,
        "call_max_ns": longest * _MS,
        "written_bytes": size,
        "written_bytes_per_s": None if size is None else size * 1000 / dur,
        "dirty_start_bytes": start * _PAGE,
        "dirty_end_bytes": end * _PAGE,
        "dirty_max_bytes": most * _PAGE,
        "dirty_mean_bytes": mean * _PAGE,
        "samples_count": samples,
    }


CHECKS = [
    Check(
        query="copy_and_sync",
        ordered=True,
        rows=[
            _row("copy", 11, (10_000, 1200, 300, 200), 2, 300_000, (5, 60, 60, 55), 2),
            _row("sync", 12, (11_500, 3000, 3000, 3000), 1, None, (60, 0, 40, 20), 3),
            _row("fsync", 13, (14_000, 500, 500, 500), 1, None, (20, 0, 0, 0), 1),
        ],
    ),
]
