# SPDX-License-Identifier: Apache-2.0
"""Fairness with one writer that asks for less than its share, as fio tells.

By hand, 4 KiB pages; each task has an event every second from 10 s to 14 s, and its job of fio the
bytes that it was charged after the first, in 4 s. fio does not tell which thread did a job; the
most bytes are those of the task that was charged most: a 11000 pages, b 5000, c 2500, d 500.
  a, tid 11: 4 * 1500 pages / 4 s = 6144000 bytes/s (its burst of 5000 pages before is left out)
  b, tid 12: 4 * 1000 pages / 4 s = 4096000
  c, tid 13: 4 *  500 pages / 4 s = 2048000, of rate=,2m: 2097152 asked for
  Jain (6 + 4 + 2)^2 / (3 * (36 + 16 + 4)) = 144 / 168; slowest to fastest 2 / 6
  Shares: all have 12288000, c asked for 2097152, so (12288000 - 2097152) / 2 = 5095424 are left
  for a and b each.  d, tid 14, is alone on bdi 8:16: all ratios are 1.
  The longest write that fio saw of each is as many ms as its tid.
"""

from __future__ import annotations

import json
from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_SECOND = 1_000_000_000
_UNIT = 1_024_000.0


def make(folder: Path) -> None:
    trace = Trace(formats("balance_dirty_pages"), cmdlines=dict.fromkeys((11, 12, 13, 14), "fio"))
    pages = {11: 1500, 12: 1000, 13: 500, 14: 100}
    for second in range(10, 15):
        for tid, dirtied in pages.items():
            burst = 5000 if (tid, second) == (11, 10) else dirtied
            values = {"cgroup_ino": 1, "dirtied": burst, "dirty_ratelimit": 4000}
            if tid == 13:
                values |= {"task_ratelimit": 16_000, "pause": -875, "period": 125, "think": 1000}
            else:
                values |= {"task_ratelimit": 4000, "pause": 200, "period": 1000, "think": 800}
            bdi = "8:16" if tid == 14 else "8:0"
            event = {"bdi": bdi, **values}
            trace.event(0, second * _SECOND + tid, tid, "balance_dirty_pages", event)
    trace.write(folder / "trace.dat")
    jobs = []
    for tid, name in ((14, "d"), (12, "b"), (13, "c"), (11, "a")):
        written: dict[str, object] = {"io_bytes": 4 * pages[tid] * 4096, "runtime": 4000}
        written |= {"clat_ns": {"min": 1000, "max": tid * 1_000_000}}
        options = {"rate": ",2m"} if name == "c" else {}
        jobs.append({"jobname": name, "job options": options, "write": written})
    (folder / "fio.json").write_text(json.dumps({"fio version": "fio-3.33", "jobs": jobs}))


def _task(
    tid: int, rate: float, share: float, asked: float | None = None
) -> dict[str, int | float | str | None]:
    return {
        "bdi": "8:0",
        "cgroup_ino": 1,
        "tid": tid,
        "rate_bytes_per_s": rate * _UNIT,
        "dirtied_basis": "fio",
        "asked_bytes_per_s": asked,
        "demand_basis": "fio",
        "entitlement_bytes_per_s": share,
    }


_ASKED = 2_097_152.0
_REST = 5_095_424.0
_SHARES = (6 * _UNIT / _REST, 4 * _UNIT / _REST, 2 * _UNIT / _ASKED)

CHECKS = [
    Check(
        query="throttle_by_task",
        rows=[
            {"tid": tid, "dirtied_basis": "fio", "fio_clat_max_ns": tid * 1_000_000}
            for tid in (11, 12, 13, 14)
        ],
    ),
    Check(
        query="fairness_tasks",
        keep=lambda row: row["bdi"] == "8:0",
        rows=[_task(11, 6, _REST), _task(12, 4, _REST), _task(13, 2, _ASKED, _ASKED)],
    ),
    Check(
        query="fairness",
        rows=[
            {
                "bdi": "8:0",
                "cgroup_ino": 1,
                "tasks_count": 3,
                "jain_ratio": 144 / 168,
                "jain_weighted_ratio": sum(_SHARES) ** 2 / (3 * sum(x * x for x in _SHARES)),
                "slowest_to_fastest_ratio": 2 / 6,
            },
            {
                "bdi": "8:16",
                "cgroup_ino": 1,
                "tasks_count": 1,
                "jain_ratio": 1.0,
                "jain_weighted_ratio": 1.0,
                "slowest_to_fastest_ratio": 1.0,
            },
        ],
    ),
]
