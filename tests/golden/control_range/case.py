# SPDX-License-Identifier: Apache-2.0
"""Dirty pages against the control range of 2011, and the gap between dirtied and written.

By hand, 4 KiB pages; thresh 1000, bg_thresh 500, limit 1000: range (750, 1000), target 875;
freerun 750, setpoint 875. Windows of 2 s from 10 s.
  10 s: dirty 700 + writeback 50 = 750 pages for 1 s, 11 s: 1000 pages for 1 s. Mean 875 pages =
    3584000 bytes: position (0 + 1) / 2 = 0.5 in both ranges, error 0, all of the time in the range.
  12 s: 500 pages for 1 s, 13 s: 875 for 1 s: range position (-1 + 0.5) / 2 = -0.25, mean 687.5
    pages = 2816000 bytes, error (2816000 - 3584000) / 3584000 = -3/14; 1 s of 2 in the range.
  14 s to 16 s: no event: empty. 23 events are lost before the one at 13 s: in the second window.
  16 s: 875 pages, the last event: its 0 s weigh nothing, so no mean.
  nr_dirtied 0, 1000, 1400, 2000, 2600 and nr_written 0, 600, 1100, 1300, 1500:
    to 12 s: the last event is that of 11 s: 1000 dirtied, 600 written, gap 400 pages; dirty grew
      750 -> 1000 = 250: unexplained 150 pages = 614400 bytes
    to 14 s: that of 13 s: 2000 - 1300 = 700 pages, growth 125: unexplained 575 = 2355200 bytes;
      in this window 1000 dirtied, 700 written: ratio 10/7
    to 16.000000001 s: 2600 - 1500 = 1100, growth 125: 975 pages = 3993600 bytes; 600 / 200 = 3
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_S = 1_000_000_000
_PAGE = 4096
_STATES = (
    (10, 700, 50, 0, 0),
    (11, 900, 100, 1000, 600),
    (12, 500, 0, 1400, 1100),
    (13, 800, 75, 2000, 1300),
    (16, 875, 0, 2600, 1500),
)


def make(folder: Path) -> None:
    trace = Trace(formats("global_dirty_state"), cmdlines={11: "dd"})
    for second, dirty, writeback, dirtied, written in _STATES:
        if second == 13:
            trace.lost(0, 23)
        values = {"nr_dirty": dirty, "nr_writeback": writeback, "background_thresh": 500}
        values |= {"dirty_thresh": 1000, "dirty_limit": 1000}
        values |= {"nr_dirtied": dirtied, "nr_written": written}
        trace.event(0, second * _S, 11, "global_dirty_state", values)
    trace.write(folder / "trace.dat")


CHECKS = [
    Check(
        query="control_range",
        ordered=True,
        rows=[
            {
                "window_start_ns": 10 * _S,
                "dirty_bytes": 875 * _PAGE,
                "range_low_bytes": 750 * _PAGE,
                "range_target_bytes": 875 * _PAGE,
                "thresh_bytes": 1000 * _PAGE,
                "range_position_ratio": 0.5,
                "range_error_ratio": 0.0,
                "in_range_ratio": 1.0,
                "setpoint_bytes": 875 * _PAGE,
                "position_ratio": 0.5,
                "lost_gaps_count": 0,
            },
            {
                "window_start_ns": 12 * _S,
                "dirty_bytes": 2_816_000,
                "range_low_bytes": 750 * _PAGE,
                "range_target_bytes": 875 * _PAGE,
                "thresh_bytes": 1000 * _PAGE,
                "range_position_ratio": -0.25,
                "range_error_ratio": -3 / 14,
                "in_range_ratio": 0.5,
                "setpoint_bytes": 875 * _PAGE,
                "position_ratio": -0.25,
                "lost_gaps_count": 1,
            },
            {"window_start_ns": 14 * _S}
            | dict.fromkeys(
                (
                    "dirty_bytes",
                    "range_low_bytes",
                    "range_target_bytes",
                    "thresh_bytes",
                    "range_position_ratio",
                    "range_error_ratio",
                    "in_range_ratio",
                    "setpoint_bytes",
                    "position_ratio",
                )
            )
            | {"lost_gaps_count": 0},
        ],
        keep=lambda row: row["window_start_ns"] < 16 * _S,
    ),
    Check(
        query="redirty_gap",
        ordered=True,
        rows=[
            {
                "window_start_ns": start * _S,
                "dirtied_so_far_bytes": dirtied * _PAGE,
                "written_so_far_bytes": written * _PAGE,
                "gap_bytes": (dirtied - written) * _PAGE,
                "dirty_growth_bytes": growth * _PAGE,
                "unexplained_gap_bytes": rest * _PAGE,
                "dirtied_to_written_ratio": ratio,
                "lost_gaps_count": lost,
            }
            for start, dirtied, written, growth, rest, ratio, lost in (
                (10, 1000, 600, 250, 150, 1000 / 600, 0),
                (12, 2000, 1300, 125, 575, 10 / 7, 1),
                (16, 2600, 1500, 125, 975, 3.0, 0),
            )
        ],
    ),
    Check(
        query="dirty_position",
        rows=[{"window_start_ns": 12 * _S, "position_ratio": -0.25, "lost_gaps_count": 1}],
        keep=lambda row: row["window_start_ns"] == 12 * _S,
    ),
]
