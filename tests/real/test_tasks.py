# SPDX-License-Identifier: Apache-2.0
"""Tasks: lives, shares, write calls and fairness, worked out again."""

from __future__ import annotations

import random
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest
import wbscope
from hypothesis import strategies as st
from support.cli import Document, Wbscope
from support.formats import build_format
from support.kernel_events import formats
from support.oracle import (
    bio_reads,
    read_pauses,
    reclaimers_by_task,
    sleeps_by_pause,
    throttle_by_task,
)
from support.properties import for_all
from support.report import parse_report, report_lines
from support.runs import RecordedRun, example
from support.sidecars import fio_rates
from support.tracedat import Buffer, Trace
from support.window_oracle import idle_times
from wbscope.library.library import load_library
from wbscope.run.ingested import ingest
from wbscope.source.source import find_source

# Tasks: their lives, what they asked for, their shares, reads and swap-out, against the text.


def _lives(recorded: RecordedRun) -> dict[int, tuple[int, int]]:
    """tid -> first and last line of the text in its context, of any event."""
    lives: dict[int, tuple[int, int]] = {}
    for event in parse_report(report_lines(recorded.trace)):
        first, _ = lives.get(event.tid, (event.ts, 0))
        lives[event.tid] = (first, event.ts)
    return lives


def test_share_of_its_life_that_a_task_was_throttled(
    wbscope: Wbscope, recorded: RecordedRun
) -> None:
    lives = _lives(recorded)
    renamed = {
        row["tid"]
        for row in wbscope.sql(recorded.folder, "SELECT tid FROM wb_task WHERE from_ts > 0")
    }
    rows = wbscope.query("throttle_by_task", recorded.folder)
    last = {pause.tid: pause for pause in read_pauses(recorded.events)}
    compared = 0
    for row in rows:
        first, end = lives[row["tid"]]
        # A pause that the trace's end cuts may end after the task's last event.
        if row["tid"] in renamed or last[row["tid"]].ts + last[row["tid"]].pause > end:
            continue
        compared += 1
        expected = min(1.0, row["slept_total_ns"] / (end - first))
        assert row["throttled_ratio"] == pytest.approx(expected, rel=1e-9), row
    assert compared


def test_names_of_the_deep_run(wbscope: Wbscope) -> None:
    """The shell of the memory cgroup becomes dd: what it wrote before is its own."""
    recorded = example("deep")
    rows = wbscope.query("copy_and_sync", recorded.folder)
    copies = {(r["tid"], r["comm"]): r["written_bytes"] for r in rows if r["phase"] == "copy"}
    (tid,) = {r["tid"] for r in wbscope.query("throttle_by_task", recorded.folder, "--cgroup=27")}
    assert copies[tid, "dd"] == 48 << 20
    # echo $$ > cgroup.procs: the pid and a newline.
    assert copies[tid, "sh"] == len(f"{tid}\n")


def test_nobody_in_the_deep_run_is_idle(wbscope: Wbscope) -> None:
    """dd from /dev/zero never sleeps of its own accord, and its text says so."""
    recorded = example("deep")
    sleeps: dict[int, int] = defaultdict(int)
    ends: dict[int, int] = {}
    for pause, out, back in sleeps_by_pause(recorded.events, recorded.events[-1].ts):
        sleeps[pause.tid] += back - out
        ends[pause.tid] = back
    firsts: dict[int, int] = {}
    for pause in read_pauses(recorded.events):
        firsts.setdefault(pause.tid, pause.ts)
    idle = idle_times(recorded.events, {tid: (firsts[tid], ends[tid]) for tid in ends})
    rows = wbscope.query("fairness_tasks", recorded.folder)
    assert len(rows) == 3
    for row in rows:
        tid = row["tid"]
        awake = ends[tid] - firsts[tid] - sleeps[tid]
        assert row["idle_ratio"] == pytest.approx(idle[tid] / awake, abs=1e-6), row
        assert row["is_demand_limited"] == 0, row


def test_idle_is_unknown_without_sched_switch(wbscope: Wbscope) -> None:
    rows = wbscope.query("fairness_tasks", example("rate-limited-writers").folder)
    assert {row["idle_ratio"] for row in rows} == {None}


def test_entitlements_are_max_min_shares(wbscope: Wbscope, recorded: RecordedRun) -> None:
    """Raise everybody's share together; who asks for no more stops there."""
    groups: dict[tuple[str, int], list[Document]] = defaultdict(list)
    for row in wbscope.query("fairness_tasks", recorded.folder):
        groups[row["bdi"], row["cgroup_ino"]].append(row)
    for tasks in groups.values():
        if tasks[0]["demand_basis"] == "none":
            continue
        left = sum(task["rate_bytes_per_s"] for task in tasks)
        open_tasks = list(tasks)
        while open_tasks:
            level = left / len(open_tasks)
            content = [
                task
                for task in open_tasks
                if task["asked_bytes_per_s"] is not None and task["asked_bytes_per_s"] <= level
            ]
            if not content:
                break
            for task in content:
                expected = task["asked_bytes_per_s"]
                assert task["entitlement_bytes_per_s"] == pytest.approx(expected), task
                left -= expected
                open_tasks.remove(task)
        for task in open_tasks:
            assert task["entitlement_bytes_per_s"] == pytest.approx(level), task


def test_rates_are_those_that_fio_measured(wbscope: Wbscope) -> None:
    recorded = example("rate-limited-writers")
    truth = sorted(fio_rates(recorded.folder).values())
    rows = wbscope.query("ratelimit_error", recorded.folder)
    found = sorted(row["actual_bytes_per_s"] for row in rows)
    assert found == [pytest.approx(rate, rel=0.001) for rate in truth]
    (row,) = wbscope.query("fairness", recorded.folder)
    assert row["slowest_to_fastest_ratio"] == pytest.approx(truth[0] / truth[-1], rel=0.001)


def test_reads_and_swap_out_of_each_task(wbscope: Wbscope, recorded: RecordedRun) -> None:
    reads = bio_reads(recorded.events)
    swapped = Counter(tid for tid, kind in reclaimers_by_task(recorded.events) if kind == "anon")
    rows = wbscope.query("task_faults", recorded.folder)
    found: dict[int, tuple[int, int, int]] = {}
    for row in rows:
        before = found.get(row["tid"], (0, 0, 0))
        values = (row["reads_count"], row["read_bytes"], row["swapped_out_count"])
        found[row["tid"]] = tuple(a + (b or 0) for a, b in zip(before, values, strict=True))
        assert row["faults_count"] is None, row
    expected = {
        tid: (*reads.get(tid, (0, 0)), swapped.get(tid, 0)) for tid in set(reads) | set(swapped)
    }
    assert {tid: values for tid, values in found.items() if any(values)} == expected


# Fairness indices, worked out again from the rates that they were made of.


def _jain(values: list[float]) -> float:
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def _groups(wbscope: Wbscope, recorded: RecordedRun) -> dict[tuple[str, int], list[Document]]:
    groups: dict[tuple[str, int], list[Document]] = {}
    for row in wbscope.query("fairness_tasks", recorded.folder):
        groups.setdefault((row["bdi"], row["cgroup_ino"]), []).append(row)
    return groups


def test_jain_of_the_rates(wbscope: Wbscope, recorded: RecordedRun) -> None:
    groups = _groups(wbscope, recorded)
    rows = wbscope.query("fairness", recorded.folder)
    assert {(row["bdi"], row["cgroup_ino"]) for row in rows} == set(groups) != set()
    for row in rows:
        tasks = groups[row["bdi"], row["cgroup_ino"]]
        rates = [task["rate_bytes_per_s"] for task in tasks]
        assert row["tasks_count"] == len(rates)
        assert row["jain_ratio"] == pytest.approx(_jain(rates), rel=1e-9)
        assert row["slowest_to_fastest_ratio"] == pytest.approx(min(rates) / max(rates), rel=1e-9)
        assert 1 / len(rates) - 1e-9 <= row["jain_ratio"] <= 1 + 1e-9
        assert {task["demand_basis"] for task in tasks} == {row["demand_basis"]}
        if row["demand_basis"] == "none":
            assert row["jain_weighted_ratio"] is None
            continue
        weighted = [task["rate_bytes_per_s"] / task["entitlement_bytes_per_s"] for task in tasks]
        assert row["jain_weighted_ratio"] == pytest.approx(_jain(weighted), rel=1e-9)


def test_entitlements_share_out_what_there_was(wbscope: Wbscope, recorded: RecordedRun) -> None:
    for tasks in _groups(wbscope, recorded).values():
        if tasks[0]["demand_basis"] == "none":
            assert {task["entitlement_bytes_per_s"] for task in tasks} == {None}
            continue
        shared = sum(task["entitlement_bytes_per_s"] for task in tasks)
        assert 0 < shared <= sum(task["rate_bytes_per_s"] for task in tasks) * (1 + 1e-9)


def test_rates_are_pages_over_time(wbscope: Wbscope, recorded: RecordedRun) -> None:
    """A task's pages after its first event, over the time from its first event to its last."""
    pauses = read_pauses(recorded.events)
    for (bdi, cgroup), tasks in _groups(wbscope, recorded).items():
        for task in tasks:
            events = [pause for pause in pauses if pause.key == (task["tid"], bdi, cgroup)]
            pages = throttle_by_task(events)[task["tid"], bdi, cgroup].dirtied_pages
            pages_after_first = pages - (events[0].dirtied if events[0].consumed else 0)
            seconds = (events[-1].ts - events[0].ts) / 1e9
            expected = pages_after_first * recorded.page_bytes / seconds
            assert task["dirtied_bytes_per_s"] == pytest.approx(expected, rel=1e-6), task


def test_equal_writers_are_nearly_fair(wbscope: Wbscope) -> None:
    (row,) = wbscope.query("fairness", example("four-equal-writers").folder)
    assert row["tasks_count"] == 4
    # By the files, 96 MiB over the time between each dd's first and last event.
    assert row["jain_ratio"] == pytest.approx(0.999, abs=0.003)
    assert row["slowest_to_fastest_ratio"] == pytest.approx(0.916, abs=0.03)
    (row,) = wbscope.query("fairness", example("four-equal-writers-7.2").folder)
    assert row["jain_ratio"] == pytest.approx(0.993, abs=0.003)
    assert row["slowest_to_fastest_ratio"] == pytest.approx(0.794, abs=0.03)


@pytest.mark.parametrize(
    ("name", "basis", "mib", "error"),
    [
        ("four-equal-writers", "calibrated", [96, 96, 96, 96], 0.01),
        ("four-equal-writers-7.2", "calibrated", [96, 96, 96, 96], 0.02),
        ("reclaim-writes", "calibrated", [160], 0.01),
        ("deep", "folio", [80, 80, 48], 0),
    ],
)
def test_estimates_are_the_sizes_of_the_files(
    wbscope: Wbscope, name: str, basis: str, mib: list[int], error: float
) -> None:
    rows = wbscope.query("fairness_tasks", example(name).folder)
    assert {row["dirtied_basis"] for row in rows} == {basis}
    found = sorted((row["dirtied_estimate_bytes"] for row in rows), reverse=True)
    assert found == [pytest.approx(size << 20, rel=error) for size in mib]


def test_rate_limited_writers_are_fair_by_demand_only(wbscope: Wbscope) -> None:
    """9, 8, 4 and 2 MB/s are far from equal: (9+2+4+8)^2 / (4 * (81+4+16+64)) = 0.80.

    By fio.json and the rates that it was told, the max-min index is 0.997.
    """
    (row,) = wbscope.query("fairness", example("rate-limited-writers").folder)
    assert row["tasks_count"] == 4
    assert row["jain_ratio"] == pytest.approx(0.805, abs=0.002)
    assert row["jain_weighted_ratio"] == pytest.approx(0.997, abs=0.001)
    assert (row["dirtied_basis"], row["demand_basis"]) == ("fio", "fio")


def test_memory_cgroup_has_its_own_row(wbscope: Wbscope) -> None:
    rows = wbscope.query("fairness", example("deep").folder)
    assert {row["cgroup_ino"] for row in rows} == {1, 27}
    assert {row["cgroup_ino"]: row["tasks_count"] for row in rows}[27] == 1


def test_rates_of_the_windows_make_up_what_was_dirtied(
    wbscope: Wbscope, recorded: RecordedRun
) -> None:
    windows = {
        row["window_start_ns"]: row["window_ns"]
        for row in wbscope.query("throttle_windows", recorded.folder)
    }
    dirtied: dict[int, int] = defaultdict(int)
    for row in wbscope.query("throttle_by_task", recorded.folder):
        if row["is_incidental"] == 0:
            dirtied[row["tid"]] += row["dirtied_estimate_bytes"]
    found: dict[int, float] = defaultdict(float)
    for row in wbscope.query("fairness", recorded.folder, "--window", "2s"):
        rates = re.findall(r"-(\d+)=(\d+)(?: |$)", row["task_rates"])
        assert len(rates) == row["tasks_count"], row
        for tid, rate in rates:
            found[int(tid)] += int(rate) * windows[row["window_start_ns"]] / 1e9
    for tid in {*dirtied, *found}:
        # Rates are rounded, by half a byte/s in each window.
        assert found[tid] == pytest.approx(dirtied[tid], abs=2 * len(windows)), tid


def test_the_report_has_fairness_of_the_whole_run(wbscope: Wbscope) -> None:
    folder = example("four-equal-writers").folder
    sections = wbscope.document("report", folder)["rows"]
    (section,) = (s for s in sections if s["query"] == "fairness")
    assert section["rows"] == wbscope.query("fairness", folder)


# Both ends of write system calls, found by the links of ingest, against a walk through the events.
#
# The events are at random: tasks lose entries and returns, calls are cut by the trace's ends, and
# another call comes in between.

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
