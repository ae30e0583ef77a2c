# SPDX-License-Identifier: Apache-2.0
"""A window without events: nothing is made up for it, and what came after is spread over it.

By hand, 4 KiB pages; windows of 2 s from 10 s; nothing happens from 11 s to 14 s.
  global_dirty_state: nr_dirtied 0, 100 | - | 400, 500 and nr_written 0, 50 | - | 350, 400 at 10 s,
    11 s, 14.2 s and 15 s, the end. 100 pages dirtied and 50 written in the second to the last
    sample before 12 s. What was counted then is known at 15 s: 400 and 350 pages in the 4 s from
    11 s on. The window from 12 s is empty.
  Asked for 13.5 s to 14.5 s: the sample at 14.2 s, and the one in force, of 11 s: 300 pages
    dirtied and 300 written in 3.2 s.
  So are its dirty level and its control range; the gap has no row for it.
  bdi_dirty_ratelimit, balance_dirty_pages and block_rq_complete: no row of a bdi for that window.
  dd, tid 11, lives on: it has a row, with 0 throttled and 0 dirtied, and no share of nothing. It
    slept 20 ms of the first 2 s, and 20 ms of the 1 s and 1 ns that the trace has of the last one.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import Waits, at, device

_PAGE = 4096


def make(folder: Path) -> None:
    names = ("global_dirty_state", "balance_dirty_pages", "bdi_dirty_ratelimit")
    waits = Waits(*names, "block_rq_complete", cmdlines={11: "dd", 50: "kworker/u4:1"})
    for ms, dirtied, written in ((0, 0, 0), (1000, 100, 50), (4200, 400, 350), (5000, 500, 400)):
        values = {"nr_dirty": 700, "background_thresh": 500, "dirty_thresh": 1000}
        values |= {"dirty_limit": 1000, "nr_dirtied": dirtied, "nr_written": written}
        waits.add(ms, 50, "global_dirty_state", **values)
    for ms in (100, 4100):
        # Those at 14.1 s lie between the border of the window and its first sample.
        values = {"cgroup_ino": 1, "task_ratelimit": 100, "dirtied": 10, "pause": 20, "period": 20}
        waits.add(ms, 11, "balance_dirty_pages", bdi="8:0", **values)
        waits.add(ms, 11, "bdi_dirty_ratelimit", bdi="8:0", cgroup_ino=1, avg_write_bw=100)
        request = {"dev": device(8, 0), "sector": ms, "nr_sector": 8}
        waits.add(ms, 0, "block_rq_complete", rwbs="W", **request)
    waits.write(folder)


def _throughput(window: int, ns: int | None, dirtied: int | None, written: int | None) -> Expected:
    return {
        "window_start_ns": at(window),
        "window_ns": ns,
        "dirtied_bytes": dirtied and dirtied * _PAGE,
        "written_bytes": written and written * _PAGE,
        "written_bytes_per_s": written and ns and written * _PAGE * 1e9 / ns,
    }


def _windows(*windows: int, **values: int) -> list[Expected]:
    return [{"window_start_ns": at(window), **values} for window in windows]


def _task(window: int, slept: float, pages: int, share: float | None) -> Expected:
    return {
        "window_start_ns": at(window),
        "tid": 11,
        "throttled_ratio": slept,
        "dirtied_bytes": pages * _PAGE,
        "dirtied_share_ratio": share,
    }


CHECKS = [
    Check(
        query="throughput",
        ordered=True,
        rows=[
            _throughput(0, 1_000_000_000, 100, 50),
            _throughput(2000, None, None, None),
            _throughput(4000, 4_000_000_000, 400, 350),
        ],
    ),
    Check(
        query="throughput",
        options=("--from", "3500ms", "--to", "4500ms"),
        rows=[_throughput(3500, 3_200_000_000, 300, 300)],
    ),
    Check(
        query="throughput",
        options=("--window", "2500ms"),
        ordered=True,
        rows=[
            _throughput(0, 1_000_000_000, 100, 50),
            _throughput(2500, 3_200_000_000, 300, 300),
            # The sample at 15 s begins a window of its own.
            _throughput(5000, 800_000_000, 100, 50),
        ],
    ),
    Check(
        query="dirty_position",
        ordered=True,
        rows=[
            {"window_start_ns": at(0), "dirty_bytes": 700 * _PAGE, "above_limit_ns": 0},
            {"window_start_ns": at(2000), "dirty_bytes": None, "above_limit_ns": None},
            {"window_start_ns": at(4000), "dirty_bytes": 700 * _PAGE, "above_limit_ns": 0},
        ],
    ),
    Check(
        query="control_range",
        ordered=True,
        rows=[
            # 700 pages in (750, 1000): (700 - 750) / 250
            {"window_start_ns": at(0), "range_position_ratio": -0.2, "in_range_ratio": 0.0},
            {"window_start_ns": at(2000), "range_position_ratio": None, "in_range_ratio": None},
            {"window_start_ns": at(4000), "range_position_ratio": -0.2, "in_range_ratio": 0.0},
        ],
    ),
    Check(
        query="redirty_gap",
        ordered=True,
        rows=[
            {"window_start_ns": at(0), "gap_bytes": 50 * _PAGE, "dirty_growth_bytes": 0},
            {"window_start_ns": at(4000), "gap_bytes": 100 * _PAGE, "dirty_growth_bytes": 0},
        ],
    ),
    Check(query="bdi_bandwidth", rows=_windows(0, 4000, updates_count=1)),
    Check(query="bdi_dirty", rows=_windows(0, 4000, events_count=1)),
    Check(query="throughput_by_device", rows=_windows(0, 4000, written_bytes=_PAGE)),
    Check(
        query="throttle_windows",
        ordered=True,
        rows=[
            _task(0, 0.01, 10, 1.0),
            _task(2000, 0.0, 0, None),
            _task(4000, 20 / 1000.000001, 10, 1.0),
        ],
    ),
]
