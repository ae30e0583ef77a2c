# SPDX-License-Identifier: Apache-2.0
"""Several statements from a file: taken apart, answered one by one, errors with their place."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import line_of
from wbscope.library.statements import Statement, is_complete, split_statements

Cli = Callable[..., Any]

SCRIPT = """\
-- the first; of two
SELECT 1 AS a;

/* more
   of it; */
SELECT ';' AS b,
  2 AS c;
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "questions.sql"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" -- nothing\n;;/* ; */", []),
        ("SELECT 1", [("SELECT 1", 1)]),
        ("SELECT 1;", [("SELECT 1", 1)]),
        (SCRIPT, [("SELECT 1 AS a", 2), ("SELECT ';' AS b,\n  2 AS c", 6)]),
        ("SELECT ';''' ; SELECT 2", [("SELECT ';'''", 1), ("SELECT 2", 1)]),
        ('SELECT 1 AS "a;b";\nSELECT 2', [('SELECT 1 AS "a;b"', 1), ("SELECT 2", 2)]),
        ("SELECT 1 AS [;], 2 AS `;`;", [("SELECT 1 AS [;], 2 AS `;`", 1)]),
        ("SELECT 1 -- ;\n;SELECT 2", [("SELECT 1 -- ;", 1), ("SELECT 2", 2)]),
        ("SELECT 'open ; SELECT 2", [("SELECT 'open ; SELECT 2", 1)]),
        ("SELECT /* open ; SELECT 2", [("SELECT /* open ; SELECT 2", 1)]),
    ],
)
def test_statements_are_taken_apart(text: str, statements: list[tuple[str, int]]) -> None:
    assert split_statements(text) == [Statement(*parts) for parts in statements]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT ';", False),
        ("SELECT 1; SELECT 2", False),
        ("SELECT 1; /* not yet", False),
    ],
)
def test_when_a_statement_has_its_end(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_a_long_text_is_taken_apart_in_no_time() -> None:
    assert len(split_statements("SELECT ';;;';" * 100_000)) == 100_000


def test_each_statement_is_answered(cli: Cli, database: Path, script: Path) -> None:
    ran = cli("sql", database, "-f", script)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "a\n-\n1\n\nb  c\n-  -\n;  2\n"


def test_warnings_come_once(cli: Cli, new_database: Callable[..., Path], script: Path) -> None:
    lost = new_database(lost_events_count=5)
    assert cli("sql", lost, "-f", script).err == "warning[lost-events]: 5 events were lost\n"
    assert cli("sql", lost, "-f", script, "--markdown").out.count("lost-events") == 1


def test_json_has_a_row_for_each_statement(cli: Cli, database: Path, script: Path) -> None:
    document = cli("sql", database, "-f", script, "--json").json()
    assert document["schema"] == "wbscope.sql-script/1"
    assert document["source"] == str(script)
    assert [(row["line"], row["rows"]) for row in document["rows"]] == [
        (2, [{"a": 1}]),
        (6, [{"b": ";", "c": 2}]),
    ]


def test_a_file_with_one_statement_is_as_an_argument(
    cli: Cli, database: Path, tmp_path: Path
) -> None:
    (tmp_path / "one.sql").write_text("-- one\nSELECT 1 AS a;\n")
    ran = cli("sql", database, "-f", tmp_path / "one.sql", "--csv")
    assert (ran.code, ran.out) == (0, "a\n1\n")
    document = cli("sql", database, "-f", tmp_path / "one.sql", "--json").json()
    assert document["schema"] == "wbscope.sql/1"


@pytest.mark.parametrize("endless", [1, 2])
def test_limit_ends_a_statement(cli: Cli, database: Path, tmp_path: Path, endless: int) -> None:
    """It is not run to its end to be cut then: this one has none."""
    text = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;\n"
    (tmp_path / "endless.sql").write_text(text * endless)
    ran = cli("sql", database, "-f", tmp_path / "endless.sql", "--limit", "2")
    assert (ran.code, ran.out.split()) == (0, ["i", "-", "1", "2"] * endless)
    notes = ran.err.splitlines()
    assert len(notes) == endless
    for note in notes:
        line_of(note, "", 2, "--limit")
    ran = cli("sql", database, "SELECT 1 AS a UNION SELECT 2", "--limit", "2")
    assert (ran.out.split(), ran.err) == (["a", "-", "1", "2"], "")
    ran = cli("sql", database, "SELECT 1 AS a", "--limit", "3000000000")
    assert (ran.code, ran.out.split(), ran.err) == (0, ["a", "-", "1"], "")
    ran = cli("sql", database, "SELECT 1 AS a UNION SELECT 2", "--limit=1", "--columns=b", "--json")
    assert json.loads(ran.err)["error"]["slug"] == "unknown-column"
    ran = cli("sql", database, "SELECT 1 AS a UNION SELECT 2", "--limit", "1", "--sort=-a")
    assert ran.out.split() == ["a", "-", "2"]
    line_of(ran.err, "1 of 2 ", "--limit")


@pytest.mark.parametrize("words", [["-f", "-"], ["-"], []])
def test_statements_from_stdin(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SCRIPT.encode())))
    assert cli("sql", database, *words).out == "a\n-\n1\n\nb  c\n-  -\n;  2\n"


@pytest.mark.parametrize(
    ("second", "slug", "printed"),
    [
        ("SELECT nonsense", "sql-error", "a\n-\n1\n"),
        ("DELETE FROM meta", "not-a-select", ""),
        ("WITH x AS (SELECT 1) DELETE FROM meta", "read-only", "a\n-\n1\n"),
        ("ATTACH ':memory:' AS other", "not-a-select", ""),
        ("SELECT * FROM wb_throtle", "sql-error", "a\n-\n1\n"),
    ],
)
def test_an_error_says_which_statement(
    cli: Cli, database: Path, tmp_path: Path, second: str, slug: str, printed: str
) -> None:
    before = database.read_bytes()
    path = tmp_path / "bad.sql"
    path.write_text(f"SELECT 1 AS a;\n\n{second};\n")
    ran = cli("sql", database, "-f", path)
    assert (ran.code, ran.out) == (2, printed)
    assert ran.err.startswith(f"error[{slug}]: {path}: ")
    assert "\n  at: statement 2, line 3\n" in ran.err
    assert database.read_bytes() == before


def test_a_time_limit_is_for_each_statement(cli: Cli, database: Path, tmp_path: Path) -> None:
    path = tmp_path / "slow.sql"
    path.write_text(
        "SELECT 1;WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT max(i) FROM n;"
    )
    ran = cli("sql", database, "-f", path, "--timeout", "1s")  # SELECT 1: a millisecond
    assert ran.code == 2
    assert f"error[time-limit]: {path}: " in ran.err
    assert "at: statement 2, line 1" in ran.err


@pytest.mark.parametrize(
    ("words", "code", "slug"),
    [
        (["SELECT 1", "-f", "questions.sql"], 2, "two-sources"),
        (["-f", "nowhere.sql"], 3, "cannot-read"),
        (["-f", "questions.sql", "--csv"], 2, "two-tables"),
        (["-f", "questions.sql", "--parquet", "x"], 2, "two-tables"),
        (["-f", "questions.sql", "-o", "questions.sql", "--force"], 2, "output-is-input"),
    ],
)
def test_wrong_use(
    cli: Cli,
    database: Path,
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    slug: str,
) -> None:
    monkeypatch.chdir(script.parent)
    ran = cli("sql", database, *words)
    assert (ran.code, ran.out, ran.err.split(":")[0]) == (code, "", f"error[{slug}]")
    assert script.read_text() == SCRIPT


def test_a_script_into_a_file(cli: Cli, database: Path, script: Path, tmp_path: Path) -> None:
    output = tmp_path / "answers.txt"
    assert cli("sql", database, "-f", script, "-o", output).code == 0
    assert output.read_text() == cli("sql", database, "-f", script).out


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (".tables", [(".tables", 1)]),
        (
            "-- what is there; all of it\n.tables wb_*\nSELECT 1;",
            [(".tables wb_*", 2), ("SELECT 1", 3)],
        ),
        ("SELECT 1;\n.schema wb_params\n", [("SELECT 1", 1), (".schema wb_params", 2)]),
        ("SELECT 1\n.5;", [("SELECT 1\n.5", 1)]),
        ("SELECT ';' AS [a;b];SELECT `c;`", [("SELECT ';' AS [a;b]", 1), ("SELECT `c;`", 1)]),
        ("SELECT 'a\0;'; SELECT 2", [("SELECT 'a\0;'", 1), ("SELECT 2", 1)]),
    ],
)
def test_statements_and_commands(text: str, parts: list[tuple[str, int]]) -> None:
    assert [(part.text, part.line) for part in split_statements(text)] == parts


def test_commands_of_the_prompt_in_a_script(cli: Cli, database: Path, tmp_path: Path) -> None:
    script = tmp_path / "questions.sql"
    script.write_text(".schema wb_params\nSELECT 23 AS answer;\n.query throttle_by_task --tid 11\n")
    ran = cli("sql", database, "-f", script)
    assert ran.code == 2
    assert "view wb_params\n" in ran.out
    assert "answer\n------\n    23\n" in ran.out
    line_of(ran.err, "error[", "--tid")
    line_of(ran.err, "  at: ", "statement 3", "line 3")


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (".tables wb_par*", 0, "wb_params"),
        (".query throttle_by_task", 0, "pause"),
        (".query", 2, "error[usage]"),
        (".schema nothing_like_it", 2, "error[no-such-table]"),
        (".drop", 2, "error[usage]"),
    ],
)
def test_one_command(cli: Cli, database: Path, command: str, code: int, said: str) -> None:
    ran = cli("sql", database, command)
    assert (ran.code, said in ran.out + ran.err) == (code, True), ran


def test_a_command_prints_text_only(cli: Cli, database: Path) -> None:
    ran = cli("sql", database, ".tables", "--json")
    assert (ran.code, '"text-only"' in ran.err) == (2, True)


@pytest.mark.parametrize("name", ["throttle_by_task", "wb_throttle", "raw_task"])
def test_sql_of_a_query_or_view_can_be_run(cli: Cli, database: Path, name: str) -> None:
    sql = cli("queries", name, "--sql").out
    assert sql.endswith(";\n")
    select = sql if name == "throttle_by_task" else sql.partition(" AS\n")[2]
    assert cli("sql", database, select.rstrip(";\n")).code in (0, 2)
    assert cli("queries", name).out.startswith(f"{name}\n")


def test_sql_of_nothing_is_refused(cli: Cli) -> None:
    assert cli("queries", "--sql").code == 2
    assert "wb_throttle" in cli("queries", "wb_throtle").err
