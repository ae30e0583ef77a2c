# SPDX-License-Identifier: Apache-2.0
"""Waits inside waits: the inner one owns its time, and a task never waits longer than it lives.

By hand, ms from 10 s; sched_switch watched the task, so its sleeps (state D) are known.
fio, tid 1, writes: write() from 0 to 600, in it
  direct reclaim   50 to 150, in it a sleep 100 to 120 that mm_vmscan_throttled reports at 121 with
                   20 ms: 20 belong to the throttle, 80 stay with the reclaim
  pause of 100 ms at 200, slept from 201 to 305: throttle 104
  a sleep 400 to 450 that no event explains: write 50
  a sleep in state S, 460 to 480: not uninterruptible, no wait
  the rest of the call is copying and being preempted: no wait
then fsync() from 700 to 1000, whose ext4 part is 701 to 999 on 8:0, in it
  a write of its own, inserted and issued at 710, complete at 760; asleep from 720 to 765: 40 belong
    to the request (720 to 760), and the 5 after it to the fsync
  folio_wait_writeback at 800, asleep from 801 to 900: folio wait 99
  300 - 40 - 99 = 161 stay with the fsync
  The journal of 8:0 commits from 860 to 1000: of the 161 it covers 900 to 1000: 100, the greater
  part. The device was busy 710 to 760, of which the fsync's own time has 710 to 720: 10.
sum: 20 + 80 + 104 + 50 + 40 + 99 + 161 = 554 of the 1000 ms that pass
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import COMMIT, DIRECT, EXT4_SYNC, FSYNC, MS, WRITE, Waits, at, device


def make(folder: Path) -> None:
    names = (*WRITE, *FSYNC, *DIRECT, *EXT4_SYNC, *COMMIT, "sched_switch", "balance_dirty_pages")
    block = ("block_rq_insert", "block_rq_issue", "block_rq_complete")
    comms = {1: "fio", 9: "jbd2/sda-8"}
    waits = Waits(*names, *block, "mm_vmscan_throttled", "folio_wait_writeback", cmdlines=comms)
    waits.span(0, 600, 1, WRITE)
    waits.span(50, 150, 1, DIRECT)
    waits.sleep(100, 120, 1)
    waits.add(121, 1, "mm_vmscan_throttled", usec_delayed=20_000, reason=1)
    values = {"limit": 1000, "setpoint": 900, "dirty": 1000, "dirty_ratelimit": 1000}
    values |= {"pause": 100, "period": 100, "cgroup_ino": 1, "dirtied": 32}
    waits.add(200, 1, "balance_dirty_pages", bdi="8:0", **values)
    waits.sleep(201, 305, 1)
    waits.sleep(400, 450, 1)
    waits.sleep(460, 480, 1, state=1)
    waits.span(700, 1000, 1, FSYNC)
    waits.span(701, 999, 1, EXT4_SYNC, dev=device(8, 0))
    waits.request(1, 64, insert=710, issue=710, complete=760)
    waits.sleep(720, 765, 1)
    waits.add(800, 1, "folio_wait_writeback", name="8:0", ino=13, index=2)
    waits.sleep(801, 900, 1)
    waits.span(860, 1000, 9, COMMIT, dev=device(8, 0))
    waits.write(folder)


def _row(ms: float, dur: int, span: int, kind: str, cause: str, what: str, basis: str) -> Expected:
    row = {"ts": at(ms), "dur": dur * MS, "span_ns": span * MS, "kind": kind, "cause": cause}
    return row | {"what": what, "basis": basis, "cut": None, "tid": 1, "comm": "fio"}


_FOLIO = "folio_wait_writeback"
CHECKS = [
    Check(
        query="stalls",
        ordered=True,
        rows=[
            _row(50, 80, 100, "direct reclaim", "unknown", "direct_reclaim", "events"),
            _row(
                100,
                20,
                20,
                "reclaim throttle",
                "writeback behind reclaim",
                "mm_vmscan_throttled",
                "sched",
            ),
            _row(201, 104, 104, "throttle", "over the limit", "balance_dirty_pages", "sched"),
            _row(400, 50, 50, "write", "unknown", "write", "sched"),
            _row(700, 161, 300, "fsync", "journal commit", "fsync", "events"),
            _row(720, 40, 40, "block queue", "device latency", "block_rq WS", "sched"),
            _row(801, 99, 99, "folio wait", "unknown", _FOLIO, "sched"),
        ],
    ),
    Check(
        query="stalls",
        keep=lambda row: row["kind"] == "fsync",
        rows=[{"bdi": "8:0", "journal_ratio": 100 / 161, "device_ratio": 10 / 161}],
    ),
    Check(
        query="stalls_by_task",
        keep=lambda row: row["kind"] in ("write", "fsync"),
        rows=[{"kind": "fsync", "total_ns": 161 * MS}, {"kind": "write", "total_ns": 50 * MS}],
    ),
]
