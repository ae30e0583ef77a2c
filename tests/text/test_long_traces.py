# SPDX-License-Identifier: Apache-2.0
"""A trace of a day: what SQLite does for a timeline or for blame grows with it, not faster."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import wbscope
from support.texttrace import load_lines

_STATE = "dirty={0} writeback={0} bg_thresh=7489 thresh=14997 limit=15053 dirtied={1} written=16"
_THROTTLED = (
    "bdi 254:{}: limit=15053 setpoint=13148 dirty={} bdi_setpoint=13147 bdi_dirty={}"
    " dirty_ratelimit=101200 task_ratelimit=500 dirtied=32 dirtied_pause=32 paused=0 pause={}"
    " period=64 think=0 cgroup_ino=1"
)
_SHORT_H, _LONG_H = 6, 24
_EVERY = 1_000  # steps of SQLite's machine
_LEAST = 2_000_000  # what takes no time, however it grows


def _lines(hours: int) -> Iterator[str]:
    """Two tasks of a device and one of another, each throttled about every 20 s."""
    chance = random.Random(23)
    events = []
    for tid in (11, 12, 13):
        at = 1000.0 + tid
        while at < 1000 + hours * 3600:
            events.append((at, tid))
            at += chance.expovariate(1 / 20)
    for place, (at, tid) in enumerate(sorted(events)):
        dirty = chance.randint(13000, 15000)
        told = _THROTTLED.format(tid // 13, dirty, dirty // 2, chance.randint(20, 200))
        yield f"writer-{tid} [000] {at:.6f}: global_dirty_state: {_STATE.format(dirty // 2, place)}"
        yield f"writer-{tid} [000] {at + 2e-6:.6f}: balance_dirty_pages: {told}"


def _work(hours: int, folder: Path) -> dict[str, int]:
    """Steps of each statement that makes the timelines and blame, and of reading each."""
    folder.mkdir()
    loaded = load_lines(list(_lines(hours)), folder)
    done: dict[str, int] = {}
    with wbscope.open(loaded.path) as run, closing(sqlite3.connect(loaded.path)) as db:
        views = [file.name for file in run.library.timelines()]
        views += ["wb_pool_added", "wb_pool_window"]
        statements = list(run.script(views).statements)
        statements += [f"SELECT * FROM {view}" for view in views]
        for statement in statements:
            ticks = 0

            def tick() -> int:
                nonlocal ticks
                ticks += 1
                return 0

            db.set_progress_handler(tick, _EVERY)
            for _ in db.execute(statement):
                pass
            db.set_progress_handler(None, 0)
            done[statement] = ticks * _EVERY
    return done


def test_work_grows_no_faster_than_the_trace(tmp_path: Path) -> None:
    short, long = _work(_SHORT_H, tmp_path / "short"), _work(_LONG_H, tmp_path / "long")
    assert list(short) == list(long)
    most = 1.6 * _LONG_H / _SHORT_H
    faster = {
        statement: (short[statement], steps)
        for statement, steps in long.items()
        if steps > _LEAST and steps > most * short[statement]
    }
    assert faster == {}
    # The long one is long enough to tell.
    assert sum(steps > _LEAST for steps in long.values()) > 3
