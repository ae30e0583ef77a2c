# SPDX-License-Identifier: Apache-2.0
"""MGLRU: /proc/vmstat counts the pages that were isolated, not those that were looked at.

By hand, in pages; the trace is 2 s long. A batch of more than 32 asked for is MGLRU's.
  kswapd0 (tid 42): looks at 100, isolates 64 of them; frees 40, and 10 more of those that it
    tries again: mm_vmscan_lru_shrink_inactive says 100 both times. Then looks at 50 and
    isolates none.
  dd (tid 11) in direct reclaim: looks at 30, isolates 20, frees 5
  scanned: kswapd 64, direct 20, as vmstat has them; 100 + 100 + 30 = 230 by
    mm_vmscan_lru_shrink_inactive. Efficiency 50 / 64 and 5 / 20, direct scans 20 / 84.
  "classic" is the same with batches of 32: there mm_vmscan_lru_shrink_inactive counts, 200 and 30.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_GAINED = {
    "pgscan_kswapd": 64,
    "pgsteal_kswapd": 50,
    "pgscan_direct": 20,
    "pgsteal_direct": 5,
}


def _run(folder: Path, asked: int) -> None:
    folder.mkdir(exist_ok=True)
    spans = [f"mm_vmscan_direct_reclaim_{end}" for end in ("begin", "end")]
    names = ("lru_isolate", "lru_shrink_inactive", "kswapd_wake")
    known = formats(*spans, *(f"mm_vmscan_{name}" for name in names))
    trace = Trace(known, cmdlines={42: "kswapd0", 11: "dd"})

    def add(ms: int, tid: int, name: str, **values: int) -> None:
        trace.event(0, (10_000 + ms) * _MS, tid, f"mm_vmscan_{name}", values)

    def scan(ms: int, tid: int, looked_at: int, taken: int, *freed: int) -> None:
        values = {"nr_requested": asked, "nr_scanned": looked_at, "nr_taken": taken, "lru": 0}
        add(ms, tid, "lru_isolate", **values)
        for place, pages in enumerate(freed, 1):
            add(ms + place, tid, "lru_shrink_inactive", nr_scanned=looked_at, nr_reclaimed=pages)

    add(0, 42, "kswapd_wake", nid=0)
    scan(1, 42, 100, 64, 40, 10)
    scan(5, 42, 50, 0)
    add(10, 11, "direct_reclaim_begin")
    scan(11, 11, 30, 20, 5)
    add(15, 11, "direct_reclaim_end")
    add(2000, 42, "kswapd_wake", nid=0)
    trace.write(folder / "trace.dat")
    (folder / "vmstat.before").write_text("".join(f"{name} 0\n" for name in _GAINED))
    (folder / "vmstat.after").write_text("".join(f"{n} {v}\n" for n, v in _GAINED.items()))


def make(folder: Path) -> None:
    _run(folder, 4096)
    _run(folder / "classic", 32)


def _row(who: str, scanned: int, freed: int, basis: str, counted: int) -> dict[str, object]:
    return {
        "reclaimer": who,
        "scanned_count": scanned,
        "reclaimed_count": freed,
        "efficiency_ratio": freed / scanned,
        "scan_basis": basis,
        "vmstat_scanned_count": counted,
    }


def _of_two(row: dict[str, object]) -> bool:
    return row["reclaimer"] in ("kswapd", "direct")


CHECKS = [
    Check(
        query="reclaim_efficiency",
        ordered=True,
        keep=_of_two,
        rows=[_row("kswapd", 64, 50, "isolate", 64), _row("direct", 20, 5, "isolate", 20)],
        warning_words=("84 that were isolated", "adds up to 230"),
    ),
    Check(
        query="reclaim_efficiency",
        folder="classic",
        ordered=True,
        keep=_of_two,
        rows=[_row("kswapd", 200, 50, "shrink", 64), _row("direct", 30, 5, "shrink", 20)],
    ),
    Check(
        query="mmtests_vmstat",
        keep=lambda row: str(row["name"]).endswith("scanned"),
        rows=[
            {"name": "Direct pages scanned", "value": 20.0, "events": 20.0},
            {"name": "Kswapd pages scanned", "value": 64.0, "events": 64.0},
        ],
    ),
    Check(
        sql="SELECT arg_scanned_count, arg_reclaimed_count FROM tl_kswapd",
        rows=[{"arg_scanned_count": 64, "arg_reclaimed_count": 50}],
    ),
]
