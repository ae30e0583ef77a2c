# SPDX-License-Identifier: Apache-2.0
"""Every event of every run is counted, as many times as trace-cmd prints it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from support.cli import Wbscope
from support.report import count_events, event_systems, report_lines
from support.runs import RecordedRun


def _expected(recorded: RecordedRun) -> tuple[Counter[str], dict[str, set[str]]]:
    return count_events(report_lines(recorded.trace)), event_systems(recorded.trace)


def test_counts_equal_the_lines_of_the_report(wbscope: Wbscope, recorded: RecordedRun) -> None:
    lines, systems = _expected(recorded)
    rows = wbscope.query("event_counts", recorded.folder)
    counted: Counter[str] = Counter()
    for row in rows:
        system, _, name = row["event"].partition(":")
        assert system in systems[name], row
        assert 0 <= row["loaded_count"] <= row["count"], row
        counted[name] += row["count"]
    assert counted == lines
    assert len({row["event"] for row in rows}) == len(rows)


def test_all_events_are_loaded_when_asked_for(
    wbscope: Wbscope, recorded: RecordedRun, tmp_path: Path
) -> None:
    database = tmp_path / "run.db"
    result = wbscope.run("ingest", recorded.folder, "--all", "-o", database)
    assert result.returncode == 0, result.stderr
    lines = count_events(report_lines(recorded.trace))
    rows = wbscope.query("event_counts", database)
    assert {row["event"]: row["loaded_count"] for row in rows} == {
        row["event"]: row["count"] for row in rows
    }
    tables = wbscope.sql(database, "SELECT event, count, table_name FROM event_counts")
    held = wbscope.sql(
        database,
        " UNION ALL ".join(
            f"SELECT '{row['event']}' AS event, COUNT(*) AS count FROM \"{row['table_name']}\""
            for row in tables
        ),
    )
    assert {row["event"]: row["count"] for row in held} == {
        row["event"]: row["count"] for row in tables
    }
    assert sum(row["count"] for row in tables) == lines.total()


def test_meta_totals_agree_with_the_counts(wbscope: Wbscope, recorded: RecordedRun) -> None:
    meta = {
        row["key"]: row["value"]
        for row in wbscope.sql(recorded.folder, "SELECT key, value FROM meta")
    }
    rows = wbscope.query("event_counts", recorded.folder)
    assert int(meta["events_count"]) == sum(row["count"] for row in rows)
    assert int(meta["loaded_count"]) == sum(row["loaded_count"] for row in rows)
    assert int(meta["page_bytes"]) == recorded.page_bytes
    assert (int(meta["damaged"]), int(meta["lost_events_count"] or 0)) == (0, 0)
    first, last = recorded.events[0].ts, recorded.events[-1].ts
    assert int(meta["first_ts"]) <= first <= last <= int(meta["last_ts"])
