# SPDX-License-Identifier: Apache-2.0
"""A machine with pages of 64 KiB: pages become bytes by the trace's page size, KiB/s do not.

By hand:
  dirtied 3 pages = 3 * 65536 = 196608 bytes
  bdi_dirty_ratelimit: write_bw 1024 KiB/s = 1048576 bytes/s at any page size; avg_write_bw 2048,
    dirty_rate 512, dirty_ratelimit 256, balanced 128 KiB/s
  global_dirty_state: dirty 10 + writeback 5 = 15 pages = 983040 bytes; bg_thresh 20 = 1310720,
    thresh 40 = 2621440; limit max(40, 44) = 44 pages = 2883584; freerun (20 + 40) / 2 = 30;
    setpoint (30 + 44) / 2 = 37 pages = 2424832; position (15 - 30) / (44 - 30) = -15 / 14
  nr_dirtied 100 -> 116 in 1 s: 16 pages = 1048576 bytes; nr_written 50 -> 58: 524288 bytes
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_START = 10_000 * _MS


def make(folder: Path) -> None:
    names = ("balance_dirty_pages", "bdi_dirty_ratelimit", "global_dirty_state")
    trace = Trace(
        formats(*names),
        page_bytes=65536,
        compression="zlib",
        uname="Linux synthetic 6.1.0-test ppc64le",
        cmdlines={11: "dd"},
    )

    def state(ts: int, dirtied: int, written: int) -> None:
        values = {"nr_dirty": 10, "nr_writeback": 5, "background_thresh": 20, "dirty_thresh": 40}
        values |= {"dirty_limit": 44, "nr_dirtied": dirtied, "nr_written": written}
        trace.event(0, ts, 11, "global_dirty_state", values)

    state(_START, 100, 50)
    trace.event(
        0,
        _START + 10 * _MS,
        11,
        "bdi_dirty_ratelimit",
        {
            "bdi": "8:0",
            "write_bw": 1024,
            "avg_write_bw": 2048,
            "dirty_rate": 512,
            "dirty_ratelimit": 256,
            "task_ratelimit": 64,
            "balanced_dirty_ratelimit": 128,
            "cgroup_ino": 1,
        },
    )
    trace.event(
        0,
        _START + 20 * _MS,
        11,
        "balance_dirty_pages",
        {
            "bdi": "8:0",
            "dirtied": 3,
            "pause": 12,
            "period": 12,
            "task_ratelimit": 64,
            "cgroup_ino": 1,
        },
    )
    state(_START + 1_000 * _MS, 116, 58)
    trace.write(folder / "trace.dat")


CHECKS = [
    Check(query="throttle_by_task", rows=[{"tid": 11, "dirtied_bytes": 196_608}]),
    Check(
        query="bdi_bandwidth",
        rows=[
            {
                "window_start_ns": _START,
                "bdi": "8:0",
                "cgroup_ino": 1,
                "write_bw_bytes_per_s": 1_048_576.0,
                "avg_write_bw_bytes_per_s": 2_097_152.0,
                "dirty_rate_bytes_per_s": 524_288.0,
                "dirty_ratelimit_bytes_per_s": 262_144.0,
                "balanced_dirty_ratelimit_bytes_per_s": 131_072.0,
            }
        ],
    ),
    Check(
        query="dirty_position",
        rows=[
            {
                "window_start_ns": _START,
                "dirty_bytes": 983_040.0,
                "bg_thresh_bytes": 1_310_720.0,
                "thresh_bytes": 2_621_440.0,
                "limit_bytes": 2_883_584.0,
                "setpoint_bytes": 2_424_832.0,
                "position_ratio": -15 / 14,
                "above_setpoint_ns": 0,
                "above_limit_ns": 0,
            }
        ],
    ),
    Check(
        query="throughput",
        keep=lambda row: bool(row["dirtied_bytes"]),
        rows=[{"window_start_ns": _START, "dirtied_bytes": 1_048_576, "written_bytes": 524_288}],
    ),
    Check(
        sql="SELECT CAST(value AS INTEGER) AS value FROM meta WHERE key = 'page_bytes'",
        rows=[{"value": 65_536}],
    ),
]
