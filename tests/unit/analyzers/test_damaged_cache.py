# SPDX-License-Identifier: Apache-2.0
"""Damage in the cache is no damage of the trace: what can be made again is made again."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.runs import REPOSITORY
from wbscope.library.library import load_library
from wbscope.run.ingested import engine_of
from wbscope.source.source import find_source

Cli = Callable[..., Any]
TRACE = REPOSITORY / "examples/gate/runs/before-2/trace.dat"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("WBSCOPE_SQL_DIR")  # the whole library is asked
    return Path(shutil.copyfile(TRACE, tmp_path / "t.dat"))


@pytest.fixture
def entry(cli: Cli, trace: Path, cache_dir: Path) -> Path:
    """What the cache has of the trace."""
    assert cli("query", "event_counts", trace).code == 0
    (entry,) = cache_dir.rglob("*.db")
    return entry


def _empty(path: Path, whole: bytes) -> None:
    path.write_bytes(b"")


def _cut(path: Path, whole: bytes) -> None:
    path.write_bytes(whole[: len(whole) // 2])


def _garbage(path: Path, whole: bytes) -> None:
    path.write_bytes(bytes(range(256)) * 64)


def _first_page(path: Path, whole: bytes) -> None:
    path.write_bytes(whole[:100] + b"\xa5" * 4000 + whole[4100:])


def _foreign_tables(path: Path, whole: bytes) -> None:
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE mine (x)")


@pytest.mark.parametrize("damage", [_empty, _cut, _garbage, _first_page, _foreign_tables])
def test_a_damaged_entry_is_made_anew(
    cli: Cli, trace: Path, entry: Path, damage: Callable[[Path, bytes], None]
) -> None:
    query = ("query", "throttle_by_task", trace)
    said = cli(*query)
    whole = entry.read_bytes()
    damage(entry, whole)
    again = cli(*query)
    assert (again.code, again.out, again.err) == (0, said.out, said.err)
    assert entry.stat().st_size == len(whole)


def test_a_damaged_trace_is_not_read_twice(cli: Cli, trace: Path, cache_dir: Path) -> None:
    trace.write_bytes(trace.read_bytes()[:100])
    ran = cli("query", "throttle_by_task", trace)
    assert (ran.code, "cache" in ran.err) == (3, False)
    assert list(cache_dir.rglob("*.db")) == []


def test_a_damaged_database_of_the_user_stays(cli: Cli, tmp_path: Path) -> None:
    database = tmp_path / "run.db"
    assert cli("ingest", TRACE, "-o", database).code == 0
    half = database.read_bytes()[: database.stat().st_size // 2]
    database.write_bytes(half)
    ran = cli("query", "throttle_by_task", database)
    assert (ran.code, f"damaged-database]: {database}" in ran.err) == (3, True)
    assert database.read_bytes() == half


@pytest.mark.parametrize("kind", ["folder", "FIFO", "link"])
def test_what_is_in_the_way_is_not_removed(
    cli: Cli, trace: Path, entry: Path, tmp_path: Path, kind: str
) -> None:
    entry.unlink()
    mine = tmp_path / "mine"
    mine.write_text("mine")
    if kind == "folder":
        entry.mkdir()
        (entry / "mine").write_text("mine")
    elif kind == "FIFO":
        os.mkfifo(entry)
    else:
        entry.symlink_to(mine)
    before = entry.lstat()
    ran = cli("query", "event_counts", trace, "--json")
    assert (ran.code, ran.error()["slug"]) == (5, "cache-entry-taken")
    assert os.path.samestat(before, entry.lstat())
    assert mine.read_text() == "mine"
    in_tmp = dict(os.environ, TMPDIR=str(tmp_path))
    subprocess.run(["bash", "-c", ran.error()["fix"]], check=True, env=in_tmp)
    assert cli("query", "event_counts", trace).code == 0


def test_damage_that_is_met_late(cli: Cli, trace: Path, entry: Path) -> None:
    whole = bytearray(entry.read_bytes())
    with contextlib.closing(sqlite3.connect(entry)) as opened:
        find = "SELECT rootpage FROM sqlite_schema WHERE name = 'ev_balance_dirty_pages'"
        root = opened.execute(find).fetchone()[0]
    page = int.from_bytes(whole[16:18], "big")
    whole[(root - 1) * page : root * page] = b"\xa5" * page
    entry.write_bytes(whole)
    query = ("query", "throttle_by_task", trace, "--json")
    ran = cli(*query)
    error = ran.error()
    assert (ran.code, error["slug"], error["object"]) == (3, "damaged-cache", str(entry))
    subprocess.run(["bash", "-c", error["fix"]], check=True)
    assert cli(*query).code == 0


def test_an_entry_that_another_process_trims_is_made_anew(
    trace: Path, entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at it and the opening, once."""
    whole, real, opened = entry.read_bytes(), sqlite3.connect, []

    def trimmed(path: str, *given: Any, **named: Any) -> sqlite3.Connection:
        if entry.name in str(path):
            opened.append(path)
            if len(opened) == 1:
                entry.unlink()
        return real(path, *given, **named)

    monkeypatch.setattr(sqlite3, "connect", trimmed)
    with contextlib.closing(engine_of(find_source(str(trace)), load_library())):
        assert len(opened) > 1
        assert entry.read_bytes() == whole
