# SPDX-License-Identifier: Apache-2.0
"""Tables that ingest has saved in the run's own file: read where it is that file, and no other."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.progress import hang_guard
from support.runs import RecordedRun, example
from wbscope.base.errors import QueryError, WbscopeError
from wbscope.library import database, saved_views, steps
from wbscope.library.finding import Finding
from wbscope.library.library import Library, load_library
from wbscope.library.sqlite import SqliteEngine
from wbscope.library.steps import Steps
from wbscope.run import ingested
from wbscope.run.ingested import ingest
from wbscope.source.source import find_source


@pytest.fixture(scope="session")
def library() -> Library:
    return load_library()


def every_answer(run: wbscope.Run, library: Library, **filters: str) -> dict[str, object]:
    told: dict[str, object] = {}
    for query in library.queries():
        try:
            found = run.query(query.name, **filters)
            told[query.name] = (found.rows, found.warnings)
        except WbscopeError as error:
            told[query.name] = str(error)
    return told


@pytest.fixture
def small(library: Library, own_cache: Path, tmp_path: Path) -> Path:
    """Of a small run, which no cache knows; the test may change it."""
    path = tmp_path / "run.db"
    ingest(find_source(str(example("four-equal-writers").folder)), path, library)
    shutil.rmtree(own_cache)
    return path


@pytest.fixture
def known(recorded: RecordedRun, library: Library, own_cache: Path, tmp_path: Path) -> Path:
    """A file that this cache knows to be of its ingest."""
    path = tmp_path / "run.db"
    ingest(find_source(str(recorded.folder)), path, library)
    return path


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_wbscope_reads_what_its_ingest_has_saved(
    known: Path, library: Library, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same answers, of parts too, as without a cache, where it makes everything itself."""
    monkeypatch.setattr(database, "_MANY_RECORDS", 1 << 60)
    found = []
    for is_known in (True, False):
        if not is_known:
            shutil.rmtree(own_cache)
        with wbscope.open(known) as run:
            given = run._session.engine.given
            some = {"wb_stall", "_throttle_charge", "wb_rule", "_domain_sum"}
            assert (some <= given) is is_known
            found.append([every_answer(run, library)])
            part = every_answer(run, library, start="0.5s", end="1.5s")
            # Of a part only what is the same of the whole.
            given = run._session.engine.given
            assert "wb_stall" not in given
            assert ("_throttle_charge" in given) is is_known
            found[-1].append(part)
    assert found[0] == found[1]
    assert any(len(told[0]) > 10 for told in found[0][0].values() if isinstance(told, tuple))


def test_saved_tables_are_read_not_made(small: Path, library: Library, own_cache: Path) -> None:
    """One that is changed before the cache knows the file shows through."""
    engine = SqliteEngine(small, "run.db", library, ["wb_stall", "wb_params", "sqlite_schema"])
    with closing(sqlite3.connect(small)) as connection:
        connection.execute("DELETE FROM wb_stall")
        connection.commit()
    engine.rename(small)
    engine.close()
    with wbscope.open(small) as run:
        assert run._session.engine.given == {"wb_stall"}
        assert run.query("stalls").rows == []
        assert run.sql("SELECT count(*) FROM wb_wait").rows[0][0] > 0


@pytest.mark.parametrize("change", ["saved", "copied", "moved"])
def test_saved_tables_of_another_file_are_not_read(
    small: Path, library: Library, own_cache: Path, tmp_path: Path, change: str
) -> None:
    wanted = wbscope.open(small).query("stalls").rows
    shutil.rmtree(own_cache)
    engine = SqliteEngine(small, "run.db", library, ["wb_stall", "wb_wait"])
    engine.close()
    assert wbscope.open(small)._session.engine.given == {"wb_stall", "wb_wait"}
    path = small
    if change == "saved":
        with closing(sqlite3.connect(small)) as connection:
            connection.execute("DELETE FROM wb_stall")
            connection.commit()
    elif change == "copied":
        path = Path(shutil.copy(small, tmp_path / "copy.db"))
    else:
        path = small.rename(tmp_path / "moved.db")
    with wbscope.open(path) as run:
        assert not run._session.engine.given
        assert run.query("stalls").rows == wanted


def test_findings_that_cannot_be_had_are_left_out(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    """The views are there all the same, and their tables are known."""

    def fail(*_: object) -> list[Finding]:
        raise QueryError("too-long", "findings", "took longer than 60 s")

    monkeypatch.setattr(ingested, "_findings", fail)
    path = tmp_path / "run.db"
    done = ingest(find_source(str(example("four-equal-writers").folder)), path, library)
    (told,) = [notice for notice in done.warnings if notice.slug == "no-findings-saved"]
    assert told.message == f"wb_finding is not in {path}: took longer than 60 s"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM wb_stall").fetchone()[0] > 0
        find = "SELECT value FROM meta WHERE key = 'views_left_out'"
        assert connection.execute(find).fetchone() == ("findings, wb_finding",)
    with wbscope.open(path) as run:
        assert "wb_stall" in run._session.engine.given


def test_tables_are_known_where_views_are_left_out(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    monkeypatch.setattr(saved_views, "_MOST_PARTS", 3)
    path = tmp_path / "run.db"
    done = ingest(find_source(str(example("four-equal-writers").folder)), path, library)
    assert "views-left-out" in [notice.slug for notice in done.warnings]
    with wbscope.open(path) as run:
        assert "wb_stall" in run._session.engine.given


def change_schema(path: Path, old: str, new: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        changed = connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = 'wb_stall'", (old, new)
        )
        assert changed.rowcount == 1
        connection.commit()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"span_ns"', '"spbn_ns"'),
        ('"comm" TEXT', '"comm" TEXT AS (hex(zeroblob(20000000 + tid)))'),
        ("CREATE TABLE wb_stall", "CREATE TABLE  wb_stall"),
    ],
)
def test_a_table_that_is_not_as_it_was_saved_is_not_read(
    small: Path, library: Library, own_cache: Path, old: str, new: str
) -> None:
    """Nor the others: somebody has changed the file, or a byte of it."""
    wanted = wbscope.open(small).query("stalls").rows
    shutil.rmtree(own_cache)
    change_schema(small, old, new)
    engine = SqliteEngine(small, "run.db", library, ["wb_stall", "wb_wait"])
    assert not engine.given
    engine.rename(small)
    engine.close()
    with wbscope.open(small) as run:
        assert not run._session.engine.given
        assert run.query("stalls").rows == wanted


def changed_in_place(path: Path, statement: str, made_of: Path) -> None:
    """The same file, size and first bytes, with other rows, as nothing that is well meant does."""
    shutil.copy(path, made_of)
    with closing(sqlite3.connect(made_of)) as connection:
        connection.execute(statement)
        connection.commit()
    data = path.read_bytes()[:100] + made_of.read_bytes()[100:]
    assert len(data) == path.stat().st_size
    times = path.stat()
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_a_file_that_is_changed_behind_its_header_is_another_one(
    known: Path, own_cache: Path, tmp_path: Path
) -> None:
    with wbscope.open(known) as run:
        assert "wb_stall" in run._session.engine.given
        wanted = run.query("stalls").rows
    changed_in_place(known, "UPDATE wb_stall SET comm = 'x'", tmp_path / "copy.db")
    with wbscope.open(known) as run:
        assert not run._session.engine.given
        assert run.query("stalls").rows == wanted


def test_tables_that_were_kept_are_of_that_edit_only(
    small: Path, own_cache: Path, tmp_path: Path
) -> None:
    """A copy that is put back and changed otherwise has the same counter of changes."""
    base = Path(shutil.copy(small, tmp_path / "base.db"))
    told = []
    for more in (2, 3):
        shutil.copyfile(base, small)
        with closing(sqlite3.connect(small)) as connection:
            connection.execute(
                f"UPDATE ev_balance_dirty_pages SET pause = pause + {more} WHERE pause > 0"
            )
            connection.commit()
        told.append(wbscope.open(small).query("throttle_by_task").rows)
    assert told[0] != told[1]
    assert told[1] == wbscope.open(shutil.copy(small, base)).query("throttle_by_task").rows


def test_damage_in_a_saved_table_is_made_good(known: Path, library: Library) -> None:
    """Pages of the file that are no pages any more, but for those of the events."""
    with wbscope.open(known) as run:
        wanted = every_answer(run, library)
    names = ("_throttle_charge", "wb_stall", "wb_wait", "wb_rule")
    with closing(sqlite3.connect(known)) as connection:
        find = f"SELECT rootpage FROM sqlite_schema WHERE name IN {names}"
        pages = [page for (page,) in connection.execute(find)]
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with known.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * size)
            file.write(b"\xff" * 64)
    engine = SqliteEngine(known, str(known), library, names)
    engine.rename(known)
    engine.close()
    with wbscope.open(known) as run:
        assert "wb_stall" in run._session.engine.given
        assert every_answer(run, library) == wanted
        assert not run._session.engine.given


def test_workers_read_them_too(
    known: Path, library: Library, monkeypatch: pytest.MonkeyPatch, makes: list[str]
) -> None:
    monkeypatch.setattr(database, "_MANY_RECORDS", 0)
    with wbscope.open(known) as run:
        given = run._session.engine.given
        every_answer(run, library)
    assert "wb_stall" in given
    assert makes
    assert given.isdisjoint(makes)


def test_workers_save_the_same(
    recorded: RecordedRun, library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Byte for byte, so that neither CPUs nor luck tell files of one trace apart."""
    taken: list[str] = []
    made = saved_views._Saving._made

    def note(self: saved_views._Saving, *given: object) -> str:
        found = made(self, *given)
        taken.extend([found] if found.startswith("steps_") else [])
        return found

    monkeypatch.setattr(saved_views._Saving, "_made", note)
    files = []
    for number, processors in enumerate((0, 1, 2, 2)):
        monkeypatch.setattr(database, "_MANY_RECORDS", 0 if processors else 1 << 60)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, most=processors: range(most))
        path = tmp_path / "run.db"
        ingest(find_source(str(recorded.folder)), path, library, force=True)
        assert bool(taken) is (processors > 0)
        files.append(path.read_bytes())
        path.rename(tmp_path / f"{number}.db")
    assert len(set(files)) == 1
    assert not [one for one in threading.enumerate() if one.name == "wbscope-steps"]


@pytest.mark.parametrize("step", ["open_database", "_make"])
def test_what_workers_cannot_make_is_made_here(
    library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: str
) -> None:
    monkeypatch.setattr(database, "_MANY_RECORDS", 0)
    run = find_source(str(example("four-equal-writers").folder))
    ingest(run, tmp_path / "good.db", library)

    def fail(*_: object, **__: object) -> None:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("SELECT nothing")

    monkeypatch.setattr(*((steps, step) if step == "open_database" else (Steps, step)), fail)
    ingest(run, tmp_path / "other.db", library)
    assert (tmp_path / "other.db").read_bytes() == (tmp_path / "good.db").read_bytes()


def test_ingest_waits_for_no_worker_for_ever(
    library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As long as for what is made here: then the file goes without views."""
    monkeypatch.setattr(database, "_MANY_RECORDS", 0)
    monkeypatch.setattr(saved_views, "default_limit_ns", lambda: 500_000_000)

    make = Steps._make

    def endless(self: Steps, connection: sqlite3.Connection, *given: Any) -> None:
        if not self._is_private:
            make(self, connection, *given)
            return
        connection.execute(
            "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c"
        ).fetchall()

    monkeypatch.setattr(Steps, "_make", endless)
    path = tmp_path / "run.db"
    with hang_guard():
        done = ingest(find_source(str(example("four-equal-writers").folder)), path, library)
    assert [notice.slug for notice in done.warnings] == ["no-views-saved"]
    with closing(sqlite3.connect(path)) as connection:
        found = "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'wb_*'"
        assert connection.execute(found).fetchone() == (0,)


def test_what_the_cache_says_may_be_damaged(small: Path, library: Library, own_cache: Path) -> None:
    engine = SqliteEngine(small, "run.db", library, ["wb_stall", "wb_wait"])
    engine.rename(small)
    engine.close()
    (entry,) = own_cache.rglob("*.db")
    with closing(sqlite3.connect(entry)) as connection:
        connection.execute("INSERT INTO in_run VALUES (NULL), (x'ff'), (7), ('no_such_view')")
        connection.commit()
    with wbscope.open(small) as run:
        assert run._session.engine.given == {"wb_stall", "wb_wait"}
        assert run.query("stalls").rows
