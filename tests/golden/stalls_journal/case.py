# SPDX-License-Identifier: Apache-2.0
"""Waits for journals, fsync and requests where sched_switch was not recorded.

By hand, ms from 10 s.
  tid 1, fsync on 8:0   0 to 100; the journal of 8:0 commits 10 to 90, 0.8 of it: journal commit
  tid 2, fsync on 8:16  0 to 100; that of 8:0 does not count; the device 8:16 has a request of tid
                        9, a kworker, 20 to 80, 0.6 of it: device latency
  tid 3, fsync on 8:32  0 to 100; no commit of 8:32 is recorded, and requests of two other devices:
                        unknown
  tid 4, log grant      200 to 230: journal full
  tid 5, lock_buffer    30 ms ending at 330 on 8:0, commit 310 to 340, 20 of 30: journal commit
  tid 6, sync()         400 to 500, nothing happens: unknown
  tid 7, write()        600 to 650 with no device: unknown; 700 to 700.5 is too short to be a wait
  tid 8, own read       inserted 800, issued 830, complete 850: queued 30 of 50, behind others; then
                        one issued 840, complete 870, which owns only 850 to 870: device latency;
                        a readahead and a write that nobody waits for are no waits
  tid 10, folio wait    at 900: nothing tells when it ended; no time, unknown
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import COMMIT, EXT4_SYNC, FSYNC, GRANT, MS, SYNC, WRITE, Waits, at, device

_COMMS = {1: "a", 2: "b", 3: "c", 4: "d", 5: "e", 6: "f", 7: "g", 8: "h", 10: "j"}


def make(folder: Path) -> None:
    names = (*FSYNC, *EXT4_SYNC, *COMMIT, *GRANT, *SYNC, *WRITE)
    block = ("block_rq_insert", "block_rq_issue", "block_rq_complete")
    rest = ("jbd2_lock_buffer_stall", "folio_wait_writeback")
    comms = {**_COMMS, 9: "kworker/u8:2", 11: "jbd2/sda-8"}
    waits = Waits(*names, *block, *rest, cmdlines=comms)
    for tid, minor in ((1, 0), (2, 16), (3, 32)):
        waits.span(0, 100, tid, FSYNC)
        waits.span(0, 100, tid, EXT4_SYNC, dev=device(8, minor))
    waits.span(10, 90, 11, COMMIT, dev=device(8, 0))
    waits.request(9, 64, issue=20, complete=80, dev=(8, 16))
    waits.span(200, 230, 4, GRANT, dev=device(8, 48))
    waits.span(310, 340, 11, COMMIT, dev=device(8, 0))
    waits.add(330, 5, "jbd2_lock_buffer_stall", dev=device(8, 0), stall_ms=30)
    waits.span(400, 500, 6, SYNC)
    waits.span(600, 650, 7, WRITE)
    waits.span(700, 700.5, 7, WRITE)
    waits.request(8, 1000, insert=800, issue=830, complete=850, rwbs="R")
    waits.request(8, 2000, issue=840, complete=870, rwbs="RM")
    waits.request(8, 3000, issue=880, complete=890, rwbs="RA")
    waits.request(8, 4000, issue=880, complete=890, rwbs="W")
    waits.add(900, 10, "folio_wait_writeback", name="8:0", ino=13, index=2)
    waits.add(950, 9, "sys_enter_write")
    waits.add(950.1, 9, "sys_exit_write")
    waits.write(folder)


def _row(ms: float, dur: int | None, tid: int, kind: str, cause: str, bdi: str | None) -> Expected:
    time = None if dur is None else dur * MS
    row = {"ts": at(ms), "dur": time, "tid": tid, "comm": _COMMS[tid], "kind": kind}
    return row | {"cause": cause, "bdi": bdi, "span_ns": time}


CHECKS = [
    Check(
        query="stalls",
        ordered=True,
        rows=[
            _row(0, 100, 1, "fsync", "journal commit", "8:0"),
            _row(0, 100, 2, "fsync", "device latency", "8:16"),
            _row(0, 100, 3, "fsync", "unknown", "8:32"),
            _row(200, 30, 4, "journal", "journal full", "8:48"),
            _row(300, 30, 5, "journal", "journal commit", "8:0"),
            _row(400, 100, 6, "sync", "unknown", None),
            _row(600, 50, 7, "write", "unknown", None),
            _row(800, 50, 8, "block queue", "queued behind others", "8:0"),
            _row(850, 20, 8, "block queue", "device latency", "8:0"),
            _row(900, None, 10, "folio wait", "unknown", "8:0"),
        ],
    ),
    Check(
        query="stalls",
        keep=lambda row: row["tid"] in (1, 2, 3, 5),
        rows=[
            {"tid": 1, "journal_ratio": 0.8, "device_ratio": 0.0},
            {"tid": 2, "journal_ratio": None, "device_ratio": 0.6},
            {"tid": 3, "journal_ratio": None, "device_ratio": None},
            {"tid": 5, "journal_ratio": 20 / 30, "device_ratio": 0.0},
        ],
    ),
    Check(
        query="stalls_by_task",
        options=("--tid", "10"),
        rows=[{"stalls_count": 1, "total_ns": None, "max_ns": None, "unmeasured_count": 1}],
    ),
    Check(
        query="stalls_evidence",
        options=("--tid", "8"),
        keep=lambda row: row["evidence"] == "block_rq R",
        rows=[{"detail": f"queued for {30 * MS} ns, in the device for {20 * MS} ns"}],
    ),
]
