# SPDX-License-Identifier: Apache-2.0
"""Dirty pages when reclaim wrote: what a patched kernel's event has, and what a stock one tells.

By hand, 4 KiB pages.
  stock: kswapd0 writes 2 file folios of zone DMA and 1 of DMA32 in one pass, then 1 of DMA in the
    next pass: three rows, with the dirty 100 and writeback 20 pages of the global_dirty_state 5 ms
    before. The first pass scanned 64 pages, 48 of them dirty.
  patched: one pass meets 2 dirty folios of zone 0: inactive file 30 + anon 10 = 40 pages = 163840,
    pending 36 pages = 147456: 0.9; the node has 50 + 5, the machine 60 + 6 dirty and writeback,
    inactive file 70 and 90, isolated 3 + 4 = 7 and 5 + 6 = 11. Inactive anon: not told.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_ZONES = [("DMA", 1, 4095), ("DMA32", 4096, 1000)]


def _write(folder: Path, trace: Trace) -> None:
    folder.mkdir(exist_ok=True)
    trace.write(folder / "trace.dat")
    text = "".join(
        f"Node 0, zone {zone:>8}\n  pages free     7\n        spanned  {spanned}\n"
        f"        present  {spanned}\n        managed  {spanned}\n  start_pfn:           {start}\n"
        for zone, start, spanned in _ZONES
    )
    (folder / "zoneinfo").write_text(text)


def _stock() -> Trace:
    names = ("mm_vmscan_write_folio", "global_dirty_state")
    more = ("mm_vmscan_kswapd_wake", "mm_vmscan_lru_shrink_inactive")
    trace = Trace(formats(*names, *more), cmdlines={42: "kswapd0", 11: "dd"})

    def add(ms: int, tid: int, name: str, **values: int) -> None:
        trace.event(0, (10_000 + ms) * _MS, tid, name, values)

    state = {"background_thresh": 500, "dirty_thresh": 1000, "dirty_limit": 1000}
    add(0, 42, "mm_vmscan_kswapd_wake")
    add(0, 11, "global_dirty_state", nr_dirty=100, nr_writeback=20, **state)
    add(5, 42, "mm_vmscan_write_folio", pfn=100, reclaim_flags=10)
    add(6, 42, "mm_vmscan_write_folio", pfn=101, reclaim_flags=10)
    add(7, 42, "mm_vmscan_write_folio", pfn=5000, reclaim_flags=10)
    add(8, 42, "mm_vmscan_lru_shrink_inactive", nr_scanned=64, nr_dirty=48)
    add(10, 42, "mm_vmscan_kswapd_wake")
    add(11, 42, "mm_vmscan_write_folio", pfn=102, reclaim_flags=10)
    return trace


def _patched() -> Trace:
    more = ("mm_vmscan_kswapd_wake", "mm_vmscan_reclaim_writeback")
    trace = Trace(formats(*more), cmdlines={42: "kswapd0"})
    trace.event(0, 10_000 * _MS, 42, "mm_vmscan_kswapd_wake")
    counters = {"z_inactive_file": 30, "z_inactive_anon": 10, "z_write_pending": 36}
    counters |= {"n_dirty": 50, "n_writeback": 5, "g_dirty": 60, "g_writeback": 6}
    counters |= {"n_inactive_file": 70, "n_isolated_file": 3, "n_isolated_anon": 4}
    counters |= {"g_inactive_file": 90, "g_isolated_file": 5, "g_isolated_anon": 6}
    for index in (1, 2):
        values = {**counters, "pfn": 100 + index, "nr_pages": 1, "reclaim_flags": 10}
        values |= {"outcome": 1}
        trace.event(0, (10_000 + index) * _MS, 42, "mm_vmscan_reclaim_writeback", values)
    return trace


def make(folder: Path) -> None:
    _write(folder, _stock())
    _write(folder / "patched", _patched())


def _row(ms: int, zone: str, count: int, scanned: int | None) -> dict[str, int | str | None]:
    return {
        "ts": (10_000 + ms) * _MS,
        "reclaimer": "kswapd",
        "node": 0,
        "zone": zone,
        "kind": "file",
        "events_count": count,
        "scanned_count": scanned,
        "zone_dirty_bytes": None,
        "dirty_bytes": 409_600,
        "writeback_bytes": 81_920,
        "state_age_ns": ms * _MS,
        "basis": "global_dirty_state",
    }


CHECKS = [
    Check(
        query="reclaim_dirty_state",
        ordered=True,
        rows=[_row(5, "DMA", 2, 64), _row(7, "DMA32", 1, 64), _row(11, "DMA", 1, None)],
    ),
    Check(
        query="reclaim_dirty_state",
        folder="patched",
        rows=[
            {
                "zone_inactive_bytes": 40 * 4096,
                "zone_inactive_file_bytes": 30 * 4096,
                "node_inactive_file_bytes": 70 * 4096,
                "inactive_file_bytes": 90 * 4096,
                "zone_isolated_bytes": None,
                "node_isolated_bytes": 7 * 4096,
                "isolated_bytes": 11 * 4096,
                "inactive_bytes": None,
                "pending_ratio": None,
            }
        ],
    ),
]
