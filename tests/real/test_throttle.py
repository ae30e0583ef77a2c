# SPDX-License-Identifier: Apache-2.0
"""Who was throttled, for how long and at which rates, against trace-cmd's text."""

from __future__ import annotations

from collections import defaultdict

import pytest
from support.cli import Document, Wbscope
from support.oracle import (
    Pause,
    TaskKey,
    Throttle,
    call_latencies,
    calls,
    dirty_states,
    mean_rates,
    read_pauses,
    sleeps_by_pause,
    throttle_by_task,
    told,
    write_calls,
)
from support.report import key_values
from support.runs import RecordedRun, example
from support.sidecars import fio_written_bytes, ls_files_bytes

# Who was throttled and for how long, against what trace-cmd's text says.

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


# Windows cut the throttled time without losing or inventing any.

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


# Rates that tasks were told, dirty pages of devices, and copies, against text and files.

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
