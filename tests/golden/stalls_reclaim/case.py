# SPDX-License-Identifier: Apache-2.0
"""Reclaim and its throttling, with each cause.

By hand, ms from 10 s. kswapd of node 0 is awake from 100 to 200 and from 300 to the end; nothing is
known of it before 100.
  tid 1, direct reclaim   50 to  60   before the first event of kswapd: unknown
  tid 1                  120 to 140   awake throughout: kswapd behind, share 1
  tid 1                  190 to 210   awake for 10 of 20: one half is enough: kswapd behind
  tid 1                  212 to 216   after it slept at 200: kswapd asleep, share 0
  tid 2, memcg reclaim   120 to 125   memcg limit; tid 1 in reclaim at the same time is another task
  tid 1, direct reclaim  400 to 450, in it reclaim throttles that end at
         410 after 4 (no progress), 420 after 4 (congested), 440 after 20 (isolated): each owns its
         time, and 50 - 28 = 22 stay with the reclaim
  tid 9, kswapd0: throttles of 100 ending at 600 (writeback), and at 700 of reason 3, two at once:
         unknown
  tid 3: congestion_wait of 12 ending at 800, wait_iff_congested of 8 ending at 900: unknown why
         and one of 0 ending at 950, which is no wait
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import DIRECT, MEMCG, MS, Waits, at


def make(folder: Path) -> None:
    delays = ("writeback_congestion_wait", "writeback_wait_iff_congested")
    kswapd = ("mm_vmscan_kswapd_wake", "mm_vmscan_kswapd_sleep")
    comms = {1: "dd", 2: "stress", 3: "cp", 9: "kswapd0"}
    waits = Waits(*DIRECT, *MEMCG, *delays, *kswapd, "mm_vmscan_throttled", cmdlines=comms)
    waits.span(50, 60, 1, DIRECT)
    waits.add(100, 9, kswapd[0], nid=0)
    for start, end in ((120, 140), (190, 210)):
        waits.span(start, end, 1, DIRECT)
    waits.span(120, 125, 2, MEMCG)
    waits.add(150, 9, kswapd[0], nid=0)
    waits.add(200, 9, kswapd[1], nid=0)
    waits.span(212, 216, 1, DIRECT)
    waits.add(300, 9, kswapd[0], nid=0)
    waits.span(400, 450, 1, DIRECT)
    for ms, tid, delay, reason in (
        (410, 1, 4, 4),
        (420, 1, 4, 8),
        (440, 1, 20, 2),
        (600, 9, 100, 1),
        (700, 9, 100, 3),
    ):
        waits.add(ms, tid, "mm_vmscan_throttled", usec_delayed=delay * 1000, reason=reason)
    for ms, name, delay in ((800, delays[0], 12), (900, delays[1], 8), (950, delays[1], 0)):
        waits.add(ms, 3, name, usec_timeout=100_000, usec_delayed=delay * 1000)
    waits.write(folder)


def _row(
    ms: float, dur: float, tid: int, kind: str, cause: str, span: float, kswapd: float | None
) -> Expected:
    comm = {1: "dd", 2: "stress", 3: "cp", 9: "kswapd0"}[tid]
    row = {"ts": at(ms), "dur": round(dur * MS), "tid": tid, "comm": comm, "kind": kind}
    return row | {"cause": cause, "span_ns": round(span * MS), "kswapd_ratio": kswapd}


_DIRECT, _THROTTLE = "direct reclaim", "reclaim throttle"
CHECKS = [
    Check(
        query="stalls",
        ordered=True,
        rows=[
            _row(50, 10, 1, _DIRECT, "unknown", 10, None),
            _row(120, 20, 1, _DIRECT, "kswapd behind", 20, 1.0),
            _row(120, 5, 2, "memcg reclaim", "memcg limit", 5, None),
            _row(190, 20, 1, _DIRECT, "kswapd behind", 20, 0.5),
            _row(212, 4, 1, _DIRECT, "kswapd asleep", 4, 0.0),
            _row(400, 22, 1, _DIRECT, "kswapd behind", 50, 1.0),
            _row(406, 4, 1, _THROTTLE, "reclaim without progress", 4, None),
            _row(416, 4, 1, _THROTTLE, "writeback behind reclaim", 4, None),
            _row(420, 20, 1, _THROTTLE, "too many reclaimers", 20, None),
            _row(500, 100, 9, _THROTTLE, "writeback behind reclaim", 100, None),
            _row(600, 100, 9, _THROTTLE, "unknown", 100, None),
            _row(788, 12, 3, _THROTTLE, "unknown", 12, None),
            _row(892, 8, 3, _THROTTLE, "unknown", 8, None),
        ],
    ),
    Check(
        query="stalls_by_task",
        keep=lambda row: row["tid"] == 1 and row["kind"] == _DIRECT,
        ordered=True,
        rows=[
            {"cause": "kswapd behind", "stalls_count": 3, "total_ns": 62 * MS, "p99_ns": 22 * MS},
            {"cause": "unknown", "stalls_count": 1, "total_ns": 10 * MS, "p99_ns": 10 * MS},
            {"cause": "kswapd asleep", "stalls_count": 1, "total_ns": 4 * MS, "p99_ns": 4 * MS},
        ],
    ),
    Check(
        query="stalls_evidence",
        keep=lambda row: row["stall_ts"] == at(212) and row["evidence"] == "kswapd",
        rows=[{"before_ns": 12 * MS, "detail": "asleep since then"}],
    ),
]
