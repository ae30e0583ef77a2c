# SPDX-License-Identifier: Apache-2.0
"""The timeline: which views are exported, and the script that makes them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import line_of
from wbscope.base.errors import SetupError
from wbscope.library.sqlfile import read_sql_file

Cli = Callable[..., Any]


def test_script_makes_the_views_on_a_plain_connection(
    cli: Cli, ingester: Any, database: Path, tmp_path: Path
) -> None:
    output = tmp_path / "run.pftrace"
    ran = cli("timeline", database, "-o", output)
    assert (ran.code, ran.out) == (0, "")
    line_of(ran.err, f"wrote {output}: ", 1, 2)
    [call] = ingester.calls()
    assert call["arguments"][:2] == ["timeline", str(database)]
    assert call["arguments"][call["arguments"].index("--view") + 1] == "tl_pauses"
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    connection.executescript("\n".join(call["listed"]))
    rows = connection.execute("SELECT ts, dur, track, arg_bdi FROM tl_pauses ORDER BY ts")
    assert rows.fetchone() == (1_000_000_000, 200_000_000, "dd", "8:0")
    connection.close()


def test_view_without_its_events_is_named(
    cli: Cli, ingester: Any, database: Path, tmp_path: Path
) -> None:
    ran = cli("timeline", database, "-o", tmp_path / "x.pftrace", "--json")
    document = ran.json()
    assert document["schema"] == "wbscope.timeline/1"
    assert document["rows"] == [{"output": str(tmp_path / "x.pftrace"), "views": ["tl_pauses"]}]
    [warning] = document["warnings"]
    assert warning["slug"] == "missing-event"
    assert warning["message"].startswith("tl_writes needs vmscan:mm_vmscan_write_folio")
    assert [call["arguments"].count("tl_writes") for call in ingester.calls()] == [0]


def test_run_without_any_of_the_events(
    cli: Cli, ingester: Any, database: Path, tmp_path: Path
) -> None:
    connection = sqlite3.connect(database)
    connection.execute("DELETE FROM event_format")
    connection.commit()
    connection.close()
    ran = cli("timeline", database, "-o", tmp_path / "x.pftrace")
    assert (ran.code, ingester.calls()) == (4, [])


def test_failed_export_leaves_nothing(
    cli: Cli,
    ingester: Any,
    database: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_INGESTER", "signal9")
    assert cli("timeline", database, "-o", tmp_path / "x.pftrace").code == 5
    assert os.listdir(tmp_path) == ["run.db"]


def test_output_is_checked_first(cli: Cli, ingester: Any, database: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.pftrace"
    output.write_text("earlier")
    assert cli("timeline", database, "-o", output).code == 2
    assert cli("timeline", database, "-o", database, "--force").code == 2
    assert cli("timeline", database, "-o", tmp_path / "no" / "x").code == 5
    assert ingester.calls() == []
    assert cli("timeline", database, "-o", output, "--force").code == 0
    assert output.read_bytes() != b"earlier"


def test_plan_comes_from_the_headers(
    cli: Cli, ingester: Any, database: Path, tmp_path: Path
) -> None:
    assert cli("timeline", database, "-o", tmp_path / "x.pftrace").code == 0
    [call] = ingester.calls()
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    connection.executescript("\n".join(call["listed"]))

    def rows(statement: str) -> list[Any]:
        return connection.execute(statement).fetchall()

    assert rows("SELECT * FROM timeline_view") == [
        ("tl_pauses", 1, "Writeback/Pauses", "One disk", 1, 0)
    ]
    assert rows("SELECT * FROM timeline_track ORDER BY rowid") == [
        ("tl_pauses", "dd*", "time", "pauses of dd"),
        ("tl_pauses", "*", "", "pauses of another"),
    ]
    # What the run is about comes first; then the order of the timelines, also of those left out.
    assert rows("SELECT path, rank, is_top FROM timeline_group ORDER BY rank, path") == [
        ("Writeback", 0, 0),
        ("Writeback/Pauses", 1, 1),
        ("Writeback/Reclaim", 100, 0),
    ]
    assert rows("SELECT name FROM timeline_thread WHERE tid = pid") != []
    connection.close()


_PARENT = """
-- @timeline tl_all
-- @order    30
-- @group    Pauses
-- @parent
-- @events   writeback:balance_dirty_pages
CREATE VIEW tl_all AS
SELECT ts, NULL AS dur, 'Writeback/Pauses' AS track, NULL AS name, 1 AS value, 'tasks' AS unit
FROM wb_throttle;
"""


def test_what_draws_on_groups_comes_first(
    cli: Cli, ingester: Any, database: Path, sql_dir: Path, tmp_path: Path
) -> None:
    """Else another track makes the group, and it has no data of its own."""
    (sql_dir / "timelines/tl_all.sql").write_text(_PARENT)
    assert cli("timeline", database, "-o", tmp_path / "x.pftrace").code == 0
    [call] = ingester.calls()
    arguments = call["arguments"]
    views = [arguments[at + 1] for at, word in enumerate(arguments) if word == "--view"]
    assert views == ["tl_all", "tl_pauses"]


@pytest.mark.parametrize("line", ["dirty", "dirty: ", "dirty [a b"])
def test_track_line_that_says_nothing(line: str, tmp_path: Path) -> None:
    file = tmp_path / "tl_x.sql"
    file.write_text(f"-- @timeline tl_x\n-- @track    {line}\nCREATE VIEW tl_x AS SELECT 1;\n")
    with pytest.raises(SetupError, match="wanted PATTERN"):
        read_sql_file(file)
