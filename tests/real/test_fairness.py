# SPDX-License-Identifier: Apache-2.0
"""Fairness indices, worked out again from the rates that they were made of."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
from support.cli import Document, Wbscope
from support.oracle import read_pauses, throttle_by_task
from support.runs import RecordedRun, example


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
        ("deep", "syscalls", [80, 80, 48], 0.0001),
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
