# SPDX-License-Identifier: Apache-2.0
"""Several runs in one table, tasks chosen by name, and a run without the events.

By hand, 4 KiB pages, each event is a call of its own and a pause of its own:
  the folder itself: dd, tid 11, pauses 100 ms and 40 ms for 32 + 16 pages; dd-2, tid 12, 20 ms for
    8 pages; fio, tid 13, 60 ms for 4 pages
  after: dd, tid 11, pauses 10 ms for 64 pages
  nothing: a system call, none of balance_dirty_pages
  --task 'dd*' is dd and dd-2, --task dd only dd, --task 13 is fio.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_START = 10_000 * _MS
_NAMES = {11: "dd", 12: "dd-2", 13: "fio"}


def _write(folder: Path, pauses: list[tuple[int, int, int, int]]) -> None:
    """(ms, tid, pause in ms, pages) of each event."""
    trace = Trace(formats("balance_dirty_pages"), cmdlines=_NAMES, uname="Linux test 6.1.0")
    for ms, tid, pause, pages in pauses:
        values = {
            "bdi": "8:0",
            "cgroup_ino": 1,
            "task_ratelimit": 400,
            "dirtied": pages,
            "paused": 0,
            "pause": pause,
            "period": pause,
        }
        trace.event(0, _START + ms * _MS, tid, "balance_dirty_pages", values)
    trace.write(folder / "trace.dat")


def make(folder: Path) -> None:
    for name in ("after", "nothing"):
        (folder / name).mkdir()
    _write(folder, [(0, 11, 100, 32), (200, 12, 20, 8), (300, 13, 60, 4), (400, 11, 40, 16)])
    _write(folder / "after", [(0, 11, 10, 64), (500, 12, 0, 1)])
    other = Trace(formats("sys_exit_write"), cmdlines=_NAMES, uname="Linux test 6.1.0")
    other.event(0, _START, 11, "sys_exit_write", {"ret": 7})
    other.write(folder / "nothing" / "trace.dat")


def _row(tid: int, pauses: list[int], pages: int) -> dict[str, int | str]:
    return {
        "tid": tid,
        "comm": _NAMES[tid],
        "pauses_count": len(pauses),
        "pause_total_ns": sum(pauses) * _MS,
        "pause_max_ns": max(pauses) * _MS,
        "dirtied_bytes": pages * 4096,
    }


_DD = _row(11, [100, 40], 48)
_DD_2 = _row(12, [20], 8)
_FIO = _row(13, [60], 4)

CHECKS = [
    Check(query="throttle_by_task", rows=[_DD, _DD_2, _FIO]),
    Check(query="throttle_by_task", options=("--task", "dd*"), rows=[_DD, _DD_2]),
    Check(query="throttle_by_task", options=("--task", "dd"), rows=[_DD]),
    Check(query="throttle_by_task", options=("--task", "13"), rows=[_FIO]),
    Check(query="throttle_by_task", options=("--task", "*[^2o]"), rows=[_DD]),
    Check(
        query="throttle_by_task",
        options=("--task", "ddd"),
        rows=[],
        warning_words=("--task ddd fits no row; there are dd, dd-2 and 1 more",),
    ),
]
