# SPDX-License-Identifier: Apache-2.0
"""A compressed file with one chunk spoiled: the other CPU and the chunks before it are read.

By hand: CPU 0 has events 1 2; CPU 1 has three pages, each a chunk of its own, with 3, 4 and 5.
Of CPU 1's second chunk the first 16 bytes are overwritten. 1 2 3 are good; 5 may be read or not.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000


def make(folder: Path) -> None:
    trace = Trace(
        formats("sys_exit_write"),
        cpus=2,
        compression="zlib",
        pages_per_chunk=1,
        cmdlines={11: "dd"},
    )
    for number in (1, 2):
        trace.event(0, (10_000 + number) * _MS, 11, "sys_exit_write", {"ret": number})
    for number in (3, 4, 5):
        trace.event(1, (10_000 + number) * _MS, 11, "sys_exit_write", {"ret": number})
        trace.page_break(1)
    data = bytearray(trace.encode())
    second_cpu = 2 * trace.page_bytes
    first_chunk = int.from_bytes(data[second_cpu + 4 : second_cpu + 8], "little")
    spoiled = second_cpu + 4 + 8 + first_chunk + 8
    data[spoiled : spoiled + 16] = b"\xff" * 16
    (folder / "trace.dat").write_bytes(data)


CHECKS = [
    Check(
        sql="SELECT ret FROM ev_sys_exit_write WHERE ret <= 4 ORDER BY rowid",
        ordered=True,
        rows=[{"ret": number} for number in (1, 2, 3)],
    ),
    Check(
        sql="SELECT CAST(value AS INTEGER) AS value FROM meta WHERE key = 'damaged'",
        rows=[{"value": 1}],
    ),
]
