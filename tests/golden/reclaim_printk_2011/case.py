# SPDX-License-Identifier: Apache-2.0
"""The printk of July 2011, as its mail has it: counters of the zone and, in brackets, of all zones.

By hand, pages of 4 KiB, which is assumed as a log does not tell: inactive 776 pages = 3178496
bytes of 430813 in all = 1764610048, active 2 = 8192, dirty 814 = 3334144 of 68649 in all =
281186304, writeback 0 of 18765 = 76861440; pending 814 / 776 in the zone, (68649 + 18765) / 430813
in all zones.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected

_LINES = (
    (
        "[   10.000001] reclaim: xfs_vm_writepage+0x0/0x4f0 zone=DMA inactive=776(430813)"
        " active=2(2931) isolated=32(32) dirty=814(68649) writeback=0(18765)"
    ),
    (
        "[   10.010002] reclaim: xfs_vm_writepage+0x0/0x4f0 zone=DMA inactive=776(430813)"
        " active=2(2931) isolated=32(32) dirty=764(68649) writeback=0(18765)"
    ),
)


def make(folder: Path) -> None:
    (folder / "trace.txt").write_text("".join(line + "\n" for line in _LINES))


def _row(ts: int, dirty: int) -> Expected:
    return {
        "ts": ts,
        "tid": None,
        "comm": None,
        "zone": "DMA",
        "zone_inactive_bytes": 3_178_496,
        "zone_inactive_file_bytes": None,
        "zone_active_bytes": 8192,
        "zone_isolated_bytes": 32 * 4096,
        "zone_dirty_bytes": dirty * 4096,
        "zone_writeback_bytes": 0,
        "zone_pending_ratio": dirty / 776,
        "inactive_bytes": 1_764_610_048,
        "isolated_bytes": 32 * 4096,
        "dirty_bytes": 281_186_304,
        "writeback_bytes": 76_861_440,
        "pending_ratio": (68649 + 18765) / 430813,
        "basis": "printk",
    }


CHECKS = [
    Check(
        query="reclaim_dirty_state",
        ordered=True,
        rows=[_row(10_000_001_000, 814), _row(10_010_002_000, 764)],
        warning_words=("page-size-assumed",),
    ),
]
