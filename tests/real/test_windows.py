# SPDX-License-Identifier: Apache-2.0
"""Windows cut the throttled time without losing or inventing any."""

from __future__ import annotations

from collections import defaultdict

import pytest
from support.cli import Wbscope
from support.runs import RecordedRun

_WINDOWS = {"2s": 2_000_000_000, "500ms": 500_000_000}


@pytest.mark.parametrize("window", _WINDOWS)
def test_throttled_time_of_the_windows_sums_up(
    wbscope: Wbscope, recorded: RecordedRun, window: str
) -> None:
    tasks: dict[int, float] = defaultdict(float)
    for row in wbscope.query("throttle_by_task", recorded.folder):
        tasks[row["tid"]] += row["slept_total_ns"]
    windows: dict[int, float] = defaultdict(float)
    for row in wbscope.query("throttle_windows", recorded.folder, "--window", window):
        assert 0 <= row["throttled_ratio"] <= 1 + 1e-9, row
        assert 0 < row["window_ns"] <= _WINDOWS[window], row
        windows[row["tid"]] += row["throttled_ratio"] * row["window_ns"]
    assert set(windows) == set(tasks)
    for tid, slept in tasks.items():
        assert windows[tid] == pytest.approx(slept, rel=1e-6, abs=1000), tid


def test_dirtied_bytes_of_the_windows_sum_up(wbscope: Wbscope, recorded: RecordedRun) -> None:
    tasks: dict[int, int] = defaultdict(int)
    for row in wbscope.query("throttle_by_task", recorded.folder):
        tasks[row["tid"]] += row["dirtied_bytes"]
    windows: dict[int, int] = defaultdict(int)
    for row in wbscope.query("throttle_windows", recorded.folder):
        windows[row["tid"]] += row["dirtied_bytes"] or 0
    assert windows == tasks


@pytest.mark.parametrize(
    "name", ["throttle_windows", "throughput", "dirty_position", "bdi_bandwidth"]
)
def test_windows_are_whole_steps_from_the_first_event(
    wbscope: Wbscope, recorded: RecordedRun, name: str
) -> None:
    (first,) = wbscope.sql(recorded.folder, "SELECT value AS ts FROM meta WHERE key = 'first_ts'")
    rows = wbscope.query(name, recorded.folder)
    offsets = {(row["window_start_ns"] - int(first["ts"])) % _WINDOWS["2s"] for row in rows}
    absolute = {row["window_start_ns"] % _WINDOWS["2s"] for row in rows}
    assert rows
    assert offsets == {0} or absolute == {0}
