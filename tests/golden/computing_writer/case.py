# SPDX-License-Identifier: Apache-2.0
"""A writer that computes between its writes, held up as often as the greedy one beside it.

By hand, 4 KiB pages, ms from 10 s. Both fire every second from 0 to 16 s, and sleep 200 ms after
each event (state D), from 1 ms on: 3400 of the 16201 ms from the first event to the end of the last
sleep, 21 %.
  dd, tid 11: 2600 pages each time: 2600 pages/s. It runs for 1 ms after each sleep, then others
    have its CPU for 790 ms (state R), then it runs for 9 ms until it is throttled again: with a CPU
    to itself it would dirty a hundred times as much.
  gzip, tid 12: 400 pages each time, and runs all the time that it is not throttled: of the 16 s of
    its rate 16 * 800 - 1 ms, the last stretch ends behind it. With a CPU to itself and never
    throttled it would dirty 6400 pages in 12.799 s, 500 a second, which is less than half of 3000:
    it asks for no more, and dd is left the rest of the 3000.
Counted as greedy, as it never sleeps of its own accord, gzip had got 400 of 1500, Jain's index were
65 %, and io.weight advised, which helps nobody who computes.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.wait_events import Waits


def make(folder: Path) -> None:
    waits = Waits("balance_dirty_pages", "sched_switch", cmdlines={11: "dd", 12: "gzip"})
    for tid, pages in ((11, 2600), (12, 400)):
        for ms in range(0, 17_000, 1000):
            values = {"cgroup_ino": 1, "task_ratelimit": 4000, "dirty_ratelimit": 4000}
            values |= {"dirtied": pages, "pause": 200, "period": 200}
            waits.add(ms, tid, "balance_dirty_pages", bdi="8:0", **values)
            waits.sleep(ms + 1, ms + 201, tid)
            if tid == 11:
                waits.sleep(ms + 202, ms + 992, tid, state=0)
    waits.write(folder)


_PAGE = 4096
_ALONE = 6400 / 12.799
_GOT = (2600 / (3000 - _ALONE), 400 / _ALONE)


def _task(
    tid: int, rate: float, is_limited: int, asked: float | None, share: float
) -> dict[str, int | float | None]:
    return {
        "tid": tid,
        "rate_bytes_per_s": rate * _PAGE,
        "slept_ratio": 3400 / 16201,
        "idle_ratio": 0.0,
        "is_demand_limited": is_limited,
        "asked_bytes_per_s": None if asked is None else asked * _PAGE,
        "entitlement_bytes_per_s": share * _PAGE,
    }


CHECKS = [
    Check(
        query="fairness_tasks",
        rows=[
            _task(12, 400.0, 1, _ALONE, _ALONE),
            _task(11, 2600.0, 0, None, 3000 - _ALONE),
        ],
    ),
    Check(
        query="fairness",
        rows=[
            {
                "jain_ratio": 3000**2 / (2 * (2600**2 + 400**2)),
                "jain_weighted_ratio": sum(_GOT) ** 2 / (2 * sum(x * x for x in _GOT)),
            }
        ],
    ),
    Check(
        query="findings",
        rows=[
            {
                "id": "light_writer_held",
                "text": "gzip 12 dirtied 1.56 MiB/s of 8:0 and asked for no more, yet it was"
                " throttled for 21.0 % of its time, one write for 200 ms: dd 11 dirtied 10.2 MiB/s"
                " beside it.",
            }
        ],
        keep=lambda row: row["id"] in ("unfair", "light_writer_held"),
    ),
]
