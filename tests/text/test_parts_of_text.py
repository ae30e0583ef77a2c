# SPDX-License-Identifier: Apache-2.0
"""ingest --time-range and --limit of a text: what the same part of trace.dat gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.runs import example
from support.texttrace import load, load_binary, load_lines
from support.tools import require_program, run

_RUN = example("four-equal-writers").trace
_KEYS = (
    "first_ts",
    "last_ts",
    "range_first_ts",
    "range_end_ts",
    "loaded_limit",
    "partial",
    "events_count",
    "loaded_count",
)
_EVENT = "mm_vmscan_kswapd_sleep"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.txt"
    done = run([require_program("trace-cmd"), "report", "-t", _RUN])
    path.write_text(done.stdout, encoding="utf-8")
    return path


def _selection(meta: dict[str, Any]) -> dict[str, Any]:
    return {key: meta.get(key) for key in _KEYS}


@pytest.mark.parametrize(
    "options",
    [
        ("--time-range", "+1000000000..+2500000000"),
        ("--time-range", "+2000000000.."),
        ("--time-range", "..+1"),
        ("--limit", "1"),
        ("--limit", "5000"),
        ("--limit", "99999999"),
        ("--events", "writeback:balance_dirty_pages", "--limit", "700"),
        ("--time-range", "+1000000000..", "--limit", "3000"),
    ],
    ids=" ".join,
)
def test_same_part_as_of_the_trace(
    wbscope: Wbscope, report: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    options = options if "--events" in options else ("--all", *options)
    truth = load_binary(_RUN, tmp_path / "dat.db", *options)
    text = load(report, tmp_path / "text.db", *options)
    assert _selection(text.meta()) == _selection(truth.meta())
    tasks = "SELECT tid, first_ts, last_ts, events_count FROM task ORDER BY tid"
    counts = "SELECT event, count FROM event_counts WHERE count > 0 ORDER BY event"
    for rows in (tasks, counts):
        assert text.sql(rows) == truth.sql(rows)
    # A choice of events leaves out what throughput is made of.
    for query in ("throttle_by_task", "throughput")[: 1 if "--events" in options else 2]:
        assert wbscope.query(query, text.path) == wbscope.query(query, truth.path)


def test_counters_are_those_of_the_part(tmp_path: Path) -> None:
    front = "dd-1 [000]  "
    lines = [f"{front}{ts}: {_EVENT}: nid=0" for ts in ("1.0", "3.0", "2.0", "8.0", "7.0", "9.0")]
    lines += ["CPU:0 [LOST 5 EVENTS]", f"{front}10.0: unheard: a=1"]
    whole = load_lines(lines, tmp_path, "--all")
    assert whole.counters()["time_backwards"] == 2
    part = load_lines(lines, tmp_path, "--all", "--force", "--time-range", "+0..+4000000000")
    assert part.counters()["time_backwards"] == 1
    assert "text_generic" not in part.counters()
    meta = part.meta()
    assert (meta["first_ts"], meta["last_ts"]) == (1_000_000_000, 3_000_000_000)
    assert (meta["events_count"], meta["lost_gaps_count"]) == (3, 0)


def test_a_range_without_a_record(tmp_path: Path) -> None:
    loaded = load_lines(
        [f"dd-1 [000]  1.0: {_EVENT}: nid=0"], tmp_path, "--all", "--time-range", "5000000000.."
    )
    meta = loaded.meta()
    assert (meta["events_count"], meta["range_first_ts"], meta["partial"]) == (0, 5 * 10**9, 1)
    assert "first_ts" not in meta


def test_more_names_than_fit(wbscope: Wbscope, tmp_path: Path) -> None:
    lines = [f"dd-1 [000]  {i + 1}.0: event{i}: a=1" for i in range(9000)]
    loaded = load_lines([*lines, lines[-1]], tmp_path)
    assert loaded.meta()["events_count"] == 9001
    assert loaded.meta()["loaded_count"] == 8192
    assert loaded.counters()["records_over_cap"] == 9001 - 8192
    assert loaded.sql("SELECT events_count FROM task WHERE tid = 1") == [(9001,)]
    warnings = wbscope.document("query", "event_counts", loaded.path)["warnings"]
    (said,) = [w["message"] for w in warnings if w["slug"] == "data-loss-records-over-cap"]
    assert said.startswith("records_over_cap is 809: ")
