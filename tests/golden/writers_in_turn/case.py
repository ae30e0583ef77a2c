# SPDX-License-Identifier: Apache-2.0
"""Who is compared with whom: only writers that wrote together, and with what the disk wrote.

By hand, 4 KiB pages; each task fires every 250 ms for 4 s, 17 events, and sleeps 200 ms after each
(state D). Of its pages the first event's are older than its rate's time.
  8:0: a (11) from 0 s, 400 pages: 1600 pages/s; b (12) from 5 s, 100 pages: 400 pages/s. They never
    write together: nobody is entitled to anything, and nothing is unfair. Jain of the rates alone:
    2000^2 / (2 * (1600^2 + 400^2)) = 25/34.
  8:16: c (13) from 0 s, 400 pages; d (14) from 0 s, 100 pages; e (15) from 3.5 s, 100 pages: half a
    second with the others, so c and d are compared. They got 2000 pages/s, 1000 each. The
    disk writes a page in 2 ms: 500 pages/s, and nobody is entitled to more.
    Jain (1.6 + 0.4)^2 / (2 * (1.6^2 + 0.4^2)) = 25/34 again, less than 0.8: d got a quarter.
    It is told as unfair.
    Of all three rates 2400^2 / (3 * (1600^2 + 2 * 400^2)) = 2/3.
  8:32: f (16) and g (17) from 0 s as c and d, but every 500 ms: 800 and 200 pages/s, and nothing
    tells how fast the disk is: each is entitled to 500. The index is the same, of 9 calls each: it
    is not told as unfair. Of the 300 ms that they do not sleep others have their CPU for 290: with
    it g would not compute for so long that it could not dirty 500.
No event tells what the machine dirtied, so all that is known of each task is what it was charged:
who of them was how fast can be told, and not that it was fair.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.wait_events import Waits

_PAGE = 4096
_UNFAIR = (
    "d 14 dirtied 1.56 MiB/s of 8:16 and c 13 6.25 MiB/s, although both asked for more: Jain's"
    " index is 73.5 %."
)
# tid: bdi, start and step in ms, pages
_TASKS = {
    11: ("8:0", 0, 250, 400),
    12: ("8:0", 5000, 250, 100),
    13: ("8:16", 0, 250, 400),
    14: ("8:16", 0, 250, 100),
    15: ("8:16", 3500, 250, 100),
    16: ("8:32", 0, 500, 400),
    17: ("8:32", 0, 500, 100),
}


def make(folder: Path) -> None:
    names = ("balance_dirty_pages", "sched_switch", "block_rq_issue", "block_rq_complete")
    waits = Waits(*names, cmdlines=dict(zip(_TASKS, "abcdefg", strict=True)))
    for tid, (bdi, start, step, pages) in _TASKS.items():
        for ms in range(start, start + 4001, step):
            values = {"cgroup_ino": 1, "task_ratelimit": 4000, "dirty_ratelimit": 4000}
            values |= {"dirtied": pages, "pause": 200, "period": 200}
            waits.add(ms, tid, "balance_dirty_pages", bdi=bdi, **values)
            waits.sleep(ms + 1, ms + 201, tid)
            if step == 500:
                waits.sleep(ms + 202, ms + 492, tid, state=0)
    waits.request(7, 64, issue=100, complete=102, rwbs="W", dev=(8, 16))
    waits.write(folder)


def _task(tid: int, rate: int, share: int | None) -> dict[str, int | float | None]:
    return {
        "tid": tid,
        "rate_bytes_per_s": float(rate * _PAGE),
        "is_compared": 0 if share is None else 1,
        "is_demand_limited": 0,
        "entitlement_bytes_per_s": None if share is None else float(share * _PAGE),
    }


CHECKS = [
    Check(
        query="fairness_tasks",
        rows=[
            _task(11, 1600, None),
            _task(12, 400, None),
            _task(13, 1600, 500),
            _task(14, 400, 500),
            _task(15, 400, None),
            _task(16, 800, 500),
            _task(17, 200, 500),
        ],
    ),
    Check(
        query="fairness",
        rows=[
            {"bdi": "8:0", "jain_ratio": 25 / 34, "jain_weighted_ratio": None},
            {"bdi": "8:16", "jain_ratio": 2 / 3, "jain_weighted_ratio": 25 / 34},
            {"bdi": "8:32", "jain_ratio": 25 / 34, "jain_weighted_ratio": 25 / 34},
        ],
    ),
    Check(
        query="findings",
        keep=lambda row: row["id"] == "unfair",
        rows=[{"severity": "warning", "text": _UNFAIR}],
    ),
    Check(
        sql="SELECT bdi, count(*) AS tasks_count, min(events_count) AS events_count"
        " FROM wb_task_rate WHERE dirtied_basis = 'bound' AND is_compared = 1 GROUP BY bdi",
        rows=[
            {"bdi": "8:16", "tasks_count": 2, "events_count": 17},
            {"bdi": "8:32", "tasks_count": 2, "events_count": 9},
        ],
    ),
    Check(query="findings", keep=lambda row: row["id"] == "fair", rows=[]),
]
