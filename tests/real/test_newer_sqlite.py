# SPDX-License-Identifier: Apache-2.0
"""A newer SQLite than Python's answers the same; it is that of apsw, which nothing else uses.

It is asked what wbscope asks its own, statement by statement, and for the views saved in a file.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.properties import some
from support.runs import RecordedRun, example
from support.tools import missing
from wbscope.base.errors import EvidenceError
from wbscope.library import database
from wbscope.library.engine import Rows
from wbscope.library.library import Library, load_library
from wbscope.library.session import Session
from wbscope.library.sqlite import SqliteEngine
from wbscope.run.ingested import ingest
from wbscope.source.source import find_source

try:
    import apsw
except ImportError:
    apsw = None

# SQLite adds up reals with compensation since 3.43.
TOLERANCE = 1e-9


@pytest.fixture(scope="module", autouse=True)
def _newer() -> None:
    if apsw is None:
        missing("apsw is not installed; make check installs it")
        return
    version = apsw.sqlite_lib_version()
    if tuple(map(int, version.split("."))) <= sqlite3.sqlite_version_info:
        pytest.skip(f"apsw has SQLite {version}, which is no newer than {sqlite3.sqlite_version}")


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("newer")


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else an answer is read from tables that Python's SQLite has made."""
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    # Nor from workers'.
    monkeypatch.setattr(database, "_MANY_RECORDS", 1 << 62)


def database_of(recorded: RecordedRun, folder: Path, library: Library) -> Path:
    path = folder / f"{recorded}.db"
    if not path.exists():
        ingest(find_source(str(recorded.folder)), path, library)
    return path


class Both(SqliteEngine):
    """Has the newer SQLite do all that Python's does, and notes where it does not."""

    def __init__(self, database: Path, library: Library) -> None:
        self.newer = opened(database)
        self.differ: list[str] = []
        super().__init__(database, "run.db", library)

    def put(self, name: str, select: str) -> None:
        super().put(name, select)
        self.newer.execute(f"DROP VIEW IF EXISTS temp.{name}")

    def _open(self) -> None:
        super()._open()
        run = self._objects.run

        def run_by_both(statements: Iterable[str]) -> None:
            statements = list(statements)
            run(statements)
            for statement in statements:
                with self._noted(statement):
                    self.newer.execute(statement).fetchall()

        self._objects.run = run_by_both  # type: ignore[method-assign]

    def rows(self, sql: str, most: int | None = None) -> Rows:
        columns, rows = super().rows(sql)
        with self._noted(sql):
            assert_same(columns, self.newer.execute(sql).fetchall(), rows)
        return columns, rows if most is None else rows[: most + 1]

    @contextmanager
    def _noted(self, statement: str) -> Iterator[None]:
        try:
            yield
        except (apsw.Error, AssertionError) as error:
            self.differ.append(f"{error}: {statement[:60]}")


def opened(database: Path) -> Any:
    """By apsw, read-only as wbscope opens it."""
    return apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)


def assert_same(columns: Iterable[str], found: list[Any], wanted: list[Any]) -> None:
    names = list(columns)
    assert len(found) == len(wanted)
    for place, (row, other) in enumerate(zip(found, wanted, strict=True)):
        differ = [n for n, a, b in zip(names, row, other, strict=True) if not is_same(a, b)]
        assert not differ, f"row {place}: {differ}"


def is_same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=TOLERANCE)
    return type(a) is type(b) and a == b


def ask(session: Session, name: str) -> bool:
    """Whether the run holds what the query needs."""
    try:
        session.query(name)
    except EvidenceError:
        return False
    return True


def test_it_answers_every_query_the_same(
    recorded: RecordedRun, folder: Path, library: Library
) -> None:
    """One after the other, as in a report."""
    engine = Both(database_of(recorded, folder, library), library)
    with closing(engine.newer):
        session = Session(engine, library, "run.db")
        differ = {}
        asked = []
        for query in library.queries():
            if ask(session, query.name):
                asked.append(query.name)
            if engine.differ:
                differ[query.name] = list(engine.differ)
                engine.differ.clear()
        engine.close(keep=False)
    assert not differ
    assert len(asked) > 20


def test_it_answers_a_query_that_is_asked_alone(folder: Path, library: Library) -> None:
    """What only the warnings need is no table then: it stands in one statement with them."""
    database = database_of(example("four-equal-writers"), folder, library)
    differ = {}
    asked = []
    for query in library.queries():
        engine = Both(database, library)
        with closing(engine.newer):
            if ask(Session(engine, library, "run.db"), query.name):
                asked.append(query.name)
            engine.close(keep=False)
        if engine.differ:
            differ[query.name] = engine.differ
    assert not differ
    assert "mmtests_vmstat" in asked


def test_it_reads_the_same_from_every_saved_view(
    recorded: RecordedRun, folder: Path, library: Library
) -> None:
    database = database_of(recorded, folder, library)
    find = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name GLOB '[a-z]*'"
    differ = {}
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as plain:
        there = {name for (name,) in plain.execute(find)}
        views = [f.name for f in library.files.values() if f.kind == "view" and f.name in there]
        with closing(opened(database)) as newer:
            for view in some(views):
                columns = [column.name for column in library.files[view].columns]
                select = f"SELECT {', '.join(columns)} FROM {view}"
                wanted = plain.execute(select).fetchall()
                try:
                    found = newer.execute(select).fetchall()
                    assert_same(columns, sorted(found, key=repr), sorted(wanted, key=repr))
                except (apsw.Error, AssertionError) as error:
                    differ[view] = str(error)
    assert len(views) == sum(
        f.kind == "view" and not f.is_private() for f in library.files.values()
    )
    assert not differ
