# SPDX-License-Identifier: Apache-2.0
"""Events lost in the middle of everything: what is known stays right, the rest is not guessed.

By hand, 4 KiB pages, ms from 10 s; events are lost before those at 408, 704, 750, 900, 950 and
1000 ms: 6 gaps.
  dd, tid 11: a call loops; the event of its second loop, at 204 ms, is lost. The third still says
    408 ms: 1 call of 32 pages, slept 408 ms (the lost loop's sleep is part of it) and 100 ms.
  cp, tid 12: a call of 8 pages, then an event that has paused 204 without the events before it: the
    second call, of 16 pages; its 204 ms and its pause of 20 ms are the longest call. The lost
    sleep is in no sum: 12 + 20 ms.
  The times are whole jiffies of HZ = 250: half a jiffy = 2 ms is added to what is intended: dd
    408 + 102, cp 14 + 22, longest call 204 + 22 = 226 ms.
  Flusher: the end of its first chunk is lost: two items, 0 pages and 1 page, not 101.
  Requests: the end of the one at sector 100 is lost, and the place is issued again: 1 open, 1 done.
  write(): the return of the first call is lost: 1 call of 500 bytes.
  fsync: the return of the first one is lost: 1 call, from 960 to 990 ms.
  nr_dirtied and nr_written are counters and outlive it: 90 and 60 pages.
  reclaim: 3 events, nr_vmscan_write gained 5: they are not scaled to it, as some may be lost.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.wait_events import FSYNC, MS, WRITE, Waits, at, device

_NAMES = (
    "balance_dirty_pages",
    "global_dirty_state",
    "writeback_start",
    "writeback_written",
    "block_rq_issue",
    "block_rq_complete",
    "mm_vmscan_write_folio",
    *WRITE,
    *FSYNC,
)
_COMMS = {11: "dd", 12: "cp", 13: "db", 42: "kswapd0", 50: "kworker/u4:1"}
_GAPS = (408, 704, 750, 900, 950, 1000)


def make(folder: Path) -> None:
    waits = Waits(*_NAMES, cmdlines=_COMMS)

    def pause(ms: int, tid: int, rate: int, dirtied: int, paused: int, length: int) -> None:
        values = {"cgroup_ino": 1, "task_ratelimit": rate, "dirtied": dirtied, "paused": paused}
        values |= {"pause": length, "period": length}
        waits.add(ms, tid, "balance_dirty_pages", bdi="8:0", **values)

    def state(ms: int, dirtied: int, written: int) -> None:
        values = {"background_thresh": 500, "dirty_thresh": 1000, "dirty_limit": 1000}
        waits.add(ms, 50, "global_dirty_state", nr_dirtied=dirtied, nr_written=written, **values)

    def work(ms: int, step: str, pages: int) -> None:
        values = {"nr_pages": pages, "reason": 0, "for_background": 1, "cgroup_ino": 1}
        waits.add(ms, 50, f"writeback_{step}", name="8:0", **values)

    def rq(ms: int, step: str) -> None:
        values = {"dev": device(8, 0), "sector": 100, "nr_sector": 8}
        waits.add(ms, 50, f"block_rq_{step}", rwbs="W", **values)

    state(0, 0, 0)
    pause(0, 11, 0, 32, 0, 200)
    work(100, "start", 1000)
    rq(110, "issue")
    waits.add(120, 13, "sys_enter_write", fd=4)
    pause(408, 11, 400, 32, 408, 100)
    pause(500, 12, 400, 8, 0, 12)
    pause(704, 12, 400, 16, 204, 20)
    work(750, "start", 900)
    work(760, "written", 899)
    rq(770, "issue")
    rq(780, "complete")
    waits.add(800, 42, "mm_vmscan_write_folio", pfn=5, reclaim_flags=10)
    waits.add(900, 42, "mm_vmscan_write_folio", pfn=6, reclaim_flags=10)
    waits.add(910, 13, "sys_enter_write", fd=4)
    waits.add(920, 13, "sys_exit_write", ret=500)
    waits.add(930, 13, "sys_enter_fsync", fd=4)
    waits.add(950, 42, "mm_vmscan_write_folio", pfn=7, reclaim_flags=9)
    waits.span(960, 990, 13, FSYNC)
    state(1000, 90, 60)
    waits.write(folder, lost_before=_GAPS)
    (folder / "vmstat.before").write_text("nr_vmscan_write 0\n")
    (folder / "vmstat.after").write_text("nr_vmscan_write 5\n")


CHECKS = [
    Check(
        query="throttle_by_task",
        rows=[
            {"tid": 11, "calls_count": 1, "slept_total_ns": 510 * MS}
            | {"call_max_ns": 510 * MS, "dirtied_bytes": 32 * 4096},
            {"tid": 12, "calls_count": 2, "slept_total_ns": 36 * MS}
            | {"call_max_ns": 226 * MS, "dirtied_bytes": 24 * 4096},
        ],
        warning_words=("overran 6 times", "too small"),
    ),
    Check(
        query="throttle_windows",
        options=("--tid", "12"),
        rows=[
            {
                "throttled_ratio": 36 * MS / (1000 * MS + 1),
                "slept_max_ns": 22 * MS,
                "lost_gaps_count": 6,
            }
        ],
    ),
    Check(
        query="stalls",
        options=("--tid", "11"),
        ordered=True,
        rows=[
            {"ts": at(0), "dur": 408 * MS, "basis": "paused"},
            {"ts": at(408), "dur": 102 * MS, "basis": "intended"},
        ],
    ),
    Check(
        query="writeback_work",
        ordered=True,
        rows=[
            {"started_ts": at(100), "finished_ts": None, "pages_count": 0},
            {"started_ts": at(750), "finished_ts": at(760), "pages_count": 1},
        ],
    ),
    Check(
        query="block_latency",
        rows=[{"op": "write", "count": 1, "open_count": 1, "latency_max_ns": 10 * MS}],
    ),
    Check(
        query="copy_and_sync",
        ordered=True,
        rows=[
            {"phase": "copy", "tid": 13, "calls_count": 1, "written_bytes": 500},
            {"phase": "fsync", "tid": 13, "calls_count": 1, "written_bytes": None},
        ],
    ),
    Check(
        query="throughput",
        rows=[{"dirtied_bytes": 90 * 4096, "written_bytes": 60 * 4096, "lost_gaps_count": 6}],
    ),
    Check(query="redirty_gap", rows=[{"gap_bytes": 30 * 4096, "lost_gaps_count": 6}]),
    Check(query="dirty_position", rows=[{"lost_gaps_count": 6}]),
    Check(query="bdi_dirty", rows=[{"events_count": 4, "lost_gaps_count": 6}]),
    Check(
        query="reclaim_writes",
        rows=[
            {"kind": "anon", "reclaimer": "kswapd", "events_count": 1, "pages_count": 1},
            {"kind": "file", "reclaimer": "kswapd", "events_count": 2, "pages_count": 2},
        ],
        warning_words=("not-scaled", "gained 5 pages in 3 events"),
    ),
]
