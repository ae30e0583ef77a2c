# SPDX-License-Identifier: Apache-2.0
"""Events that the ring buffer lost: no time is made up for a wait that lacks one end.

By hand, ms from 10 s; events were lost before those at 30 and at 70; the last event is at 100.
  tid 3, direct reclaim   5 to   8   whole
  tid 1                  10 to   ?   its end is lost: another one begins at 30; NULL
  tid 1                  30 to  40   whole
  tid 2                   ? to  50   no beginning, and events were lost before: NULL, at 50
  tid 4                  60 to   ?   no end, and events were lost after: NULL
  tid 5                  80 to   -   no end, and nothing was lost after: to the end of the trace, 20
  tid 6                  81 to  82   whole, and an end at 84 whose beginning is lost: NULL
  tid 7, write of its own issued at 15, never completed: not known how long
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import DIRECT, MS, Waits, at


def make(folder: Path) -> None:
    comms = {tid: f"task{tid}" for tid in range(1, 9)}
    waits = Waits(*DIRECT, "block_rq_issue", "block_rq_complete", cmdlines=comms)
    waits.span(5, 8, 3, DIRECT)
    waits.add(10, 1, DIRECT[0])
    waits.add(15, 7, "block_rq_issue", sector=64, nr_sector=8, rwbs="WS")
    waits.span(30, 40, 1, DIRECT)
    waits.add(50, 2, DIRECT[1])
    waits.add(60, 4, DIRECT[0])
    waits.add(80, 5, DIRECT[0])
    waits.span(81, 82, 6, DIRECT)
    waits.add(84, 6, DIRECT[1])
    waits.span(70, 100, 8, DIRECT)
    waits.write(folder, lost_before=(30, 70))


def _row(ms: float, dur: int | None, tid: int, cut: str | None) -> Expected:
    time = None if dur is None else dur * MS
    row = {"ts": at(ms), "dur": time, "span_ns": time, "tid": tid, "cut": cut}
    return row | {"kind": "direct reclaim", "cause": "unknown"}


CHECKS = [
    Check(
        query="stalls",
        ordered=True,
        rows=[
            _row(5, 3, 3, None),
            _row(10, None, 1, "lost"),
            _row(30, 10, 1, None),
            _row(50, None, 2, "lost"),
            _row(60, None, 4, "lost"),
            _row(70, 30, 8, None),
            _row(80, 20, 5, "end"),
            _row(81, 1, 6, None),
            _row(84, None, 6, "lost"),
        ],
        warning_words=("lost",),
    ),
]
