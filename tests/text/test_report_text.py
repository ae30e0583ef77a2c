# SPDX-License-Identifier: Apache-2.0
"""What trace-cmd report prints, against the trace.dat that it printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.runs import RecordedRun, all_runs
from support.texttrace import Loaded, load, load_binary
from support.tools import require_program, run
from wbscope.library.library import load_library

# Fields that the print format leaves out, or prints so that they cannot be
# told: a symbol instead of an address, ms instead of jiffies, R for a task that
# was preempted. Raw output (-R) has them all.
_NOT_PRINTED = {
    "vmscan:mm_shrink_slab_start": {"shrink"},
    "vmscan:mm_shrink_slab_end": {"shrink"},
    "vmscan:mm_vmscan_kswapd_wake": {"zid"},
    "vmscan:mm_vmscan_wakeup_kswapd": {"zid"},
    "sched:sched_switch": {"prev_state"},
    "jbd2:jbd2_run_stats": {
        "wait",
        "request_delay",
        "running",
        "locked",
        "flushing",
        "logging",
    },
}
_SHOWN_STATE = 0xFF  # bits of prev_state that have a letter
_QUERIES = (
    "throttle_by_task",
    "fairness_tasks",
    "bdi_bandwidth",
    "dirty_position",
    "throughput",
    "event_counts",
)
_ROUNDED_NS = {"-t": 1, "": 1000, "-R": 1000, "-l": 1000}

_runs = pytest.mark.parametrize("run_", all_runs(), ids=str)


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str | None], Loaded]:
    return {}


def _loaded(
    made: dict[tuple[str, str | None], Loaded], of: RecordedRun, option: str | None, folder: Path
) -> Loaded:
    """The database of the trace itself (None) or of its report."""
    key = (str(of), option)
    if key not in made:
        database = folder / "run.db"
        if option is None:
            made[key] = load_binary(of.trace, database)
        else:
            report = [require_program("trace-cmd"), "report", *option.split(), of.trace]
            text = folder / "report.txt"
            text.write_text(run(report).stdout, encoding="utf-8")
            made[key] = load(text, database)
            text.unlink()
    return made[key]


def _rounded(row: dict[str, Any], unit: int) -> dict[str, Any]:
    return {**row, "ts": (row["ts"] + unit // 2) // unit * unit}


@_runs
@pytest.mark.parametrize("option", ["", "-t", "-R", "-l"])
def test_same_records(
    databases: dict[tuple[str, str | None], Loaded],
    tmp_path_factory: pytest.TempPathFactory,
    run_: RecordedRun,
    option: str,
) -> None:
    truth = _loaded(databases, run_, None, tmp_path_factory.mktemp("dat"))
    text = _loaded(databases, run_, option, tmp_path_factory.mktemp("text"))
    assert text.meta()["format"] == "trace-cmd report text"
    assert "text_not_understood" not in text.counters()
    assert text.events() == truth.events()
    for event in sorted(set(load_library().events()) & set(truth.events())):
        left_out = set() if option == "-R" else _NOT_PRINTED.get(event, set())
        if event.startswith("syscalls:") and option != "-R":
            left_out = {"__syscall_nr"}
        # -R of trace-cmd 3.1.6 cuts addresses to 32 bits where it cannot print.
        if event.startswith("vmscan:mm_shrink_slab"):
            left_out = {"shrink"}
        expected = truth.rows(event)
        found = text.rows(event)
        assert len(found) == len(expected), event
        wrong = [
            (want, got)
            for want, got in zip(expected, found, strict=True)
            if _comparable(_rounded(want, _ROUNDED_NS[option]), left_out)
            != _comparable(got, left_out)
        ]
        assert not wrong, f"{event}: {len(wrong)} of {len(found)} differ, first {wrong[0]}"


def _comparable(row: dict[str, Any], left_out: set[str]) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if name not in {*left_out, "seq"}}
    if "prev_state" in left_out:
        kept["prev_state"] = row["prev_state"] & _SHOWN_STATE
    return kept


@_runs
@pytest.mark.parametrize("query", _QUERIES)
def test_same_answers(
    databases: dict[tuple[str, str | None], Loaded],
    tmp_path_factory: pytest.TempPathFactory,
    wbscope: Wbscope,
    run_: RecordedRun,
    query: str,
) -> None:
    truth = _loaded(databases, run_, None, tmp_path_factory.mktemp("dat"))
    text = _loaded(databases, run_, "-t", tmp_path_factory.mktemp("text"))
    assert wbscope.query(query, text.path) == wbscope.query(query, truth.path)
