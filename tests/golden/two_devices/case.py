# SPDX-License-Identifier: Apache-2.0
"""Two disks at once: each has numbers of its own, and --bdi chooses one.

By hand, 4 KiB pages, sectors of 512 bytes, ms from 10 s to 13 s, windows of 2 s:
  8:0 completes 8 and 16 sectors of writes and 8 of a read in the first window: 12288 bytes written
    in 2 s = 6144 bytes/s, 4096 read = 2048 bytes/s. 8:16 completes 100 sectors in the second, of
    which the trace has 1 s + 1 ns: 51200 bytes.
  Requests: both disks have one at sector 100. That of 8:0 is issued at 0 ms and done at 10 ms,
    that of 8:16 is issued at 5 ms and done at 2500 ms: 10 and 2495 ms. Two more of 8:0 were issued
    before the trace, the last is done at 1000 ms: 8:0 is busy for 1000 ms of the first 2 s, 8:16
    for 1995 ms of them, in which it completes nothing, and for 500 of 1000 ms.
  dd, tid 11, dirties 8:0 (wb_dirty 30 and 50 pages, mean 40) and then 8:16 (wb_dirty 7): 20 + 80 =
    100 ms of pauses on 8:0 and 200 ms on 8:16 (whole jiffies of HZ 100 and of 250: HZ is not known,
    so nothing is added)
  bdi_dirty_ratelimit: avg_write_bw 1000 KiB/s for 8:0, 3000 for 8:16
  The flusher works for 8:0 (5 pages) and then for 8:16 (6 pages): two items.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import MS, Waits, at, device

_NAMES = (
    "balance_dirty_pages",
    "bdi_dirty_ratelimit",
    "writeback_start",
    "writeback_written",
    "block_rq_issue",
    "block_rq_complete",
    "global_dirty_state",
)
_DISKS = {"8:0": device(8, 0), "8:16": device(8, 16)}


def make(folder: Path) -> None:
    waits = Waits(*_NAMES, cmdlines={11: "dd", 50: "kworker/u4:1"})

    def rq(ms: int, name: str, disk: str, sector: int, sectors: int, rwbs: str) -> None:
        values = {"dev": _DISKS[disk], "sector": sector, "nr_sector": sectors}
        waits.add(ms, 0, f"block_rq_{name}", rwbs=rwbs, **values)

    rq(0, "issue", "8:0", 100, 8, "W")
    rq(5, "issue", "8:16", 100, 100, "W")
    rq(10, "complete", "8:0", 100, 8, "W")
    rq(500, "complete", "8:0", 900, 8, "R")
    rq(1000, "complete", "8:0", 500, 16, "W")
    rq(2500, "complete", "8:16", 100, 100, "W")
    for ms, disk, length, wb_dirty in (
        (20, "8:0", 20, 30),
        (300, "8:0", 80, 50),
        (700, "8:16", 200, 7),
    ):
        values = {"cgroup_ino": 1, "limit": 1000, "setpoint": 900, "dirty": 850}
        values |= {"bdi_setpoint": 60, "bdi_dirty": wb_dirty, "task_ratelimit": 1000}
        values |= {"dirtied": 10, "pause": length, "period": length}
        waits.add(ms, 11, "balance_dirty_pages", bdi=disk, **values)
    for ms, disk, kib in ((30, "8:0", 1000), (710, "8:16", 3000)):
        waits.add(ms, 11, "bdi_dirty_ratelimit", bdi=disk, cgroup_ino=1, avg_write_bw=kib)
    for ms, step, disk, pages in (
        (40, "start", "8:0", 100),
        (50, "written", "8:0", 95),
        (50, "start", "8:16", 95),
        (70, "written", "8:16", 89),
    ):
        values = {"nr_pages": pages, "reason": 3, "cgroup_ino": 1}
        waits.add(ms, 50, f"writeback_{step}", name=disk, **values)
    state = {"background_thresh": 600, "dirty_thresh": 1000, "dirty_limit": 1000}
    waits.add(3000, 50, "global_dirty_state", **state)
    waits.write(folder)


def _done(
    window: int, disk: str, requests: int, read: int, written: int, ns: int, busy_ms: int
) -> Expected:
    return {
        "window_start_ns": at(window),
        "device": disk,
        "requests_count": requests,
        "read_bytes": read,
        "written_bytes": written,
        "read_bytes_per_s": read * 1e9 / ns,
        "written_bytes_per_s": written * 1e9 / ns,
        "mean_request_bytes": (read + written) / requests if requests else None,
        "utilisation_ratio": busy_ms * MS / ns,
    }


def _burst(disk: str, written: int, ns: int) -> Expected:
    """All in one window of so many ns."""
    return {
        "device": disk,
        "written_bytes": written,
        "written_bytes_per_s": written * 1e9 / (3000 * MS + 1),
        "peak_bytes_per_s": written * 1e9 / ns,
        "windows_count": 1,
        "windows_ratio": ns / (3000 * MS + 1),
        "burst_ratio": 1 - ns / (3000 * MS + 1),
    }


def _latency(disk: str, ms: int, size: int) -> Expected:
    whole = {"device": disk, "op": "write", "count": 1, "open_count": 0, "bytes": size}
    return whole | {"latency_max_ns": ms * MS, "latency_p50_ns": ms * MS}


def _dirty(disk: str, events: int, mean: int, most: int) -> Expected:
    return {
        "bdi": disk,
        "events_count": events,
        "wb_dirty_bytes": mean * 4096,
        "wb_dirty_max_bytes": most * 4096,
        "wb_setpoint_bytes": 60 * 4096,
    }


CHECKS = [
    Check(
        query="throughput_by_device",
        ordered=True,
        rows=[
            _done(0, "8:0", 3, 4096, 12_288, 2000 * MS, 1000),
            _done(0, "8:16", 0, 0, 0, 2000 * MS, 1995),
            _done(2000, "8:16", 1, 0, 51_200, 1000 * MS + 1, 500),
        ],
    ),
    Check(
        query="throughput_by_device",
        options=("--bdi", "8:16"),
        rows=[
            _done(0, "8:16", 0, 0, 0, 2000 * MS, 1995),
            _done(2000, "8:16", 1, 0, 51_200, 1000 * MS + 1, 500),
        ],
    ),
    # The trace is 3 s + 1 ns long: a first window with all of it leaves a third to move.
    Check(
        query="write_bursts",
        ordered=True,
        rows=[
            _burst("8:16", 51_200, 1000 * MS + 1),
            _burst("8:0", 12_288, 2000 * MS),
        ],
    ),
    Check(
        query="block_latency",
        rows=[_latency("8:0", 10, 4096), _latency("8:16", 2495, 51_200)],
    ),
    Check(query="block_latency", options=("--bdi", "8:0"), rows=[_latency("8:0", 10, 4096)]),
    Check(query="bdi_dirty", rows=[_dirty("8:0", 2, 40, 50), _dirty("8:16", 1, 7, 7)]),
    Check(
        query="bdi_bandwidth",
        rows=[
            {"bdi": "8:0", "avg_write_bw_bytes_per_s": 1_024_000.0},
            {"bdi": "8:16", "avg_write_bw_bytes_per_s": 3_072_000.0},
        ],
    ),
    Check(
        query="throttle_by_task",
        rows=[
            {"tid": 11, "bdi": "8:0", "pauses_count": 2, "slept_total_ns": 100 * MS},
            {"tid": 11, "bdi": "8:16", "pauses_count": 1, "slept_total_ns": 200 * MS},
        ],
    ),
    Check(
        query="throttle_windows",
        rows=[{"tid": 11, "throttled_ratio": 300 / 2000, "slept_max_ns": 200 * MS}],
    ),
    Check(
        query="throttle_windows",
        options=("--bdi", "8:0"),
        rows=[{"tid": 11, "throttled_ratio": 100 / 2000, "slept_max_ns": 80 * MS}],
    ),
    Check(
        query="writeback_work",
        ordered=True,
        rows=[
            {"bdi": "8:0", "pages_count": 5, "dur": 10 * MS},
            {"bdi": "8:16", "pages_count": 6, "dur": 20 * MS},
        ],
    ),
    Check(query="stalls", options=("--bdi", "8:16"), rows=[{"ts": at(700), "dur": 200 * MS}]),
]
