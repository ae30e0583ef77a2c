# SPDX-License-Identifier: Apache-2.0
"""Whose pages filled the pool: a writer of a fast disk waits for the pages of a slow one.

By hand, ms from 10 s, pages of 4 KiB; sleeps are as intended (no sched_switch, HZ unknown). The
machine holds (1000) dirty pages all the time; its limit is 1000, its setpoint 900.
  dd, tid 12, writes to 8:16, whose share of the setpoint is 100. At 100 it holds (800) of the
    pool, dd sleeps 100. Free run is 2 x 900 - 1000 = 800 of 900, so 800 x 900 is more than
    800 x 100: dd would be throttled alone. 200 pages are unknown: shares 0.8 and 0.2.
  db, tid 11, writes to 8:0, whose share is 800.
    At 120 it holds (50) and sleeps 40: 50 x 900 is less than 800 x 800, so it is innocent. 8:16
      said 800 pages 20 ms before: shares 0.05, 0.8 and 0.15 unknown.
    At 300 it holds (900) and sleeps 20: 900 x 900 is more, not innocent. 8:16 still counts with
      its 800, which is 1700 of 1000 pages: each has its part of 1700, and nothing is unknown.
    At 2500 it holds (500) and sleeps 40: 500 x 900 is less than 800 x 800, innocent; what 8:16
      said is more than 2 s old, so half of the pool is unknown.
  So db waited 100 ms in all: its own wb had (40 x 0.05 + 20 x 9/17 + 40 x 0.5) / 100 of the pool,
    8:16 (40 x 0.8 + 20 x 8/17) / 100, unknown (40 x 0.15 + 40 x 0.5) / 100; innocent for 80 of 100.
  Windows of 2 s from the first event: in the first the events of 8:16 say 800 and those of 8:0
    (50 + 900) / 2 = 475, 1275 of 1000 pages; the second begins 2 s after what 8:16 said, which is
    just not too old: 500 and 800, 1300 of 1000.
"""

from __future__ import annotations

from pathlib import Path

from support.formats import Value
from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_PAGE = 4096
# ms, tid, bdi, pages of its wb, its share of the setpoint, pause
_PAUSES = [
    (100, 12, "8:16", 800, 100, 100),
    (120, 11, "8:0", 50, 800, 40),
    (300, 11, "8:0", 900, 800, 20),
    (2500, 11, "8:0", 500, 800, 40),
]


def make(folder: Path) -> None:
    trace = Trace(
        formats("balance_dirty_pages", "global_dirty_state"), cmdlines={11: "db", 12: "dd"}
    )

    def add(ms: int, tid: int, name: str, **values: Value) -> None:
        trace.event(0, (10_000 + ms) * _MS, tid, name, values)

    state: dict[str, Value] = {"nr_dirty": 900, "nr_writeback": 100, "background_thresh": 600}
    state |= {"dirty_thresh": 1000, "dirty_limit": 1000}
    for ms, tid, bdi, held, share, pause in _PAUSES:
        add(ms, tid, "global_dirty_state", **state)
        values: dict[str, Value] = {"limit": 1000, "setpoint": 900, "dirty": 1000, "bdi": bdi}
        values |= {"bdi_setpoint": share, "bdi_dirty": held, "pause": pause, "period": pause}
        values |= {"dirty_ratelimit": 1000, "task_ratelimit": 900, "dirtied": 8, "cgroup_ino": 1}
        add(ms, tid, "balance_dirty_pages", **values)
    add(2600, 12, "global_dirty_state", **state)
    trace.write(folder / "trace.dat")


def _blamed(
    tid: int, holder: str | None, slept: int, share: float, innocent: float
) -> dict[str, int | float | str | None]:
    return {
        "victim_tid": tid,
        "holder_bdi": holder,
        "throttled_ns": slept * _MS,
        "share_held_ratio": share,
        "innocent_ratio": innocent,
    }


_OWN, _OTHER, _UNKNOWN = (
    (40 * 0.05 + 20 * 9 / 17 + 40 * 0.5) / 100,
    (40 * 0.8 + 20 * 8 / 17) / 100,
    (40 * 0.15 + 40 * 0.5) / 100,
)
_POOL: list[Expected] = [
    {"window_start_ns": 10_100 * _MS, "bdi": "8:0", "held_ratio": 475 / 1275},
    {"window_start_ns": 10_100 * _MS, "bdi": "8:16", "held_ratio": 800 / 1275},
    {"window_start_ns": 12_100 * _MS, "bdi": "8:0", "held_ratio": 5 / 13},
    {"window_start_ns": 12_100 * _MS, "bdi": "8:16", "held_ratio": 8 / 13},
]
CHECKS = [
    Check(
        query="blame",
        rows=[
            _blamed(11, "8:0", 100, _OWN, 0.8),
            _blamed(11, "8:16", 100, _OTHER, 0.8),
            _blamed(11, None, 100, _UNKNOWN, 0.8),
            _blamed(12, "8:16", 100, 0.8, 0.0),
            _blamed(12, None, 100, 0.2, 0.0),
        ],
    ),
    Check(query="pool", rows=_POOL),
    Check(
        sql="SELECT ts, track, value FROM tl_pool ORDER BY ts, track",
        ordered=True,
        rows=[
            {"ts": start, "track": f"Writeback/Dirty pages/held by {who}", "value": pages * _PAGE}
            for start, who, pages in (
                (10_100 * _MS, "8:0", 1000 * 475 / 1275),
                (10_100 * _MS, "8:16", 1000 * 800 / 1275),
                (12_100 * _MS, "8:0", 1000 * 5 / 13),
                (12_100 * _MS, "8:16", 1000 * 8 / 13),
            )
        ],
    ),
    Check(
        query="stalls",
        rows=[
            {"tid": 11, "holder_bdi": "8:16", "holder_share_ratio": 0.8},
            {"tid": 11, "holder_bdi": "8:16", "holder_share_ratio": 8 / 17},
            {"tid": 11, "holder_bdi": None, "holder_share_ratio": 0.0},
            {"tid": 12, "holder_bdi": None, "holder_share_ratio": 0.0},
        ],
    ),
    # dd waited for its own disk; what db lost to 8:16 is less than a finding has to cost.
    Check(
        query="findings",
        rows=[{"id": "cause_unknown", "severity": "note", "cost_task_ns": 100 * _MS}],
        keep=lambda row: row["id"] == "cause_unknown",
    ),
]
