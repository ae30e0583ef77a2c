# SPDX-License-Identifier: Apache-2.0
"""Reclaim of one node, as vm.zone_reclaim_mode asks for: a stall with a cause of its own.

By hand, ms from 10 s: dd, tid 1, reclaims node 1 from 100 to 150 ms, while kswapd is awake, which
is not why it waits. In direct reclaim from 200 to 260 ms it is (kswapd is awake all the time).
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.wait_events import DIRECT, MS, Waits, at

_NODE = ("mm_vmscan_node_reclaim_begin", "mm_vmscan_node_reclaim_end")


def make(folder: Path) -> None:
    names = (*DIRECT, *_NODE, "mm_vmscan_kswapd_wake")
    waits = Waits(*names, cmdlines={1: "dd", 42: "kswapd0"})
    waits.add(0, 42, "mm_vmscan_kswapd_wake")
    waits.add(100, 1, _NODE[0], nid=1, order=2)
    waits.add(150, 1, _NODE[1], nr_reclaimed=32)
    waits.span(200, 260, 1, DIRECT)
    waits.write(folder)


CHECKS = [
    Check(
        query="stalls",
        ordered=True,
        rows=[
            {"ts": at(100), "dur": 50 * MS, "kind": "direct reclaim", "what": "node_reclaim"}
            | {"cause": "zone reclaim mode"},
            {"ts": at(200), "dur": 60 * MS, "kind": "direct reclaim", "what": "direct_reclaim"}
            | {"cause": "kswapd behind"},
        ],
    ),
    Check(
        query="stalls_evidence",
        keep=lambda row: row["evidence"] == "mm_vmscan_node_reclaim_begin",
        rows=[{"stall_ts": at(100), "before_ns": 0, "detail": "nid=1 order=2 gfp_flags=0"}],
    ),
]
