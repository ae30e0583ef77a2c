# SPDX-License-Identifier: Apache-2.0
"""Pages written by reclaim: zones that overlap, a pfn in none, and folios of several pages.

By hand. Zones: node 0 DMA pfn 1 to 4095, node 0 DMA32 4096 to 5095, node 1 Normal 5000 to 5999;
node 1 Movable is empty and has no start_pfn.
  pfn   zone                        kind  task
   100  node 0 DMA                  anon  kswapd0 (tid 42)
  4096  node 0 DMA32 (its first)    file  tid 11 inside direct reclaim
  5095  ambiguous: DMA32 or Normal  anon  tid 12 inside memcg reclaim
  5096  node 1 Normal               anon  tid 12, after that: other
  5999  node 1 Normal (its last)    file  kswapd0
  6000  unknown                     anon  tid 13, while tid 11 is in direct reclaim: other
   200  node 0 DMA                  anon  tid 11, in direct reclaim again: this span began at the
                                          very time at which the one before ended
  7 events; nr_vmscan_write went from 100 to 114 = 14 pages: each event stands for 2 pages.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_ANON, _FILE = 0x9, 0xA
_NAMES = tuple(
    f"mm_vmscan_{kind}_reclaim_{end}" for kind in ("direct", "memcg") for end in ("begin", "end")
)


def make(folder: Path) -> None:
    trace = Trace(
        formats("mm_vmscan_write_folio", *_NAMES),
        cmdlines={42: "kswapd0", 11: "dd", 12: "stress", 13: "madvise"},
    )
    times = iter(range(10_000_000_000, 11_000_000_000, 1_000_000))

    def write(tid: int, pfn: int, flags: int) -> None:
        values = {"pfn": pfn, "reclaim_flags": flags}
        trace.event(0, next(times), tid, "mm_vmscan_write_folio", values)

    def span(tid: int, *names: str) -> None:
        ts = next(times)
        for name in names:
            trace.event(0, ts, tid, f"mm_vmscan_{name}")

    write(42, 100, _ANON)
    span(11, "direct_reclaim_begin")
    write(11, 4096, _FILE)
    span(12, "memcg_reclaim_begin")
    write(12, 5095, _ANON)
    span(12, "memcg_reclaim_end")
    write(12, 5096, _ANON)
    write(42, 5999, _FILE)
    write(13, 6000, _ANON)
    span(11, "direct_reclaim_end", "direct_reclaim_begin")
    write(11, 200, _ANON)
    span(11, "direct_reclaim_end")
    trace.write(folder / "trace.dat")
    zones = [(0, "DMA", 1, 4095), (0, "DMA32", 4096, 1000), (1, "Normal", 5000, 1000)]
    text = "".join(
        f"Node {node}, zone {zone:>8}\n  pages free     7\n        spanned  {spanned}\n"
        f"        present  {spanned}\n        managed  {spanned}\n  start_pfn:           {start}\n"
        for node, zone, start, spanned in zones
    )
    text += "Node 1, zone  Movable\n  pages free     0\n        spanned  0\n        present  0\n"
    (folder / "zoneinfo").write_text(text)
    (folder / "vmstat.before").write_text("nr_vmscan_write 100\npswpout 50\n")
    (folder / "vmstat.after").write_text("nr_vmscan_write 114\npswpout 60\n")


def _row(node: int | None, zone: str, kind: str, who: str) -> dict[str, int | str | None]:
    return {
        "node": node,
        "zone": zone,
        "kind": kind,
        "reclaimer": who,
        "events_count": 1,
        "pages_count": 2,
    }


CHECKS = [
    Check(
        query="reclaim_writes",
        rows=[
            _row(0, "DMA", "anon", "kswapd"),
            _row(0, "DMA", "anon", "direct"),
            _row(0, "DMA32", "file", "direct"),
            _row(None, "ambiguous", "anon", "memcg"),
            _row(1, "Normal", "anon", "other"),
            _row(1, "Normal", "file", "kswapd"),
            _row(None, "unknown", "anon", "other"),
        ],
        warning_words=("nr_vmscan_write",),
    ),
]
