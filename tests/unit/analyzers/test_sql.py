# SPDX-License-Identifier: Apache-2.0
"""Plain SQL: one SELECT, read-only, stoppable."""

from __future__ import annotations

import csv
import io
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.cli import line_of
from support.runs import REPOSITORY
from wbscope.base.errors import EvidenceError, QueryError, UsageError
from wbscope.cli.sql import statements_of_stdin
from wbscope.library.definitions import quoted
from wbscope.library.guard import FUNCTIONS
from wbscope.library.library import load_library
from wbscope.library.own_sql import texts_up_to
from wbscope.library.sqlite import SqliteEngine

Cli = Callable[..., Any]

_UNSAID = re.compile(r"--[^\n]*|'(?:[^']|'')*'")  # comments and texts
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) FROM n"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 AS a",
        "  -- why\n/* and */ select 1 AS a ;  ",
        "WITH x AS (SELECT 1 AS a) SELECT a FROM x",
        "SELECT 1 AS a; -- done",
        "SELECT value AS a FROM json_each('[1]')",
        "SELECT 1 AS a FROM pragma_table_info('meta') LIMIT 1",
        "SELECT 1 AS a FROM wb_throttle LIMIT 1",
    ],
)
def test_reading_is_allowed(database: Path, statement: str) -> None:
    with wbscope.open(database) as run:
        assert run.sql(statement).records() == [{"a": 1}]


@pytest.mark.parametrize(
    ("statement", "slug"),
    [
        ("", "not-a-select"),
        (" -- only a comment", "not-a-select"),
        (";", "not-a-select"),
        ("INSERT INTO meta VALUES ('a', 1)", "not-a-select"),
        ("DELETE FROM meta", "not-a-select"),
        ("UPDATE meta SET value = 1", "not-a-select"),
        ("DROP TABLE meta", "not-a-select"),
        ("CREATE TEMP TABLE t(a)", "not-a-select"),
        ("ATTACH ':memory:' AS other", "not-a-select"),
        ("PRAGMA query_only = OFF", "not-a-select"),
        ("VACUUM INTO 'copy.db'", "not-a-select"),
        ("BEGIN", "not-a-select"),
        ("WITH x AS (SELECT 1) INSERT INTO meta SELECT 1, 1", "read-only"),
        ("WITH x AS (SELECT 1) DELETE FROM meta", "read-only"),
        ("WITH x AS (SELECT 1) UPDATE meta SET value = 1", "read-only"),
        ("SELECT load_extension('x')", "function-not-allowed"),
        ("SELECT hex(fts3_tokenizer('simple'))", "function-not-allowed"),
        ("WITH x AS (SELECT FTS3_Tokenizer('a', x'00')) SELECT * FROM x", "function-not-allowed"),
        ("SELECT sqlite_compileoption_get(1)", "function-not-allowed"),
        ("SELECT event FROM event_counts ORDER BY total_changes()", "function-not-allowed"),
        ("SELECT name FROM pragma_function_list", "read-only"),
        ("SELECT * FROM sqlite_stmt", "not-a-table"),
        ("SELECT * FROM fts3tokenize('simple', 'a b')", "not-a-table"),
        ("SELECT 1; SELECT 2", "several-statements"),
        ("SELECT 1; DROP TABLE meta", "several-statements"),
        ("SELECT 1; ATTACH ':memory:' AS other", "several-statements"),
        ("SELECT 1; garbage", "several-statements"),
        ("SELECT nonsense", "sql-error"),
        ("SELECT FROM", "sql-error"),
        ("SELECT ?", "sql-error"),
        ("SELECT * FROM event_cuonts", "sql-error"),
        ("SELECT 1\0", "not-text"),
        ("SELECT '\udcff'", "not-text"),
        ("SELECT zeroblob(2000000000)", "too-big"),
    ],
)
def test_anything_else_is_refused(database: Path, statement: str, slug: str) -> None:
    before = database.read_bytes()
    with wbscope.open(database) as run, pytest.raises(QueryError) as caught:
        run.sql(statement)
    assert caught.value.slug == slug
    assert caught.value.fix
    assert database.read_bytes() == before


def test_functions_of_an_sqlite_with_more_of_them(database: Path) -> None:
    """As the sqlite3 program has readfile(): what is not on the list is not called."""
    with wbscope.open(database) as run:
        engine = run._session.engine
        assert isinstance(engine, SqliteEngine)
        engine.connection.create_function("readfile", 1, lambda name: Path(name).read_bytes())
        with pytest.raises(QueryError) as caught:
            run.sql("SELECT readfile('/etc/passwd')")
    assert caught.value.slug == "function-not-allowed"
    assert "readfile()" in caught.value.message


def test_the_list_has_what_the_library_calls() -> None:
    """Every function of this SQLite that a view or a query names."""
    own = sqlite3.connect(":memory:").execute("SELECT name FROM pragma_function_list")
    known = {name for (name,) in own}
    called = {
        name
        for path in (REPOSITORY / "sql").rglob("*.sql")
        for name in re.findall(r"\b(\w+)\s*\(", _UNSAID.sub("", path.read_text()).lower())
    }
    assert {"lag", "coalesce", "substr"} <= called & known <= FUNCTIONS


def test_misspelt_table_names_the_closest(database: Path) -> None:
    with wbscope.open(database) as run, pytest.raises(QueryError) as caught:
        run.sql("SELECT * FROM wb_throtle")
    assert caught.value.have == "wb_throttle, wb_thread"


def test_a_query_is_selected_from(database: Path) -> None:
    with wbscope.open(database) as run:
        rows = run.sql("SELECT tid, pause_total_ns FROM throttle_by_task ORDER BY tid").rows
        answer = run.query("throttle_by_task")
    places = [answer.columns.index(name) for name in ("tid", "pause_total_ns")]
    assert rows == [tuple(row[place] for place in places) for row in answer.rows]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) AS writes FROM task",
        "SELECT 'writes' AS a, tid AS writes FROM task -- FROM writes",
        "WITH writes AS (SELECT 1 AS a) SELECT a FROM writes",
    ],
)
def test_the_name_of_a_query_as_a_word(database: Path, sql_dir: Path, statement: str) -> None:
    """Nothing that it needs is asked for; where it is read, it is."""
    text = "-- @query writes\n-- @events nowhere:seen\nSELECT e.tid FROM raw_write AS e;\n"
    (sql_dir / "queries/writes.sql").write_text(text)
    with wbscope.open(database) as run:
        assert run.sql(statement).rows
        for read in ("writes", '"writes"', "task, writes", "task AS t, writes AS w", "Writes"):
            with pytest.raises(EvidenceError, match="needs nowhere:seen"):
                run.sql(f"SELECT 1 FROM {read}")


def test_a_query_whose_name_is_a_keyword(database: Path) -> None:
    with wbscope.open(database) as run, pytest.raises(QueryError) as raised:
        run.sql("SELECT * FROM check")
    assert raised.value.fix == f"""wbscope sql {database} 'SELECT * FROM "check"'"""
    names = [query.name for query in load_library(REPOSITORY / "sql").queries()]
    with closing(sqlite3.connect(":memory:")) as connection:
        for name in names:
            connection.execute(f"CREATE VIEW {quoted(name)} AS SELECT 1")
        assert connection.execute("SELECT * FROM fairness").fetchall() == [(1,)]


def test_misspelt_column_names_the_closest_of_the_tables(database: Path) -> None:
    with wbscope.open(database) as run:
        for statement, close in (
            ("SELECT t.pase_ns FROM wb_throttle AS t", "pause_ns"),
            ("SELECT tabel_name FROM event_format", "table_name"),
            ("SELECT zzz FROM event_format", "event, id, table_name, status, format"),
            ("SELECT zzz", None),
        ):
            with pytest.raises(QueryError) as caught:
                run.sql(statement)
            assert (caught.value.slug, caught.value.have) == ("sql-error", close)
            assert caught.value.fix is not None


def test_time_limit_stops_an_endless_statement(database: Path) -> None:
    with wbscope.open(database) as run:
        with pytest.raises(QueryError) as caught:
            run.sql(ENDLESS, "20ms")
        assert caught.value.slug == "time-limit"
        assert run.sql("SELECT 1 AS a").rows == [(1,)]


def test_a_table_that_was_stopped_half_way_is_made_anew(database: Path, sql_dir: Path) -> None:
    (sql_dir / "views/wb_slow.sql").write_text(
        "-- @view wb_slow\n-- @materialize\nCREATE VIEW wb_slow AS\n"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000)\n"
        "SELECT i FROM n;\n"
    )
    with wbscope.open(database) as run:
        run.sql("SELECT 1")  # makes wb_slow a view, which costs nothing
        for _ in range(2):
            with pytest.raises(QueryError) as caught:
                run.sql("SELECT count(*) FROM wb_slow", "20ms")
            assert caught.value.slug == "time-limit"
        assert run.sql("SELECT count(*) AS rows FROM wb_slow").rows == [(1_000_000,)]


def test_query_after_sql_may_make_its_views(database: Path) -> None:
    with wbscope.open(database) as run:
        run.sql("SELECT 1")
        assert len(run.query("throttle_by_task").rows) == 2


def test_command_prints_a_table(cli: Cli, database: Path) -> None:
    ran = cli("sql", database, "SELECT event, count FROM event_counts")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == "writeback:balance_dirty_pages      3"


@pytest.mark.parametrize(
    "statement",
    ["-- why\nSELECT 1 AS a", "--why\nSELECT 1 AS a", "-- a = b\n-- c\nSELECT 1 AS a"],
)
def test_statement_that_starts_with_a_comment(cli: Cli, database: Path, statement: str) -> None:
    for words in ([statement], ["--", statement]):
        ran = cli("sql", "--csv", database, *words)
        assert (ran.code, ran.out.split()) == (0, ["a", "1"])
    assert cli("sql", database, statement, "--csv").out.split() == ["a", "1"]


def test_misspelt_option_is_no_statement(cli: Cli, database: Path) -> None:
    ran = cli("sql", database, "--tiemout", "1s")
    assert ran.code == 2
    line_of(ran.err, "error[usage]: ", "--tiemout")


def test_statement_and_file(cli: Cli, database: Path, sql_dir: Path) -> None:
    file = sql_dir / "queries" / "throttle_by_task.sql"
    ran = cli("sql", database, "-f", file, "--json")
    assert (ran.code, len(ran.json()["rows"])) == (0, 2)
    assert cli("sql", database, file.read_text(), "--json").json()["rows"] == ran.json()["rows"]
    both = cli("sql", database, "SELECT 1", "-f", file, "--json").error()
    assert (both["slug"], both["fix"]) == ("two-sources", f"wbscope sql {database} -f {file}")


def test_command_prints_json(cli: Cli, database: Path) -> None:
    ran = cli("sql", database, "SELECT 1 AS a, 2 AS a, x'ff' AS b, 9e999 AS c", "--json")
    document = ran.json()
    assert document["schema"] == "wbscope.sql/1"
    assert document["rows"] == [{"a": 1, "a:1": 2, "b": "x'ff'", "c": "inf"}]


def test_command_prints_csv(cli: Cli, database: Path) -> None:
    ran = cli("sql", database, "SELECT 1.5 AS a, NULL AS b, 'x,y' AS c, x'ff' AS d", "--csv")
    assert ran.out == "a,b,c,d\n1.5,,\"x,y\",x'ff'\n"


HARMLESS = [
    ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
    ("+1", "'+1"),
    ("-bash", "'-bash"),
    ("@SUM(A1)", "'@SUM(A1)"),
    (" =1", "' =1"),
    ("\x1b[2Jdd", "\\x1b[2Jdd"),
    ("a\rb", "a\\rb"),
    ("\u202egpj.exe", "\\u202egpj.exe"),
    ("\t=1", "\\t=1"),
    ("dd:1", "dd:1"),
]


@pytest.mark.parametrize(("recorded", "written"), HARMLESS)
def test_a_name_from_a_trace_does_no_harm_as_csv(
    cli: Cli, database: Path, recorded: str, written: str
) -> None:
    """Neither to a terminal nor in a spreadsheet; programs may have it as it is."""
    text = "SELECT '" + recorded.replace("'", "''") + "' AS comm, -5 AS n"

    def rows(option: str) -> list[list[str]]:
        return list(csv.reader(io.StringIO(cli("sql", database, text, option).out, newline="")))

    assert rows("--csv") == [["comm", "n"], [written, "-5"]]
    assert rows("--csv-raw") == [["comm", "n"], [recorded, "-5"]]


@pytest.mark.parametrize("words", [["-"], []])
def test_statement_from_stdin(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"SELECT 7 AS a")))
    assert cli("sql", database, *words, "--csv").out == "a\n7\n"


def test_stdin_that_is_not_text(cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"SELECT '\xff'")))
    ran = cli("sql", database)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error[not-text]: sql: ")


@pytest.mark.parametrize("words", [["-f", "file"], [], ["-"]])
def test_a_semicolon_in_what_is_not_text(
    cli: Cli, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """As of a trace or a program; a lexer of whole text took it for a bug of wbscope (exit 70)."""
    data = b"\x7fELF\xff;\x00;\n;SELECT 1"
    (tmp_path / "file").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    ran = cli("sql", database, *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error[not-text]: ")


@pytest.mark.parametrize("command", ["wbscope sql", "wbscope fleet sql"])
def test_a_closed_stdin_has_no_statement(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of fleet sql it was a bug of wbscope (exit 70)."""
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UsageError) as caught:
        statements_of_stdin(command, "example")
    assert (caught.value.slug, caught.value.subject) == ("no-statement", command)


def test_no_statement_on_a_terminal(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(stdin, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", stdin)
    ran = cli("sql", database)
    assert ran.code == 2
    assert ran.err.startswith("error[no-statement]: wbscope sql: ")


def test_lost_events_come_with_any_select(cli: Cli, new_database: Callable[..., Path]) -> None:
    ran = cli("sql", new_database(lost_events_count=5), "SELECT 1 AS a")
    assert ran.err == "warning[lost-events]: 5 events were lost\n"


def test_an_interrupt_leaves_no_second_error() -> None:
    """It may close the database before the end of the statement is told."""
    connection = sqlite3.connect(":memory:")
    with texts_up_to(connection, 1000):
        connection.close()
