# SPDX-License-Identifier: Apache-2.0
"""One trace with pages of 4 KiB and of 64 KiB: what the kernel counts in pages is 16 times as much.

By hand, in pages; ms from 10 s, windows of 2 s. What is in KiB/s, ms and sectors stays as it is.
  dirty 700 + writeback 100 = 800 pages at 0 and 1000 ms; bg_thresh 600, thresh 1000, limit 1000:
    freerun 800, setpoint 900, range from 750, target 875; position 0, range position 50 / 250 = 0.2
  nr_dirtied 0 -> 50, nr_written 0 -> 20 from 0 to 1000 ms; the trace ends at 1000 ms: 50 and 20 in
    the window, gap 30 pages, no growth
  dd, tid 11, dirties 5 pages at 100 ms and 20 more until 600 ms: 25 together; 20 in 500 ms = 40
    pages/s. The kernel told it 160 KiB/s = 163840 bytes/s: 40 pages/s are just that with 4 KiB and
    16 times as fast with 64 KiB: error 0 and 15
  wb_dirty 30 and 50: mean 40, wb_setpoint 90 of a setpoint of 900: wb_thresh 90 * 1000 / 900 = 100
  The flusher writes 7 pages. A copy sees 800 dirty pages. kswapd0 writes a file page: 700 and 100.
  dd waits for 3 pages to be written (an event of 2011).
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import WRITE, Waits

_SIZES = {"4k": 4096, "64k": 65536}
_NAMES = (
    "global_dirty_state",
    "balance_dirty_pages",
    "bdi_dirty_ratelimit",
    "writeback_start",
    "writeback_written",
    "mm_vmscan_write_folio",
    "writeback_balance_dirty_pages_waiting",
    "writeback_balance_dirty_pages_woken",
    *WRITE,
)
_COMMS = {11: "dd", 42: "kswapd0", 50: "kworker/u4:1"}


def _write(folder: Path, page_bytes: int) -> None:
    # x86-64 has pages of 4 KiB only.
    machine = "x86_64" if page_bytes == 4096 else "ppc64le"
    uname = f"Linux synthetic 6.1.0-test {machine}"
    waits = Waits(*_NAMES, cmdlines=_COMMS, page_bytes=page_bytes, uname=uname)
    for ms, dirtied, written in ((0, 0, 0), (1000, 50, 20)):
        values = {"nr_dirty": 700, "nr_writeback": 100, "background_thresh": 600}
        values |= {"dirty_thresh": 1000, "dirty_limit": 1000}
        waits.add(ms, 50, "global_dirty_state", nr_dirtied=dirtied, nr_written=written, **values)
    for ms, pages, wb_dirty in ((100, 5, 30), (600, 20, 50)):
        values = {"cgroup_ino": 1, "limit": 1000, "setpoint": 900, "dirty": 800}
        values |= {"bdi_setpoint": 90, "bdi_dirty": wb_dirty, "task_ratelimit": 160}
        values |= {"dirtied": pages, "pause": 100, "period": 100}
        waits.add(ms, 11, "balance_dirty_pages", bdi="8:0", **values)
    waits.add(110, 11, "bdi_dirty_ratelimit", bdi="8:0", cgroup_ino=1, avg_write_bw=1000)
    for ms, step, pages in ((200, "start", 100), (210, "written", 93)):
        work = {"nr_pages": pages, "reason": 3, "cgroup_ino": 1}
        waits.add(ms, 50, f"writeback_{step}", name="8:0", **work)
    waits.add(300, 11, "sys_enter_write", fd=4)
    waits.add(700, 11, "sys_exit_write", ret=1000)
    waits.add(800, 42, "mm_vmscan_write_folio", pfn=5, reclaim_flags=10)
    waits.add(850, 11, "writeback_balance_dirty_pages_waiting", name="8:0", pages=3)
    waits.add(900, 11, "writeback_balance_dirty_pages_woken", name="8:0")
    folder.mkdir()
    waits.write(folder)


def make(folder: Path) -> None:
    for name, page_bytes in _SIZES.items():
        _write(folder / name, page_bytes)


def _rows(page: int) -> dict[str, Expected]:
    """The one row of each query, for that page size."""
    return {
        "throttle_by_task": {"dirtied_bytes": 25 * page, "pause_total_ns": 200_000_000},
        "throttle_windows": {"dirtied_bytes": 25 * page},
        "ratelimit_error": {
            "target_bytes_per_s": 163_840.0,
            "actual_bytes_per_s": 40.0 * page,
            "error_ratio": 0.0 if page == 4096 else 15.0,
        },
        "fairness": {"task_rates": f"dd-11={40 * page}"},
        "fairness_tasks": {"dirtied_bytes": 20 * page, "rate_bytes_per_s": 40.0 * page},
        "bdi_dirty": {
            "wb_dirty_bytes": 40 * page,
            "wb_setpoint_bytes": 90 * page,
            "wb_thresh_bytes": 100 * page,
            "setpoint_bytes": 900 * page,
            "position_ratio": 0.0,
        },
        "bdi_bandwidth": {"avg_write_bw_bytes_per_s": 1_024_000.0},
        "dirty_position": {
            "dirty_bytes": 800 * page,
            "freerun_bytes": 800 * page,
            "setpoint_bytes": 900 * page,
            "limit_bytes": 1000 * page,
            "position_ratio": 0.0,
        },
        "control_range": {
            "range_low_bytes": 750 * page,
            "range_target_bytes": 875 * page,
            "range_position_ratio": 0.2,
        },
        "redirty_gap": {"gap_bytes": 30 * page, "unexplained_gap_bytes": 30 * page},
        "throughput": {"dirtied_bytes": 50 * page, "written_bytes": 20 * page},
        "writeback_work": {"pages_count": 7, "bytes": 7 * page},
        "copy_and_sync": {"written_bytes": 1000, "dirty_start_bytes": 800 * page},
        "reclaim_dirty_state": {"dirty_bytes": 700 * page, "writeback_bytes": 100 * page},
        "completion_waits": {"asked_bytes": 3 * page, "wait_ns": 50_000_000},
    }


CHECKS = [
    Check(query=query, rows=[row], folder=name)
    for name, page in _SIZES.items()
    for query, row in _rows(page).items()
]
