# SPDX-License-Identifier: Apache-2.0
"""Calls, the control law, dirty pages and bandwidth, against the events that they come from."""

from __future__ import annotations

import re
import sqlite3
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import wbscope
from support.cli import Wbscope
from support.kernelchecks import calls_by_the_rule, dones_in, told_calls, without_returns
from support.law_oracle import EVENTS, Replayed, replay
from support.oracle import dirty_states
from support.report import key_values, parse_report, report_lines
from support.runs import REPOSITORY, RecordedRun, example
from support.sidecars import vmstat_delta
from wbscope.library.library import load_library
from wbscope.run.ingested import ingest
from wbscope.source.source import find_source

# Throughput, dirty position and bandwidth per window, against the events that they come from.

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


# Calls of balance_dirty_pages() are found in a stock kernel's events as the kernel made them.

_WB_CLEAN = 3
_RUNS = {
    "6.1": REPOSITORY / "examples/patched-kernel/throttle",
    "7.2": REPOSITORY / "tests/data/patched/7.2-throttle",
}


@pytest.mark.parametrize("kernel", _RUNS)
def test_the_rule_finds_the_calls_that_the_kernel_tells(
    kernel: str, wbscope: Wbscope, tmp_path: Path
) -> None:
    done = wbscope.run("ingest", _RUNS[kernel], "-o", tmp_path / "run.db", "--all")
    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(tmp_path / "run.db")) as database:
        told = told_calls(database)
        stock = without_returns(database, tmp_path / "stock.db")
        exits = {one.exit for one in dones_in(database)}
    assert sum(loops > 1 for _, _, loops in told) > 10
    # Of 7.2 some calls left at task_ratelimit 0, and another followed at once.
    assert (_WB_CLEAN in exits) == (kernel == "7.2")
    assert calls_by_the_rule(wbscope, stock) == told


# The machine's row of dirty_domains, against every sample added up one by one.

PAGE = 4096
PATCHED = "examples/patched-kernel/throttle"
SAMPLES = (
    "SELECT seq, ts, nr_dirty + nr_writeback, background_thresh, dirty_thresh,"
    " max(dirty_thresh, dirty_limit) FROM ev_global_dirty_state ORDER BY seq"
)
FIND = "SELECT ts FROM ev_global_dirty_state WHERE repeats_count {} ORDER BY seq LIMIT 1 OFFSET {}"


def _parts(database: sqlite3.Connection) -> Iterator[tuple[int | None, int | None]]:
    """The whole, and parts whose ends are within samples that say the same, or between these."""
    yield None, None
    times = [
        database.execute(FIND.format(which, offset)).fetchone()[0]
        for which in ("= 0", "= 1", "> 1")
        for offset in (9, 10, 50)
    ]
    for first in times:
        yield from ((first, first + 1), (None, first), (first, None))
        yield from ((first, last) for last in times if first < last)


@pytest.mark.parametrize("name", ["examples/rate-limited-writers", "examples/deep", PATCHED])
def test_each_sample_counts_once(tmp_path: Path, name: str) -> None:
    path = tmp_path / "run.db"
    ingest(find_source(str(REPOSITORY / name)), path, load_library())
    if name == PATCHED:  # as a stock kernel tells it, with real-time tasks
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("DELETE FROM ev_wb_domain_dirty_state")
    with sqlite3.connect(path) as database, wbscope.open(path) as run:
        boosted = {seq for (seq,) in run.sql("SELECT seq FROM _dirty_boost").rows}
        assert bool(boosted) == (name == PATCHED)
        samples = database.execute(SAMPLES).fetchall()
        for first, last in _parts(database):
            chosen = [s for s in samples if (first or 0) <= s[1] < (last or 1 << 62)]
            plain = [s for s in chosen if s[0] not in boosted]
            answer = run.query(
                "dirty_domains",
                start=f"@{first}" if first else None,
                end=f"@{last}" if last else None,
            )
            row = dict(zip(answer.columns, answer.rows[0], strict=True))
            assert row["domain"] == "global"
            assert row["events_count"] == len(chosen)
            assert row["boosted_count"] == len(chosen) - len(plain)
            assert row["dirty_max_bytes"] == PAGE * max(s[2] for s in chosen)
            assert row["above_thresh_count"] == sum(s[2] > s[4] for s in plain)
            if not plain:
                assert row["thresh_bytes"] is row["dirty_thresh_ratio"] is None
                continue
            assert row["thresh_min_bytes"] == PAGE * min(s[4] for s in plain)
            ratios = [s[2] / s[4] for s in plain]
            assert row["dirty_thresh_max_ratio"] == max(ratios)
            assert row["dirty_thresh_ratio"] == pytest.approx(sum(ratios) / len(ratios), rel=1e-12)
            for column, wanted in (
                ("dirty_bytes", [s[2] for s in chosen]),
                ("bg_thresh_bytes", [s[3] for s in plain]),
                ("thresh_bytes", [s[4] for s in plain]),
                ("limit_bytes", [s[5] for s in plain]),
            ):
                mean = PAGE * sum(wanted) / len(wanted)
                assert row[column] == pytest.approx(mean, abs=1), (column, first, last)


# The control law against the same law written a second time, from trace-cmd's text.

# Each recorded run with balance_dirty_pages, its kernel, and how many events cannot be replayed:
# a memory cgroup threw them, whose thresholds a stock kernel does not tell.
_LAW_RUNS = {
    "examples/deep": ((6, 12), 78),
    "examples/four-equal-writers": ((6, 1), 0),
    "examples/four-equal-writers-7.2": ((7, 2), 0),
    "examples/gate/runs/before-2": ((6, 1), 0),
    "examples/gate/runs/lower-2": ((6, 1), 0),
    "examples/patched-kernel/reclaim": ((6, 1), 0),
    "examples/patched-kernel/throttle": ((6, 1), 0),
    "examples/rate-limited-writers": ((6, 12), 0),
    "examples/reclaim-writes": ((6, 1), 0),
    "tests/data/patched/7.2-throttle": ((7, 2), 0),
}
_LEAST = 0.97
_EXACT = 0.4
_EVENTS = """SELECT e.ts, e.tid, w.predicted_pages_per_s, w.recorded_pages_per_s, w.is_agreed
FROM wb_law AS w JOIN ev_balance_dirty_pages AS e ON e.seq = w.seq
ORDER BY e.ts, e.tid, e.seq"""
_TOTAL = (
    "SELECT count(*) AS events_count, sum(is_replayed) AS replayed_count,"
    " sum(is_replayed AND is_agreed) AS agreed_count FROM wb_law"
)


def _oracle(folder: Path, release: tuple[int, int]) -> list[Replayed]:
    return replay(parse_report(report_lines(folder / "trace.dat"), EVENTS), release)


def test_every_recorded_run_is_tried() -> None:
    traces = [*REPOSITORY.glob("examples/**/trace.dat"), *REPOSITORY.glob("tests/data/patched/*/")]
    folders = {(path.parent if path.is_file() else path) for path in traces}
    assert {str(folder.relative_to(REPOSITORY)) for folder in folders} == set(_LAW_RUNS)


@pytest.mark.parametrize("name", _LAW_RUNS)
def test_every_rate_is_what_the_law_gives(wbscope: Wbscope, name: str) -> None:
    folder = REPOSITORY / name
    release, missing = _LAW_RUNS[name]
    # The clock of guests stands at times: events of one task can have one time stamp.
    expected = sorted(_oracle(folder, release), key=lambda event: (event.ts, event.tid))
    rows = wbscope.sql(folder, _EVENTS)
    assert [(row["ts"], row["tid"]) for row in rows] == [(one.ts, one.tid) for one in expected]
    for row, event in zip(rows, expected, strict=True):
        assert row["predicted_pages_per_s"] == event.predicted, event
        assert row["recorded_pages_per_s"] == event.recorded, event
        assert row["is_agreed"] == (None if event.predicted is None else int(event.agrees)), event
    told = [event for event in expected if event.predicted is not None]
    assert len(expected) - len(told) == missing
    agreed = [event for event in told if event.agrees]
    assert len(agreed) >= _LEAST * len(told)
    exact = [event for event in told if event.is_exact]
    assert len(exact) > _EXACT * len(told)
    assert all(event.agrees for event in exact)
    # One that disagrees where the bandwidth is not known exactly says nothing.
    replayed = [event for event in told if event.agrees or event.is_exact]
    assert all(event.agrees for event in told if event.recorded == 0)
    assert wbscope.sql(folder, _TOTAL) == [
        {
            "events_count": len(expected),
            "replayed_count": len(replayed),
            "agreed_count": len(agreed),
        }
    ]
    off = sorted((event.ts, event.tid) for event in replayed if not event.agrees)
    assert sorted((row["ts"], row["tid"]) for row in wbscope.query("law", folder)) == off
