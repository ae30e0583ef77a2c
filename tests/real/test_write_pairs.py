# SPDX-License-Identifier: Apache-2.0
"""Both ends of write system calls, found by the links of ingest, against a walk through the events.

The events are at random: tasks lose entries and returns, calls are cut by the trace's ends, and
another call comes in between.
"""

from __future__ import annotations

import random
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest
import wbscope
from hypothesis import strategies as st
from support.formats import build_format
from support.kernel_events import formats
from support.properties import for_all
from support.tracedat import Buffer, Trace
from wbscope.library.library import load_library
from wbscope.run.ingested import ingest
from wbscope.source.source import find_source

# Their descriptor, and whether they write.
_CALLS = {"write": ("fd", True), "copy_file_range": ("fd_out", False)}
_NUMBER = "int __syscall_nr"
_COPY_ENDS = (
    build_format("syscalls", "sys_enter_copy_file_range", 900, (_NUMBER, "int fd_out"), '""'),
    build_format("syscalls", "sys_exit_copy_file_range", 901, (_NUMBER, "long ret"), '""'),
)
_CALL = "seq, ts, end_ts, tid, call, is_write, fd, written_bytes, cut"
_PAIRS = f"SELECT {_CALL} FROM wb_call WHERE is_write IS NOT NULL"
_START_NS = 10_000_000_000
_LONG = 399
_STEP_NS = 1000

Event = tuple[int, int, int, str, bool, int]  # seq, ts, tid, call, whether it returns, fd or result
Row = tuple[object, ...]
Ends = tuple[tuple[int, ...], tuple[int, ...]]


_STEP = st.tuples(
    st.sampled_from((11, 12, 13, 4_194_303)),  # tid
    st.sampled_from([*_CALLS, "write"]),
    st.booleans(),  # whether the task's first event of this call is its return
    st.sampled_from([False] * 9 + [True]),  # whether the next one is lost
    st.integers(1, 99),  # fd or result
)
# Few that are shown, many that are mixed.
_STEPS = st.lists(_STEP, min_size=1, max_size=20) | st.lists(_STEP, min_size=60, max_size=200)


def events_of(steps: list[tuple[int, str, bool, bool, int]]) -> list[Event]:
    """Calls of a task begin and end in turns, but for what is lost."""
    inside: dict[tuple[int, str], bool] = {}
    events = []
    for seq, (tid, call, begins_inside, is_lost, value) in enumerate(steps, 1):
        is_end = inside.get((tid, call), begins_inside)
        inside[tid, call] = is_end == is_lost
        events.append((seq, _START_NS + seq * _STEP_NS, tid, call, is_end, value))
    return events


def many_events() -> list[Event]:
    chance = random.Random(5)
    tids, calls = (11, 12, 13, 4_194_303), [*_CALLS, "write"]
    return events_of(
        [
            (chance.choice(tids), chance.choice(calls), chance.random() < 0.5,
             chance.random() < 0.1, chance.randrange(1, 100))
            for _ in range(_LONG)
        ]
    )  # fmt: skip


def recorded(
    events: list[Event], path: Path, lost_at: int | None = None, ends: Ends = ((0,), (0,))
) -> Path:
    """In the buffers that `ends` tells for entries and for returns."""
    trace = Trace(
        [*formats("sys_enter_write", "sys_exit_write"), *_COPY_ENDS],
        cmdlines={11: "dd"},
        buffers=[Buffer(), Buffer("instance")][: 1 + max(chain(*ends))],
    )
    for seq, ts, tid, call, is_end, value in events:
        if seq == lost_at:
            trace.page_break(0)
            trace.lost(0, 3)
        side, field = ("exit", "ret") if is_end else ("enter", _CALLS[call][0])
        for buffer in ends[is_end]:
            trace.event(0, ts, tid, f"sys_{side}_{call}", {field: value}, buffer=buffer)
    return trace.write(path)


def written(events: list[Event], path: Path) -> Path:
    """As the text of the tracing files, where an event is known from its first line on."""
    with path.open("w") as text:
        text.write("# tracer: nop\n#\n")
        for _, ts, tid, call, is_end, value in events:
            said = f" -> {value:#x}" if is_end else f"({_CALLS[call][0]}: {value:x})"
            text.write(f"  dd-{tid} [000] d..1. {ts / 1e9:.6f}: sys_{call}{said}\n")
    return path


def walked(events: list[Event], lost_ts: int | None) -> Iterator[Row]:
    """What wb_call has of writes, event by event."""
    last_ts = events[-1][1]
    chains: dict[tuple[int, str], list[Event]] = defaultdict(list)
    for event in events:
        chains[event[2], event[3]].append(event)
    for (tid, call), steps in chains.items():
        for place, (seq, ts, _, _, is_end, value) in enumerate(steps):
            before = steps[place - 1] if place else None
            after = steps[place + 1] if place + 1 < len(steps) else None
            if is_end and before and not before[4]:
                continue  # told with its entry
            end_ts: int | None = None
            fd = written = None
            cut: str | None = "lost"
            if is_end:
                written, end_ts = value, ts
                if before is None and (lost_ts is None or lost_ts > ts):
                    cut = "start"
            elif after and after[4]:
                cut, end_ts, fd, written = None, after[1], value, after[5]
            elif after:
                end_ts = after[1]
            elif lost_ts is None or lost_ts < ts:
                cut, end_ts = "end", last_ts
            is_write = 0 if not _CALLS[call][1] else 1 if cut == "lost" else 2
            yield seq, ts, end_ts, tid, call, is_write, fd, written, cut


@for_all(60, events=_STEPS.map(events_of), lost_at=st.none() | st.integers(1, 200))
def test_pairs_are_those_of_a_walk(
    events: list[Event], lost_at: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if lost_at is not None:
        lost_at = min(lost_at, len(events))
    trace = recorded(events, tmp_path_factory.mktemp("pairs") / "trace.dat", lost_at)
    with wbscope.open(trace) as run:
        gaps = [row[0] for row in run.sql("SELECT ts FROM lost_events").rows]
        found = sorted(map(tuple, run.sql(_PAIRS).rows), key=repr)
    assert len(gaps) == (lost_at is not None)
    assert found == sorted(walked(events, gaps[0] if gaps else None), key=repr)


@for_all(60, events=_STEPS.map(events_of))
def test_pairs_of_a_text_are_those_of_a_walk(
    events: list[Event], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with wbscope.open(written(events, tmp_path_factory.mktemp("pairs") / "trace.txt")) as run:
        found = sorted(map(tuple, run.sql(_PAIRS).rows), key=repr)
    assert found == sorted(walked(events, None), key=repr)


def test_plain_sqlite_finds_the_same(tmp_path: Path) -> None:
    events = many_events()
    database = tmp_path / "run.db"
    ingest(find_source(str(recorded(events, tmp_path / "trace.dat"))), database, load_library())
    with closing(sqlite3.connect(database)) as connection:
        found = connection.execute(_PAIRS).fetchall()
    assert sorted(found, key=repr) == sorted(walked(events, None), key=repr)


@pytest.mark.parametrize(
    "ends", [((0,), (1,)), ((1,), (0,)), ((0, 1), (1,)), ((0,), (0, 1)), ((0, 1), (0, 1))]
)
def test_ends_can_be_in_different_instances(tmp_path: Path, ends: Ends) -> None:
    """Of each event the first buffer that has it is taken; seq counts all."""
    events = many_events()
    with wbscope.open(recorded(events, tmp_path / "trace.dat", None, ends)) as run:
        rows = run.sql(_PAIRS).rows
    found = sorted((tuple(row[1:]) for row in rows), key=repr)
    assert found == sorted((row[1:] for row in walked(events, None)), key=repr)


def test_a_file_without_the_links_answers_too(tmp_path: Path) -> None:
    """As older versions wrote it."""
    events = many_events()
    database = tmp_path / "run.db"
    ingest(find_source(str(recorded(events, tmp_path / "trace.dat"))), database, load_library())
    with closing(sqlite3.connect(database)) as connection:
        # The saved views name the column.
        find = "SELECT name FROM sqlite_schema WHERE type = 'view'"
        for (view,) in connection.execute(find).fetchall():
            connection.execute(f'DROP VIEW "{view}"')
        for call in _CALLS:
            for side in ("enter", "exit"):
                connection.execute(f"ALTER TABLE ev_sys_{side}_{call} DROP COLUMN prev_seq")
    with wbscope.open(database) as run:
        found = sorted(map(tuple, run.sql(_PAIRS).rows), key=repr)
    assert found == sorted(walked(events, None), key=repr)
