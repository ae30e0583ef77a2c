# SPDX-License-Identifier: Apache-2.0
"""Tracks of throttled tasks and of the flusher, with a name that has to be escaped.

By hand, ms from 10 s, pages of 4 KiB, bdi 8:0; sleeps are as intended (no sched_switch).
  tid 11, a/b|c, sleeps 40 from 100 and 20 from 200, with 8 pages at each: 32768, then 65536 bytes
  tid 12, dd, a thread of the process 11, sleeps 100 from 150, with 16 pages: 65536 bytes
  tasks in throttle: 1 at 100, 0 at 140, 1 at 150, 2 at 200, 1 at 220, 0 at 250
  background work from 90 to 400, 1000 - 900 = 100 pages: a timer ended the sleeps in it, no arrow
  tid 13, sync, waits from 500 to 600; work that it queued at 510 is done from 520 to 590, 40 pages:
    one arrow, from the end of the work at 590 to the end of the wait at 600
  limit 1000, setpoint 900 and dirty 950 pages are 3.9, 3.5 and 3.7 MiB; 875 KiB/s are 0.85 MiB/s, 8
    pages 32 KiB and 16 pages 64 KiB
  each call of balance_dirty_pages() has one pause and is as long; it comes first, for it is outside
  episodes: throttle from 100 to 250, for no gap is longer than 200 ms: 40 + 100 + 20 = 160 ms of
    two tasks; sync from 500 to 600
  curves of throttled tasks end with the last pause, that of tid 11 at 220, of tid 12 at 250
  task_ratelimit 875 is 0.875 of dirty_ratelimit 1000
  the trace has 599 ms and 1 ns of its window, from 1 ms on: tid 11 slept 60 ms of that and tid 12
    100 ms; of 131072 bytes each dirtied one half. Neither writes all through the window, and one
    event has no rate, so no bar compares them
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import MS, SYNC, Waits, at

_WORK = ("writeback_queue", "writeback_exec", "writeback_start", "writeback_written")
_NAME = r"a\/b|c 11"


def make(folder: Path) -> None:
    comms = {11: "a/b|c", 12: "dd", 13: "sync", 50: "kworker/u4:1"}
    waits = Waits("balance_dirty_pages", "task_newtask", *_WORK, *SYNC, cmdlines=comms)
    waits.add(1, 11, "task_newtask", pid=12, comm="dd", clone_flags=0x10900)
    for ms, tid, pause, pages in ((100, 11, 40, 8), (150, 12, 100, 16), (200, 11, 20, 8)):
        values = {"limit": 1000, "setpoint": 900, "dirty": 950, "dirty_ratelimit": 1000}
        values |= {"task_ratelimit": 875, "dirtied": pages, "pause": pause, "period": pause}
        values |= {"wb_dirty": 90 + ms, "bdi_dirty": 90 + ms, "bdi_setpoint": 500, "cgroup_ino": 1}
        known = {name: value for name, value in values.items() if name != "wb_dirty"}
        waits.add(ms, tid, "balance_dirty_pages", bdi="8:0", **known)
    for ms, tid, step, reason, pages in (
        (90, 50, "start", 0, 1000),
        (400, 50, "written", 0, 900),
        (510, 13, "queue", 2, 50),
        (520, 50, "exec", 2, 50),
        (530, 50, "start", 2, 50),
        (590, 50, "written", 2, 10),
    ):
        work = {"nr_pages": pages, "reason": reason, "for_background": int(reason == 0)}
        waits.add(ms, tid, f"writeback_{step}", name="8:0", cgroup_ino=1, **work)
    waits.span(500, 600, 13, SYNC)
    waits.write(folder)


def _samples(track: str, *points: tuple[float, float]) -> list[Expected]:
    return [{"ts": at(ms), "track": f"Writeback/{track}", "value": value} for ms, value in points]


def _slice(track: str, ms: int, length: int, name: str) -> Expected:
    return {"ts": at(ms), "dur": length * MS, "track": f"Writeback/{track}", "name": name}


def _after(ms: int) -> float:
    """One ns later."""
    return ms + 1 / MS


def _wait(ms: int, tid: int, length: int, name: str, why: str, kind: str) -> Expected:
    return {
        **{"ts": at(ms), "tid": tid, "dur": length * MS, "name": name, "track": "Writeback stalls"},
        **{"arg_why": why, "arg_kind": kind, "has_arrow": 0, "arg_comm": None},
        **{"arg_pause_ns": None, "arg_setpoint_bytes": None},
        **{"arg_slept_ns": None, "arg_pauses_count": None},
    }


def _call(ms: int, tid: int, comm: str, length: int, dirtied: str) -> list[Expected]:
    """A call, and its only pause."""
    held = f"held for {length} ms by 1 pause, mostly: above setpoint"
    name = f"balance_dirty_pages {length} ms: above setpoint"
    why = f"{dirtied} dirtied at 0.85 MiB/s is {length} ms: 3.7 MiB dirty > setpoint 3.5 MiB"
    call = _wait(ms, tid, length, name, held, "call")
    pause = _wait(ms, tid, length, _THROTTLE, f"{why}, limit 3.9 MiB", "throttle")
    return [
        call | {"arg_slept_ns": length * MS, "arg_pauses_count": 1},
        pause | {"arg_comm": comm, "arg_pause_ns": length * MS, "arg_setpoint_bytes": 900 * 4096},
    ]


_THROTTLE = "throttle: above setpoint"
CHECKS = [
    Check(
        sql="SELECT * FROM tl_stall_count",
        rows=[
            *_samples(
                "Stalls/tasks in throttle",
                *((100, 1), (140, 0), (150, 1), (200, 2), (220, 1), (250, 0)),
            ),
            *_samples("Stalls/tasks in sync", (500, 1), (600, 0)),
        ],
    ),
    Check(
        sql="SELECT * FROM tl_stall_task ORDER BY ts",
        ordered=True,
        rows=[
            _slice(f"Stalls/stalls of {_NAME}", 100, 40, _THROTTLE) | {"rank": 3},
            _slice("Stalls/stalls of dd 12", 150, 100, _THROTTLE) | {"rank": 1},
            _slice(f"Stalls/stalls of {_NAME}", 200, 20, _THROTTLE) | {"rank": 3},
            _slice("Stalls/stalls of sync 13", 500, 100, "sync") | {"rank": 2},
        ],
    ),
    Check(
        sql="SELECT ts, tid, dur, name, track, arg_why, arg_kind, flows IS NOT NULL AS has_arrow,"
        " arg_comm, arg_pause_ns, arg_setpoint_bytes, arg_slept_ns, arg_pauses_count"
        " FROM tl_stall ORDER BY ts, dur DESC",
        ordered=True,
        rows=[
            *_call(100, 11, "a/b|c", 40, "32 KiB"),
            *_call(150, 12, "dd", 100, "64 KiB"),
            *_call(200, 11, "a/b|c", 20, "32 KiB"),
            _wait(500, 13, 100, "sync", "the events do not tell why", "sync")
            | {"arg_comm": "sync"},
            _wait(600, 13, 0, "ended by work", "ended by work of the flusher", "end")
            | {"has_arrow": 1},
        ],
    ),
    Check(
        sql="SELECT ts, value FROM tl_held",
        rows=[
            {"ts": at(ms), "value": value}
            for ms, value in (
                *((100, 1), (140, 0), (150, 1), (200, 2), (220, 1), (250, 0)),
                *((500, 1), (600, 0)),
            )
        ],
    ),
    Check(
        sql="SELECT * FROM tl_look ORDER BY ts",
        ordered=True,
        rows=[
            _slice("What to look at", 100, 150, "160 ms lost by 2 tasks: above setpoint of 8:0")
            | {
                "arg_why": "2 a/b|c, dd lost 0.16 s in 3 waits (throttle): above setpoint of 8:0",
                "arg_lost_ns": 160 * MS,
                "arg_longest_ns": 100 * MS,
            },
            _slice("What to look at", 500, 100, "100 ms lost by sync 13: sync")
            | {
                "arg_why": "sync lost 0.10 s in 1 wait (sync): sync",
                "arg_lost_ns": 100 * MS,
                "arg_longest_ns": 100 * MS,
            },
        ],
    ),
    Check(
        sql="SELECT * FROM tl_flusher ORDER BY ts",
        ordered=True,
        rows=[
            _slice("Flusher work/8:0 background", 90, 310, "background") | {"flows": None},
            _slice("Flusher work/8:0 sync", 510, 10, "queued") | {"flows": None},
            _slice("Flusher work/8:0 sync", 520, 70, "sync") | {"flows": "57"},
        ],
    ),
    Check(
        sql="SELECT r.*, s.ts, w.reason FROM wb_release AS r"
        " JOIN wb_work AS w ON w.seq = r.source_id JOIN wb_stall AS s ON s.wait_id = r.wait_id",
        rows=[
            {"ts": at(500), "wait_end_ts": at(600), "source": "work", "source_ts": at(590)}
            | {"flow": 57, "reason": "sync"},
        ],
    ),
    Check(
        sql="SELECT * FROM wb_thread WHERE tid < 13",
        rows=[
            {"tid": 11, "pid": 11, "comm": "a/b|c", "process_comm": "a/b|c"},
            {"tid": 12, "pid": 11, "comm": "dd", "process_comm": "a/b|c"},
        ],
    ),
    Check(
        sql="SELECT * FROM tl_throttle",
        rows=[
            row
            for name, points in (
                (_NAME, ((100, 40, 8), (200, 20, 8), (_after(220), 0, 0))),
                ("dd 12", ((150, 100, 16), (_after(250), 0, 0))),
            )
            for ms, pause, pages in points
            for row in (
                *_samples(f"Throttled tasks/{name} on 8:0/pause", (ms, pause * MS)),
                *_samples(f"Throttled tasks/{name} on 8:0/paused", (ms, 0)),
                *_samples(f"Throttled tasks/{name} on 8:0/dirtied", (ms, pages * 4096)),
            )
        ],
    ),
    Check(
        sql="SELECT * FROM tl_task_ratelimit",
        rows=[
            row
            for name, moments, end in ((_NAME, (100, 200), 220), ("dd 12", (150,), 250))
            for ms, rate, ratio in (*((ms, 896000, 0.875) for ms in moments), (_after(end), 0, 0.0))
            for row in (
                *_samples(f"Bandwidth/8:0/task_ratelimit of {name}", (ms, rate)),
                *_samples(f"Bandwidth/8:0/pos_ratio of {name}", (ms, ratio)),
            )
        ],
    ),
    Check(
        sql="SELECT * FROM tl_wb_dirty",
        rows=[
            *_samples(
                "Dirty pages/wb_dirty 8:0", (100, 190 * 4096), (150, 240 * 4096), (200, 290 * 4096)
            ),
            *_samples("Dirty pages/wb_setpoint 8:0", *((ms, 2048000) for ms in (100, 150, 200))),
        ],
    ),
    Check(
        sql="SELECT * FROM tl_task_dirtied",
        rows=[
            *_samples(f"Task progress/dirtied by {_NAME} (bound)", (100, 32768), (200, 65536)),
            *_samples("Task progress/dirtied by dd 12 (bound)", (150, 65536)),
        ],
    ),
    Check(
        sql="SELECT * FROM tl_task_share",
        rows=[
            *_samples(f"Fairness/throttled share of {_NAME}", (1, 60 / 599.000001)),
            *_samples("Fairness/throttled share of dd 12", (1, 100 / 599.000001)),
            *_samples(f"Fairness/dirtied share of {_NAME}", (1, 0.5)),
            *_samples("Fairness/dirtied share of dd 12", (1, 0.5)),
        ],
    ),
    Check(
        sql="SELECT ts, dur, track, name, arg_jain_ratio, arg_tasks_count FROM tl_fairness"
        " UNION ALL SELECT ts, dur, track, name, arg_jain_ratio, arg_tasks_count FROM tl_jain",
        rows=[],
    ),
]
