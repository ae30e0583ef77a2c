# SPDX-License-Identifier: Apache-2.0
"""Reclaim by who reclaimed, from events and from the per-zone counters of an old /proc/vmstat.

By hand; the trace is 2 s long:
  kswapd0 (tid 42): scans 600 + 400 = 1000 pages, frees 250: 25 %; 500 pages/s. Writes 2 anon.
  dd (tid 11) in direct reclaim: scans 100, frees 10; after its end, 7 scanned by other
  stress (tid 12) in memory cgroup reclaim: scans 50, frees 50, writes 1 file page
  direct 100 / (1000 + 100) = 1/11
  vmstat: pgscan_kswapd_dma 0 -> 100 and _normal 0 -> 900 = 1000; pgsteal_kswapd_* 50 + 200 = 250;
    pgscan_direct_normal 100, pgsteal_direct_normal 10; pgscan_direct_throttle is no scan
  mmtests: nr_vmscan_write 3, pswpout 5: it would print -2 as Page writes file and 5 as anon; by the
    events 1 and 2; pgfault 1000, pgmajfault 100: 900 minor
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_GAINED = {
    "pgscan_kswapd_dma": 100,
    "pgscan_kswapd_normal": 900,
    "pgsteal_kswapd_dma": 50,
    "pgsteal_kswapd_normal": 200,
    "pgscan_direct_normal": 100,
    "pgsteal_direct_normal": 10,
    "pgscan_direct_throttle": 9,
    "pgscan_anon": 777,
    "nr_vmscan_write": 3,
    "pswpin": 2,
    "pswpout": 5,
    "pgfault": 1000,
    "pgmajfault": 100,
    "slabs_scanned": 64,
}


def make(folder: Path) -> None:
    spans = [f"mm_vmscan_{k}_reclaim_{e}" for k in ("direct", "memcg") for e in ("begin", "end")]
    trace = Trace(
        formats(
            "mm_vmscan_write_folio",
            *spans,
            "mm_vmscan_lru_shrink_inactive",
            "mm_vmscan_kswapd_wake",
        ),
        cmdlines={42: "kswapd0", 11: "dd", 12: "stress"},
    )

    def add(ms: int, tid: int, name: str, **values: int) -> None:
        trace.event(0, (10_000 + ms) * _MS, tid, f"mm_vmscan_{name}", values)

    add(0, 42, "kswapd_wake")
    add(1, 42, "lru_shrink_inactive", nr_scanned=600, nr_reclaimed=150)
    add(2, 42, "write_folio", pfn=1, reclaim_flags=9)
    add(3, 42, "write_folio", pfn=2, reclaim_flags=9)
    add(4, 11, "direct_reclaim_begin")
    add(5, 42, "lru_shrink_inactive", nr_scanned=400, nr_reclaimed=100)
    add(6, 11, "lru_shrink_inactive", nr_scanned=100, nr_reclaimed=10)
    add(7, 11, "direct_reclaim_end")
    add(8, 11, "lru_shrink_inactive", nr_scanned=7, nr_reclaimed=0)
    add(9, 12, "memcg_reclaim_begin")
    add(10, 12, "lru_shrink_inactive", nr_scanned=50, nr_reclaimed=50)
    add(11, 12, "write_folio", pfn=3, reclaim_flags=10)
    add(12, 12, "memcg_reclaim_end")
    add(2000, 42, "kswapd_wake")
    trace.write(folder / "trace.dat")
    (folder / "vmstat.before").write_text("".join(f"{name} 0\n" for name in _GAINED))
    (folder / "vmstat.after").write_text("".join(f"{n} {v}\n" for n, v in _GAINED.items()))


def _row(
    who: str,
    scanned: int,
    freed: int,
    ratio: float,
    anon: int,
    file: int,
    counted: tuple[int | None, int | None],
) -> Expected:
    return {
        "reclaimer": who,
        "scanned_count": scanned,
        "reclaimed_count": freed,
        "efficiency_ratio": ratio,
        "direct_scan_ratio": 1 / 11,
        "anon_writes_count": anon,
        "file_writes_count": file,
        "vmstat_scanned_count": counted[0],
        "vmstat_reclaimed_count": counted[1],
        "vmstat_direct_scan_ratio": 1 / 11,
    }


def _line(name: str, value: float, events: float | None) -> Expected:
    return {"name": name, "value": value, "events": events}


_LINES = (
    _line("Minor Faults", 900.0, None),
    _line("Major Faults", 100.0, None),
    _line("Swap Ins", 2.0, None),
    _line("Swap Outs", 5.0, None),
    _line("Swap total", 7.0, None),
    _line("Direct pages scanned", 100.0, 100.0),
    _line("Kswapd pages scanned", 1000.0, 1000.0),
    _line("Kswapd pages reclaimed", 250.0, 250.0),
    _line("Direct pages reclaimed", 10.0, 10.0),
    _line("Kswapd efficiency", 25.0, 25.0),
    _line("Kswapd velocity", 500.0, 500.0),
    _line("Direct efficiency", 10.0, 10.0),
    _line("Direct velocity", 50.0, 50.0),
    _line("Percentage direct scans", 100 / 11, 100 / 11),
    _line("Page writes by reclaim", 3.0, 3.0),
    _line("Page writes file", 1.0, 1.0),
    _line("Page writes anon", 2.0, 2.0),
    _line("Slabs scanned", 64.0, None),
)

CHECKS = [
    Check(
        query="reclaim_efficiency",
        ordered=True,
        rows=[
            _row("kswapd", 1000, 250, 0.25, 2, 0, (1000, 250)),
            _row("direct", 100, 10, 0.1, 0, 0, (100, 10)),
            _row("memcg", 50, 50, 1.0, 0, 1, (None, None)),
            _row("other", 7, 0, 0.0, 0, 0, (None, None)),
        ],
    ),
    Check(
        query="mmtests_vmstat",
        ordered=True,
        rows=_LINES,
        keep=lambda row: row["name"] != "Allocation stalls",
    ),
]
