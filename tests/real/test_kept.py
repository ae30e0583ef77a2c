# SPDX-License-Identifier: Apache-2.0
"""Tables kept from one session to the next: same answers, and never old ones."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import wbscope
from support.runs import REPOSITORY
from wbscope.base.errors import SetupError
from wbscope.library import kept, saved, sharing
from wbscope.library.library import Library, load_library
from wbscope.library.params import Params
from wbscope.library.session import Session
from wbscope.library.sqlite import SqliteEngine
from wbscope.run.ingested import ingest
from wbscope.run.source import find_source
from wbscope.timeline.export import write_timeline

QUESTIONS = ("stalls", "stalls_by_task", "dirty_position", "fairness", "throttle_by_task")


@pytest.fixture
def library() -> Library:
    return load_library()


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of its own, and every table is slow."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(folder))
    monkeypatch.setattr(kept, "_SLOW_NS", 0)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.db"
    ingest(find_source(str(REPOSITORY / "examples/four-equal-writers")), path, load_library())
    return path


@pytest.fixture
def run_db(made: Path, tmp_path: Path) -> Path:
    path = tmp_path / "run.db"
    path.write_bytes(made.read_bytes())
    return path


def answers(path: Path, library: Library, params: Params | None = None) -> tuple[list, frozenset]:
    """What the queries say, and the tables that were there before."""
    engine = used(path, library, params)
    session = Session(engine, library, "run.db")
    rows = [session.query(name, params).rows for name in QUESTIONS]
    engine.close()
    return rows, engine.given


def used(path: Path, library: Library, params: Params | None = None) -> SqliteEngine:
    """An engine with these filters."""
    engine = SqliteEngine(path, "run.db", library)
    engine.use(params or Params())
    return engine


def entry(cache: Path) -> Path:
    (path,) = cache.rglob("*.db")
    return path


def test_second_session_takes_the_tables_of_the_first(
    run_db: Path, library: Library, cache: Path
) -> None:
    first, none = answers(run_db, library)
    assert not none
    with sqlite3.connect(entry(cache)) as connection:
        find = "SELECT name FROM sqlite_schema WHERE type = 'table'"
        there = {name for (name,) in connection.execute(find)}
    assert {"wb_stall", "_throttle_charge", "wb_dirty_window"} <= there
    second, given = answers(run_db, library)
    assert given == there
    assert second == first
    assert any(len(rows) > 10 for rows in first)


def test_tables_are_read_not_made(run_db: Path, library: Library, cache: Path) -> None:
    """One that is changed by hand shows through: else the test above proves nothing."""
    answers(run_db, library)
    with sqlite3.connect(entry(cache)) as connection:
        connection.execute("DELETE FROM wb_stall")
    (stalls, by_task, *_), _ = answers(run_db, library)
    assert stalls == by_task == []


def test_filters_take_only_what_no_filter_changes(
    run_db: Path, library: Library, cache: Path
) -> None:
    with wbscope.open(run_db) as run:
        start = run.duration_ns() // 3
        first_ts = int(run.recorded().meta["first_ts"])
    part = Params(t0_ns=first_ts + start, t1_ns=first_ts + 2 * start)
    engine = used(run_db, library, part)
    fresh = Session(engine, library, "run.db").query("stalls", part).rows
    engine.close()
    with closing(sqlite3.connect(entry(cache))) as kept:
        names = {name for (name,) in kept.execute("SELECT name FROM sqlite_schema")}
    # Of a part only what is the same of the whole.
    assert "_throttle_pause" in names
    assert names.isdisjoint(library.depending(["t0_ns", "t1_ns"]))
    answers(run_db, library)
    engine = used(run_db, library, part)
    assert "_throttle_pause" in engine.given
    assert "wb_stall" not in engine.given
    assert Session(engine, library, "run.db").query("stalls", part).rows == fresh
    assert 0 < len(fresh) < len(wbscope.open(run_db).query("stalls").rows)


def test_changed_database_gets_new_tables(run_db: Path, library: Library, cache: Path) -> None:
    before, _ = answers(run_db, library)
    with sqlite3.connect(run_db) as connection:
        connection.execute("UPDATE ev_balance_dirty_pages SET bdi = '9:9'")
    after, given = answers(run_db, library)
    assert not given
    assert after != before
    assert len(list(cache.rglob("*.db"))) == 2


def test_changed_library_gets_new_tables(run_db: Path, library: Library) -> None:
    answers(run_db, library)
    other = dict(library.files)
    file = other["wb_rule"]
    other["wb_rule"] = type(file)(
        **{**vars(file), "select": file.select.replace("0.5 AS most", "0.75 AS most")}
    )
    changed = Library(other, library.profiles)
    assert changed.digest() != library.digest()
    assert answers(run_db, changed)[1] == frozenset()


@pytest.mark.parametrize("damage", ["cut", "header", "middle", "column"])
def test_damaged_tables_are_made_again(
    run_db: Path, library: Library, cache: Path, damage: str
) -> None:
    first, _ = answers(run_db, library)
    path = entry(cache)
    data = bytearray(path.read_bytes())
    if damage == "cut":
        del data[len(data) // 2 :]
    elif damage == "header":
        data[:16] = b"no database here"
    elif damage == "column":  # of every table
        assert b'"task_id" INTEGER' in data
        data = data.replace(b'"task_id" INTEGER', b'"tazk_id" INTEGER')
    else:
        data[8192:] = b"\xff" * (len(data) - 8192)
    path.write_bytes(data)
    assert answers(run_db, library)[0] == first
    assert answers(run_db, library)[0] == first


def test_cache_that_cannot_be_used_changes_nothing(
    run_db: Path, library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, _ = answers(run_db, library)
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(blocker / "below"))
    assert answers(run_db, library) == (first, frozenset())


def test_database_with_a_log_beside_it_is_not_kept(
    run_db: Path, library: Library, cache: Path
) -> None:
    Path(f"{run_db}-wal").write_bytes(b"")
    answers(run_db, library)
    assert not list(cache.rglob("*.db"))


def test_statements_for_another_connection_are_whole(run_db: Path, library: Library) -> None:
    engine = used(run_db, library)
    whole = engine.script(["tl_throttle"])
    engine.close()
    answers(run_db, library)
    engine = used(run_db, library)
    assert engine.given
    assert engine.script(["tl_throttle"]) == whole
    engine.close()


def test_one_that_is_read_while_another_session_saves(
    run_db: Path, library: Library, cache: Path
) -> None:
    """As a timeline of the same run reads it; what could not be saved is saved at the end."""
    other = run_db.with_name("other.db")
    shutil.copy(run_db, other)
    wanted, _ = answers(other, library)
    entry(cache).unlink()
    first = used(run_db, library)
    Session(first, library, "run.db").query("throughput")
    first.close()
    engine = used(run_db, library)
    session = Session(engine, library, "run.db")
    rows = [session.query(name).rows for name in QUESTIONS[:2]]
    with closing(sqlite3.connect(entry(cache))) as reader:
        reader.execute("BEGIN")
        kept_count = reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        engine.script(["wb_stall"], kept=True)
        assert not engine.connection.in_transaction
        rows += [session.query(name).rows for name in QUESTIONS[2:]]
    assert rows == wanted
    with closing(sqlite3.connect(entry(cache))) as reader:
        assert reader.execute("SELECT count(*) FROM sqlite_schema").fetchone() == kept_count
    engine.close()
    with closing(sqlite3.connect(entry(cache))) as reader:
        assert reader.execute("SELECT count(*) FROM sqlite_schema").fetchone() > kept_count


def test_a_timeline_without_its_kept_tables(
    run_db: Path, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gone or damaged between the verdict and the drawing: they are made again."""
    kept_tables = kept.KeptTables.statements
    with wbscope.open(run_db) as run:
        write_timeline(run, tmp_path / "first.pftrace")
        garbage = tmp_path / "garbage.db"
        garbage.write_bytes(b"no database" * 1000)

        def damaged(
            self: kept.KeptTables, wanted: frozenset[str], **which: bool
        ) -> tuple[list[str], frozenset]:
            statements, names = kept_tables(self, wanted, **which)
            assert names
            schema = statements[0].rpartition(" ")[2]
            return [f"ATTACH '{garbage}' AS {schema}", *statements[1:]], names

        monkeypatch.setattr(kept.KeptTables, "statements", damaged)
        write_timeline(run, tmp_path / "again.pftrace")
    assert (tmp_path / "again.pftrace").read_bytes() == (tmp_path / "first.pftrace").read_bytes()
    assert garbage.read_bytes() == b"no database" * 1000


def test_the_cache_is_cleared_while_it_is_read(run_db: Path, library: Library, cache: Path) -> None:
    """What was taken from it is still there, and what is made of a window is not kept."""
    (stalls, *_), _ = answers(run_db, library)
    engine = used(run_db, library)
    session = Session(engine, library, "run.db")
    assert "wb_stall" in engine.given
    entry(cache).unlink()
    window = Params(window_ns=10**9)
    windows = session.query("dirty_position", window).rows
    assert session.query("stalls").rows == stalls
    session.query("law")
    engine.close()
    with closing(sqlite3.connect(entry(cache))) as kept_now:
        names = {name for (name,) in kept_now.execute("SELECT name FROM sqlite_schema")}
    assert names
    assert "wb_stall" not in names  # nobody made it
    assert answers(run_db, library)[0][0] == stalls
    assert Session(used(run_db, library), library, "r").query("dirty_position", window).rows == (
        windows
    )


def test_a_session_goes_on_waiting_for_another_that_writes(
    run_db: Path, library: Library, cache: Path
) -> None:
    """Also after it has kept tables of its own, at a change of filters."""
    answers(run_db, library)
    engine = used(run_db, library)
    session = Session(engine, library, "run.db")
    session.query("law")
    windows = session.query("dirty_position", Params(window_ns=10**9)).rows
    assert engine.connection.execute("PRAGMA busy_timeout").fetchone() == (5000,)
    there = entry(cache)
    with closing(sqlite3.connect(there, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        engine.connection.execute("PRAGMA busy_timeout = 10")
        engine.use(Params())
        assert there.exists(), "it is not damaged, only written"
        other.execute("ROLLBACK")
    engine.close()
    again = Session(used(run_db, library), library, "run.db")
    assert again.query("dirty_position", Params(window_ns=10**9)).rows == windows


def test_ctrl_c_while_tables_are_kept(
    run_db: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = used(run_db, library)
    session = Session(engine, library, "run.db")
    rows = session.query("stalls").rows

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kept.KeptTables, "_copy", stopped)
        with pytest.raises(KeyboardInterrupt):
            session.script(["tl_stall"], kept=True)
    assert not engine.connection.in_transaction
    schemas = [row[1] for row in engine.connection.execute("PRAGMA database_list")]
    assert "kept_new" not in schemas
    assert session.query("stalls").rows == rows
    assert session.query("throttle_by_task").rows
    engine.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_what_ingest_made_to_judge_the_run_is_kept(
    run_db: Path,
    library: Library,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    threads: int,
    ahead_threads: Callable[[], list[threading.Thread]],
) -> None:
    monkeypatch.setattr(sharing, "_MANY_RECORDS", 0)
    monkeypatch.setattr(sharing, "has_second_cpu", lambda: threads > 1)
    path = tmp_path / "another.db"
    ingest(find_source(str(REPOSITORY / "examples/four-equal-writers")), path, library)
    assert not ahead_threads()
    told, given = answers(path, library)
    assert {"wb_wait", "_throttle_charge", "wb_loss_total"} <= given
    assert told == answers(run_db, library)[0]


def test_an_ingest_that_fails_keeps_nothing(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    def fail(self: saved._Saving, file: object) -> None:
        raise SetupError("disk-full", "run.db", "no space left", fix="df")

    monkeypatch.setattr(saved._Saving, "save", fail)
    with pytest.raises(SetupError):
        ingest(
            find_source(str(REPOSITORY / "examples/four-equal-writers")), tmp_path / "x", library
        )
    assert not list(cache.rglob("*.db"))
    assert not (tmp_path / "x").exists()
