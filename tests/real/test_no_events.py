# SPDX-License-Identifier: Apache-2.0
"""A recording without an event: no all-clear, no comparison, and no budget that holds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.tracedat import Trace
from support.wait_events import wait_formats


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """Its formats say that throttling was recorded, and nothing happened."""
    run = tmp_path / "empty"
    run.mkdir()
    Trace(wait_formats("balance_dirty_pages"), cmdlines={7: "dd"}).write(run / "trace.dat")
    return run


@pytest.fixture
def some(tmp_path: Path) -> Path:
    run = tmp_path / "some"
    run.mkdir()
    trace = Trace(wait_formats("balance_dirty_pages"), cmdlines={7: "dd"})
    values = {"bdi": "8:0", "cgroup_ino": 1, "pause": 0, "period": 1, "dirtied": 32}
    trace.event(0, 1_000, 7, "balance_dirty_pages", values)
    trace.write(run / "trace.dat")
    return run


def test_it_is_no_all_clear(wbscope: Wbscope, empty: Path, some: Path) -> None:
    document = wbscope.document("explain", empty)
    (row,) = document["rows"]
    assert (row["id"], row["severity"], document["is_whole"]) == ("no_verdict", "severe", False)
    assert row["text"] == "No verdict, no event was recorded: nothing can be said."
    assert row["title"] == "No event was recorded"
    assert row["advice"]["settings"] == []
    assert [one["slug"] for one in document["warnings"]].count("no-events") == 1
    (state,) = wbscope.query("trace_state", empty)
    assert state["matters"] == 1
    one_event = wbscope.document("explain", some)
    assert one_event["is_whole"]
    assert "no-events" not in [one["slug"] for one in one_event["warnings"]]


def test_a_database_of_an_empty_part_is_none_either(wbscope: Wbscope, some: Path) -> None:
    """Such as an earlier wbscope made of `ingest --from 500s`."""
    database = some / "run.db"
    assert wbscope.run("ingest", some, "-o", database).returncode == 0
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("UPDATE meta SET value = 0 WHERE key = 'events_count'")
    assert wbscope.query("findings", database)[0]["id"] == "no_verdict"


@pytest.mark.parametrize("side", ["first", "base"])
def test_it_is_comparable_with_nothing(
    wbscope: Wbscope, empty: Path, some: Path, side: str, tmp_path: Path
) -> None:
    runs = (empty, some) if side == "first" else (some, empty)
    policy = tmp_path / "gate.toml"
    policy.write_text('[metrics."throttle_summary.pauses_count"]\nmargin = "5%"\n')
    for words in (
        ("compare", runs[0], "--against", runs[1]),
        ("compare", runs[0], "--against", runs[1], "--allow-damaged"),
        ("gate", "--policy", policy, runs[0], "--against", runs[1]),
        ("gate", *runs, "--budget", "throttle_summary.pause_p99_ns <= 100ms"),
        ("gate", empty, "--budget", "throttle_summary.pause_p99_ns <= 100ms"),
        ("baseline", "save", *runs, "-o", tmp_path / "base.json"),
    ):
        done = wbscope.run(*words)
        assert done.returncode == 4, (words, done.stdout, done.stderr)
        assert done.stderr.startswith("error[run-without-events]: "), done.stderr
    assert not (tmp_path / "base.json").exists()
