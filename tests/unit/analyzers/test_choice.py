# SPDX-License-Identifier: Apache-2.0
"""--columns, --sort, --limit and --width; where the width comes from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import line_of
from wbscope.base.errors import UsageError
from wbscope.base.result import Result, unit_of
from wbscope.cli.formats import Choice, parse_choice

Cli = Callable[..., Any]

_NAMES = ("tid", "comm", "slept_ns", "is_incidental")
_ROWS = [(3, "dd", 5, 0), (1, "fio", None, 0), (2, "dd", 9, 1), (4, "cp", 5, 0)]
_UNITS = {name: unit for name in _NAMES if (unit := unit_of(name))}
_RESULT = Result("throttle_by_task", _NAMES, _UNITS, _ROWS, keys=("tid", "comm"))
_MANY = ", ".join(f"{number} AS value{number}_bytes" for number in range(30))


def _tids(**options: str) -> list[int]:
    chosen = parse_choice(options.get("columns"), options.get("sort"), options.get("limit"))
    return [row[0] for row in chosen.of(_RESULT).rows]


def test_rows_are_sorted_and_counted() -> None:
    assert _tids() == [3, 1, 2, 4]
    assert _tids(sort="tid") == [1, 2, 3, 4]
    assert _tids(sort="-tid", limit="2") == [4, 3]
    assert _tids(sort="comm,-tid") == [4, 3, 2, 1]


def test_what_was_not_recorded_comes_last() -> None:
    assert _tids(sort="slept_ns") == [3, 4, 2, 1]
    assert _tids(sort="-slept_ns,-tid") == [2, 4, 3, 1]


def test_columns_in_the_order_that_was_asked_for() -> None:
    chosen = Choice(columns=("tid", "slept_ns", "comm")).of(_RESULT)
    assert chosen.rows[0] == (3, 5, "dd")
    assert chosen.keys == ("tid",)
    assert Choice(columns=("slept_ns",)).of(_RESULT).keys == ()


@pytest.mark.parametrize(
    ("choice", "found", "fix"),
    [
        (Choice(columns=("tid", "com")), "--columns com", "query q RUN --columns tid,comm"),
        (Choice(sort=("-slept",)), "--sort -slept", "query q RUN --sort -slept_ns"),
        (Choice(sort=("-zzz",)), "--sort -zzz", "query q RUN --sort -tid"),
        (Choice(columns=("-tid",)), "--columns -tid", "query q RUN --columns tid"),
    ],
)
def test_a_column_that_there_is_not(choice: Choice, found: str, fix: str) -> None:
    with pytest.raises(UsageError) as caught:
        choice.check("q", _NAMES, "query q RUN")
    assert (caught.value.slug, caught.value.subject) == ("unknown-column", found)
    assert caught.value.have == "tid, comm, slept_ns, is_incidental"
    assert caught.value.fix == fix


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["--limit", "0"], "bad-number"),
        (["--limit", "some"], "bad-number"),
        (["--width", "9"], "bad-number"),
        (["--width", "90", "--json"], "two-formats"),
        (["--columns", "tid,,comm"], "no-columns"),
        (["--columns", "tit"], "unknown-column"),
        (["--sort", "-tit"], "unknown-column"),
    ],
)
def test_refused_before_any_work(cli: Cli, tmp_path: Path, words: list[str], slug: str) -> None:
    ran = cli("query", "throttle_by_task", tmp_path / "nothing.db", *words)
    assert ran.code == 2
    assert f"error[{slug}]" in ran.err or ran.error()["slug"] == slug


def test_json_and_csv_honour_them(cli: Cli, database: Path) -> None:
    asked = ("throttle_by_task", database, "--sort", "-tid", "--columns", "pause_total_ns,tid")
    assert cli("query", *asked, "--csv").out == "pause_total_ns,tid\n100000000,13\n223000000,11\n"
    ran = cli("query", *asked, "--limit", "1", "--json")
    assert ran.json()["rows"] == [{"pause_total_ns": 100_000_000, "tid": 13}]
    assert ran.json()["units"] == {"pause_total_ns": "ns"}
    line_of(ran.err, "1 of 2 ", "--limit")


def test_several_runs_have_the_column_run(cli: Cli, new_database: Callable[..., Path]) -> None:
    runs = new_database("a.db"), new_database("b.db")
    ran = cli("query", "throttle_by_task", *runs, "--columns", "tid,run", "--sort", "-run", "--csv")
    assert ran.out == "tid,run\n11,b.db\n13,b.db\n11,a.db\n13,a.db\n"


def test_statements_of_the_user_s_own(cli: Cli, database: Path, tmp_path: Path) -> None:
    text = "SELECT tid, comm FROM task"
    ran = cli("sql", database, text, "--limit", "1", "--sort", "-tid", "--columns", "comm", "--csv")
    assert ran.out == "comm\nfio\n"
    line_of(ran.err, "1 of 2 ", "--limit")
    ran = cli("sql", database, text, "--columns", "com", "--json")
    assert (ran.code, ran.error()["have"]) == (2, "tid, comm")
    script = tmp_path / "two.sql"
    script.write_text(f"{text};\n{text};\n")
    ran = cli("sql", database, "-f", script, "--limit", "1", "--json")
    assert [len(row["rows"]) for row in json.loads(ran.out)["rows"]] == [1, 1]
    ran = cli("sql", database, "-f", script, "--columns", "com")
    assert ran.code == 2
    assert "statement 1, line 1" in ran.err


def _widest(text: str) -> int:
    return max(map(len, text.splitlines()))


def test_a_pipe_is_not_wrapped(
    cli: Cli, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("sql", database, f"SELECT {_MANY}")
    monkeypatch.delenv("COLUMNS", raising=False)
    assert _widest(cli(*asked).out) > 200
    assert _widest(cli(*asked, "--width", "60").out) <= 60
    monkeypatch.setenv("COLUMNS", "100")
    assert 80 < _widest(cli(*asked).out) <= 100
    assert _widest(cli(*asked, "--width", "60").out) <= 60
    cli(*asked, "-o", tmp_path / "page")
    assert 80 < _widest((tmp_path / "page").read_text()) <= 100
    monkeypatch.setenv("COLUMNS", "none")
    assert _widest(cli(*asked).out) > 200
    cli(*asked, "-o", tmp_path / "wide")
    assert _widest((tmp_path / "wide").read_text()) > 200


def test_sentences_in_a_pipe_fit_a_page(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert 60 < _widest(cli("queries", "throttle_by_task").out) <= 80
    monkeypatch.setenv("COLUMNS", "1")
    assert cli("report", database).code == 0
