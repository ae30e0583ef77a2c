# SPDX-License-Identifier: Apache-2.0
"""Tasks: their lives, what they asked for, their shares, reads and swap-out, against the text."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from support.cli import Document, Wbscope
from support.more_oracle import bio_reads
from support.oracle import read_pauses, reclaimers_by_task, sleeps_by_pause
from support.report import parse_report, report_lines
from support.runs import RecordedRun, example
from support.sidecars import fio_rates
from support.window_oracle import idle_times


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
