# SPDX-License-Identifier: Apache-2.0
"""What a booted kernel says of dirty throttling, against everything else that was recorded."""

from __future__ import annotations

import re
import shutil
import sqlite3
import statistics
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.kernelchecks import (
    RUNS,
    Limits,
    asleep,
    calls_by_the_rule,
    calls_in,
    domain_of_throttle,
    dones_in,
    fetched,
    killed_asleep,
    setpoint_of,
    thresholds_of,
    told_calls,
    unexplained_waits,
    without_returns,
)

# Emulated CPUs are slow, and two of them share the machine with whatever else runs.
_SLACK_NS = 20_000_000
# dirty_ratio and dirty_background_ratio of tests/kernel/scenario.sh
_RATIOS = {"throttle": (6, 3), "reclaim": (60, 50)}
_DIRTIER, _FLUSHER, _SAMPLER = range(3)
_FREERUN, _MIN_PAUSE, _RATELIMIT, _WB_CLEAN, _SIGNAL, _ASYNC = range(6)


def _limits(database: sqlite3.Connection) -> list[Limits]:
    columns = "ts, tid, domain, dirty, bg_thresh, thresh, dirty_limit, cgroup_ino, caller"
    return [
        Limits(*row)
        for row in fetched(
            database, f"SELECT {columns} FROM ev_wb_domain_dirty_state ORDER BY ts, seq"
        )
    ]


# Throttling


def test_each_event_is_in_one_call(databases: dict[str, sqlite3.Connection]) -> None:
    """loops is the number of balance_dirty_pages events of the call."""
    calls, left = calls_in(databases["throttle"])
    assert len(calls) > 100
    assert left == []
    for call in calls:
        assert call.events[0].ts >= call.done.start - _SLACK_NS
    assert [(c.done.loops, c.done) for c in calls] == [(len(c.events), c.done) for c in calls]
    assert max(call.done.loops for call in calls) > 1


@pytest.fixture(scope="session")
def stock(
    databases: dict[str, sqlite3.Connection], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The throttle run as a kernel without the patches has it: no balance_dirty_pages_done."""
    return without_returns(databases["throttle"], tmp_path_factory.mktemp("stock") / "run.db")


def test_grouping_of_the_old_event_is_right(
    stock: Path, wbscope: Wbscope, databases: dict[str, sqlite3.Connection]
) -> None:
    """The rule by which wbscope makes calls of stock kernels' events, against the kernel.

    No call is excused: what task_ratelimit 0, a sleep, the device and the number of dirtied
    pages say has to be what the kernel did.
    """
    told = told_calls(databases["throttle"])
    assert sum(loops > 1 for _, _, loops in told) > 10
    assert calls_by_the_rule(wbscope, stock) == told


def test_waits_are_those_of_the_scheduler(databases: dict[str, sqlite3.Connection]) -> None:
    """wait_ns against the times without a CPU, on the same clock (mono)."""
    calls, _ = calls_in(databases["throttle"])
    switches = fetched(
        databases["throttle"],
        "SELECT ts, prev_pid, prev_state, next_pid FROM ev_sched_switch ORDER BY ts, seq",
    )
    off = asleep(switches)
    assert unexplained_waits(calls, off, _SLACK_NS) == []
    slept = [
        (call, sum(o.end - o.start for o in off[call.done.tid]
                   if o.asleep and call.start <= o.start and o.end <= call.done.ts))
        for call in calls if call.done.sleeps
    ]  # fmt: skip
    assert sum(call.done.sleeps for call, _ in slept) > 20
    more = [(call.done.wait_ns - ns) / call.done.sleeps for call, ns in slept]
    # The way into the scheduler and out of it is short nearly always.
    assert statistics.median(more) < 1_000_000
    total = sum(call.done.wait_ns for call in calls)
    assert total == pytest.approx(sum(ns for _, ns in slept), rel=0.05)


def test_no_sleep_is_no_wait(databases: dict[str, sqlite3.Connection]) -> None:
    for done in dones_in(databases["throttle"]):
        assert (done.wait_ns > 0, done.intended_ms > 0) == (done.sleeps > 0,) * 2
        assert done.wait_ns <= done.total_ns
        assert done.sleeps <= done.loops


def test_intended_is_the_sum_of_the_pauses(databases: dict[str, sqlite3.Connection]) -> None:
    calls, _ = calls_in(databases["throttle"])
    for call in calls:
        pauses = [event.pause_ms for event in call.events if event.pause_ms > 0]
        if call.done.exit != _ASYNC:
            assert call.done.intended_ms == sum(pauses)
            assert call.done.sleeps == len(pauses)


def test_exits_are_told(databases: dict[str, sqlite3.Connection]) -> None:
    """A min_pause exit ends in an event without pause, others in one with a sleep."""
    calls, _ = calls_in(databases["throttle"])
    exits = Counter(call.done.exit for call in calls)
    # How many of the others there are depends on how fast the emulated CPUs write.
    assert exits[_MIN_PAUSE] > 0
    assert len(exits) > 1, exits
    assert set(exits) <= {_FREERUN, _MIN_PAUSE, _RATELIMIT, _WB_CLEAN, _SIGNAL}, exits
    for call in calls:
        if call.done.exit == _MIN_PAUSE:
            assert call.events[-1].pause_ms <= 0
        else:
            assert call.events[-1].pause_ms > 0
            assert call.done.sleeps > 0


def test_a_killed_sleep_is_told(databases: dict[str, sqlite3.Connection]) -> None:
    """kill -9 of a task that sleeps ends its call as `signal`, and nothing else does."""
    database = databases["throttle"]
    calls, _ = calls_in(database)
    kills = fetched(database, "SELECT ts, pid FROM ev_signal_generate WHERE sig = 9")
    switches = fetched(
        database, "SELECT ts, prev_pid, prev_state, next_pid FROM ev_sched_switch ORDER BY ts, seq"
    )
    killed = killed_asleep(calls, asleep(switches), kills)
    assert {call.done.exit for call in killed} == {_SIGNAL}
    ended = [call for call in calls if call.done.exit == _SIGNAL]
    # signal_generate comes when the task has been woken, so on two CPUs a little late.
    for call in ended:
        assert any(tid == call.done.tid and ts <= call.done.ts + _SLACK_NS for ts, tid in kills)
    # With task_ratelimit 0 the call goes on but for the signal; else it is over in any case.
    assert {call.events[-1].task_ratelimit > 0 for call in ended} == {True, False}


# Domains


def test_thresholds_are_inputs_of_the_setpoint(databases: dict[str, sqlite3.Connection]) -> None:
    """setpoint and dirty of each event follow from the limits of the domain that decided."""
    calls, _ = calls_in(databases["throttle"])
    pairs = domain_of_throttle(calls, _limits(databases["throttle"]))
    assert len(pairs) == len(calls)
    seen = Counter()
    for event, limits in pairs:
        assert limits is not None
        assert event.dirty == limits.dirty
        assert event.setpoint == setpoint_of(event.limit, limits.thresh, limits.bg_thresh)
        seen[limits.domain] += 1
        if limits.domain:
            assert limits.cgroup_ino == event.cgroup_ino != 1
        else:
            assert limits.cgroup_ino == 0
            # The smoothed limit is updated between the two every 200 ms.
            seen["same limit"] += event.limit == limits.dirty_limit
    assert seen[0] > 50
    assert seen[1] > 0
    assert seen["same limit"] > 0.8 * seen[0]


def test_the_global_domain_is_that_of_global_dirty_state(
    databases: dict[str, sqlite3.Connection],
) -> None:
    """One for one: the same thread at the same place, with the same limits."""
    for database in databases.values():
        old = fetched(
            database,
            "SELECT tid, background_thresh, dirty_thresh, dirty_limit FROM ev_global_dirty_state"
            " ORDER BY tid, ts, seq",
        )
        new = fetched(
            database,
            "SELECT tid, bg_thresh, thresh, dirty_limit FROM ev_wb_domain_dirty_state"
            " WHERE domain = 0 ORDER BY tid, ts, seq",
        )
        assert len(old) > 200
        differ = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
        # dirty_limit alone can change between the two reads.
        assert [pair for pair in differ if pair[0][:3] != pair[1][:3]] == []
        assert len(differ) < 0.01 * len(old)


@pytest.mark.parametrize("run", RUNS)
def test_thresholds_follow_from_avail(run: str, databases: dict[str, sqlite3.Connection]) -> None:
    """Of each event, by the ratios; real-time tasks have more by what rt_boost says."""
    rows = fetched(
        databases[run],
        "SELECT thresh, bg_thresh, avail, rt_boost, dirty_limit FROM ev_wb_domain_dirty_state",
    )
    assert len(rows) > 200
    wrong = [
        row
        for row in rows
        if row[:2] != thresholds_of(row[2], *_RATIOS[run], row[4] if row[3] else None)
    ]
    # dirty_limit alone can change between its two reads.
    assert [row for row in wrong if not row[3]] == []
    assert len(wrong) <= 0.05 * sum(row[3] for row in rows)


def test_dirty_is_what_the_caller_compares(databases: dict[str, sqlite3.Connection]) -> None:
    """With the pages under writeback, but for the flusher, of the global_dirty_state beside it."""
    sampled = []
    for database in databases.values():
        old = fetched(
            database,
            "SELECT nr_dirty, nr_writeback FROM ev_global_dirty_state ORDER BY tid, ts, seq",
        )
        new = fetched(
            database,
            "SELECT caller, dirty FROM ev_wb_domain_dirty_state WHERE domain = 0"
            " ORDER BY tid, ts, seq",
        )
        more = [
            (caller, dirty - (nr_dirty + (nr_writeback if caller != _FLUSHER else 0)))
            for (nr_dirty, nr_writeback), (caller, dirty) in zip(old, new, strict=True)
        ]
        # Two reads, and the other CPU writes.
        assert sum(pages == 0 for _, pages in more) > 0.95 * len(more)
        sampled += [pages for caller, pages in more if caller == _SAMPLER]
    assert len(sampled) > 10
    assert sum(pages != 0 for pages in sampled) <= 1, sampled


def test_callers_and_boosts_are_told(runs: Path, databases: dict[str, sqlite3.Connection]) -> None:
    """The flusher is a kworker, `cat /proc/vmstat` a sampler, and dd under chrt -f is boosted."""
    rows = fetched(
        databases["throttle"],
        "SELECT DISTINCT caller, domain, rt_boost, t.comm FROM ev_wb_domain_dirty_state AS e"
        " JOIN task AS t USING (tid)",
    )
    callers = {caller for caller, _, _, _ in rows}
    assert callers == {_DIRTIER, _FLUSHER, _SAMPLER}
    assert all(str(comm).startswith("kworker/") for caller, _, _, comm in rows if caller == 1)
    assert {comm for caller, _, _, comm in rows if caller == _SAMPLER} <= {"cat", "sh"}
    assert {domain for caller, domain, _, _ in rows if caller == _DIRTIER} == {0, 1}
    boosted = fetched(
        databases["throttle"],
        "SELECT DISTINCT tid FROM ev_wb_domain_dirty_state WHERE rt_boost = 1",
    )
    # chrt -f 1: the scheduler gives it 98, others 120.
    real_time = fetched(
        databases["throttle"],
        "SELECT DISTINCT prev_pid FROM ev_sched_switch WHERE prev_comm = 'dd' AND prev_prio = 98",
    )
    assert len(real_time) == 1
    assert boosted == real_time
    small = int((runs / "throttle/cgroups").read_text().splitlines()[1].split()[0])
    inodes = fetched(
        databases["throttle"],
        "SELECT DISTINCT cgroup_ino FROM ev_wb_domain_dirty_state WHERE domain = 1",
    )
    assert inodes == [(small,)]


# Tools


@pytest.mark.parametrize("run", RUNS)
def test_trace_cmd_prints_every_field(
    run: str, runs: Path, databases: dict[str, sqlite3.Connection]
) -> None:
    """trace-cmd report reads the print formats: no event fails, numbers are those of the tables."""
    program = shutil.which("trace-cmd")
    assert program is not None
    text = subprocess.run(
        [program, "report", "-i", runs / run / "trace.dat"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for event, fields in {
        "balance_dirty_pages_done": ("wait_ns", "total_ns", "pages_dirtied", "loops"),
        "wb_domain_dirty_state": ("avail", "dirty", "bg_thresh", "thresh"),
        "mm_vmscan_reclaim_writeback": ("nr_pages", "priority", "ino", "write_pending"),
    }.items():
        if run == "throttle" and event.startswith("mm_"):
            continue
        lines = [line for line in text.splitlines() if f" {event}: " in line]
        assert lines
        assert not any("FAILED TO PARSE" in line for line in lines)
        told = Counter(tuple(int(_value(line, field)) for field in fields) for line in lines)
        columns = ["z_write_pending" if f == "write_pending" else f for f in fields]
        stored = Counter(fetched(databases[run], f"SELECT {', '.join(columns)} FROM ev_{event}"))
        assert told == stored


def _value(line: str, field: str) -> str:
    match = re.search(rf"(?<=[ :]){field}=(\S+)", line)
    assert match is not None, line
    return match[1]
