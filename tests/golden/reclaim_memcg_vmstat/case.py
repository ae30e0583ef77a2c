# SPDX-License-Identifier: Apache-2.0
"""Reclaim of memory cgroups in the direct counters of /proc/vmstat: from 6.19 on, not before.

By hand, in each run: kswapd0 (tid 42) scans 300 pages and frees 200; dd (tid 11) scans 100 for
itself and frees 40; stress (tid 12) scans 50 for its memory cgroup and frees 30.
  6.18 counts 100 and 40 as direct: 40 %, 100 / (100 + 300) = 25 % direct scans
  6.19 counts 150 and 70: 70 / 150, 150 / (150 + 300) = 1/3 direct scans
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_DIRECT = {"6.18": (100, 40), "6.19": (150, 70)}


def make(folder: Path) -> None:
    for release, (scanned, freed) in _DIRECT.items():
        (folder / release).mkdir()
        _run(folder / release, release)
        gained = {"pgscan_kswapd": 300, "pgsteal_kswapd": 200}
        gained |= {"pgscan_direct": scanned, "pgsteal_direct": freed}
        for name, after in (("before", 0), ("after", 1)):
            text = "".join(f"{key} {after * value}\n" for key, value in gained.items())
            (folder / release / f"vmstat.{name}").write_text(text)


def _run(folder: Path, release: str) -> None:
    spans = [f"mm_vmscan_{k}_reclaim_{e}" for k in ("direct", "memcg") for e in ("begin", "end")]
    trace = Trace(
        formats(*spans, "mm_vmscan_lru_shrink_inactive", "mm_vmscan_kswapd_wake"),
        cmdlines={42: "kswapd0", 11: "dd", 12: "stress"},
        uname=f"Linux guest {release}.0-amd64 x86_64",
    )

    def add(ms: int, tid: int, name: str, **values: int) -> None:
        trace.event(0, (10_000 + ms) * _MS, tid, f"mm_vmscan_{name}", values)

    add(0, 42, "kswapd_wake")
    add(1, 42, "lru_shrink_inactive", nr_scanned=300, nr_reclaimed=200)
    add(2, 11, "direct_reclaim_begin")
    add(3, 11, "lru_shrink_inactive", nr_scanned=100, nr_reclaimed=40)
    add(4, 11, "direct_reclaim_end")
    add(5, 12, "memcg_reclaim_begin")
    add(6, 12, "lru_shrink_inactive", nr_scanned=50, nr_reclaimed=30)
    add(7, 12, "memcg_reclaim_end")
    add(1000, 42, "kswapd_wake")
    trace.write(folder / "trace.dat")


def _table(release: str) -> Check:
    """Events and counters mean the same."""
    scanned, freed = _DIRECT[release]
    lines = {
        "Direct pages scanned": float(scanned),
        "Direct pages reclaimed": float(freed),
        "Direct efficiency": 100 * freed / scanned,
        "Percentage direct scans": 100 * scanned / (scanned + 300),
        "Kswapd pages scanned": 300.0,
    }
    return Check(
        query="mmtests_vmstat",
        folder=release,
        rows=[{"name": name, "value": value, "events": value} for name, value in lines.items()],
        keep=lambda row: row["name"] in lines,
    )


def _agrees(release: str) -> Check:
    return Check(
        query="check",
        folder=release,
        rows=[
            {"what": what, "trace_value": float(value), "other_value": float(value)}
            for what, value in zip(
                ("pgscan_direct", "pgsteal_direct"), _DIRECT[release], strict=True
            )
        ],
        keep=lambda row: str(row["what"]).endswith("_direct"),
    )


CHECKS = [*map(_table, _DIRECT), *map(_agrees, _DIRECT)]
