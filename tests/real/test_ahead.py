# SPDX-License-Identifier: Apache-2.0
"""Tables that a second connection makes while the verdict is asked for: the same answers."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.progress import returned
from support.runs import REPOSITORY
from support.waits import GUARD_SECONDS, wait_until
from wbscope.base.errors import QueryError
from wbscope.library import ahead, kept, objects, sharing
from wbscope.library import session as session_module
from wbscope.library.definitions import Definition
from wbscope.library.engine import Rows
from wbscope.library.finding import WAITS, Finding
from wbscope.library.library import Library, load_library
from wbscope.library.params import Params
from wbscope.library.session import Session
from wbscope.library.sqlite import SqliteEngine
from wbscope.run.ingested import ingest
from wbscope.run.source import find_source

TABLES = [*WAITS, "wb_window_seq", "wb_dirty_extent", "_throttle_charge", "_dirtied_charge"]
# Of writes and sleeps, which this run did not record.
EMPTY = ("wb_write_pair", "wb_blocked")
ASK = "SELECT * FROM endless"
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
    """Also of a small run, and on one CPU; every table is kept, and attached however small."""
    monkeypatch.setattr(sharing, "_MANY_RECORDS", 0)
    monkeypatch.setattr(objects, "_FEW_PAGES", 0)
    monkeypatch.setattr(sharing, "has_second_cpu", lambda: True)
    monkeypatch.setattr(kept, "_SLOW_NS", 0)
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that were taken from the other connection, or lent to it."""
    names: list[str] = []
    table, lend = ahead.Ahead.table, ahead.Ahead.lend

    def note(self: ahead.Ahead, name: str) -> ahead.Ready | None:
        ready = table(self, name)
        names.extend([name] if ready else [])
        return ready

    def lent(self: ahead.Ahead, name: str, ready: ahead.Ready | None, *more: Any) -> None:
        names.extend([name] if ready else [])
        lend(self, name, ready, *more)

    monkeypatch.setattr(ahead.Ahead, "table", note)
    monkeypatch.setattr(ahead.Ahead, "lend", lent)
    return names


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that the other connection left to this one, and does not need."""
    names: list[str] = []
    claim = ahead.Ahead.claim

    def note(self: ahead.Ahead, free: list[str], **given: bool) -> tuple[str, bool] | None:
        found = claim(self, free, **given)
        if found is not None and not found[1]:
            names.append(found[0])
        return found

    monkeypatch.setattr(ahead.Ahead, "claim", note)
    return names


@pytest.fixture
def engine(
    run_db: Path, library: Library, ahead_threads: Callable[[], list[threading.Thread]]
) -> Iterator[SqliteEngine]:
    made = SqliteEngine(run_db, "run.db", library)
    yield made
    made.close()
    assert not ahead_threads()


Told = tuple[list[Finding], list[Rows]]


def asked(engine: SqliteEngine, library: Library, params: Params) -> Told:
    """The findings, and the tables."""
    found = Session(engine, library, "run.db").findings(params)
    selects = [f"SELECT * FROM {table}" for table in TABLES]
    return found, engine.answer("tables", TABLES, TABLES, selects)


def assert_full(tables: list[Rows]) -> None:
    assert [bool(rows) for _, rows in tables] == [name not in EMPTY for name in TABLES]


@pytest.mark.parametrize("part", PARTS)
def test_the_answer_is_the_same(
    engine: SqliteEngine,
    library: Library,
    taken: list[str],
    own: list[str],
    monkeypatch: pytest.MonkeyPatch,
    part: str,
) -> None:
    there = asked(engine, library, PARTS[part])
    assert sorted(taken + own) == sorted(TABLES)
    assert_full(there[1])
    monkeypatch.setattr(sharing, "has_second_cpu", lambda: False)
    engine.close()
    alone = SqliteEngine(engine.database, "run.db", library)
    assert asked(alone, library, PARTS[part]) == there
    assert sorted(taken + own) == sorted(TABLES)
    alone.close()


def test_it_is_kept_as_others_are(engine: SqliteEngine, library: Library) -> None:
    (_, tables) = asked(engine, library, Params())
    engine.close()
    again = SqliteEngine(engine.database, "run.db", library)
    assert all(name in again.given or is_of_no_use(name, again, library) for name in TABLES)
    for table, (_, rows) in zip(TABLES, tables, strict=True):
        if table in again.given:
            assert again.connection.execute(f"SELECT * FROM {table}").fetchall() == rows
    again.close()


def is_of_no_use(name: str, engine: SqliteEngine, library: Library) -> bool:
    """A private step, of which all that is made of it is kept or as useless."""
    readers = [other for other, file in library.files.items() if name in file.needs]
    return name.startswith("_") and all(
        reader in engine.given or is_of_no_use(reader, engine, library) for reader in readers
    )


def test_what_is_no_table_is_not_made_ahead(engine: SqliteEngine, taken: list[str]) -> None:
    """And nobody waits for it to become one."""
    engine.ahead(["wb_wait_outside", "wb_dirty_extent"])
    names = ["wb_wait_outside", "wb_dirty_extent"]
    (rows, extent) = engine.answer("both", names, names, [f"SELECT * FROM {n}" for n in names])
    assert (bool(rows[0]), bool(extent[1])) == (True, True)
    assert taken == ["wb_dirty_extent"]


def test_one_that_is_too_large_is_made_here(
    engine: SqliteEngine, library: Library, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = asked(engine, library, Params(t0_ns=0))
    engine.use(Params())
    taken.clear()
    monkeypatch.setattr(ahead, "_MOST_PAGES", 3)
    assert asked(engine, library, Params(t0_ns=0)) == whole
    assert {"_throttle_pause", "wb_wait", "_wait_piece", "_throttle_charge"}.isdisjoint(taken)


def test_one_that_cannot_be_attached_is_made_here(
    engine: SqliteEngine, library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = asked(engine, library, Params())
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "another"))
    other = SqliteEngine(engine.database, "run.db", library)
    monkeypatch.setattr(other._objects, "_limit", lambda: 10)
    monkeypatch.setattr(other._sharing, "_share", lambda _: False)
    other.connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 1)
    assert asked(other, library, Params()) == whole
    assert attached(other) == 1
    other.close()


def test_more_are_made_ahead_than_can_be_attached(
    run_db: Path, library: Library, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SqliteEngine(run_db, "run.db", library)
    monkeypatch.setattr(engine._sharing, "_share", lambda _: False)
    most = engine.connection.getlimit(sqlite3.SQLITE_LIMIT_ATTACHED)
    assert most < len(TABLES)
    asked(engine, library, Params())
    assert sorted(taken) == sorted(TABLES)
    # The last ones were copied: there is room for those of an earlier session, and to keep these.
    assert attached(engine) == most - 2
    engine.close()
    given = SqliteEngine(run_db, "run.db", library).given
    # Its readers are kept themselves, so nobody asks for it again.
    assert set(TABLES) - given == {"_dirtied_charge"}


def test_small_ones_are_copied(
    engine: SqliteEngine, library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A row or two need no place among the few files that can be attached."""
    whole = asked(engine, library, Params())
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "another"))
    monkeypatch.setattr(objects, "_FEW_PAGES", 2)
    other = SqliteEngine(engine.database, "run.db", library)
    monkeypatch.setattr(other._sharing, "_share", lambda _: False)
    assert asked(other, library, Params()) == whole
    assert "wb_dirty_extent" not in other._objects.taken
    kind = "SELECT type FROM sqlite_temp_schema WHERE name = 'wb_dirty_extent'"
    assert other.connection.execute(kind).fetchall() == [("table",)]
    assert 0 < attached(other) == len(other._objects.taken) < len(TABLES)
    other.use(Params(t0_ns=0))
    assert attached(other) == len(other._objects.taken)
    other.close()


def attached(engine: SqliteEngine) -> int:
    schemas = [row[1] for row in engine.connection.execute("PRAGMA database_list")]
    return sum(name.startswith("ahead_") for name in schemas)


def test_nothing_is_left_of_what_was_made(
    engine: SqliteEngine, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine._sharing, "_share", lambda _: False)
    asked(engine, library, Params())
    (uri,) = {
        ready.uri for name, ready in engine._sharing._ahead._ready.items() if name == TABLES[0]
    }
    engine.close()
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as memory:
        assert memory.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)


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

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(ahead, "open_database", fail)
    assert asked(engine, library, Params(t0_ns=0)) == whole
    assert engine._sharing._ahead is not None
    assert not engine._sharing._ahead._ready


def test_no_more_threads(
    engine: SqliteEngine, library: Library, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ahead.threading.Thread, "start", fail)
    assert asked(engine, library, Params())[1]
    assert taken == []


def test_an_engine_that_is_closed_waits_for_nothing(
    run_db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement has no end, so that stop() does not come back where it waits for it."""
    endless = (
        "CREATE TEMP VIEW endless AS WITH RECURSIVE c(n) AS"
        " (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
    )
    begun, opened = threading.Event(), ahead.open_database

    def telling(*place: Any, **how: Any) -> Any:
        found = opened(*place, **how)
        found[0].set_trace_callback(lambda text: begun.set() if ASK in text else None)
        return found

    monkeypatch.setattr(ahead, "open_database", telling)
    working = ahead.Ahead(run_db, "run.db", [Definition("v", (endless, ASK))], ["endless"])
    working.start()
    assert begun.wait(GUARD_SECONDS)
    assert working._thread.is_alive()
    assert returned(working.stop)
    assert working.table("endless") is None


@pytest.mark.parametrize("expected", [False, True])
@pytest.mark.parametrize("asked_twice", [False, True])
def test_queries_share_their_passes_over_the_events(
    engine: SqliteEngine,
    library: Library,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    asked_twice: bool,
    expected: bool,
) -> None:
    """The same answers, and each pass is made once, here or there, also before it is asked for."""
    made: list[str] = []
    publish, statements = ahead.Ahead._publish, objects.Objects.run

    def there(self: ahead.Ahead, connection: sqlite3.Connection, one: Definition, at: int) -> None:
        made.append(one.name)
        publish(self, connection, one, at)

    def here(self: objects.Objects, texts: list[str]) -> None:
        statements(self, texts)
        inserts = (text for text in texts if text.startswith("INSERT INTO "))
        made.extend(text.split()[2] for text in inserts if " FROM ahead_" not in text)

    monkeypatch.setattr(ahead.Ahead, "_publish", there)
    monkeypatch.setattr(objects.Objects, "run", here)
    names = ["check", "blame", "stalls", "dirty_domains", "pool", "fairness"]
    session = Session(engine, library, "run.db")
    told = {}
    if expected:
        session.expect(names)
        working = engine._sharing._ahead
        assert working is not None
        apart = [name for name in session_module._APART if name in working.names]
        assert apart == working.names[: len(apart)]
        # Answers come after all tables; those that need other ones are not begun there.
        assert working.names[len(apart) :] == ["answer_stalls"]
        assert len(apart) > 4
        # Whoever tells findings has no other thread until these are asked for.
        engine.ahead(TABLES)
        assert engine._sharing._ahead is working
        assert all(working.table(name) for name in apart)
    every: list[str] = []
    for name in names:
        made.clear()
        told[name] = session.query(name)
        every += made
        passes = set(session_module._PASSES).intersection(library.closure([name]))
        assert sorted(set(made) & passes) == sorted(one for one in made if one in passes)
        if asked_twice:
            made.clear()
            assert session.query(name) == told[name]
            assert made == []
    if expected:
        assert set(every) & set(apart) == set()
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "another"))
    monkeypatch.setattr(sharing, "has_second_cpu", lambda: False)
    alone = SqliteEngine(engine.database, "run.db", library)
    made.clear()
    assert {name: Session(alone, library, "run.db").query(name) for name in names} == told
    alone.close()
    assert {"_law_break", "wb_domain_sum", "_throttle_charge"} <= set(made)


def test_ctrl_c_at_any_step_leaves_the_session_usable(
    engine: SqliteEngine, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also between what is claimed and what is lent: nobody waits for it."""
    whole = asked(engine, library, Params())
    steps = {"_share": sharing.Sharing, "make": objects.Objects, "_lend": sharing.Sharing}
    steps |= {"take": objects.Objects, "publish": objects.Objects, "run": objects.Objects}
    for step, owner in steps.items():
        for place in (1, 3):
            monkeypatch.setenv("WBSCOPE_CACHE_DIR", f"{engine.database}-{step}-{place}")
            other = SqliteEngine(engine.database, "run.db", library)
            real, calls = getattr(owner, step), []

            def stopped(*given: Any, real: Any = real, calls: Any = calls, at: int = place) -> Any:
                calls.append(1)
                if len(calls) == at:
                    raise KeyboardInterrupt
                return real(*given)

            with monkeypatch.context() as patch:
                patch.setattr(owner, step, stopped)
                with contextlib.suppress(KeyboardInterrupt):
                    asked(other, library, Params())
            assert asked(other, library, Params()) == whole, (step, place)
            assert attached(other) == len(other._objects.taken)
            other.close()


def test_what_a_thread_had_made_is_gone_with_it(engine: SqliteEngine, library: Library) -> None:
    """A stopped statement ends the thread, and its databases with it."""
    engine.ahead(TABLES)
    working = engine._sharing._ahead
    assert working is not None
    assert working.table(TABLES[0]) is not None
    working.stop()
    assert working.table(TABLES[0]) is None
    names, select = [TABLES[0]], f"SELECT count(*) FROM {TABLES[0]}"
    (rows,) = engine.answer("rows", names, names, [select])
    assert rows[1][0][0] > 0


def test_another_file_in_the_place_of_the_run_is_not_read(
    run_db: Path, library: Library, tmp_path: Path, taken: list[str]
) -> None:
    """The session stays with the file that it opened; the other thread would open the new one."""
    path = tmp_path / "run.db"
    path.write_bytes(run_db.read_bytes())
    engine = SqliteEngine(path, "run.db", library)
    path.unlink()
    path.write_bytes(run_db.read_bytes())
    assert_full(asked(engine, library, Params())[1])
    assert taken == []
    engine.close()


def test_nor_is_one_that_comes_just_when_the_other_thread_begins(
    run_db: Path,
    library: Library,
    tmp_path: Path,
    taken: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, opened = tmp_path / "run.db", ahead.open_database
    path.write_bytes(run_db.read_bytes())

    def replaced(*place: Any, **how: Any) -> Any:
        (tmp_path / "new.db").write_bytes(run_db.read_bytes())
        (tmp_path / "new.db").replace(path)
        return opened(*place, **how)

    monkeypatch.setattr(ahead, "open_database", replaced)
    monkeypatch.setattr(sharing.Sharing, "_share", lambda *_: False)
    engine = SqliteEngine(path, "run.db", library)
    assert_full(asked(engine, library, Params())[1])
    assert taken == []
    engine.close()


def test_what_was_made_for_nobody_yet_stays_when_other_things_are_begun(
    engine: SqliteEngine, taken: list[str]
) -> None:
    engine.ahead(["wb_dirty_extent"], shared=True)
    first = engine._sharing._ahead
    assert first is not None
    assert first.table("wb_dirty_extent") is not None
    wait_until(lambda: first.has_ended, "it has ended")
    engine.ahead(["_throttle_pause"], shared=True)
    assert engine._sharing._ahead is not first
    assert engine.made["wb_dirty_extent"]
    names = ["wb_dirty_extent"]
    (rows,) = engine.answer("rows", names, names, ["SELECT * FROM wb_dirty_extent"])
    assert rows[1]


def test_what_is_lent_when_all_places_are_taken_is_copied(
    run_db: Path,
    library: Library,
    taken: list[str],
    own: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """So that nobody waits for the other thread because nothing more could be lent."""
    whole = SqliteEngine(run_db, "run.db", library)
    told = asked(whole, library, Params(t0_ns=0))
    whole.close()
    for limit in range(5):
        monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / str(limit)))
        taken.clear()
        own.clear()
        engine = SqliteEngine(run_db, "run.db", library)
        engine.connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, limit)
        assert asked(engine, library, Params(t0_ns=0)) == told
        assert attached(engine) <= max(limit - 2, 0)
        if limit > 1:
            assert sorted(taken + own) == sorted(TABLES)
        engine.close()
