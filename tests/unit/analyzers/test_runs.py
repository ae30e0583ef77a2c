# SPDX-License-Identifier: Apache-2.0
"""What a user may call a run, and the cache behind it."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest
from wbscope.base.errors import InputError, SetupError, UsageError, WbscopeError
from wbscope.library.library import Library
from wbscope.run.ingested import database_of
from wbscope.run.run import open_run
from wbscope.source.source import find_source


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
