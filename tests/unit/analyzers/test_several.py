# SPDX-License-Identifier: Apache-2.0
"""Several runs in one answer: their names, rows, warnings and what one of them lacks."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from support.cli import line_of
from wbscope.base.errors import UsageError
from wbscope.run.labels import short_names

Cli = Callable[..., Any]


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        (["a.db", "b.db"], ["a.db", "b.db"]),
        (["/x/a.db", "/y/b.db"], ["a.db", "b.db"]),
        (["/x/run1/trace.dat", "/x/run2/trace.dat"], ["run1/trace.dat", "run2/trace.dat"]),
        (["/x/a/t", "/y/a/t", "/y/b/t"], ["x/a/t", "y/a/t", "b/t"]),
        (["/x/a", "/x/b/"], ["a", "b"]),
        (["/a", "/x/a"], ["/a", "x/a"]),
    ],
)
def test_the_shortest_names_that_differ(runs: list[str], names: list[str]) -> None:
    assert short_names(runs) == names


def test_a_run_twice_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        short_names(["a.db", "b.db", "./a.db"])
    assert caught.value.slug == "same-run"


@pytest.fixture
def runs(new_database: Callable[..., Path]) -> tuple[Path, Path]:
    return new_database("a.db"), new_database("b.db", lost_events_count=5)


@pytest.fixture
def without_events(new_database: Callable[..., Path]) -> Path:
    path = new_database("none.db")
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM event_format")
    return path


def test_rows_say_which_run_they_are_of(cli: Cli, runs: tuple[Path, Path]) -> None:
    ran = cli("query", "throttle_by_task", *runs, "--csv")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "run,tid,comm,bdi,pauses_count,pause_total_ns",
        "a.db,11,dd,8:0,2,223000000",
        "a.db,13,fio,8:0,1,100000000",
        "b.db,11,dd,8:0,2,223000000",
        "b.db,13,fio,8:0,1,100000000",
    ]
    assert "warning[lost-events]: b.db: 5 events were lost" in ran.err
    assert "lost-events]: a.db" not in ran.err


def test_table_and_markdown_have_the_column_first(cli: Cli, runs: tuple[Path, Path]) -> None:
    assert cli("query", "throttle_by_task", *runs).out.splitlines()[1].startswith("run ")
    markdown = cli("query", "throttle_by_task", *runs, "--markdown").out.splitlines()
    assert "| run | tid | comm | bdi | pauses | pause total |" in markdown
    assert markdown[0] == "> warning\\[lower-bound\\]: a.db: pages are a lower bound"


def test_json_names_the_runs(cli: Cli, runs: tuple[Path, Path]) -> None:
    document = cli("query", "throttle_by_task", *runs, "--tid", "11", "--json").json()
    assert document["runs"] == ["a.db", "b.db"]
    assert "run" not in document
    assert [row["run"] for row in document["rows"]] == ["a.db", "b.db"]
    assert {"run": "b.db", "slug": "lost-events", "message": "5 events were lost"} in document[
        "warnings"
    ]


def test_parquet_has_the_column(cli: Cli, runs: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "both.parquet"
    assert cli("query", "throttle_by_task", *runs, "--parquet", output).code == 0
    table = parquet.read_table(output)
    assert table.column("run").to_pylist() == ["a.db", "a.db", "b.db", "b.db"]
    assert b'"run": "b.db"' in table.schema.metadata[b"warnings"]


def test_a_run_without_the_events_does_not_silence_the_others(
    cli: Cli, database: Path, without_events: Path
) -> None:
    ran = cli("query", "throttle_by_task", database, without_events, "--csv")
    assert ran.code == 4
    assert [line.split(",")[0] for line in ran.out.splitlines()] == ["run", "run.db", "run.db"]
    line_of(ran.err, "warning[missing-event]: none.db: ", "writeback:balance_dirty_pages")
    line_of(ran.err, "error[missing-event]: throttle_by_task: ", "1 of 2")
    line_of(ran.err, "  have: ", "none.db")
    document = cli("query", "throttle_by_task", database, without_events, "--json")
    assert document.code == 4
    assert document.json()["warnings"][-1]["run"] == "none.db"
    assert "none.db" in document.error()["have"]


def test_a_range_that_one_run_does_not_have_names_it(
    cli: Cli, runs: tuple[Path, Path], new_database: Callable[..., Path]
) -> None:
    short = new_database("short.db", last_ts=1_500_000_000)
    ran = cli("query", "throttle_by_task", *runs, short, "--from", "1s")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error[empty-range]: --from 1s: ")
    assert "\n  at: run short.db\n" in ran.err


def test_no_run_with_the_events_prints_nothing(
    cli: Cli, without_events: Path, database: Path
) -> None:
    ran = cli("query", "reclaim_writes", database, without_events)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith("error[missing-event]: reclaim_writes: ")


@pytest.mark.usefixtures("ingester")
def test_a_run_that_is_not_there_is_said_before_any_ingest(
    cli: Cli, ingester: Any, trace: Path
) -> None:
    ran = cli("query", "throttle_by_task", trace, "nowhere.db")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("error[no-such-file]: nowhere.db")
    assert ingester.calls() == []
