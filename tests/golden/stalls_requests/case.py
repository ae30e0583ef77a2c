# SPDX-License-Identifier: Apache-2.0
"""Waits for requests that end in parts or are issued again, and for the log of XFS.

By hand, ms from 10 s; sched_switch watches tids 1 and 4, not tids 2 and 3.
  dd, tid 1, reads 16 sectors: issued at 0, the first half done at 10, the rest at 25. It sleeps
    from 1 to 30: 24 ms until the last part came are for the request, no event explains the other 5.
  db, tid 2, has a write queued at 100, issued at 101, given back, issued again at 110 and done at
    130: one wait of 30 ms, of which 29 after the first issue: device latency
  At 140 it has another one at the same place, done at 150: a wait of its own, 10 ms, never queued
  cp, tid 3: queued at 200, issued at 290, done at 300: 90 of 100 ms in the queue
  xfs, tid 4: xfs_log_cil_wait at 400, asleep from 401 to 450: 49 ms. tid 3 has one at 420, of which
    nothing tells the end.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.wait_events import MS, Waits, at, device


def make(folder: Path) -> None:
    names = ("block_rq_insert", "block_rq_issue", "block_rq_complete", "sched_switch")
    waits = Waits(*names, "xfs_log_cil_wait", cmdlines={1: "dd", 2: "db", 3: "cp", 4: "xfs"})

    def rq(ms: int, tid: int, step: str, sector: int, sectors: int, rwbs: str) -> None:
        values = {"dev": device(8, 0), "sector": sector, "nr_sector": sectors}
        waits.add(ms, tid, f"block_rq_{step}", rwbs=rwbs, **values)

    rq(0, 1, "issue", 64, 16, "R")
    waits.sleep(1, 30, 1)
    rq(10, 0, "complete", 64, 8, "R")
    rq(25, 0, "complete", 72, 8, "R")
    rq(100, 2, "insert", 200, 8, "WS")
    rq(101, 2, "issue", 200, 8, "WS")
    rq(110, 9, "issue", 200, 8, "WS")
    rq(130, 0, "complete", 200, 8, "WS")
    rq(140, 2, "issue", 200, 8, "WS")
    rq(150, 0, "complete", 200, 8, "WS")
    rq(200, 3, "insert", 300, 8, "WS")
    rq(290, 3, "issue", 300, 8, "WS")
    rq(300, 0, "complete", 300, 8, "WS")
    waits.add(400, 4, "xfs_log_cil_wait", dev=device(8, 0))
    waits.sleep(401, 450, 4)
    waits.add(420, 3, "xfs_log_cil_wait", dev=device(8, 0))
    waits.write(folder)


def _row(
    ms: int, dur: int | None, tid: int, kind: str, cause: str
) -> dict[str, int | float | str | None]:
    length = None if dur is None else dur * MS
    return {"ts": at(ms), "dur": length, "tid": tid, "kind": kind, "cause": cause, "bdi": "8:0"}


CHECKS = [
    Check(
        query="stalls",
        ordered=True,
        rows=[
            _row(1, 5, 1, "blocked outside throttling", "unknown") | {"bdi": None},
            _row(1, 24, 1, "block queue", "device latency"),
            _row(100, 30, 2, "block queue", "device latency"),
            _row(140, 10, 2, "block queue", "device latency"),
            _row(200, 100, 3, "block queue", "queued behind others"),
            _row(401, 49, 4, "journal", "journal commit"),
            _row(420, None, 3, "journal", "journal commit"),
        ],
    ),
    Check(
        query="block_latency",
        keep=lambda row: row["op"] == "write",
        rows=[{"count": 3, "open_count": 1, "latency_max_ns": 20 * MS}],
    ),
    Check(
        query="stalls_evidence",
        options=("--tid", "3"),
        keep=lambda row: row["evidence"] == "xfs_log_cil_wait",
        rows=[{"stall_ts": at(420), "detail": "nothing tells its end"}],
    ),
]
