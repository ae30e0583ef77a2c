# SPDX-License-Identifier: Apache-2.0
"""What a user may call a run, and several runs in one answer."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from support.cli import line_of
from wbscope.base.errors import InputError, SetupError, UsageError, WbscopeError
from wbscope.library.library import Library
from wbscope.run.ingested import database_of
from wbscope.run.labels import short_names
from wbscope.run.run import open_run
from wbscope.source.source import find_source

# What a user may call a run, and the cache behind it.


def test_database_is_taken_as_it_is(database: Path, library: Library) -> None:
    assert database_of(find_source(str(database)), library) == database


def test_trace_is_ingested_once(
    ingester: Any, trace: Path, cache_dir: Path, library: Library
) -> None:
    first = database_of(find_source(str(trace)), library)
    assert first.parent == cache_dir
    assert database_of(find_source(str(trace)), library) == first
    assert len(ingester.calls()) == 1


def test_link_to_the_same_trace_is_the_same_run(
    ingester: Any, trace: Path, tmp_path: Path, library: Library
) -> None:
    link = tmp_path / "link.dat"
    link.symlink_to(trace)
    assert database_of(find_source(str(trace)), library) == database_of(
        find_source(str(link)), library
    )


def test_changed_trace_is_ingested_again(ingester: Any, trace: Path, library: Library) -> None:
    first = database_of(find_source(str(trace)), library)
    os.utime(trace, ns=(1, 1))
    assert database_of(find_source(str(trace)), library) != first


def test_changed_or_new_sidecar_makes_a_new_entry_and_our_outputs_do_not(
    ingester: Any, run_folder: Path, library: Library
) -> None:
    first = database_of(find_source(str(run_folder)), library)
    (run_folder / "run.db").write_text("output")
    (run_folder / "x.pftrace").write_text("output")
    assert database_of(find_source(str(run_folder)), library) == first
    (run_folder / "meminfo").write_text("MemTotal: 1 kB\n")
    second = database_of(find_source(str(run_folder)), library)
    assert second != first
    os.utime(run_folder / "uname", ns=(1, 1))
    assert database_of(find_source(str(run_folder)), library) not in (first, second)


def test_library_with_other_events_makes_a_new_entry(
    ingester: Any, trace: Path, library: Library
) -> None:
    first = database_of(find_source(str(trace)), library)
    fewer = {k: f for k, f in library.files.items() if k != "raw_write"}
    assert database_of(find_source(str(trace)), Library(fewer)) != first


def test_failed_ingest_leaves_no_entry(
    ingester: Any,
    trace: Path,
    cache_dir: Path,
    library: Library,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_INGESTER", "signal9")
    with pytest.raises(SetupError):
        database_of(find_source(str(trace)), library)
    left = set(os.listdir(cache_dir)) - {"CACHEDIR.TAG"}
    assert [name for name in left if not name.endswith(".library")] == []


def test_hit_counts_as_use(ingester: Any, trace: Path, library: Library) -> None:
    path = database_of(find_source(str(trace)), library)
    os.utime(path, (1, 1))
    database_of(find_source(str(trace)), library)
    assert path.stat().st_mtime > 1


@pytest.mark.parametrize(
    ("variables", "where"),
    [
        ({"WBSCOPE_CACHE_DIR": "{0}/mine"}, "{0}/mine/wbscope/v1"),
        ({"XDG_CACHE_HOME": "{0}/xdg"}, "{0}/xdg/wbscope/v1"),
        ({"HOME": "{0}/home"}, "{0}/home/.cache/wbscope/v1"),
    ],
)
def test_cache_folder(
    ingester: Any,
    trace: Path,
    tmp_path: Path,
    library: Library,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    where: str,
) -> None:
    for name in ("WBSCOPE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    assert str(database_of(find_source(str(trace)), library).parent) == where.format(tmp_path)


def test_cache_folder_that_cannot_be_made(
    trace: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(trace / "below"))
    with pytest.raises(SetupError) as caught:
        database_of(find_source(str(trace)), library)
    assert caught.value.slug == "no-cache"


def make_input(kind: str, folder: Path) -> str:
    path = folder / "input.db"
    match kind:
        case "empty name":
            return ""
        case "name with NUL":
            return "a\0b"
        case "long name":
            return "x" * 5000
        case "below a file":
            path.write_text("text")
            return str(path / "trace.dat")
        case "empty file":
            path.write_bytes(b"")
        case "text":
            path.write_text("hello, world\n")
        case "fifo":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(path))
        case "loop":
            path.symlink_to(path)
        case "empty folder":
            path.mkdir()
        case "folder with a database":
            path.mkdir()
            (path / "run.db").write_text("x")
    return str(path)


@pytest.mark.parametrize(
    ("kind", "error", "slug"),
    [
        ("empty name", UsageError, "no-run"),
        ("name with NUL", InputError, "cannot-read"),
        ("long name", InputError, "cannot-read"),
        ("missing", InputError, "no-such-file"),
        ("below a file", InputError, "no-such-file"),
        ("empty file", InputError, "not-a-run"),
        ("text", InputError, "not-a-trace"),
        ("fifo", InputError, "not-a-run"),
        ("socket", InputError, "not-a-run"),
        ("loop", InputError, "cannot-read"),
        ("empty folder", InputError, "no-trace"),
        ("folder with a database", InputError, "no-trace"),
    ],
)
def test_what_is_not_a_run(
    tmp_path: Path, library: Library, kind: str, error: type[WbscopeError], slug: str
) -> None:
    with pytest.raises(error) as caught:
        database_of(find_source(make_input(kind, tmp_path)), library)
    assert caught.value.slug == slug
    if kind == "folder with a database":
        assert caught.value.have == "run.db"
        assert caught.value.fix == f"wbscope report {tmp_path}/input.db/run.db"


@pytest.mark.parametrize("name", ["trace.dat", "trace.txt", "trace.pftrace"])
@pytest.mark.parametrize("is_link", [False, True])
def test_a_trace_that_is_a_folder(tmp_path: Path, name: str, is_link: bool) -> None:
    """It is the input that is wrong, not the cache."""
    if is_link:
        (tmp_path / name).symlink_to(".")
    else:
        (tmp_path / name).mkdir()
    with pytest.raises(InputError) as caught:
        open_run(tmp_path)
    assert (caught.value.slug, caught.value.subject) == ("not-a-run", str(tmp_path / name))


def test_a_file_that_cannot_be_read_through() -> None:
    """Its first page is not mapped: EIO."""
    with pytest.raises(InputError) as caught:
        open_run("/proc/self/mem")
    assert (caught.value.slug, caught.value.subject) == ("cannot-read", "/proc/self/mem")


# Several runs in one answer: their names, rows, warnings and what one of them lacks.

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
