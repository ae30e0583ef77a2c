# SPDX-License-Identifier: Apache-2.0
"""A file of version 6 that ends within its last page: the rest is read, and the damage is told.

By hand: CPU 0 has one page with events 1 2 3; CPU 1 has a page with 4 5 and a page with 6 7, of
which the last 4000 bytes are cut off: 96 of 4096 are there. Both records of 28 bytes lie within the
96 bytes, but the page is not whole: at least 5 events are read, at most 7.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000


def make(folder: Path) -> None:
    trace = Trace(formats("sys_exit_write"), version=6, cpus=2, cmdlines={11: "dd", 12: "cp"})
    for number in (1, 2, 3):
        trace.event(0, (10_000 + number) * _MS, 11, "sys_exit_write", {"ret": number})
    for number in (4, 5, 6, 7):
        if number == 6:
            trace.page_break(1)
        trace.event(1, (10_000 + number) * _MS, 12, "sys_exit_write", {"ret": number})
    (folder / "trace.dat").write_bytes(trace.encode()[:-4000])


CHECKS = [
    Check(
        sql="SELECT ret FROM ev_sys_exit_write WHERE ret <= 5 ORDER BY rowid",
        ordered=True,
        rows=[{"ret": number} for number in (1, 2, 3, 4, 5)],
    ),
    Check(
        sql="SELECT CAST(value AS INTEGER) AS value FROM meta WHERE key = 'damaged'",
        rows=[{"value": 1}],
    ),
    Check(
        query="event_counts",
        rows=[{"event": "syscalls:sys_exit_write"}],
        warning_words=("damage",),
    ),
]
