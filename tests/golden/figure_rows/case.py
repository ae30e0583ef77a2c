# SPDX-License-Identifier: Apache-2.0
"""What figures are drawn of: pauses, progress, rates, dirty pages and latencies in windows.

By hand, 4 KiB pages, KiB/s, ms from 10 s to 13 s, windows of 2 s; bdi 8:0:
  balance_dirty_pages   task  dirty wb  rate base  pages paused pause period think
    e1   100            dd     850   80  400  400    40     0   100    100     0
    e2   500            cp     950  120  200  400    16     0   -20     80   100
    e3  1200            dd     960  100    0  400    20     0   200    200     4
    e4  1404            dd     960  100  100  300    20   204    40    200     0   same call as e3
    e5  1600            cp     990  100  500  500     1     0     0      0     0   did nothing
    e6  2500            dd     700   60  300  300     8     0    12     16     4
  limit 1000 and setpoint 900 pages, so freerun 800; wb_setpoint 90
  first window: dd has 3 steps, pauses up to 200 and down to 40 ms, was in a call for 204 ms,
    thought 4 / 3 ms, was charged 40 and 20 pages: 30 on average, 60 together. cp was late and did
    not pause for its 16 pages. Dirty (850 + 950 + 960 + 960) / 4 = 930 pages, wb_dirty 400 / 4 =
    100; rates 700 / 4 = 175, from 0 to 400, base 1500 / 4 = 375
  second: 8 pages more for dd are 68 so far
  bdi_dirty_ratelimit, 600 and 900 ms: write_bw (1000 + 3000) / 2 = 2000, smoothed 1500
  global_dirty_state: 100 dirty and 50 under writeback from 0 ms, 200 and 150 from 1000, 60 and 0 at
    3000: mean of the first window (150 + 350) / 2 = 250, largest 350; 350 in all of the second.
    bg_thresh 400, thresh and limit 1000: freerun 700, setpoint 850
  write requests take 10 and 12 ms (2^23 <= ns < 2^24), one of the second window 800 ms (2^29), a
    read 1 ms (2^19)
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import MS, Waits, at, device

_NAMES = (
    "balance_dirty_pages",
    "bdi_dirty_ratelimit",
    "global_dirty_state",
    "block_rq_issue",
    "block_rq_complete",
)
_KIB = 1 << 10
_PAGE = 4 * _KIB
_FIRST, _SECOND = at(0), at(2000)


def make(folder: Path) -> None:
    waits = Waits(*_NAMES, cmdlines={11: "dd", 12: "cp", 50: "kworker/u4:1"})

    def state(ms: int, dirty: int, writeback: int) -> None:
        waits.add(
            ms, 50, "global_dirty_state", nr_dirty=dirty, nr_writeback=writeback,
            background_thresh=400, dirty_thresh=1000, dirty_limit=1000,
        )  # fmt: skip

    def call(ms: int, tid: int, *numbers: int) -> None:
        names = [
            "dirty", "bdi_dirty", "task_ratelimit", "dirty_ratelimit", "dirtied",
            "paused", "pause", "period", "think",
        ]  # fmt: skip
        waits.add(
            ms, tid, "balance_dirty_pages", bdi="8:0", cgroup_ino=1, limit=1000, setpoint=900,
            bdi_setpoint=90, **dict(zip(names, numbers, strict=True)),
        )  # fmt: skip

    def request(ms: int, took_ms: int, sector: int, rwbs: str) -> None:
        values = {"dev": device(8, 0), "sector": sector, "nr_sector": 8}
        waits.add(ms, 0, "block_rq_issue", rwbs=rwbs, **values)
        waits.add(ms + took_ms, 0, "block_rq_complete", rwbs=rwbs, **values)

    state(0, 100, 50)
    call(100, 11, 850, 80, 400, 400, 40, 0, 100, 100, 0)
    request(200, 10, 100, "W")
    request(300, 12, 200, "W")
    request(400, 1, 300, "R")
    call(500, 12, 950, 120, 200, 400, 16, 0, -20, 80, 100)
    for ms, kib in ((600, 1000), (900, 3000)):
        waits.add(
            ms, 11, "bdi_dirty_ratelimit", bdi="8:0", cgroup_ino=1, write_bw=kib, avg_write_bw=1500
        )
    state(1000, 200, 150)
    call(1200, 11, 960, 100, 0, 400, 20, 0, 200, 200, 4)
    call(1404, 11, 960, 100, 100, 300, 20, 204, 40, 200, 0)
    call(1600, 12, 990, 100, 500, 500, 1, 0, 0, 0, 0)
    request(2100, 800, 400, "W")
    call(2500, 11, 700, 60, 300, 300, 8, 0, 12, 16, 4)
    state(3000, 60, 0)
    waits.write(folder)


def _pauses(
    start: int, comm: str, counts: tuple[int, int], ms: tuple[int, int, int], *means: float
) -> Expected:
    think, period, pages = means
    return {
        "window_start_ns": start,
        "comm": comm,
        "bdi": "8:0",
        "cgroup_ino": 1,
        "steps_count": counts[0],
        "pauses_count": counts[1],
        "pause_max_ns": ms[0] * MS,
        "pause_min_ns": ms[1] * MS,
        "paused_max_ns": ms[2] * MS,
        "think_mean_ns": think * MS,
        "period_mean_ns": period * MS,
        "charged_mean_bytes": float(pages * _PAGE),
    }


def _control(
    start: int, steps: int, pages: tuple[float, float], kib: tuple[float, int, int, float],
    bandwidth: tuple[float | None, float | None],
) -> Expected:  # fmt: skip
    return {
        "window_start_ns": start,
        "bdi": "8:0",
        "steps_count": steps,
        "dirty_bytes": float(pages[0] * _PAGE),
        "wb_dirty_bytes": float(pages[1] * _PAGE),
        "freerun_bytes": 800.0 * _PAGE,
        "setpoint_bytes": 900.0 * _PAGE,
        "limit_bytes": 1000.0 * _PAGE,
        "wb_setpoint_bytes": 90.0 * _PAGE,
        "memcg_dirty_bytes": None,
        "memcg_limit_bytes": None,
        "task_ratelimit_bytes_per_s": float(kib[0] * _KIB),
        "task_ratelimit_least_bytes_per_s": kib[1] * _KIB,
        "task_ratelimit_most_bytes_per_s": kib[2] * _KIB,
        "dirty_ratelimit_bytes_per_s": float(kib[3] * _KIB),
        "write_bw_bytes_per_s": bandwidth[0],
        "avg_write_bw_bytes_per_s": bandwidth[1],
    }


def _dirty(start: int, last: tuple[int, int], mean: int, most: int) -> Expected:
    return {
        "window_start_ns": start,
        "nr_dirty_bytes": last[0] * _PAGE,
        "nr_writeback_bytes": last[1] * _PAGE,
        "dirty_bytes": mean * _PAGE,
        "dirty_max_bytes": most * _PAGE,
        "bg_thresh_bytes": 400 * _PAGE,
        "freerun_bytes": 700 * _PAGE,
        "setpoint_bytes": 850 * _PAGE,
        "thresh_bytes": 1000 * _PAGE,
        "limit_bytes": 1000 * _PAGE,
    }


def _progress(start: int, comm: str, pages: float, so_far: float) -> Expected:
    return {
        "window_start_ns": start,
        "window_end_ts": _SECOND if start == _FIRST else at(3000) + 1,
        "comm": comm,
        "dirtied_bytes": float(pages * _PAGE),
        "dirtied_so_far_bytes": float(so_far * _PAGE),
    }


def _class(start: int, op: str, power: int, requests: int) -> Expected:
    return {
        "window_start_ns": start,
        "device": "8:0",
        "op": op,
        "at_least_ns": 1 << power,
        "below_ns": 2 << power,
        "requests_count": requests,
    }


CHECKS = [
    Check(
        query="task_pauses",
        rows=[
            _pauses(_FIRST, "dd", (3, 3), (200, 40, 204), 4 / 3, 500 / 3, 30),
            _pauses(_FIRST, "cp", (1, 0), (-20, -20, 0), 100.0, 80.0, 16),
            _pauses(_SECOND, "dd", (1, 1), (12, 12, 0), 4.0, 16.0, 8),
        ],
    ),
    Check(
        query="task_pauses",
        options=("--task", "c*", "--bdi", "8:0"),
        rows=[_pauses(_FIRST, "cp", (1, 0), (-20, -20, 0), 100.0, 80.0, 16)],
    ),
    Check(
        query="bdi_control",
        rows=[
            _control(_FIRST, 4, (930, 100), (175, 0, 400, 375), (2000.0 * _KIB, 1500.0 * _KIB)),
            _control(_SECOND, 1, (700, 60), (300, 300, 300, 300), (None, None)),
        ],
    ),
    Check(
        query="dirty_pages",
        rows=[_dirty(_FIRST, (200, 150), 250, 350), _dirty(_SECOND, (60, 0), 350, 350)],
    ),
    Check(
        query="task_progress",
        rows=[
            _progress(_FIRST, "dd", 60, 60),
            _progress(_FIRST, "cp", 16, 16),
            _progress(_SECOND, "dd", 8, 68),
        ],
    ),
    Check(
        query="block_latency_map",
        rows=[
            _class(_FIRST, "read", 19, 1),
            _class(_FIRST, "write", 23, 2),
            _class(_SECOND, "write", 29, 1),
        ],
    ),
]
