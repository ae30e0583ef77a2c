# SPDX-License-Identifier: Apache-2.0
"""A trace of a day: what SQLite does for a timeline or for blame grows with it, not faster."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import wbscope
from support.texttrace import load_lines
from wbscope.library.library import load_library

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


def _wbs(count: int) -> Iterator[str]:
    """So many cgroups write to one device, one after the other; each waits three times."""
    for place in range(3 * count):
        at, tid = 1000 + place / 10, 100 + place % count
        told = _THROTTLED.format(0, 14000, 30, 50).replace("_ino=1", f"_ino={tid}")
        yield f"writer-{tid} [000] {at:.6f}: global_dirty_state: {_STATE.format(7000, place)}"
        yield f"writer-{tid} [000] {at + 2e-6:.6f}: balance_dirty_pages: {told}"


def _work(lines: Iterator[str], views: Sequence[str], folder: Path) -> dict[str, int]:
    """Steps of each statement that makes these views, and of reading each."""
    folder.mkdir()
    loaded = load_lines(list(lines), folder)
    done: dict[str, int] = {}
    with wbscope.open(loaded.path) as run, closing(sqlite3.connect(loaded.path)) as db:
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
    views = [file.name for file in load_library().timelines()]
    views += ["_pool_added", "pool"]
    short = _work(_lines(_SHORT_H), views, tmp_path / "short")
    long = _work(_lines(_LONG_H), views, tmp_path / "long")
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


def test_causes_of_many_cgroups_grow_with_them(tmp_path: Path) -> None:
    """No table has a row for each of them beside each other one."""
    short, long = (_work(_wbs(count), ["wb_loss"], tmp_path / str(count)) for count in (200, 800))
    assert list(short) == list(long)
    faster = {
        statement: (short[statement], steps)
        for statement, steps in long.items()
        if steps > max(6 * short[statement], _LEAST)
    }
    assert faster == {}
    for table in ("_pool_rival", "_pool_holder", "_pool_beside", "_loss_throttle"):
        assert any(statement.startswith(f"INSERT INTO {table}\n") for statement in long)
