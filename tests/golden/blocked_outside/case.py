# SPDX-License-Identifier: Apache-2.0
"""Time in which a throttled task stood still outside balance_dirty_pages().

By hand, ms from 10 s.  think: without sched_switch, by the think time of the next event, which ends
when its call began and begins no earlier than the last pause ended. All pauses are 20 ms.
  a, tid 1, 8:0:  events at 0 and 2000, think 1900: 100 to 2000
  b, tid 2, 8:0:  events at 10 and 1800, think 1790: from 30, the end of its pause, to 1800. Each
    was silent for more than half of the other's time: both count, 1900 and 1770 ms, nothing tells
    why: the only journal is that of another device
  c, tid 3, 8:16: events at 0 and 3000, think 2900: silent alone, it may have had nothing to write
  d, tid 4, 8:32: events at 0 and 1000, think 900: alone, but jbd2, tid 9, had a request in flight
    from 200 to 900, 700 of the 900 ms: journal commit
  e, tid 5, 8:0:  events at 500 and 1000, think 400: less than half a second
  f, tid 6, 8:0:  events at 400, 1900 with think 1480 and 1950 with think 1530, as the one before
    had no pause: 420 to 1900, beside a; from 1900 to 1950 it was not silent
sched: f, tid 1, is in state D from 100 to 200, after its event at 100 with a pause of 96 ms: that
  is throttling; from 300 to 340, for no known reason; and from 400 to 400.5: too short to count.
  Blocked 140 ms, explained 100, 5/7.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.wait_events import MS, Waits, at

_BDIS = {3: "8:16", 4: "8:32"}
_KIND = "blocked outside throttling"


def make(folder: Path) -> None:
    for name in ("think", "sched"):
        (folder / name).mkdir()
    _think(folder / "think")
    _sched(folder / "sched")


def _event(waits: Waits, ms: float, tid: int, pause: int, think: int = 0) -> None:
    values = {"cgroup_ino": 1, "dirty_ratelimit": 1000, "task_ratelimit": 100, "dirtied": 8}
    values |= {"pause": pause, "period": pause + think, "think": think}
    waits.add(ms, tid, "balance_dirty_pages", bdi=_BDIS.get(tid, "8:0"), **values)


def _think(folder: Path) -> None:
    tasks = {1: "a", 2: "b", 3: "c", 4: "d", 5: "e", 6: "f", 9: "jbd2/sdc-8"}
    waits = Waits("balance_dirty_pages", "block_rq_issue", "block_rq_complete", cmdlines=tasks)
    for ms, tid, think in (
        (0, 1, 0),
        (0, 3, 0),
        (0, 4, 0),
        (10, 2, 0),
        (400, 6, 0),
        (500, 5, 0),
        (1000, 4, 900),
        (1000, 5, 400),
        (1800, 2, 1790),
        (1900, 6, 1480),
        (1950, 6, 1530),
        (2000, 1, 1900),
        (3000, 3, 2900),
    ):
        _event(waits, ms, tid, 20 if (ms, tid) != (1900, 6) else 0, think)
    waits.request(9, 64, issue=200, complete=900, rwbs="FWFS", dev=(8, 32))
    waits.write(folder)


def _sched(folder: Path) -> None:
    waits = Waits("balance_dirty_pages", "sched_switch", cmdlines={1: "f"})
    _event(waits, 100, 1, 96)
    waits.sleep(100, 200, 1)
    waits.sleep(300, 340, 1)
    waits.sleep(400, 400.5, 1)
    waits.write(folder)


def _row(
    tid: int, start: float, length: float, cause: str, basis: str = "events"
) -> dict[str, int | float | str | None]:
    return {
        "tid": tid,
        "ts": at(start),
        "dur": int(length * MS),
        "kind": _KIND,
        "cause": cause,
        "basis": basis,
    }


CHECKS = [
    Check(
        query="stalls",
        folder="think",
        keep=lambda row: row["kind"] == _KIND,
        rows=[
            _row(1, 100, 1900, "unknown"),
            _row(2, 30, 1770, "unknown"),
            _row(6, 420, 1480, "unknown"),
            _row(4, 100, 900, "journal commit"),
        ],
    ),
    Check(
        query="stalls",
        folder="sched",
        keep=lambda row: row["kind"] == _KIND,
        rows=[_row(1, 300, 40, "unknown", "sched")],
    ),
    Check(
        query="blocked_coverage",
        folder="sched",
        rows=[
            {
                "tid": 1,
                "sleeps_count": 2,
                "blocked_ns": 140 * MS,
                "explained_ns": 100 * MS,
                "unexplained_ns": 40 * MS,
                "coverage_ratio": 5 / 7,
            }
        ],
    ),
]
