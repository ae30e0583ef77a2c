# SPDX-License-Identifier: Apache-2.0
"""Two CPUs and two buffers become one table in time order; every way to write a time is read.

By hand, times in ns after 10 s; the number is what write() returned:
  buffer 0, CPU 0: 0 -> 1; then a time extend of 300000000 (it does not fit into 27 bits) -> 2; an
    absolute time stamp 300000100 -> 3; a record that the kernel discarded, at 300000200, which is
    no event but moves the time on; then 300000250 -> 4, 50 after it
  buffer 0, CPU 1: 300000000, the same time as 2 -> 5; the rest of its page is padding; then
    300000150 -> 6
  buffer 1, CPU 0: 300000000 once more -> 7
  The file adds an offset of 1000 ns to every time.
  In time: 1 | 2 5 7 in any order | 3 | 6 | 4
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.ringbuffer import Stamp
from support.tracedat import Buffer, Trace

_START = 10_000_000_000
_OFFSET = 1000


def make(folder: Path) -> None:
    trace = Trace(
        formats("sys_exit_write"),
        cpus=2,
        compression="zstd",
        ts_offset=_OFFSET,
        cmdlines={31: "a name (with) spaces"},
        buffers=[Buffer(), Buffer("second")],
    )

    def wrote(cpu: int, ts: int, number: int, stamp: Stamp = "auto", buffer: int = 0) -> None:
        tid = 30 + cpu
        values = {"ret": number}
        trace.event(cpu, _START + ts, tid, "sys_exit_write", values, stamp=stamp, buffer=buffer)

    wrote(0, 0, 1)
    wrote(0, 300_000_000, 2)
    wrote(0, 300_000_100, 3, "absolute")
    trace.discarded(0, _START + 300_000_200)
    wrote(0, 300_000_250, 4)
    wrote(1, 300_000_000, 5)
    trace.page_break(1, fill_tail=True)
    wrote(1, 300_000_150, 6)
    wrote(0, 300_000_000, 7, buffer=1)
    trace.write(folder / "trace.dat")


def _at(ts: int) -> int:
    return _START + _OFFSET + ts


CHECKS = [
    Check(
        sql="SELECT ret, ts, cpu, tid, buffer FROM ev_sys_exit_write",
        rows=[
            {"ret": 1, "ts": _at(0), "cpu": 0, "tid": 30, "buffer": 0},
            {"ret": 2, "ts": _at(300_000_000), "cpu": 0, "tid": 30, "buffer": 0},
            {"ret": 3, "ts": _at(300_000_100), "cpu": 0, "tid": 30, "buffer": 0},
            {"ret": 4, "ts": _at(300_000_250), "cpu": 0, "tid": 30, "buffer": 0},
            {"ret": 5, "ts": _at(300_000_000), "cpu": 1, "tid": 31, "buffer": 0},
            {"ret": 6, "ts": _at(300_000_150), "cpu": 1, "tid": 31, "buffer": 0},
            {"ret": 7, "ts": _at(300_000_000), "cpu": 0, "tid": 30, "buffer": 1},
        ],
    ),
    Check(
        sql="SELECT ts FROM ev_sys_exit_write ORDER BY rowid",
        ordered=True,
        rows=[
            {"ts": _at(ts)}
            for ts in (
                0,
                300_000_000,
                300_000_000,
                300_000_000,
                300_000_100,
                300_000_150,
                300_000_250,
            )
        ],
    ),
    Check(
        sql="SELECT ret FROM ev_sys_exit_write WHERE ret NOT IN (2, 5, 7) ORDER BY rowid",
        ordered=True,
        rows=[{"ret": 1}, {"ret": 3}, {"ret": 6}, {"ret": 4}],
    ),
    Check(
        sql="SELECT tid, comm, events_count, first_ts, last_ts FROM task WHERE tid IN (30, 31)",
        rows=[
            {
                "tid": 30,
                "comm": None,
                "events_count": 5,
                "first_ts": _at(0),
                "last_ts": _at(300_000_250),
            },
            {
                "tid": 31,
                "comm": "a name (with) spaces",
                "events_count": 2,
                "first_ts": _at(300_000_000),
                "last_ts": _at(300_000_150),
            },
        ],
    ),
    Check(
        sql="SELECT id, name FROM buffer", rows=[{"id": 0, "name": ""}, {"id": 1, "name": "second"}]
    ),
]
