# SPDX-License-Identifier: Apache-2.0
"""Long texts and parts of texts: what a question costs, and that sums and parts are right."""

from __future__ import annotations

import random
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import wbscope
from hypothesis import strategies as st
from support.cli import Wbscope
from support.properties import for_all
from support.runs import example
from support.texttrace import load, load_binary, load_lines
from support.tools import require_program, run
from wbscope.library.library import load_library

# A trace of a day: what SQLite does for a timeline or for blame grows with it, not faster.

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


# When each of many tasks looked at the machine's dirty pages first, and how often.

_FULL_STATE = "dirty=4042 writeback=10 bg_thresh=2000 thresh=4000 limit=4096 dirtied={} written=16"
_FULL_THROTTLED = (
    "bdi 254:16: limit=4096 setpoint=3584 dirty=4042 bdi_setpoint=3314 bdi_dirty=3856"
    " dirty_ratelimit=18724 task_ratelimit=5264 dirtied=36 dirtied_pause=36 paused=0 pause=24"
    " period=24 think=0 cgroup_ino=1"
)


def _task_lines(order: list[int]) -> list[str]:
    """Each task of the order looks and is throttled."""
    lines = []
    for place, tid in enumerate(order):
        front = f"dd-{tid} [000] 10.{place:06d}"
        lines += [
            f"{front}001: global_dirty_state: {_FULL_STATE.format(place)}",
            f"{front}002: balance_dirty_pages: {_FULL_THROTTLED}",
        ]
    return lines


# Few that are shown; and many.
_ORDERS = (st.integers(1, 30) | st.integers(400, 900)).flatmap(
    lambda n: st.lists(st.integers(100, 100 + n), min_size=n, max_size=n)
)


@for_all(20, order=_ORDERS)
def test_looks_in_any_order(tmp_path_factory: pytest.TempPathFactory, order: list[int]) -> None:
    loaded = load_lines(_task_lines(order), tmp_path_factory.mktemp("looks"))
    looks: dict[int, list[int]] = {}
    for seq, tid in loaded.sql("SELECT seq, tid FROM ev_global_dirty_state ORDER BY seq"):
        looks.setdefault(tid, []).append(seq)
    with wbscope.open(loaded.path) as run:
        rows = run.sql(
            "SELECT t.tid, l.looks_count, l.first_seq"
            " FROM _dirtied_look AS l JOIN wb_task AS t USING (task_id)"
        ).rows
    found = {tid: tuple(rest) for tid, *rest in rows}
    assert found == {tid: (len(seqs), seqs[0]) for tid, seqs in looks.items()}
    assert len(found) == len(set(order))


# Who held the pool, by sums that grow with the trace, against each wb looked up for each sleep.

_POOL_THROTTLED = (
    "bdi {}: limit={} setpoint={} dirty={} bdi_setpoint={} bdi_dirty={} dirty_ratelimit=101200"
    " task_ratelimit=500 dirtied=32 dirtied_pause=32 paused=0 pause={} period=64 think=0"
    " cgroup_ino={}"
)
_PAGE = 4096
_STALE_NS = 2_000_000_000
_MACHINE = (15053, 13148)
_CGROUP = (4096, 3584)


class _Event(NamedTuple):
    ts: int
    wb: tuple[str, int]
    held: int  # bytes, by the event
    is_memcg: bool
    pauses: bool


class _Sleep(NamedTuple):
    seq: int
    ts: int
    wb: tuple[str, int]
    is_memcg: bool


# Ages of just two seconds and times on their borders are among them.
_AGES_NS = st.sampled_from([1_000, 250_000_000, 500_000_000, 2_000_000_000, 7_000])
_HELD = st.sampled_from((0, 77)) | st.integers(0, 3300)
_STEP = st.tuples(_AGES_NS, st.booleans(), st.integers(0, 790), _HELD, st.integers(0, 200))
_STEPS = st.integers(1, 120).flatmap(lambda n: st.lists(_STEP, min_size=n, max_size=n))
_WBS = st.lists(
    st.tuples(st.integers(0, 2).map("254:{}".format), st.integers(1, 12)),
    min_size=1,
    max_size=24,
    unique=True,
)


@st.composite
def _made(draw: st.DrawFn) -> list[tuple[_Event, str]]:
    wbs = draw(_WBS)
    ts = 1_000_000_000_000
    made = []
    for place, (age_ns, is_own, more, held, pause) in enumerate(draw(_STEPS)):
        ts += age_ns
        bdi, cgroup = wbs[(place * 7 + more) % len(wbs)]
        is_memcg = cgroup > 1 and is_own
        dirty = 3300 + more if is_memcg else 13000 + more
        limit, setpoint = _CGROUP if is_memcg else _MACHINE
        told = (limit, setpoint, dirty, setpoint - 1, held, pause, cgroup)
        event = _Event(ts, (bdi, cgroup), held * _PAGE, is_memcg, pause > 0)
        made.append((event, _POOL_THROTTLED.format(bdi, *told)))
    return made


def _pool_lines(events: list[tuple[_Event, str]]) -> Iterator[str]:
    tids = {wb: 100 + place for place, wb in enumerate(sorted({e.wb for e, _ in events}))}
    for place, (event, told) in enumerate(events):
        tid = tids[event.wb]
        at = f"{event.ts // 10**9}.{event.ts % 10**9:09d}"
        yield f"writer-{tid} [000] {at}: global_dirty_state: {_STATE.format(7000, place)}"
        yield f"writer-{tid} [000] {at}: balance_dirty_pages: {told}"


def _others(sleep: _Sleep, events: list[_Event]) -> dict[tuple[str, int], int]:
    """What each other wb of its pool held: its last event, if that is at most two seconds old."""
    last = {event.wb: event for event in events if event.ts <= sleep.ts}
    return {
        wb: event.held
        for wb, event in last.items()
        if wb != sleep.wb
        and event.held > 0
        and sleep.ts - event.ts <= _STALE_NS
        and (not sleep.is_memcg or wb[1] == sleep.wb[1])
    }


@for_all(25, made=_made())
def test_sums_are_those_of_each_wb(
    made: list[tuple[_Event, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    events = [event for event, _ in made]
    loaded = load_lines(list(_pool_lines(made)), tmp_path_factory.mktemp("pool"))
    with wbscope.open(loaded.path) as run:
        sleeps = [
            _Sleep(row["seq"], row["ts"], (row["bdi"], row["cgroup_ino"]), row["domain"] == "memcg")
            for row in run.sql("SELECT * FROM wb_throttle_cause").records()
        ]
        own = {row["seq"]: row for row in run.sql("SELECT * FROM wb_pool").records()}
        holders = {
            row["seq"]: ((row["holder_bdi"], row["holder_cgroup_ino"]), row["holder_bytes"])
            for row in run.sql("SELECT * FROM wb_pool WHERE holder_bdi IS NOT NULL").records()
        }
        blamed = {
            (row["task_id"], (row["bdi"], row["cgroup_ino"]), row["holder_bdi"],
             row["holder_cgroup_ino"]): row["held_ns"]
            for row in run.sql("SELECT * FROM wb_pool_blame").records()
            if row["basis"] == "events"
        }  # fmt: skip
    # Who has the time to sleep does; a pause is 200 ms at most.
    slept = {e.ts for e, n in pairwise(events) if e.pauses and n.ts - e.ts >= 250_000_000}
    assert slept <= {sleep.ts for sleep in sleeps} <= {e.ts for e in events if e.pauses}
    told: dict[object, float] = defaultdict(float)
    for sleep in sleeps:
        others = _others(sleep, events)
        row = own[sleep.seq]
        assert row["other_bytes"] == sum(others.values())
        found = holders.get(sleep.seq)
        assert (found is not None) == bool(others)
        if found is not None:
            assert found[1] == others[found[0]] == max(others.values())
        for wb, held in others.items():
            part = row["slept_ns"] * held / row["too_much"] / row["pool_bytes"]
            told[row["task_id"], sleep.wb, *wb] += part
    assert blamed == pytest.approx(told)


# ingest --time-range and --limit of a text: what the same part of trace.dat gives.

_RUN = example("four-equal-writers").trace
_KEYS = (
    "first_ts",
    "last_ts",
    "range_first_ts",
    "range_end_ts",
    "loaded_limit",
    "partial",
    "events_count",
    "loaded_count",
)
_EVENT = "mm_vmscan_kswapd_sleep"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.txt"
    done = run([require_program("trace-cmd"), "report", "-t", _RUN])
    path.write_text(done.stdout, encoding="utf-8")
    return path


def _selection(meta: dict[str, Any]) -> dict[str, Any]:
    return {key: meta.get(key) for key in _KEYS}


@pytest.mark.parametrize(
    "options",
    [
        ("--time-range", "+1000000000..+2500000000"),
        ("--time-range", "+2000000000.."),
        ("--time-range", "..+1"),
        ("--limit", "1"),
        ("--limit", "5000"),
        ("--limit", "99999999"),
        ("--events", "writeback:balance_dirty_pages", "--limit", "700"),
        ("--time-range", "+1000000000..", "--limit", "3000"),
    ],
    ids=" ".join,
)
def test_same_part_as_of_the_trace(
    wbscope: Wbscope, report: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    options = options if "--events" in options else ("--all", *options)
    truth = load_binary(_RUN, tmp_path / "dat.db", *options)
    text = load(report, tmp_path / "text.db", *options)
    assert _selection(text.meta()) == _selection(truth.meta())
    tasks = "SELECT tid, first_ts, last_ts, events_count FROM task ORDER BY tid"
    counts = "SELECT event, count FROM event_counts WHERE count > 0 ORDER BY event"
    for rows in (tasks, counts):
        assert text.sql(rows) == truth.sql(rows)
    # A choice of events leaves out what throughput is made of.
    for query in ("throttle_by_task", "throughput")[: 1 if "--events" in options else 2]:
        assert wbscope.query(query, text.path) == wbscope.query(query, truth.path)


def test_counters_are_those_of_the_part(tmp_path: Path) -> None:
    front = "dd-1 [000]  "
    lines = [f"{front}{ts}: {_EVENT}: nid=0" for ts in ("1.0", "3.0", "2.0", "8.0", "7.0", "9.0")]
    lines += ["CPU:0 [LOST 5 EVENTS]", f"{front}10.0: unheard: a=1"]
    whole = load_lines(lines, tmp_path, "--all")
    assert whole.counters()["time_backwards"] == 2
    part = load_lines(lines, tmp_path, "--all", "--force", "--time-range", "+0..+4000000000")
    assert part.counters()["time_backwards"] == 1
    assert "text_generic" not in part.counters()
    meta = part.meta()
    assert (meta["first_ts"], meta["last_ts"]) == (1_000_000_000, 3_000_000_000)
    assert (meta["events_count"], meta["lost_gaps_count"]) == (3, 0)


def test_a_range_without_a_record(tmp_path: Path) -> None:
    loaded = load_lines(
        [f"dd-1 [000]  1.0: {_EVENT}: nid=0"], tmp_path, "--all", "--time-range", "5000000000.."
    )
    meta = loaded.meta()
    assert (meta["events_count"], meta["range_first_ts"], meta["partial"]) == (0, 5 * 10**9, 1)
    assert "first_ts" not in meta


def test_more_names_than_fit(wbscope: Wbscope, tmp_path: Path) -> None:
    lines = [f"dd-1 [000]  {i + 1}.0: event{i}: a=1" for i in range(9000)]
    loaded = load_lines([*lines, lines[-1]], tmp_path)
    assert loaded.meta()["events_count"] == 9001
    assert loaded.meta()["loaded_count"] == 8192
    assert loaded.counters()["records_over_cap"] == 9001 - 8192
    assert loaded.sql("SELECT events_count FROM task WHERE tid = 1") == [(9001,)]
    warnings = wbscope.document("query", "event_counts", loaded.path)["warnings"]
    (said,) = [w["message"] for w in warnings if w["slug"] == "data-loss-records-over-cap"]
    assert said.startswith("records_over_cap is 809: ")
