# SPDX-License-Identifier: Apache-2.0
"""Who was throttled and for how long, against what trace-cmd's text says."""

from __future__ import annotations

import pytest
from support.cli import Document, Wbscope
from support.oracle import (
    Pause,
    TaskKey,
    Throttle,
    call_latencies,
    read_pauses,
    sleeps_by_pause,
    throttle_by_task,
    write_calls,
)
from support.runs import RecordedRun, example
from support.sidecars import fio_written_bytes, ls_files_bytes

_MS_NS = 1_000_000


def _rows(wbscope: Wbscope, recorded: RecordedRun) -> dict[TaskKey, Document]:
    rows = wbscope.query("throttle_by_task", recorded.folder)
    by_key = {(row["tid"], row["bdi"], row["cgroup_ino"]): row for row in rows}
    assert len(by_key) == len(rows)
    return by_key


def _text(recorded: RecordedRun) -> dict[TaskKey, Throttle]:
    return throttle_by_task(read_pauses(recorded.events))


def _measured(recorded: RecordedRun) -> list[tuple[Pause, int, int]]:
    return sleeps_by_pause(recorded.events, recorded.events[-1].ts)


def test_pauses_equal_those_of_the_text(wbscope: Wbscope, recorded: RecordedRun) -> None:
    def figures(task: Throttle) -> tuple[object, ...]:
        pauses = task.pauses
        return (task.comm, len(pauses), sum(pauses), max(pauses, default=0))

    rows = _rows(wbscope, recorded)
    found = {
        key: (row["comm"], row["pauses_count"], row["pause_total_ns"], row["pause_max_ns"])
        for key, row in rows.items()
    }
    assert found == {key: figures(task) for key, task in _text(recorded).items()}


@pytest.mark.parametrize(
    ("column", "quantile"), [("pause_p50_ns", 0.5), ("pause_p95_ns", 0.95), ("pause_p99_ns", 0.99)]
)
def test_percentiles_are_nearest_rank(
    wbscope: Wbscope, recorded: RecordedRun, column: str, quantile: float
) -> None:
    found = {key: row[column] for key, row in _rows(wbscope, recorded).items()}
    assert found == {key: task.percentile(quantile) for key, task in _text(recorded).items()}


def test_loops_of_one_call_are_one_call(wbscope: Wbscope, recorded: RecordedRun) -> None:
    found = {key: row["calls_count"] for key, row in _rows(wbscope, recorded).items()}
    assert found == {key: task.calls for key, task in _text(recorded).items()}


def test_dirtied_bytes_are_the_consumed_pages_of_each_call(
    wbscope: Wbscope, recorded: RecordedRun
) -> None:
    page_bytes = recorded.page_bytes
    found = {key: row["dirtied_bytes"] for key, row in _rows(wbscope, recorded).items()}
    assert found == {key: task.dirtied_pages * page_bytes for key, task in _text(recorded).items()}


def test_sleep_measure_fits_the_pauses(wbscope: Wbscope, recorded: RecordedRun) -> None:
    """A pause never ends early but for a jump of the guest's jiffies, and is at most 45 ms late.

    A task that never had to pause has no sleep to measure: its basis may be NULL.
    """
    switched = any(event.name == "sched_switch" for event in recorded.events)
    bases = ("sched",) if switched else ("paused", "intended")
    for key, row in _rows(wbscope, recorded).items():
        if row["pauses_count"] or row["slept_basis"] is not None:
            assert row["slept_basis"] in bases, (key, row)
        assert row["slept_total_ns"] >= 0.9 * row["pause_total_ns"], (key, row)
        late = row["pauses_count"] * 45 * _MS_NS
        assert row["slept_total_ns"] <= row["pause_total_ns"] + late, (key, row)
        assert 0 <= row["throttled_ratio"] <= 1, (key, row)


@pytest.mark.parametrize(
    ("name", "tasks", "lower", "upper"),
    [
        ("four-equal-writers", 4, 0.66, 0.90),
        ("four-equal-writers-7.2", 4, 0.66, 0.90),
        ("deep", 3, 0.50, 0.90),
    ],
)
def test_dirtied_is_below_what_dd_wrote(
    wbscope: Wbscope, name: str, tasks: int, lower: float, upper: float
) -> None:
    recorded = example(name)
    truth = sum(size for file, size in ls_files_bytes(recorded.folder).items() if file != "log")
    by_tid: dict[int, int] = {}
    for (tid, _, _), row in _rows(wbscope, recorded).items():
        by_tid[tid] = by_tid.get(tid, 0) + row["dirtied_bytes"]
    largest = sorted(by_tid.values())[-tasks:]
    assert max(largest) <= max(ls_files_bytes(recorded.folder).values())
    assert lower * truth <= sum(largest) <= upper * truth


def test_dirtied_is_below_what_each_fio_job_wrote(wbscope: Wbscope) -> None:
    """Jobs and threads pair up by size: both orders are the jobs' rates and the greedy writer."""
    recorded = example("rate-limited-writers")
    truth = sorted(fio_written_bytes(recorded.folder).values())
    found = sorted(row["dirtied_bytes"] for row in _rows(wbscope, recorded).values())
    assert len(found) == len(truth) == 4
    for dirtied, written in zip(found, truth, strict=True):
        assert 0.66 * written <= dirtied <= 0.90 * written


def test_dirtied_bytes_say_that_they_are_a_lower_bound(wbscope: Wbscope) -> None:
    result = wbscope.run("queries", "throttle_by_task")
    assert result.returncode == 0, result.stderr
    assert "lower bound" in " ".join(result.stdout.split())


def test_deep_run_has_measured_sleeps(wbscope: Wbscope) -> None:
    recorded = example("deep")
    slept: dict[TaskKey, int] = {}
    for pause, out, back in _measured(recorded):
        slept[pause.key] = slept.get(pause.key, 0) + back - out
    rows = _rows(wbscope, recorded)
    assert {row["slept_basis"] for row in rows.values()} == {"sched"}
    assert {key: row["slept_total_ns"] for key, row in rows.items()} == slept


def test_longest_call_of_the_deep_run(wbscope: Wbscope) -> None:
    """A call lasts the time spent before its last pause, and that pause's measured sleep."""
    recorded = example("deep")
    expected = call_latencies(read_pauses(recorded.events), _measured(recorded))
    found = {key: row["call_max_ns"] for key, row in _rows(wbscope, recorded).items()}
    assert found == {key: max(latencies) for key, latencies in expected.items()}


def test_written_bytes_of_every_dd_equal_its_file(wbscope: Wbscope) -> None:
    """What dd prints to stderr, and what its shell wrote before it, is not the file's."""
    recorded = example("deep")
    sizes = ls_files_bytes(recorded.folder)
    rows = _rows(wbscope, recorded)
    written = {key: row["written_bytes"] for key, row in rows.items()}
    large = {
        key: value for key, value in written.items() if value >= min(sizes["zero-1"], sizes["incg"])
    }
    assert sorted(large.values()) == sorted([sizes["zero-1"], sizes["zero-2"], sizes["incg"]])
    assert [value for (_, _, cgroup), value in large.items() if cgroup == 27] == [sizes["incg"]]
    calls = write_calls(recorded.events)
    for (tid, _, _), value in written.items():
        assert value <= sum(total for (caller, _), total in calls.items() if caller == tid)


def test_written_bytes_are_null_where_not_recorded(wbscope: Wbscope) -> None:
    rows = _rows(wbscope, example("four-equal-writers"))
    assert {row["written_bytes"] for row in rows.values()} == {None}


def test_memory_cgroup_is_kept_apart(wbscope: Wbscope) -> None:
    rows = _rows(wbscope, example("deep"))
    domains = {(key[0], key[2]) for key in rows}
    assert {cgroup for _, cgroup in domains} == {1, 27}
    assert not {tid for tid, cgroup in domains if cgroup == 27} & {
        tid for tid, cgroup in domains if cgroup == 1
    }


def test_options_narrow_the_answer(wbscope: Wbscope) -> None:
    recorded = example("deep")
    rows = _rows(wbscope, recorded)
    narrowed = wbscope.query("throttle_by_task", recorded.folder, "--cgroup", "27")
    assert narrowed == [row for key, row in rows.items() if key[2] == 27]
    tid = min(key[0] for key in rows)
    narrowed = wbscope.query("throttle_by_task", recorded.folder, "--tid", str(tid))
    assert narrowed == [row for key, row in rows.items() if key[0] == tid]
