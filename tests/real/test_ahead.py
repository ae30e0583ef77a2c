# SPDX-License-Identifier: Apache-2.0
"""Tables that a second connection makes while the verdict is asked for: the same answers."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.runs import REPOSITORY
from wbscope.base.errors import QueryError
from wbscope.library import ahead, kept, sqlite
from wbscope.library.finding import Finding
from wbscope.library.library import Library, load_library
from wbscope.library.params import Params
from wbscope.library.session import Session
from wbscope.library.sqlite import SqliteEngine
from wbscope.run.ingested import ingest
from wbscope.run.source import find_source

TABLE = "wb_dirty_extent"
PARTS = {"whole": Params(), "part": Params(t0_ns=0, t1_ns=1 << 62)}


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library()


@pytest.fixture(scope="module")
def run_db(tmp_path_factory: pytest.TempPathFactory, library: Library) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.db"
    ingest(find_source(str(REPOSITORY / "examples/four-equal-writers")), path, library)
    return path


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also of a small run, and on one CPU; every table is kept."""
    monkeypatch.setattr(sqlite, "_MANY_RECORDS", 0)
    monkeypatch.setattr(sqlite, "has_second_cpu", lambda: True)
    monkeypatch.setattr(kept, "_SLOW_NS", 0)
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that were taken from the other connection."""
    names: list[str] = []
    rows = ahead.Ahead.rows

    def note(self: ahead.Ahead, name: str) -> ahead.Ready | None:
        ready = rows(self, name)
        names.extend([name] if ready else [])
        return ready

    monkeypatch.setattr(ahead.Ahead, "rows", note)
    return names


@pytest.fixture
def engine(run_db: Path, library: Library) -> Iterator[SqliteEngine]:
    made = SqliteEngine(run_db, "run.db", library)
    yield made
    made.close()
    assert not any(thread.name == "wbscope-ahead" for thread in threading.enumerate())


def asked(engine: SqliteEngine, library: Library, params: Params) -> tuple[list[Finding], list]:
    """The findings, and the table."""
    found = Session(engine, library, "run.db").findings(params)
    (rows,) = engine.answer(TABLE, [TABLE], [TABLE], [f"SELECT * FROM {TABLE}"])
    return found, rows[1]


@pytest.mark.parametrize("part", PARTS)
def test_the_answer_is_the_same(
    engine: SqliteEngine,
    library: Library,
    taken: list[str],
    monkeypatch: pytest.MonkeyPatch,
    part: str,
) -> None:
    there = asked(engine, library, PARTS[part])
    assert taken == [TABLE]
    assert there[1][0][0] > 0
    monkeypatch.setattr(sqlite, "has_second_cpu", lambda: False)
    engine.close()
    alone = SqliteEngine(engine.database, "run.db", library)
    assert asked(alone, library, PARTS[part]) == there
    assert taken == [TABLE]
    alone.close()


def test_it_is_kept_as_others_are(engine: SqliteEngine, library: Library) -> None:
    (_, rows) = asked(engine, library, Params())
    engine.close()
    again = SqliteEngine(engine.database, "run.db", library)
    assert TABLE in again.given
    assert again.connection.execute(f"SELECT * FROM {TABLE}").fetchall() == rows
    again.close()


@pytest.mark.parametrize(
    "error", [sqlite3.OperationalError("disk I/O error"), QueryError("time-limit", "sql", "late")]
)
def test_what_goes_wrong_there_is_done_here(
    engine: SqliteEngine,
    library: Library,
    taken: list[str],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    whole = asked(engine, library, Params(t0_ns=0))
    engine.use(Params())
    taken.clear()

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(ahead, "open_database", fail)
    assert asked(engine, library, Params(t0_ns=0)) == whole
    assert taken == []


def test_no_more_threads(
    engine: SqliteEngine, library: Library, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ahead.threading.Thread, "start", fail)
    assert asked(engine, library, Params())[1]
    assert taken == []


def test_an_engine_that_is_closed_waits_for_nothing(run_db: Path, library: Library) -> None:
    endless = (
        "CREATE TEMP VIEW endless AS WITH RECURSIVE c(n) AS"
        " (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
    )
    working = ahead.Ahead(run_db, "run.db", [endless], ["endless"])
    time.sleep(0.2)
    begin = time.monotonic()
    working.stop()
    assert time.monotonic() - begin < 2
    assert working.rows("endless") is None
