# SPDX-License-Identifier: Apache-2.0
"""Measured sleeps: an asynchronous write that does not sleep, and a sleep over a window's border.

By hand, 4 KiB pages, windows of 2 s from 10 s (the first event):
  fio, tid 21: at 10.000 s a pause of 100 ms, and 1 ms later the task's next event: nobody slept
  (io_uring got -EAGAIN), the pages were not consumed. That next event sleeps from 10.0011 s (switch
  out in state D) to 10.1051 s (switch in) = 104 ms.
    pauses 2, intended 200 ms, measured 104 ms; dirtied 64 pages = 262144 bytes, once
  dd, tid 22: pause of 100 ms at 11.950 s; first only preempted (state R, 11.9502 s to 11.9505 s),
  then out in state D at 11.951 s, woken at 12.054 s, in at 12.055 s = 104 ms. A window's share is
  that of [ts, ts + slept], here 11.950 s to 12.054 s: 50 ms in the window from 10 s and 54 ms in
  that from 12 s: 0.025 of 2 s, and 54 of the 57.010001 ms that the trace has of the second.
  fio: 104 ms = 0.052.
  write(): fio 262144 bytes; dd 40960, and 33 more on stderr (fd 2) that are no file's.
"""

from __future__ import annotations

from pathlib import Path

from support.formats import Value
from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_US = 1_000
_MS = 1_000_000
_SECOND = 1_000_000_000
_START = 10 * _SECOND


def make(folder: Path) -> None:
    names = (
        "balance_dirty_pages",
        "sched_switch",
        "sched_waking",
        "sys_enter_write",
        "sys_exit_write",
    )
    trace = Trace(formats(*names), cmdlines={21: "fio", 22: "dd"}, cpus=1)

    def pause(ts: int, tid: int, dirtied: int) -> None:
        values: dict[str, Value] = {"bdi": "8:0", "cgroup_ino": 1, "task_ratelimit": 400}
        values |= {"dirtied": dirtied, "pause": 100, "period": 100}
        trace.event(0, ts, tid, "balance_dirty_pages", values)

    def switch(ts: int, out: int, state: int, back: int) -> None:
        comm = {0: "swapper/0", 21: "fio", 22: "dd"}
        values: dict[str, Value] = {"prev_comm": comm[out], "prev_pid": out, "prev_state": state}
        values |= {"next_comm": comm[back], "next_pid": back}
        trace.event(0, ts, out, "sched_switch", values)

    def write(ts: int, tid: int, fd: int, size: int) -> None:
        trace.event(0, ts, tid, "sys_enter_write", {"fd": fd, "count": size})
        trace.event(0, ts + 10 * _US, tid, "sys_exit_write", {"ret": size})

    pause(_START, 21, 64)
    pause(_START + 1 * _MS, 21, 64)
    switch(_START + 1_100 * _US, 21, 2, 0)
    switch(_START + 105_100 * _US, 0, 0, 21)
    write(_START + 106 * _MS, 21, 3, 262_144)
    switch(_START + 107 * _MS, 21, 1, 22)
    pause(_START + 1_950 * _MS, 22, 10)
    switch(_START + 1_950_200 * _US, 22, 0, 0)
    switch(_START + 1_950_500 * _US, 0, 0, 22)
    switch(_START + 1_951 * _MS, 22, 2, 0)
    waking: dict[str, Value] = {"comm": "dd", "pid": 22}
    trace.event(0, _START + 2_054 * _MS, 0, "sched_waking", waking)
    switch(_START + 2_055 * _MS, 0, 0, 22)
    write(_START + 2_056 * _MS, 22, 1, 40_960)
    write(_START + 2_057 * _MS, 22, 2, 33)
    trace.write(folder / "trace.dat")


def _task(tid: int, comm: str, pauses: int, pages: int, written: int) -> dict[str, int | str]:
    return {
        "tid": tid,
        "comm": comm,
        "calls_count": pauses,
        "pauses_count": pauses,
        "pause_total_ns": pauses * 100 * _MS,
        "slept_total_ns": 104 * _MS,
        "slept_basis": "sched",
        "call_max_ns": 104 * _MS,
        "dirtied_bytes": pages * 4096,
        "written_bytes": written,
    }


CHECKS = [
    Check(
        query="throttle_by_task",
        rows=[_task(21, "fio", 2, 64, 262_144), _task(22, "dd", 1, 10, 40_960)],
    ),
    Check(
        query="throttle_windows",
        keep=lambda row: bool(row["throttled_ratio"]),
        rows=[
            {"window_start_ns": _START, "tid": 21, "comm": "fio", "throttled_ratio": 0.052},
            {"window_start_ns": _START, "tid": 22, "comm": "dd", "throttled_ratio": 0.025},
            {
                "window_start_ns": _START + 2 * _SECOND,
                "tid": 22,
                "comm": "dd",
                "throttled_ratio": 54 / 57.010001,
            },
        ],
    ),
    Check(
        query="throttle_windows",
        keep=lambda row: bool(row["dirtied_bytes"]),
        rows=[
            {"window_start_ns": _START, "tid": 21, "dirtied_bytes": 262_144},
            {"window_start_ns": _START, "tid": 22, "dirtied_bytes": 40_960},
        ],
    ),
]
