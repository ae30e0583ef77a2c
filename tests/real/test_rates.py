# SPDX-License-Identifier: Apache-2.0
"""Rates that tasks were told, dirty pages of devices, and copies, against text and files."""

from __future__ import annotations

from collections import defaultdict

import pytest
from support.cli import Wbscope
from support.more_oracle import calls, mean_rates, told
from support.oracle import dirty_states, read_pauses, throttle_by_task
from support.report import key_values
from support.runs import RecordedRun, example
from support.sidecars import ls_files_bytes

_WINDOW_NS = 2_000_000_000


def test_targets_are_means_over_time(wbscope: Wbscope, recorded: RecordedRun) -> None:
    pauses = read_pauses(recorded.events)
    rates = mean_rates(pauses)
    tasks = throttle_by_task(pauses)
    rows = wbscope.query("ratelimit_error", recorded.folder)
    assert rows
    for row in rows:
        key = (row["tid"], row["bdi"], row["cgroup_ino"])
        assert row["target_bytes_per_s"] == pytest.approx(rates[key] * 1024, rel=1e-6), row
        own = [pause for pause in pauses if pause.key == key]
        pages = tasks[key].dirtied_pages - (own[0].dirtied if own[0].consumed else 0)
        seconds = (own[-1].ts - own[0].ts) / 1e9
        target, actual = rates[key] * 1024, row["actual_bytes_per_s"]
        assert row["error_ratio"] == pytest.approx(actual / target - 1, rel=1e-6, abs=1e-9), row
        # Events charge a lower bound; what is above it was dirtied in free run.
        charged = actual - row["freerun_error_ratio"] * target
        assert charged == pytest.approx(pages * recorded.page_bytes / seconds, rel=1e-6), row


def test_what_the_time_was_and_what_came_of_it(wbscope: Wbscope, recorded: RecordedRun) -> None:
    expected = told(read_pauses(recorded.events))
    for row in wbscope.query("ratelimit_error", recorded.folder):
        own = expected[row["tid"], row["bdi"], row["cgroup_ino"]]
        for percent in (25, 50, 95):
            assert row[f"target_p{percent}_bytes_per_s"] == own.rank(percent) * 1024, row
        whole, rate_time = sum(own.ns.values()), sum(own.rate_time.values())
        for kind in ("stopped", "told", "elsewhere"):
            assert row[f"{kind}_ratio"] == pytest.approx(own.ns[kind] / whole, abs=1e-9), row
            rate = own.pages[kind] * recorded.page_bytes / (row["active_ns"] / 1e9)
            error = rate / row["target_bytes_per_s"] - own.rate_time[kind] / rate_time
            assert row[f"{kind}_error_ratio"] == pytest.approx(error, abs=1e-9), row
        parts = sum(
            row[f"{kind}_error_ratio"] for kind in ("stopped", "told", "elsewhere", "freerun")
        )
        assert row["error_ratio"] == pytest.approx(parts, abs=1e-9), row


def test_gap_ends_where_the_counters_do(wbscope: Wbscope, recorded: RecordedRun) -> None:
    states = dirty_states(recorded.events)
    first, last = states[0][1], states[-1][1]
    row = wbscope.query("redirty_gap", recorded.folder)[-1]
    dirtied = last["dirtied"] - first["dirtied"]
    written = last["written"] - first["written"]
    growth = last["dirty"] + last["writeback"] - first["dirty"] - first["writeback"]
    assert row["gap_bytes"] == (dirtied - written) * recorded.page_bytes
    assert row["unexplained_gap_bytes"] == (dirtied - written - growth) * recorded.page_bytes


def test_range_of_2011_lies_within_what_was_recorded(
    wbscope: Wbscope, recorded: RecordedRun
) -> None:
    states = dirty_states(recorded.events)
    rows = wbscope.query("control_range", recorded.folder)
    assert any(row["range_position_ratio"] is not None for row in rows)
    for row in rows:
        if row["range_position_ratio"] is None:
            continue
        start = row["window_start_ns"]
        before = [values for ts, values in states if ts < start][-1:]
        inside = before + [v for ts, v in states if start <= ts < start + _WINDOW_NS]
        places = []
        for values in inside:
            low = values["thresh"] - values["thresh"] // 4
            dirty = values["dirty"] + values["writeback"]
            places.append((dirty - low) / (values["thresh"] // 4))
        assert min(places) - 0.01 <= row["range_position_ratio"] <= max(places) + 0.01, row
        assert 0 <= row["in_range_ratio"] <= 1
        if all(0.001 < place < 0.999 for place in places):
            assert row["in_range_ratio"] == pytest.approx(1)
        if not any(0 <= place <= 1 for place in places):
            assert row["in_range_ratio"] == 0


def test_dirty_pages_of_each_device_are_means_of_events(
    wbscope: Wbscope, recorded: RecordedRun
) -> None:
    seen: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for event in recorded.events:
        if event.name == "balance_dirty_pages":
            bdi, _, rest = event.text.removeprefix("bdi ").partition(": ")
            values = key_values(rest)
            dirty = values.get("wb_dirty", values.get("bdi_dirty"))
            assert dirty is not None
            seen[bdi, int(values["cgroup_ino"])].append((event.ts, int(dirty)))
    rows = wbscope.query("bdi_dirty", recorded.folder)
    assert sum(row["events_count"] for row in rows) == sum(map(len, seen.values()))
    for row in rows:
        start = row["window_start_ns"]
        group = seen[row["bdi"], row["cgroup_ino"]]
        inside = [pages for ts, pages in group if start <= ts < start + _WINDOW_NS]
        assert row["events_count"] == len(inside)
        mean = sum(inside) / len(inside) * recorded.page_bytes
        assert row["wb_dirty_bytes"] == pytest.approx(mean, abs=1)
        assert row["wb_dirty_max_bytes"] == max(inside) * recorded.page_bytes


def test_limit_of_a_memory_cgroup_is_unknown_on_6_12(wbscope: Wbscope) -> None:
    """cgroup 27 has 64 MiB, so its setpoint is far from the machine's when it throttles."""
    recorded = example("deep")
    rows = wbscope.sql(
        recorded.folder,
        "SELECT domain, limit_bytes, setpoint_bytes FROM wb_throttle WHERE cgroup_ino = 27",
    )
    machine = dirty_states(recorded.events)
    lowest = min((v["bg_thresh"] + v["thresh"]) // 2 for _, v in machine) * recorded.page_bytes
    own = [row for row in rows if row["domain"] == "memcg"]
    assert 0 < len(own) < len(rows)
    assert all(row["limit_bytes"] is None and row["setpoint_bytes"] < lowest for row in own)
    assert all(
        row["limit_bytes"] and row["setpoint_bytes"] > lowest for row in rows if row not in own
    )


def test_copies_have_the_size_of_the_files(wbscope: Wbscope) -> None:
    recorded = example("deep")
    sizes = ls_files_bytes(recorded.folder)
    rows = wbscope.query("copy_and_sync", recorded.folder)
    copied = sorted(row["written_bytes"] for row in rows if row["phase"] == "copy")
    assert copied[-3:] == sorted([sizes["zero-1"], sizes["zero-2"], sizes["incg"]])
    for phase, name in (("copy", "write"), ("fsync", "fsync")):
        spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for tid, entered, returned in calls(recorded.events, name):
            spans[tid].append((entered, returned))
        for row in rows:
            if row["phase"] == phase and row["calls_count"] == len(spans[row["tid"]]):
                own = spans[row["tid"]]
                assert row["dur"] == own[-1][1] - own[0][0], row
                assert row["in_calls_ns"] == sum(end - start for start, end in own), row
    assert sum(row["calls_count"] for row in rows if row["phase"] == "fsync") == 12


def test_dirty_level_of_the_copies(wbscope: Wbscope) -> None:
    recorded = example("deep")
    states = dirty_states(recorded.events)
    for row in wbscope.query("copy_and_sync", recorded.folder):
        end = row["ts"] + row["dur"]
        inside = [
            (v["dirty"] + v["writeback"]) * recorded.page_bytes
            for ts, v in states
            if row["ts"] <= ts <= end
        ]
        assert row["samples_count"] == len(inside), row
        assert row["dirty_max_bytes"] == (max(inside) if inside else None), row
        if inside:
            assert row["dirty_mean_bytes"] == pytest.approx(sum(inside) / len(inside), abs=1)
