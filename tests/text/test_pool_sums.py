# SPDX-License-Identifier: Apache-2.0
"""Who held the pool, by sums that grow with the trace, against each wb looked up for each sleep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import pytest
import wbscope
from hypothesis import strategies as st
from support.properties import for_all
from support.texttrace import load_lines

_STATE = "dirty={0} writeback={0} bg_thresh=7489 thresh=14997 limit=15053 dirtied={1} written=16"
_THROTTLED = (
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
        made.append((event, _THROTTLED.format(bdi, *told)))
    return made


def _lines(events: list[tuple[_Event, str]]) -> Iterator[str]:
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
    loaded = load_lines(list(_lines(made)), tmp_path_factory.mktemp("pool"))
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
