# SPDX-License-Identifier: Apache-2.0
"""Reclaim writes by zone: exact where a patched kernel tells them, else by page frame.

By hand, 4 KiB pages. One and the same reclaim, seen twice:
  .      both events, as a patched kernel fires them: each folio counts once, by the new event
    kswapd0, tid 42: 1 page anon of node 0 DMA32, a folio of 16 pages of node 0 Normal, anon
    dd, tid 11: 4 pages file of node 1 Normal as memcg reclaim of cgroup 77, /app in the run's list;
      that page frame is in no zone of zoneinfo; 1 page proactive (memory.reclaim), anon,
      node 0 DMA32
    kswapd0: 2 + 1 pages file declined (immediate reclaim) and 1 page kept: no writes
    vmstat gained 22 = 1 + 16 + 4 + 1 pages
  scans  dd in two spans of memcg reclaim: of the first the event tells that it is proactive, so its
    64 scanned pages are, too; the second, at the limit, scans 32. Node reclaim wrote a page; its
    scan of 16 pages has no span and is other's.
  stock  mm_vmscan_write_folio only: 4 events, 22 pages of vmstat shared out as 22 / 4 = 5.5 by the
    running sum, rows without a node first: unknown 5, DMA32 kswapd 11 - 5 = 6, DMA32 other
    16 - 11 = 5, Normal kswapd 22 - 16 = 6
"""

from __future__ import annotations

from pathlib import Path

from support.formats import Value
from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_ZONES = [(0, "DMA32", 4096, 1000), (0, "Normal", 10_000, 1000)]
_ANON, _FILE = 9, 10
# ms, tid, pfn, flags, pages, node, zone, reclaimer, outcome, memcg
_MET = [
    (1, 42, 4100, _ANON, 1, 0, 1, 0, 0, 0),
    (2, 42, 10_016, _ANON, 16, 0, 2, 0, 0, 0),
    (3, 42, 10_100, _FILE, 2, 0, 2, 0, 1, 0),
    (4, 42, 4200, _FILE, 1, 0, 1, 0, 1, 0),
    (5, 42, 4300, _ANON, 1, 0, 1, 0, 3, 0),
    (6, 11, 90_000, _FILE, 4, 1, 2, 2, 0, 77),
    (7, 11, 4400, _ANON, 1, 0, 1, 4, 0, 0),
]


def _make(folder: Path, *, patched: bool) -> None:
    folder.mkdir(exist_ok=True)
    known = formats("mm_vmscan_write_folio", "mm_vmscan_reclaim_writeback")
    trace = Trace(known if patched else known[:1], cmdlines={42: "kswapd0", 11: "dd"})
    for ms, tid, pfn, flags, pages, node, zone, who, outcome, memcg in _MET:
        ts = (10_000 + ms) * _MS
        if outcome == 0:
            trace.event(0, ts, tid, "mm_vmscan_write_folio", {"pfn": pfn, "reclaim_flags": flags})
        values: dict[str, Value] = {"pfn": pfn, "reclaim_flags": flags, "nr_pages": pages}
        values |= {"nid": node, "zid": zone, "reclaimer": who, "outcome": outcome}
        values |= {"memcg_id": memcg, "z_inactive_anon": 100, "z_write_pending": 40, "n_dirty": 50}
        if patched:
            trace.event(0, ts, tid, "mm_vmscan_reclaim_writeback", values)
    trace.write(folder / "trace.dat")
    zones = "".join(
        f"Node {node}, zone {zone:>8}\n  pages free     7\n        spanned  {spanned}\n"
        f"        present  {spanned}\n        managed  {spanned}\n  start_pfn:           {start}\n"
        for node, zone, start, spanned in _ZONES
    )
    (folder / "zoneinfo").write_text(zones)
    (folder / "vmstat.before").write_text("nr_vmscan_write 100\n")
    (folder / "vmstat.after").write_text("nr_vmscan_write 122\n")
    (folder / "cgroups").write_text("77 /sys/fs/cgroup/app\n")


def _scans(folder: Path) -> None:
    folder.mkdir()
    names = ("mm_vmscan_reclaim_writeback", "mm_vmscan_lru_shrink_inactive")
    known = formats("mm_vmscan_memcg_reclaim_begin", "mm_vmscan_memcg_reclaim_end", *names)
    trace = Trace(known, cmdlines={11: "dd"})

    def add(ms: int, name: str, **values: Value) -> None:
        trace.event(0, (10_000 + ms) * _MS, 11, name, values)

    for start, scanned, reclaimer in ((10, 64, 4), (20, 32, 2)):
        add(start, "mm_vmscan_memcg_reclaim_begin")
        scan: dict[str, Value] = {"nr_scanned": scanned, "nr_reclaimed": scanned // 4}
        add(start + 1, "mm_vmscan_lru_shrink_inactive", **scan)
        met: dict[str, Value] = {"pfn": 1, "nr_pages": 1, "reclaim_flags": _ANON}
        add(start + 2, "mm_vmscan_reclaim_writeback", reclaimer=reclaimer, **met)
        add(start + 3, "mm_vmscan_memcg_reclaim_end")
    add(30, "mm_vmscan_lru_shrink_inactive", nr_scanned=16, nr_reclaimed=4)
    add(31, "mm_vmscan_reclaim_writeback", reclaimer=3, **met)
    trace.write(folder / "trace.dat")


def make(folder: Path) -> None:
    _make(folder, patched=True)
    _make(folder / "stock", patched=False)
    _scans(folder / "scans")


def _row(
    node: int | None, zone: str, kind: str, who: str, pages: int, basis: str = "reclaim_writeback"
) -> Expected:
    return {
        "node": node,
        "zone": zone,
        "kind": kind,
        "reclaimer": who,
        "events_count": 1,
        "pages_count": pages,
        "basis": basis,
    }


CHECKS = [
    Check(
        query="reclaim_writes",
        ordered=True,
        rows=[
            _row(0, "DMA32", "anon", "kswapd", 1),
            _row(0, "DMA32", "anon", "proactive", 1),
            _row(0, "Normal", "anon", "kswapd", 16),
            _row(1, "Normal", "file", "memcg", 4),
        ],
    ),
    Check(
        query="reclaim_writes",
        folder="stock",
        ordered=True,
        rows=[
            _row(0, "DMA32", "anon", "kswapd", 6, "pfn"),
            _row(0, "DMA32", "anon", "other", 5, "pfn"),
            _row(0, "Normal", "anon", "kswapd", 6, "pfn"),
            _row(None, "unknown", "file", "other", 5, "pfn"),
        ],
        warning_words=("folios-scaled", "reclaimer-unknown"),
    ),
    Check(
        query="reclaim_efficiency",
        rows=[
            {"reclaimer": "kswapd", "anon_writes_count": 17, "file_writes_count": 0},
            {"reclaimer": "direct", "anon_writes_count": 0, "file_writes_count": 0},
            {"reclaimer": "memcg", "anon_writes_count": 0, "file_writes_count": 4},
            {"reclaimer": "other", "anon_writes_count": 0, "file_writes_count": 0},
            {"reclaimer": "proactive", "anon_writes_count": 1, "file_writes_count": 0},
        ],
    ),
    Check(
        query="reclaim_efficiency",
        folder="scans",
        keep=lambda row: row["reclaimer"] not in ("kswapd", "direct"),
        rows=[
            {"reclaimer": "memcg", "scanned_count": 32, "reclaimed_count": 8},
            {"reclaimer": "node", "scanned_count": None, "reclaimed_count": None},
            {"reclaimer": "other", "scanned_count": 16, "reclaimed_count": 4},
            {"reclaimer": "proactive", "scanned_count": 64, "reclaimed_count": 16},
        ],
    ),
    Check(
        query="reclaim_dirty_state",
        keep=lambda row: row["kind"] == "file",
        rows=[
            {"node": 0, "zone": "Normal", "submitted_pages_count": 0, "declined_pages_count": 2},
            {"node": 0, "zone": "DMA32", "submitted_pages_count": 0, "declined_pages_count": 1},
            {"node": 1, "zone": "Normal", "submitted_pages_count": 4, "declined_pages_count": 0},
        ],
    ),
    Check(
        sql="SELECT r.memcg_id, r.cgroup_path, r.pages_count FROM reclaim_writeback AS r"
        " WHERE r.memcg_id <> 0 AND r.outcome = 'submitted'",
        rows=[{"memcg_id": 77, "cgroup_path": "/sys/fs/cgroup/app", "pages_count": 4}],
    ),
]
