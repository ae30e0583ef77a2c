# SPDX-License-Identifier: Apache-2.0
"""Results as Markdown, HTML, Arrow, pandas, polars and Parquet; files that hold them."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pytest
import wbscope
from pyarrow import parquet
from support.cli import line_of
from support.waits import GUARD_SECONDS
from wbscope import Notice, Result
from wbscope.base.errors import InputError, InternalError, SetupError
from wbscope.base.result import Column, typed_columns

Cli = Callable[..., Any]

HEADER = (
    Column("tid", "INTEGER", "thread"),
    Column("comm", "TEXT", "its name"),
    Column("wait_ns", "INTEGER", "waited"),
    Column("held_ratio", "REAL", "share of its life"),
)


def _result(*rows: tuple[Any, ...], header: tuple[Column, ...] = HEADER) -> Result:
    names = tuple(column.name for column in header)
    units = {"wait_ns": "ns", "held_ratio": "ratio"}
    warnings = (Notice("lost-events", "9 events were lost"),)
    return Result("q", names, units, list(rows), warnings, typed_columns(names, rows, header))


@pytest.mark.parametrize("rows", [[], [(None, None, None, None)], [(7, "dd", 1, 0.5)]])
def test_types_come_from_the_header_not_from_the_rows(rows: list[tuple[Any, ...]]) -> None:
    table = _result(*rows).to_arrow()
    assert [field.type for field in table.schema] == [
        pyarrow.int64(),
        pyarrow.string(),
        pyarrow.int64(),
        pyarrow.float64(),
    ]
    assert table.to_pylist() == _result(*rows).records()
    frame = _result(*rows).to_pandas()
    assert [str(kind) for kind in frame.dtypes] == ["Int64", "string", "Int64", "Float64"]
    assert _result(*rows).to_polars().dtypes == [
        polars.Int64,
        polars.String,
        polars.Int64,
        polars.Float64,
    ]


def test_null_is_null_everywhere() -> None:
    result = _result((7, None, None, None), (8, "dd", 0, 0.0))
    assert result.to_arrow().column("wait_ns").to_pylist() == [None, 0]
    assert result.to_pandas()["wait_ns"].isna().tolist() == [True, False]
    assert result.to_pandas()["comm"].isna().tolist() == [True, False]
    assert result.to_polars()["held_ratio"].to_list() == [None, 0.0]


def test_units_and_meanings_travel_along() -> None:
    result = _result((7, "dd", 1, 0.5))
    schema = result.to_arrow().schema
    assert schema.field("wait_ns").metadata == {b"unit": b"ns", b"description": b"waited"}
    assert schema.field("tid").metadata == {b"description": b"thread"}
    assert schema.metadata[b"schema"] == b"wbscope.query/1"
    assert json.loads(schema.metadata[b"warnings"]) == [
        {"slug": "lost-events", "message": "9 events were lost"}
    ]
    attributes = result.to_pandas().attrs
    assert attributes["units"] == {"wait_ns": "ns", "held_ratio": "ratio"}
    assert attributes["descriptions"]["comm"] == "its name"
    assert attributes["warnings"] == ["9 events were lost"]


def test_pandas_round_trip_keeps_large_integers() -> None:
    largest = 2**63 - 1
    frame = _result((largest, "dd", None, None)).to_pandas()
    assert frame["tid"][0] == largest


def test_columns_of_the_users_own_sql_have_the_types_of_their_values(database: Path) -> None:
    statement = "SELECT 1 AS a, 1.5 AS b, 'x' AS c, x'ff' AS d, NULL AS e"
    with wbscope.open(database) as run:
        table = run.sql(statement + " UNION ALL SELECT 2.5, 2, NULL, NULL, NULL").to_arrow()
    kinds = ["double", "double", "string", "binary", "null"]
    assert [str(field.type) for field in table.schema] == kinds
    assert table.to_pylist()[1] == {"a": 2.5, "b": 2.0, "c": None, "d": None, "e": None}


def test_a_header_that_lies_is_a_bug() -> None:
    with pytest.raises(InternalError, match=r"column tid is INTEGER in the header, and 1.5"):
        _result((1.5, "dd", 1, 0.5)).to_arrow()


@pytest.mark.parametrize("value", [1e24, float("inf"), 2**63, -(2**63) - 1])
def test_a_number_that_no_trace_has_is_no_bug(value: float) -> None:
    with pytest.raises(InputError, match="column wait_ns holds a number beyond") as caught:
        _result((7, "dd", value, None)).to_arrow()
    assert (caught.value.slug, caught.value.exit_code) == ("number-too-large", 3)
    assert _result((7, "dd", 2**63 - 1, None)).to_arrow().num_rows == 1


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_library_that_is_missing_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SetupError) as caught:
        getattr(_result(), f"to_{name}")()
    assert caught.value.slug == "missing-library"
    assert f"pip install 'wbscope[{name}]'" in str(caught.value.fix)


def test_rows_can_be_walked_and_counted() -> None:
    result = _result((7, "dd", 1, 0.5), (8, "fio", 2, 0.25))
    assert [row["comm"] for row in result] == ["dd", "fio"]
    assert len(result) == 2
    assert list(_result()) == []


def test_notebook_shows_units_meanings_and_warnings() -> None:
    shown = _result((7, "<b>", 2_000_000, None))._repr_html_()
    assert "warning[lost-events]: 9 events were lost" in shown
    assert '<th title="wait_ns (ns): waited">wait</th>' in shown
    assert '<td style="text-align:left">&lt;b&gt;</td>' in shown
    assert '<td style="text-align:right">2.00 ms</td>' in shown
    assert '<td style="text-align:right">-</td>' in shown


def test_notebook_shows_the_first_rows_only() -> None:
    shown = _result(*((tid, "dd", 1, 0.5) for tid in range(103)))._repr_html_()
    assert shown.count("<tr>") == 1 + 100
    assert "3 more rows" in shown


def test_markdown(cli: Cli, database: Path) -> None:
    ran = cli("query", "throttle_by_task", database, "--markdown")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "> warning\\[lower-bound\\]: pages are a lower bound",
        "",
        "| tid | comm | bdi | pauses | pause total |",
        "| ---: | --- | --- | ---: | ---: |",
        "| 11 | dd | 8:0 | 2 | 223 ms |",
        "| 13 | fio | 8:0 | 1 | 100 ms |",
    ]


def test_markdown_of_strange_names(cli: Cli, database: Path) -> None:
    ran = cli("sql", database, "SELECT '*a|b*' || char(27) AS [x|y], NULL AS z", "--markdown")
    assert ran.out.splitlines()[0] == "| x\\|y | z |"
    assert ran.out.splitlines()[2] == "| \\*a\\|b\\*\\\\x1b | - |"
    assert cli("sql", database, "SELECT 1 WHERE 0", "--markdown").out == "(no rows)\n"


def test_parquet_file(cli: Cli, database: Path, tmp_path: Path) -> None:
    output = tmp_path / "pauses.parquet"
    ran = cli("query", "throttle_by_task", database, "--parquet", output)
    assert (ran.code, ran.out) == (0, "")
    warning, done = ran.err.splitlines()
    line_of(warning, "warning[lower-bound]: ")
    line_of(done, f"wrote {output}: ", 2)
    table = parquet.read_table(output)
    with wbscope.open(database) as run:
        assert table.to_pylist() == run.query("throttle_by_task").records()
    assert table.schema.metadata[b"query"] == b"throttle_by_task"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pauses.parquet", "run.db"]
    before = output.read_bytes()
    again = cli("query", "throttle_by_task", database, "--parquet", output, "--tid", "11")
    assert (again.code, again.err.split(":")[0]) == (2, "error[output-exists]")
    assert output.read_bytes() == before
    forced = [*("query", "throttle_by_task", database, "--tid", "11"), "--parquet", output]
    assert cli(*forced, "--force").code == 0
    assert parquet.read_table(output).num_rows == 1


def test_parquet_to_a_pipe(start: Callable[..., subprocess.Popen[bytes]], database: Path) -> None:
    process = start("query", "throttle_by_task", database, "--parquet", "-")
    out, _ = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0
    assert parquet.read_table(io.BytesIO(out)).column("tid").to_pylist() == [11, 13]


@pytest.mark.parametrize("option", ["--json", "--csv", "--markdown", None])
def test_any_format_can_go_to_a_file(
    cli: Cli, database: Path, tmp_path: Path, option: str | None
) -> None:
    output = tmp_path / "out"
    words = ["query", "throttle_by_task", database, *([option] if option else [])]
    printed = cli(*words).out
    ran = cli(*words, "-o", output)
    assert (ran.code, ran.out) == (0, "")
    assert output.read_text() == printed
    assert cli(*words, "-o", output).code == 2


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        (["--json", "--parquet", "x"], "two-formats"),
        (["--csv", "--markdown"], "two-formats"),
        (["--parquet", "x", "-o", "y"], "two-outputs"),
        (["--parquet", "nowhere/x"], "no-output-folder"),
        (["--parquet", "run.db", "--force"], "output-is-input"),
    ],
)
def test_choices_that_exclude_each_other(
    cli: Cli,
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    slug: str,
) -> None:
    monkeypatch.chdir(database.parent)
    for words in (["query", "throttle_by_task", "run.db"], ["sql", "run.db", "SELECT 1"]):
        ran = cli(*words, *options)
        assert ran.out == ""
        assert f"[{slug}]" in ran.err or f'"slug": "{slug}"' in ran.err
    assert sorted(path.name for path in database.parent.iterdir()) == ["run.db"]


def test_parquet_on_a_terminal_is_refused(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    ran = cli("query", "throttle_by_task", database, "--parquet", "-")
    assert (ran.code, ran.err.split(":")[0]) == (2, "error[binary-to-terminal]")


def test_pandas_and_polars_are_what_they_say() -> None:
    assert isinstance(_result().to_pandas(), pandas.DataFrame)
    assert isinstance(_result().to_polars(), polars.DataFrame)


def test_parquet_of_names_that_are_no_utf8(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file's name may be any bytes: as the output, and in the column that tells runs apart."""
    monkeypatch.chdir(database.parent)
    odd = os.fsdecode(b"bad\xff.db")
    shutil.copyfile(database, odd)
    output = os.fsdecode(b"out\xff.parquet")
    ran = cli("query", "throttle_by_task", odd, "run.db", "--parquet", output)
    assert ran.code == 0, ran.err
    with open(output, "rb") as file:
        runs = parquet.read_table(file).column("run").to_pylist()
    assert set(runs) == {"bad\\udcff.db", "run.db"}
