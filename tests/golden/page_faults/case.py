# SPDX-License-Identifier: Apache-2.0
"""Page faults are in the trace and loaded only when asked for; reads and swap-out always.

By hand: memcached (tid 11) has 3 faults of its own and 1 in the kernel, and reads 8 + 16 sectors =
12288 bytes in 2 bios; a write bio does not count. dd (tid 12) has 1 fault, and gives 2 anon folios
to swap in direct reclaim.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000


def make(folder: Path) -> None:
    trace = Trace(
        formats(
            "mm_vmscan_write_folio",
            "mm_vmscan_direct_reclaim_begin",
            "page_fault_user",
            "page_fault_kernel",
            "block_bio_queue",
        ),
        cmdlines={11: "memcached", 12: "dd"},
    )
    times = iter(range(10_000 * _MS, 11_000 * _MS, _MS))

    def add(tid: int, name: str, **values: int | str) -> None:
        trace.event(0, next(times), tid, name, values)

    for _ in range(3):
        add(11, "page_fault_user", address=0x7F00)
    add(11, "page_fault_kernel", address=0x7F10)
    add(11, "block_bio_queue", dev=8 << 20, sector=100, nr_sector=8, rwbs="R")
    add(11, "block_bio_queue", dev=8 << 20, sector=200, nr_sector=16, rwbs="RA")
    add(11, "block_bio_queue", dev=8 << 20, sector=300, nr_sector=8, rwbs="W")
    add(12, "page_fault_user", address=0x8000)
    add(12, "mm_vmscan_direct_reclaim_begin")
    add(12, "mm_vmscan_write_folio", pfn=5, reclaim_flags=9)
    add(12, "mm_vmscan_write_folio", pfn=6, reclaim_flags=9)
    add(12, "mm_vmscan_write_folio", pfn=7, reclaim_flags=10)
    trace.write(folder / "trace.dat")


CHECKS = [
    Check(
        query="task_faults",
        ordered=True,
        rows=[
            {"tid": 11, "faults_count": None, "reads_count": 2, "read_bytes": 12_288}
            | {"swapped_out_count": 0},
            {"tid": 12, "faults_count": None, "reads_count": 0, "read_bytes": 0}
            | {"swapped_out_count": 2},
        ],
        warning_words=("5 page faults", "--events"),
    ),
]
