# SPDX-License-Identifier: Apache-2.0
"""Which folder an error names where SQLite finds no room."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from wbscope.library.database import no_room, translate

_WHY = "database or disk is full (SQLITE_FULL)"


def _room(monkeypatch: pytest.MonkeyPatch, free: Mapping[str, int]) -> None:
    def statvfs(folder: str) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=free[str(folder)], f_frsize=1)

    monkeypatch.setattr(os, "statvfs", statvfs)


def test_the_folder_with_less_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temp, output = tmp_path / "temp", tmp_path / "output"
    temp.mkdir()
    output.mkdir()
    monkeypatch.setenv("SQLITE_TMPDIR", str(temp))
    _room(monkeypatch, {str(temp): 7, str(output): 1000})
    error = no_room(_WHY, "x.db", output / "x.db")
    assert (error.slug, error.subject) == ("no-room", str(temp))
    assert error.have == "7 bytes free, less than it takes"
    _room(monkeypatch, {str(temp): 1000, str(output): 7})
    error = no_room(_WHY, "x.db", output / "x.db")
    assert (error.slug, error.subject) == ("cannot-write-database", "x.db")
    assert error.have == "its folder has 7 bytes free, less than it takes"
    # A database that is only read takes no room.
    assert no_room(_WHY, "x.db", None).subject == str(temp)


def test_the_folders_that_sqlite_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of its documentation: one that is no folder is passed over."""
    second = tmp_path / "second"
    second.mkdir()
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path / "none"))
    monkeypatch.setenv("TMPDIR", str(second))
    assert no_room(_WHY, "x.db", None).subject == str(second)
    monkeypatch.delenv("SQLITE_TMPDIR")
    monkeypatch.delenv("TMPDIR")
    assert no_room(_WHY, "x.db", None).subject == "/var/tmp"


def test_no_folder_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda folder, mode: False)
    error = no_room(_WHY, "x.db", None)
    assert error.slug == "no-room"
    assert error.subject.startswith("$SQLITE_TMPDIR, $TMPDIR, /var/tmp")
    assert error.have == "none of them can be written"


def test_sqlite_agrees() -> None:
    """Where SQLite has its temporary files is where the error looks."""
    folder = no_room(_WHY, "x.db", None).subject
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA temp_store = FILE")
    database.execute("CREATE TEMP TABLE t AS SELECT randomblob(100000) AS b")
    database.execute("PRAGMA temp.cache_spill = 1")
    database.executemany("INSERT INTO t VALUES (randomblob(?))", [(100_000,)] * 100)
    opened = Path("/proc/self/fd")
    links = [os.readlink(fd) for fd in opened.iterdir() if fd.is_symlink()]
    database.close()
    assert any(link.startswith(os.path.join(folder, "etilqs_")) for link in links), links


def test_a_temporary_file_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite says the same of the database itself, which then is the other program's."""
    with pytest.raises(sqlite3.OperationalError) as caught:
        sqlite3.connect(tmp_path / "none" / "x.db")
    assert caught.value.sqlite_errorname == "SQLITE_CANTOPEN"
    assert translate(caught.value, "x.db").slug == "unfinished-database"
    # A folder to which even root cannot write, and which SQLite takes.
    monkeypatch.setenv("SQLITE_TMPDIR", "/proc")
    error = translate(caught.value, "x.db")
    assert (error.slug, error.subject, error.exit_code) == ("no-room", "/proc", 5)
