# SPDX-License-Identifier: Apache-2.0
"""Tracks of kswapd, of direct reclaim and of the dirty pages that they met.

By hand, ms from 10 s; the trace goes from 100 to 500.
  kswapd0, tid 9, node 0: woken at 100 for order 0 and at 150 for order 3, asleep at 200: one cycle;
    at 120 it scans 32 pages, 8 are freed, 5 were dirty and 2 immediate
  woken at 400 and not asleep in the trace: a cycle to 500, where another event ends the trace
  kswapd1, tid 8, node 1: asleep at 110, so it was awake from the trace's begin at 100
  dd, tid 1, in direct reclaim from 300 to 320: it scans 64 pages at 310, 16 are freed, 7 were dirty
  dirty pages met on node 0: 5 at 120, 12 at 310; immediate: 2 at 120
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import DIRECT, MS, Waits, at

_WAKE, _SLEEP = "mm_vmscan_kswapd_wake", "mm_vmscan_kswapd_sleep"


def make(folder: Path) -> None:
    scan = "mm_vmscan_lru_shrink_inactive"
    comms = {1: "dd", 8: "kswapd1", 9: "kswapd0"}
    waits = Waits(*DIRECT, _WAKE, _SLEEP, scan, cmdlines=comms)
    waits.add(100, 9, _WAKE, nid=0, order=0)
    waits.add(110, 8, _SLEEP, nid=1)
    waits.add(120, 9, scan, nid=0, nr_scanned=32, nr_reclaimed=8, nr_dirty=5, nr_immediate=2)
    waits.add(150, 9, _WAKE, nid=0, order=3)
    waits.add(200, 9, _SLEEP, nid=0)
    waits.span(300, 320, 1, DIRECT)
    waits.add(310, 1, scan, nid=0, nr_scanned=64, nr_reclaimed=16, nr_dirty=7)
    waits.add(400, 9, _WAKE, nid=0, order=0)
    waits.span(490, 500, 1, DIRECT)
    waits.write(folder)


def _cycle(ms: int, end: int, tid: int, wakes: int, cut: str | None) -> Expected:
    row: Expected = {"ts": at(ms), "end_ts": at(end), "tid": tid, "wakes_count": wakes, "cut": cut}
    return row


def _samples(track: str, *points: tuple[int, int]) -> list[Expected]:
    path = f"Writeback/Reclaim/{track} total"
    return [{"ts": at(ms), "track": path, "value": value, "unit": "pages"} for ms, value in points]


CHECKS = [
    Check(
        sql="SELECT ts, ts + dur AS end_ts, arg_tid AS tid, arg_wakes_count AS wakes_count,"
        " arg_cut AS cut, arg_node AS node, arg_order AS order_max,"
        " arg_scanned_count AS scanned_count, arg_reclaimed_count AS reclaimed_count"
        " FROM tl_kswapd ORDER BY ts, arg_node",
        ordered=True,
        rows=[
            _cycle(100, 200, 9, 2, None)
            | {"node": 0, "order_max": 3, "scanned_count": 32, "reclaimed_count": 8},
            _cycle(100, 110, 8, 0, "start")
            | {"node": 1, "order_max": None, "scanned_count": None, "reclaimed_count": None},
            _cycle(400, 500, 9, 1, "end")
            | {"node": 0, "order_max": 0, "scanned_count": None, "reclaimed_count": None},
        ],
    ),
    Check(
        sql="SELECT *, arg_scanned_count IS 32 AND arg_reclaimed_count IS 8 AS has_values"
        " FROM tl_kswapd ORDER BY ts, track",
        ordered=True,
        rows=[
            {"ts": at(ms), "dur": length * MS, "track": f"Writeback/Reclaim/kswapd node {node}"}
            | {"name": "awake", "has_values": int(length == 100 and ms == 100)}
            for ms, length, node in ((100, 100, 0), (100, 10, 1), (400, 100, 0))
        ],
    ),
    Check(
        sql="SELECT *, arg_scanned_count IS 64 AND arg_reclaimed_count IS 16 AS has_values"
        " FROM tl_direct_reclaim ORDER BY ts",
        ordered=True,
        rows=[
            {"ts": at(ms), "dur": length * MS, "track": "Writeback/Reclaim/direct reclaim"}
            | {"name": "dd", "has_values": int(ms == 300)}
            for ms, length in ((300, 20), (490, 10))
        ],
    ),
    Check(
        sql="SELECT * FROM tl_reclaim_dirty",
        rows=[
            *_samples("nr_dirty node 0", (120, 5), (310, 12)),
            *_samples("nr_immediate node 0", (120, 2)),
        ],
    ),
]
