# SPDX-License-Identifier: Apache-2.0
"""Throughput, dirty position and bandwidth per window, against the events that they come from."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict

import pytest
from support.cli import Wbscope
from support.oracle import dirty_states
from support.report import key_values
from support.runs import RecordedRun, example
from support.sidecars import vmstat_delta

State = tuple[int, dict[str, int]]

_WINDOW_NS = 2_000_000_000
_BANDWIDTHS = {
    "write_bw": "write_bw",
    "avg_write_bw": "awrite_bw",
    "dirty_rate": "dirty_rate",
    "dirty_ratelimit": "dirty_ratelimit",
    "balanced_dirty_ratelimit": "balanced_dirty_ratelimit",
}


@pytest.mark.parametrize(
    ("column", "counter"), [("dirtied_bytes", "dirtied"), ("written_bytes", "written")]
)
def test_windows_sum_to_the_first_and_last_counters(
    wbscope: Wbscope, recorded: RecordedRun, column: str, counter: str
) -> None:
    states = dirty_states(recorded.events)
    rows = wbscope.query("throughput", recorded.folder)
    total = sum(row[column] or 0 for row in rows)
    assert total == (states[-1][1][counter] - states[0][1][counter]) * recorded.page_bytes


def test_throughput_stays_within_vmstat(wbscope: Wbscope, recorded: RecordedRun) -> None:
    """The trace lies between the two vmstat samples; a counter may lag 125 pages on each CPU."""
    if not recorded.has("vmstat.before", "vmstat.after"):
        pytest.skip("the run has no vmstat samples")
    rows = wbscope.query("throughput", recorded.folder)
    slack = 2 * 125 * recorded.page_bytes
    for column, counter in (("dirtied_bytes", "nr_dirtied"), ("written_bytes", "nr_written")):
        total = sum(row[column] or 0 for row in rows)
        limit = vmstat_delta(recorded.folder, counter) * recorded.page_bytes
        assert 0.75 * limit <= total <= limit + slack, (column, total, limit)


def test_rates_are_bytes_over_the_window(wbscope: Wbscope, recorded: RecordedRun) -> None:
    for row in wbscope.query("throughput", recorded.folder):
        for name in ("dirtied", "written"):
            if row[f"{name}_bytes"] is not None:
                expected = row[f"{name}_bytes"] * 1e9 / row["window_ns"]
                assert row[f"{name}_bytes_per_s"] == pytest.approx(expected, rel=1e-6), row


def _in_force(states: list[State], start: int, end: int) -> list[dict[str, int]]:
    """The states of a span of time: the last one before it and those within it."""
    before = [values for ts, values in states if ts < start]
    return before[-1:] + [values for ts, values in states if start <= ts < end]


def _dirty_pages(values: dict[str, int]) -> int:
    return values["dirty"] + values["writeback"] + values.get("unstable", 0)


def _position(values: dict[str, int]) -> float:
    """(D - freerun) / (limit - freerun)."""
    freerun = (values["bg_thresh"] + values["thresh"]) / 2
    limit = max(values["thresh"], values["limit"])
    return (_dirty_pages(values) - freerun) / (limit - freerun)


def test_dirty_position_lies_within_what_was_recorded(
    wbscope: Wbscope, recorded: RecordedRun
) -> None:
    """Whatever a window's figure is, a mean or the last, it is between the least and the most."""
    page_bytes = recorded.page_bytes
    states = dirty_states(recorded.events)
    rows = wbscope.query("dirty_position", recorded.folder)
    assert any(row["position_ratio"] is not None for row in rows)
    for row in rows:
        start = row["window_start_ns"]
        inside = _in_force(states, start, start + _WINDOW_NS)
        dirty = [_dirty_pages(values) * page_bytes for values in inside]
        if row["dirty_bytes"] is not None:
            assert min(dirty) - 1 <= row["dirty_bytes"] <= max(dirty) + 1, row
        if row["position_ratio"] is not None:
            positions = [_position(values) for values in inside]
            assert min(positions) - 0.01 <= row["position_ratio"] <= max(positions) + 0.01, row


def test_time_above_agrees_with_the_levels(wbscope: Wbscope, recorded: RecordedRun) -> None:
    for row in wbscope.query("dirty_position", recorded.folder):
        if row["dirty_bytes"] is None:  # the event did not fire in this window
            assert row["above_limit_ns"] is None
            assert row["position_ratio"] is None
            continue
        assert 0 <= row["above_limit_ns"] <= row["above_setpoint_ns"] <= _WINDOW_NS, row
        if row["setpoint_bytes"] is None:
            continue
        assert row["bg_thresh_bytes"] < row["thresh_bytes"] <= row["limit_bytes"], row
        assert row["bg_thresh_bytes"] < row["setpoint_bytes"] < row["limit_bytes"], row
        if row["dirty_bytes"] > row["limit_bytes"]:
            assert row["above_limit_ns"] > 0, row
        if row["dirty_bytes"] > 1.1 * row["setpoint_bytes"]:
            assert row["above_setpoint_ns"] > 0, row


def test_bandwidths_lie_within_those_of_the_events(wbscope: Wbscope, recorded: RecordedRun) -> None:
    seen: dict[tuple[str, int], list[tuple[int, dict[str, str]]]] = defaultdict(list)
    for event in recorded.events:
        if event.name == "bdi_dirty_ratelimit":
            match = re.match(r"bdi (.+?): ", event.text)
            assert match is not None, event
            values = key_values(event.text)
            seen[match[1], int(values["cgroup_ino"])].append((event.ts, values))
    rows = wbscope.query("bdi_bandwidth", recorded.folder)
    assert {(row["bdi"], row["cgroup_ino"]) for row in rows} == set(seen)
    for row in rows:
        start = row["window_start_ns"]
        window = [
            v for ts, v in seen[row["bdi"], row["cgroup_ino"]] if start <= ts < start + _WINDOW_NS
        ]
        for name, key in _BANDWIDTHS.items():
            inside = [int(values[key]) * 1024 for values in window]
            assert min(inside) <= row[f"{name}_bytes_per_s"] <= max(inside), (name, row)


def test_memory_cgroup_has_its_own_bandwidth(wbscope: Wbscope) -> None:
    rows = wbscope.query("bdi_bandwidth", example("deep").folder)
    assert {row["cgroup_ino"] for row in rows} == {1, 27}


def test_disk_limits_show_in_the_throughput(wbscope: Wbscope) -> None:
    """The disk of the four writers is limited to 20 MB/s."""
    rows = wbscope.query("throughput", example("four-equal-writers").folder)
    busy = sorted(row["written_bytes_per_s"] for row in rows if row["written_bytes"])
    assert 15e6 <= busy[len(busy) // 2] <= 25e6


def test_a_curve_of_a_long_run_keeps_what_a_screen_shows(wbscope: Wbscope) -> None:
    """Of each of 2,048 steps the first and the last sample, and those with the most and least."""
    folder = example("reclaim-writes").folder
    (run,) = wbscope.sql(folder, "SELECT first_ts, last_ts FROM wb_bounds")
    first_ts, length = run["first_ts"], run["last_ts"] - run["first_ts"]
    borders = [first_ts + length * step // 2048 for step in range(2048)]
    steps = defaultdict(list)
    for row in wbscope.sql(
        folder, "SELECT seq, ts, nr_dirty, nr_writeback FROM ev_global_dirty_state"
    ):
        steps[bisect_right(borders, row["ts"])].append(row)
    drawn = {row["seq"] for row in wbscope.sql(folder, "SELECT seq FROM _dirty_drawn")}
    assert len(drawn) <= 6 * len(steps)
    assert len(steps) > 100
    for rows in steps.values():
        shown = [row for row in rows if row["seq"] in drawn]
        assert (shown[0], shown[-1]) == (rows[0], rows[-1])
        for choose in (min, max):
            for value in (lambda r: r["nr_dirty"] + r["nr_writeback"], lambda r: r["nr_writeback"]):
                assert choose(map(value, shown)) == choose(map(value, rows))


def test_a_curve_of_a_short_run_has_all_samples(wbscope: Wbscope) -> None:
    folder = example("rate-limited-writers").folder
    counts = "SELECT (SELECT count(*) FROM {}) AS drawn, (SELECT count(*) FROM {}) AS told"
    (row,) = wbscope.sql(folder, counts.format("_dirty_drawn", "ev_global_dirty_state"))
    assert row["drawn"] == row["told"] > 30_000
    assert wbscope.sql(folder, "SELECT count(*) AS steps FROM _dirty_step") == [{"steps": 0}]
