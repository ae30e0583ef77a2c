# SPDX-License-Identifier: Apache-2.0
"""Every number of the queries of windows, worked out again from trace-cmd's text."""

from __future__ import annotations

from collections import defaultdict

import pytest
from support.cli import Document, Wbscope
from support.oracle import dirty_states, sleeps_by_pause
from support.runs import RecordedRun, example
from support.sidecars import vmstat_delta
from support.window_oracle import bandwidths, completions, levels, window_of

_WINDOWS = {"2s": 2_000_000_000, "700ms": 700_000_000}
_BANDWIDTHS = {"write_bw": "write_bw", "avg_write_bw": "awrite_bw"}
_BANDWIDTHS |= {name: name for name in ("dirty_rate", "dirty_ratelimit")}
_BANDWIDTHS |= {"balanced_dirty_ratelimit": "balanced_dirty_ratelimit"}

pytestmark = pytest.mark.parametrize("window", _WINDOWS)


def _bounds(wbscope: Wbscope, recorded: RecordedRun) -> tuple[int, int]:
    rows = wbscope.sql(recorded.folder, "SELECT key, value FROM meta WHERE key LIKE '%_ts'")
    meta = {row["key"]: int(row["value"]) for row in rows}
    return meta["first_ts"], meta["last_ts"]


def _rows(wbscope: Wbscope, recorded: RecordedRun, query: str, window: str) -> list[Document]:
    return wbscope.query(query, recorded.folder, "--window", window)


def test_dirty_level_and_control_range(
    wbscope: Wbscope, recorded: RecordedRun, window: str
) -> None:
    start, end = _bounds(wbscope, recorded)
    expected = levels(dirty_states(recorded.events), start, end, _WINDOWS[window])
    page = recorded.page_bytes
    rows = _rows(wbscope, recorded, "dirty_position", window)
    found = {row["window_start_ns"]: row for row in rows if row["dirty_max_bytes"] is not None}
    assert set(found) == set(expected)
    for ts, level in expected.items():
        row = found[ts]
        assert row["dirty_max_bytes"] == level.most * page, row
        assert row["above_setpoint_ns"] == level.above_setpoint_ns, row
        assert row["above_limit_ns"] == level.above_limit_ns, row
        if level.ns:
            assert row["dirty_bytes"] == pytest.approx(level.dirty / level.ns * page, abs=1), row
            expected_place = pytest.approx(level.position, rel=1e-6, abs=1e-9)
            assert row["position_ratio"] == expected_place, row
    for row in _rows(wbscope, recorded, "control_range", window):
        at = expected.get(row["window_start_ns"])
        if at is None or not at.ns:
            assert row["range_position_ratio"] is None, row
            continue
        expected_place = pytest.approx(at.range_position, rel=1e-6, abs=1e-9)
        assert row["range_position_ratio"] == expected_place, row
        assert row["in_range_ratio"] == pytest.approx(at.in_range_ns / at.ns, rel=1e-9), row


def test_gap_at_the_end_of_each_window(
    wbscope: Wbscope, recorded: RecordedRun, window: str
) -> None:
    start, _ = _bounds(wbscope, recorded)
    states = dirty_states(recorded.events)
    first = states[0][1]
    last = {window_of(ts, start, _WINDOWS[window]): values for ts, values in states}
    page = recorded.page_bytes
    rows = _rows(wbscope, recorded, "redirty_gap", window)
    assert [row["window_start_ns"] for row in rows] == sorted(last)
    before = first
    for row in rows:
        values = last[row["window_start_ns"]]
        dirtied = values["dirtied"] - first["dirtied"]
        written = values["written"] - first["written"]
        growth = values["dirty"] + values["writeback"] - first["dirty"] - first["writeback"]
        assert row["dirtied_so_far_bytes"] == dirtied * page, row
        assert row["written_so_far_bytes"] == written * page, row
        assert row["dirty_growth_bytes"] == growth * page, row
        assert row["unexplained_gap_bytes"] == (dirtied - written - growth) * page, row
        now = values["written"] - before["written"]
        ratio = (values["dirtied"] - before["dirtied"]) / now if now else None
        assert row["dirtied_to_written_ratio"] == (ratio and pytest.approx(ratio)), row
        before = values


def test_redirtied_share_leaves_swap_out(wbscope: Wbscope, window: str) -> None:
    """Of the run in which every anonymous page reached the swap device."""
    recorded = example("reclaim-writes")
    start, _ = _bounds(wbscope, recorded)
    states = dirty_states(recorded.events)
    swapped = [
        event.ts
        for event in recorded.events
        if event.name == "mm_vmscan_write_folio" and "RECLAIM_WB_ANON" in event.text
    ]
    last = {window_of(ts, start, _WINDOWS[window]): (ts, values) for ts, values in states}
    before, rows, known = states[0], _rows(wbscope, recorded, "throughput", window), 0
    for row in (row for row in rows if row["dirtied_bytes"] is not None):
        ts, now = last[row["window_start_ns"]]
        grown = {name: value - before[1][name] for name, value in now.items()}
        out = sum(1 for at in swapped if before[0] < at <= ts)
        vanished = grown["dirtied"] - grown["written"] - grown["dirty"] - grown["writeback"] + out
        if grown["dirtied"] and vanished >= -125:
            known += 1
            share = max(vanished, 0) / grown["dirtied"]
            assert row["redirty_ratio"] == pytest.approx(share, abs=2 / grown["dirtied"]), row
        else:
            assert row["redirty_ratio"] is None, row
        before = (ts, now)
    assert known >= 5


def test_bandwidths_are_means(wbscope: Wbscope, recorded: RecordedRun, window: str) -> None:
    start, _ = _bounds(wbscope, recorded)
    expected = bandwidths(recorded.events, start, _WINDOWS[window])
    rows = _rows(wbscope, recorded, "bdi_bandwidth", window)
    found = {(row["window_start_ns"], row["bdi"], row["cgroup_ino"]): row for row in rows}
    assert set(found) == set(expected) != set()
    for key, rates in expected.items():
        for name, printed in _BANDWIDTHS.items():
            column = found[key][f"{name}_bytes_per_s"]
            assert column == pytest.approx(rates[printed] * 1024, rel=1e-9), (key, name)


def test_completed_bytes_of_devices(wbscope: Wbscope, recorded: RecordedRun, window: str) -> None:
    start, _ = _bounds(wbscope, recorded)
    expected = completions(recorded.events, start, _WINDOWS[window])
    rows = _rows(wbscope, recorded, "throughput_by_device", window)
    found = {
        (row["window_start_ns"], row["device"]): {
            "count": row["requests_count"],
            "read": row["read_bytes"] // 512,
            "written": row["written_bytes"] // 512,
        }
        for row in rows
    }
    assert found == expected != {}
    if recorded.has("vmstat.before", "vmstat.after"):
        # pgpgout is in KiB, counted when a bio is submitted; the samples enclose the trace.
        written = sum(row["written_bytes"] for row in rows)
        submitted = vmstat_delta(recorded.folder, "pgpgout") * 1024
        assert 0.75 * submitted <= written <= submitted + 64 * recorded.page_bytes


def test_share_of_each_window_that_was_slept(wbscope: Wbscope, window: str) -> None:
    """Of the run whose sleeps sched_switch measured; a sleep is taken from its event on."""
    recorded = example("deep")
    start, end = _bounds(wbscope, recorded)
    length = _WINDOWS[window]
    slept: dict[tuple[int, int], int] = defaultdict(int)
    longest: dict[tuple[int, int], int] = defaultdict(int)
    for pause, out, back in sleeps_by_pause(recorded.events, recorded.events[-1].ts):
        begin, finish = pause.ts, min(pause.ts + back - out, end + 1)
        while begin < finish:
            at = window_of(begin, start, length)
            slept[at, pause.tid] += min(at + length, finish) - begin
            longest[at, pause.tid] = max(longest[at, pause.tid], back - out)
            begin = at + length
    rows = _rows(wbscope, recorded, "throttle_windows", window)
    assert {(row["window_start_ns"], row["tid"]) for row in rows} >= set(slept)
    for row in rows:
        key = (row["window_start_ns"], row["tid"])
        covered = min(length, end + 1 - row["window_start_ns"])
        assert row["throttled_ratio"] * covered == pytest.approx(slept.get(key, 0), abs=10), row
        assert row["slept_max_ns"] == longest.get(key, 0), row


@pytest.mark.parametrize("span", [(), ("--from", "3100ms", "--to", "9700ms")])
def test_rates_are_from_sample_to_sample(
    wbscope: Wbscope, recorded: RecordedRun, window: str, span: tuple[str, ...]
) -> None:
    """A rate is the difference of two samples of the kernel's counters over the time between."""
    first, last = _bounds(wbscope, recorded)
    start, end = (first + 3_100_000_000, first + 9_700_000_000) if span else (first, last + 1)
    page = recorded.page_bytes
    samples = dirty_states(recorded.events)
    least = min(_WINDOWS[window], 1_000_000_000) / 2
    before = next((sample for sample in reversed(samples) if sample[0] < start), samples[0])
    last_in = {
        start + (ts - start) // _WINDOWS[window] * _WINDOWS[window]: (ts, values)
        for ts, values in samples
        if start <= ts < end
    }
    rows = wbscope.query("throughput", recorded.folder, "--window", window, *span)
    found = {row["window_start_ns"]: row for row in rows if row["window_ns"] is not None}
    assert set(found) == set(last_in)
    rated = 0
    for ts, sample in sorted(last_in.items()):
        row, ns = found[ts], sample[0] - before[0]
        assert row["window_ns"] == ns
        assert row["written_bytes"] == (sample[1]["written"] - before[1]["written"]) * page
        assert row["dirtied_bytes"] == (sample[1]["dirtied"] - before[1]["dirtied"]) * page
        for kind in ("written", "dirtied"):
            rate = row[f"{kind}_bytes_per_s"]
            if ns < least:  # the kernel folds its counters each second
                assert rate is None, row
            else:
                assert rate == pytest.approx(row[f"{kind}_bytes"] * 1e9 / ns, rel=1e-12), row
        rated += ns >= least
        before = sample
    assert rated > 1
