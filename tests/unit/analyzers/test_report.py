# SPDX-License-Identifier: Apache-2.0
"""The report, Run.report() and the timeline."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.cli import line_of
from support.runs import example
from wbscope.base.errors import QueryError, SetupError, UsageError
from wbscope.explain.verdict import page_window_ns
from wbscope.library.sqlfile import read_sql_file

# The report: order of sections, questions that cannot be answered, files.

Cli = Callable[..., Any]


def test_sections_come_in_order_and_a_missing_event_is_said(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(database.parent)  # a long path has a line of its own
    ran = cli("report", database.name, "--full")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[:6] == [
        f"{database.name}: no verdict, for no rule could be asked",
        "6.1.0",
        "",
        "kernel  6.1.0",
        "length  2.00 s",
        "",
    ]
    titles = ["Who was throttled", "Did reclaim write"]
    positions = [ran.out.index(f"{title}\n{'=' * len(title)}\n") for title in titles]
    assert positions == sorted(positions)
    assert "not answered: needs vmscan:mm_vmscan_write_folio or" in ran.out
    assert "How to read it: A long pause is a wait that the kernel ordered." in ran.out
    assert "* pause_total_ns (ns, lower is better): time that the kernel held the" in ran.out
    assert "warning[lower-bound]: pages are a lower bound" in ran.out
    assert "The window length" not in ran.out


def test_the_short_report_has_one_block_of_each_table(cli: Cli, database: Path) -> None:
    out = cli("report", database).out
    assert "Who was throttled\n" in out
    assert "How to read it" not in out
    assert "Words\n" not in out


def test_a_section_that_is_no_query_is_refused(cli: Cli, database: Path) -> None:
    ran = cli("report", database, "--section", "throtle_by_task")
    assert ran.code == 2
    assert "throttle_by_task" in ran.err


def test_json_has_a_row_for_each_section(cli: Cli, database: Path) -> None:
    document = cli("report", database, "--json").json()
    assert document["schema"] == "wbscope.report/1"
    assert document["summary"] == [
        {"key": "kernel", "value": "6.1.0"},
        {"key": "length_ns", "value": 2000000000},
    ]
    throttled, reclaim = document["rows"]
    assert throttled["units"] == {"pauses_count": "count", "pause_total_ns": "ns"}
    assert reclaim["skipped"]["slug"] == "missing-event"
    assert "rows" not in reclaim


def test_report_to_a_file(cli: Cli, database: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.txt"
    ran = cli("report", database, "-o", output)
    assert (ran.code, ran.out, ran.err) == (0, "", f"wrote {output}\n")
    assert output.read_text() == cli("report", database, "-o", "-").out
    assert cli("report", database, "-o", output).code == 2
    assert cli("report", database, "-o", output, "--force", "--json").code == 0
    assert output.read_text().startswith("{")
    assert cli("report", database, "-o", database, "--force").code == 2


@pytest.mark.usefixtures("ingester")
def test_report_of_a_trace(cli: Cli, trace: Path) -> None:
    ran = cli("report", trace)
    assert (ran.code, ran.err) == (0, "")
    verdict = "no verdict, for no rule could be asked\n"
    assert ran.out.startswith((f"{trace}: {verdict}", f"{trace}:\n{verdict}"))


@pytest.mark.parametrize(
    ("seconds", "window"), [(0, 2), (32, 2), (33, 5), (600, 60), (10_000_000, 625_000)]
)
def test_windows_of_a_report_fit_a_page(seconds: int, window: int) -> None:
    assert page_window_ns(seconds * 10**9) == window * 10**9


def test_what_a_table_has_is_chosen(cli: Cli, database: Path, tmp_path: Path) -> None:
    words = ("report", database, "--section", "throttle_by_task")
    chosen = ("--sort=-tid", "--columns", "pause_total_ns,tid", "--limit", "1")
    page = " ".join(cli(*words, *chosen).out.split())
    assert f" 100 ms 13 1 more row: wbscope query throttle_by_task {database} " in page
    ran = cli(*words, *chosen, "--json")
    assert ran.json()["rows"][0]["rows"] == [{"pause_total_ns": 100_000_000, "tid": 13}]
    line_of(ran.err, "throttle_by_task: ", 1, 2, "--limit")
    for end, row in ((".md", "| 100 ms | 13 |"), (".html", "1 of 2 rows. All of them:")):
        page = tmp_path / f"page{end}"
        assert cli(*words, *chosen, "-o", page).code == 0
        assert row in page.read_text()


def test_a_name_that_promises_something_else(cli: Cli, database: Path, tmp_path: Path) -> None:
    ran = cli("report", database, "-o", tmp_path / "a b.pdf")
    assert (ran.code, "error[unknown-format]: " in ran.err) == (2, True)
    assert f"  fix: -o '{tmp_path}/a b.html'\n" in ran.err
    assert not (tmp_path / "a b.pdf").exists()
    assert cli("report", database, "-o", tmp_path / "notes.log").code == 0


def test_width_of_a_page(cli: Cli, database: Path, tmp_path: Path) -> None:
    words = ("report", database, "--section", "throttle_by_task")
    narrow = cli(*words, "--width", "40").out
    assert max(map(len, narrow[narrow.index("Who was") :].splitlines()[2:6])) <= 40
    output = tmp_path / "report.txt"
    assert cli(*words, "--width", "40", "-o", output).code == 0
    assert output.read_text() == narrow


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["--limit", "3"], "no-section"),
        (["--full", "--section", "windows", "--sort", "tid"], "no-section"),
        (["--section", "throttle_by_task", "--columns", "tit"], "unknown-column"),
        (["--section", "throttle_by_task", "--sort=-tit"], "unknown-column"),
        (["--section", "windows", "--limit", "0"], "bad-number"),
        (["--width", "9"], "bad-number"),
        (["--width", "90", "--json"], "two-formats"),
        (["--width", "90", "-o", "page.html"], "two-formats"),
    ],
)
def test_a_choice_that_cannot_be_made(
    cli: Cli, tmp_path: Path, words: list[str], slug: str
) -> None:
    ran = cli("report", tmp_path / "nothing.db", *words)
    assert ran.code == 2
    assert f"error[{slug}]" in ran.err or ran.error()["slug"] == slug


# Run.report(): the pages of `wbscope report`; how runs, results and findings show themselves.


@pytest.fixture
def run(database: Path) -> Iterator[wbscope.Run]:
    with wbscope.open(database) as opened:
        yield opened


def _in_python(text: str) -> str:
    """What names options names arguments there."""
    return text.replace("--full", "full=True").replace("--section NAME", "section='NAME'")


def test_it_is_what_the_command_prints(cli: Cli, run: wbscope.Run, database: Path) -> None:
    assert run.report() == _in_python(cli("report", database).out)
    assert run.report(full=True) == cli("report", database, "--full").out
    words = ("--section", "throttle_by_task", "--section", "windows", "--to", "1s", "--clock")
    assert run.report(section=["throttle_by_task", "windows"], end="1s", clock=True) == _in_python(
        cli("report", database, *words).out
    )
    assert json.loads(run.report(format="json")) == cli("report", database, "--json").json()


@pytest.mark.parametrize(("form", "end"), [("markdown", "md"), ("html", "html")])
def test_files(
    cli: Cli, run: wbscope.Run, database: Path, tmp_path: Path, form: str, end: str
) -> None:
    page = tmp_path / f"page.{end}"
    assert cli("report", database, "--section", "throttle_by_task", "-o", page).code == 0
    assert run.report(section="throttle_by_task", format=form) == page.read_text(encoding="utf-8")


def test_what_it_refuses(run: wbscope.Run) -> None:
    with pytest.raises(UsageError, match="format='pdf'") as caught:
        run.report(format="pdf")
    assert caught.value.fix == "format='text'"
    with pytest.raises(QueryError, match="throtle"):
        run.report(section="throtle")
    run.close()
    with pytest.raises(UsageError, match="is closed"):
        run.report()


def test_a_repr_is_a_line(run: wbscope.Run) -> None:
    result = run.query("throttle_by_task")
    assert repr(result) == (
        "<wbscope result 'throttle_by_task': 2 rows, 5 columns"
        " (tid, comm, bdi, pauses_count, pause_total_ns), 1 warning>"
    )
    assert repr(run) == f"<wbscope run {run.name!r}: kernel 6.1.0, 2.00 s, 3 events>"
    run.close()
    assert repr(run) == f"<wbscope run {run.name!r}: closed>"


def test_of_a_recorded_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WBSCOPE_SQL_DIR")  # the library of these tests
    with wbscope.open(example("four-equal-writers").folder) as run:
        first, *_ = run.findings()
        assert repr(first).startswith("<wbscope finding 'slow_device', warning: '4 dd waited ")
        assert first.text in " ".join(run.report().split())
        assert run.report(format="html").startswith("<!DOCTYPE html>")


# The timeline: which views are exported, and the script that makes them.


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
