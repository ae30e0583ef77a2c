# SPDX-License-Identifier: Apache-2.0
"""Waits that a patched kernel measured: balance_dirty_pages_done ends each call and tells its wait.

By hand, 4 KiB pages, ms from 10 s; the trace begins with dd's first event.
  dd, tid 1: one call from 0 to 311 ms of two events, at 0 (pause 200) and 206 (pause 100): a wait
    of 309 ms. Shares by the time to the next event, 206 + 1 ns, and to the return, 105 + 1 ns:
    309 * 206.000001 / 311.000002 = 204.675240 ms and the rest, 104.324760 ms. 10 pages.
    Then one at 320 (pause 12), return at 331 after 10 ms; the next at 335 looks like a continuation
    (rate 0, same bdi and pages, paused 4 ms), but the return at 331 proves that it is not: a third
    call, return at 344 after 8 ms. Calls 3, pauses 4, slept 309 + 10 + 8 = 327 ms.
  fio, tid 2: a pause of 100 ms at 10, returned at 11 with exit async: nobody slept or paid.
  cp, tid 3: its call began before the trace: entered at -500 ms, an event at 20 ms with 520 ms
    paused, return at 61 ms with 2 loops and 540 ms waited: the part of that in the trace is not
    known. So the pause counts as intended, 40 ms and half a jiffy (HZ is 250: all times are
    multiples of 4, not of 10) = 42 ms, but it is over at the return: 41 ms. The call took 561 ms.
  tar, tid 4: first event lost: call from 100 to 180 ms, all in the trace, 2 loops, an event at 150,
    70 ms waited: all of it counts, though only 30 ms are behind that event: it ends with the call,
    so it began at 110.
  sh, tid 5: its return is lost: the stock rules hold, pause 20 ms at 200: 22 ms intended. The next
    event at 300 (pause 8) returns at 309 after 8.5 ms: loops 1, so the first is not in it.
  rm, tid 6: killed in a call, which returns all the same (exit signal): 30 ms of a pause of 200 ms.
  ls, tid 8: a pause of 12 ms at 30 (14 ms intended), whose return is lost. The next call is from
    230 to 290 ms, 2 loops, 50 ms waited, and its first event is lost: the event at 270 is of it,
    the one at 30 is not, for that was before the call. Calls 2, slept 14 + 50 ms, from 240 on.
  mv, tid 7: the trace ends in its call: 12 ms asked for at 344, the trace's last ms: intended, cut
    to 0 ms.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import MS, Waits, at

_TASKS = {1: "dd", 2: "fio", 3: "cp", 4: "tar", 5: "sh", 6: "rm", 7: "mv", 8: "ls"}
_SIGNAL = 4
_ASYNC = 5


def make(folder: Path) -> None:
    waits = Waits("balance_dirty_pages", "balance_dirty_pages_done", cmdlines=_TASKS)

    def pause(ms: float, tid: int, length: int, pages: int, *, paused: int = 0) -> None:
        values = {"cgroup_ino": 1, "dirty_ratelimit": 1000, "dirtied": pages, "paused": paused}
        values |= {"pause": length, "period": length}
        waits.add(ms, tid, "balance_dirty_pages", bdi="8:0", **values)

    def done(
        ms: float, tid: int, wait: float, total: float, *, loops: int = 1, leave: int = 2
    ) -> None:
        values = {"cgroup_ino": 1, "wait_ns": int(wait * MS), "total_ns": int(total * MS)}
        values |= {"loops": loops, "sleeps": loops, "exit": leave}
        waits.add(ms, tid, "balance_dirty_pages_done", bdi="8:0", **values)

    pause(0, 1, 200, 10)
    pause(10, 2, 100, 64)
    done(11, 2, 0, 1, leave=_ASYNC)
    pause(20, 3, 40, 8, paused=520)
    pause(30, 8, 12, 4)
    done(61, 3, 540, 561, loops=2)
    pause(150, 4, 28, 9, paused=48)
    done(180, 4, 70, 80, loops=2)
    pause(200, 5, 20, 7)
    pause(206, 1, 100, 10, paused=204)
    pause(210, 6, 200, 6)
    done(240, 6, 30, 30, leave=_SIGNAL)
    pause(270, 8, 16, 5, paused=24)
    done(290, 8, 50, 60, loops=2)
    pause(300, 5, 8, 7)
    done(309, 5, 8.5, 9)
    done(311, 1, 309, 311, loops=2)
    pause(320, 1, 12, 5)
    done(331, 1, 10, 11)
    pause(335, 1, 8, 5, paused=4)
    done(344, 1, 8, 9)
    pause(344, 7, 12, 1)
    waits.write(folder)


def _row(
    tid: int, calls: int, pauses: int, slept: float, basis: str, longest: float, pages: int
) -> Expected:
    return {
        "tid": tid,
        "comm": _TASKS[tid],
        "calls_count": calls,
        "pauses_count": pauses,
        "slept_total_ns": int(slept * MS),
        "slept_basis": basis,
        "call_max_ns": int(longest * MS),
        "dirtied_bytes": pages * 4096,
    }


CHECKS = [
    Check(
        query="throttle_by_task",
        rows=[
            _row(1, 3, 4, 327, "measured", 311, 20),
            _row(2, 1, 1, 0, "measured", 1, 0),
            _row(3, 1, 1, 41, "intended", 561, 8),
            _row(4, 1, 1, 70, "measured", 80, 9),
            _row(5, 2, 2, 30.5, "intended", 22, 14),
            _row(6, 1, 1, 30, "measured", 30, 6),
            _row(7, 1, 1, 0, "intended", 0, 1),
            _row(8, 2, 2, 64, "intended", 60, 9),
        ],
    ),
    Check(
        sql="SELECT t.ts, t.slept_ns, t.is_first, t.is_last FROM wb_throttle AS t WHERE t.tid = 1"
        " ORDER BY t.seq",
        ordered=True,
        rows=[
            {"ts": at(0), "slept_ns": 204_675_240, "is_first": 1, "is_last": 0},
            {"ts": at(206), "slept_ns": 104_324_760, "is_first": 0, "is_last": 1},
            {"ts": at(320), "slept_ns": 10 * MS, "is_first": 1, "is_last": 1},
            {"ts": at(335), "slept_ns": 8 * MS, "is_first": 1, "is_last": 1},
        ],
    ),
    Check(
        sql="SELECT t.ts, t.sleep_ts, t.slept_ns, t.is_first FROM wb_throttle AS t"
        " WHERE t.tid IN (4, 8) ORDER BY t.seq",
        ordered=True,
        rows=[
            {"ts": at(30), "sleep_ts": at(30), "slept_ns": 14 * MS, "is_first": 1},
            {"ts": at(150), "sleep_ts": at(110), "slept_ns": 70 * MS, "is_first": 1},
            {"ts": at(270), "sleep_ts": at(240), "slept_ns": 50 * MS, "is_first": 1},
        ],
    ),
    Check(
        query="throttle_windows",
        options=("--tid", "4", "--window", "20ms", "--from", "100ms", "--to", "200ms"),
        ordered=True,
        rows=[
            {"window_start_ns": at(100), "throttled_ratio": 0.5},
            {"window_start_ns": at(120), "throttled_ratio": 1.0},
            {"window_start_ns": at(140), "throttled_ratio": 1.0},
            {"window_start_ns": at(160), "throttled_ratio": 1.0},
            {"window_start_ns": at(180), "throttled_ratio": 0.0},
        ],
    ),
]
