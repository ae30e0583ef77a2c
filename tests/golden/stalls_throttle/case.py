# SPDX-License-Identifier: Apache-2.0
"""Every cause of a throttle pause, one task each.

By hand. All pauses are 100 ms and intended (no sched_switch, HZ not known), on 8:0 unless said,
with limit 1000, setpoint 900 pages: free run ends at 2 * 900 - 1000 = 800, x = (900 - dirty) / 100,
the machine's factor g = 1 + x^3, pos_ratio p = task_ratelimit / dirty_ratelimit, the wb's factor is
p / g.
  tid  dirty  base  task     p      g       wb     cause
   1    1000  1000     0   0      0        -       over the limit
   2     950  1000   875   0.875  0.875    1       above setpoint: 0.125 of 0.125 lost is global
   3     950  1000   700   0.7    0.875    0.8     bdi slower than its share: 0.125 of 0.325
   4     900  1000   500   0.5    1        0.5     bdi slower than its share: 0 of 0.5
   5     850   800   900   1.125  1.125    1       slow bdi bandwidth: 8:0 kept its 40000 KiB/s
   6     850   800   900   1.125  1.125    1       falling: 8:16 fell from 40000 to 20000 KiB/s
   7     300  1000   500   0.5                     memcg domain: the machine has 5000 dirty pages
   8     950  1000   875   0.875  0.875    1       cgroup 27, but the machine's state: as tid 2
   9     950  1000   875   0.875                   cgroup 27, no global_dirty_state: unknown
  10     700  1000   500   0.5    2        0.25    strictlimit: x = 2, the machine is in free run
  11     900  1000     0   0      1        0       strictlimit: 1000 KiB/s / 4 are 62 pages/s
  12     900     8     0   0      1        0       unknown: 8 KiB/s / 4 are 0.5 pages/s, so 0
  13    1010  1000   100   0.1                     above setpoint, by a limit newer than the event's
  14     850     0     0                           unknown: no base rate, no pos_ratio
  15     950  1000   875   0.875                   memcg domain: the machine has as many dirty
                                                   pages, but its setpoint is 1800
A pause of 0 ms (tid 16) is no stall.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import MS, Waits, at

_CASES: tuple[tuple[int, int, int, int, str, float | None, float | None, float | None], ...] = (
    (1, 1000, 1000, 0, "over the limit", 0.0, 0.0, 1.0),
    (2, 950, 1000, 875, "above setpoint", 0.875, 0.875, 1.0),
    (3, 950, 1000, 700, "bdi slower than its share", 0.7, 0.875, 0.125 / 0.325),
    (4, 900, 1000, 500, "bdi slower than its share", 0.5, 1.0, 0.0),
    (5, 850, 800, 900, "slow bdi bandwidth", 1.125, 1.125, None),
    (6, 850, 800, 900, "falling bdi bandwidth", 1.125, 1.125, None),
    (7, 300, 1000, 500, "memcg domain", 0.5, None, None),
    (8, 950, 1000, 875, "above setpoint", 0.875, 0.875, 1.0),
    (9, 950, 1000, 875, "unknown", 0.875, None, None),
    (10, 700, 1000, 500, "strictlimit", 0.5, 2.0, 0.0),
    (11, 900, 1000, 0, "strictlimit", 0.0, 1.0, 0.0),
    (12, 900, 8, 0, "unknown", 0.0, 1.0, 0.0),
    (13, 1010, 1000, 100, "above setpoint", 0.1, None, None),
    (14, 850, 0, 0, "unknown", None, 1.125, None),
    (15, 950, 1000, 875, "memcg domain", 0.875, None, None),
)
# Dirty pages of the machine and thousands of its limit, told to tasks of cgroup 27.
_MACHINE = {7: (5000, 1), 8: (950, 1), 15: (950, 2)}


def make(folder: Path) -> None:
    names = ("balance_dirty_pages", "global_dirty_state", "bdi_dirty_ratelimit")
    comms = {case[0]: f"task{case[0]}" for case in _CASES} | {16: "task16"}
    waits = Waits(*names, cmdlines=comms)
    for ms, bdi, kib in ((0, "8:0", 40000), (1, "8:16", 40000), (300, "8:16", 20000)):
        rates = {"bdi": bdi, "avg_write_bw": kib, "cgroup_ino": 1}
        waits.add(ms, 1, "bdi_dirty_ratelimit", **rates)
    for tid, dirty, base, task, *_ in _CASES:
        ms = 100 * tid
        if tid in _MACHINE:
            machine, scale = _MACHINE[tid]
            state = {"nr_dirty": machine, "background_thresh": 600 * scale}
            state |= {"dirty_thresh": 1000 * scale, "dirty_limit": 1000 * scale}
            waits.add(ms - 0.01, tid, "global_dirty_state", **state)
        values = {"limit": 1000, "setpoint": 900, "dirty": dirty, "dirty_ratelimit": base}
        values |= {"task_ratelimit": task, "dirtied": 32, "pause": 100, "period": 100}
        cgroup = 27 if tid in (7, 8, 9, 15) else 1
        bdi = "8:16" if tid == 6 else "8:0"
        waits.add(ms, tid, "balance_dirty_pages", bdi=bdi, cgroup_ino=cgroup, **values)
    waits.add(1900, 16, "balance_dirty_pages", bdi="8:0", cgroup_ino=1, dirtied=32)
    waits.write(folder)


def _row(tid: int) -> Expected:
    _, _, _, _, cause, pos, machine, share = _CASES[tid - 1]
    return {
        "ts": at(100 * tid),
        "dur": 100 * MS,
        "tid": tid,
        "comm": f"task{tid}",
        "kind": "throttle",
        "cause": cause,
        "bdi": "8:16" if tid == 6 else "8:0",
        "cgroup_ino": 27 if tid in (7, 8, 9, 15) else 1,
        "span_ns": 100 * MS,
        "basis": "intended",
        "pos_ratio": pos,
        "global_pos_ratio": machine,
        "global_share_ratio": share,
    }


_ROWS = [_row(case[0]) for case in _CASES]
_STATE = "dirty=950 writeback=0 bg_thresh=600 thresh=1000 limit=1000"
CHECKS = [
    Check(query="stalls", rows=_ROWS, ordered=True),
    Check(query="stalls", options=("--bdi", "8:16"), rows=[_ROWS[5]]),
    Check(query="stalls", options=("--cgroup", "27"), rows=[*_ROWS[6:9], _ROWS[14]]),
    Check(query="stalls", options=("--tid", "3"), rows=[_ROWS[2]]),
    Check(query="stalls", options=("--from", "150ms", "--to", "400ms"), rows=_ROWS[1:3]),
    Check(
        query="stalls_by_task",
        options=("--tid", "13"),
        rows=[
            {
                "tid": 13,
                "comm": "task13",
                "kind": "throttle",
                "cause": "above setpoint",
                "stalls_count": 1,
                "total_ns": 100 * MS,
                "max_ns": 100 * MS,
                "p99_ns": 100 * MS,
                "unmeasured_count": 0,
            }
        ],
    ),
    Check(
        query="stalls_evidence",
        options=("--tid", "8"),
        keep=lambda row: row["evidence"] == "global_dirty_state before",
        rows=[{"stall_ts": at(800), "before_ns": 10_000, "detail": _STATE}],
    ),
    Check(
        query="stalls_evidence",
        options=("--tid", "6"),
        keep=lambda row: "ratelimit before" in row["evidence"],
        rows=[{"before_ns": 300 * MS, "detail": "awrite_bw=20000 highest of 16 updates=40000"}],
    ),
]
