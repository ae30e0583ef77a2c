# SPDX-License-Identifier: Apache-2.0
"""The engine SQLite: views over a run database, made when first needed."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from wbscope.base.errors import InputError, InternalError, WbscopeError
from wbscope.base.result import unique_names
from wbscope.library.ahead import Ahead, has_second_cpu, published
from wbscope.library.database import Recorded, open_database, translate
from wbscope.library.definitions import Definitions, index_statement, table_columns
from wbscope.library.engine import PARAMS, Rows, Script
from wbscope.library.guard import stoppable
from wbscope.library.kept import DAMAGED, KeptTables
from wbscope.library.library import Library
from wbscope.library.params import Params

__all__ = ["SqliteEngine"]

_Answer = TypeVar("_Answer")
# Sorts of a few ten thousand rows stay in memory.
_CACHE_KIB = 16384
_PAGE_BYTES = 8192
# A small table of another thread is copied: SQLite attaches ten files, and no more.
_FEW_PAGES = 16
# With fewer records, another connection takes longer than it saves.
_MANY_RECORDS = 1 << 18


class SqliteEngine:
    """An Engine. What does not depend on the filters that change stays as it was made."""

    def __init__(self, database: Path, shown: str, library: Library) -> None:
        self.database = database
        self.shown = shown
        self.library = library
        self.made: dict[str, bool] = {}  # objects, and whether they are tables
        self._given: frozenset[str] = frozenset()
        self._params: Params | None = None
        self._taken: dict[str, str] = {}  # tables made by another thread, and their schemas
        self._ahead: Ahead | None = None
        self._abandoning: weakref.finalize[..., SqliteEngine] | None = None
        self._is_shared = False
        self._open()

    @property
    def connection(self) -> sqlite3.Connection:
        """With the filters of the last `use()`."""
        return self._connection

    @property
    def facts(self) -> sqlite3.Connection:
        """The same: the run's database has all tables."""
        return self._connection

    @property
    def recorded(self) -> Recorded:
        """Which events were recorded, how many, and the run's meta data."""
        return self._recorded

    @property
    def given(self) -> frozenset[str]:
        """The tables that an earlier session has made and kept."""
        return self._given

    def use(self, params: Params) -> None:
        """Answer with these filters from now on."""
        if params == self._params:
            return
        if self._params is None:
            self.close()
            self._open()
        self._params = None  # no set of filters is in force if this fails
        try:
            self._change(params)
        except sqlite3.Error as error:
            raise self._library_error("filters", error) from error
        self._params = params

    def put(self, name: str, select: str) -> None:
        """Let this view be that SELECT, until other filters are used."""
        self._definitions.texts[name] = select
        if self.made.pop(name, None) is not None:
            self._connection.execute(f"DROP VIEW temp.{name}")

    def ahead(
        self, names: Iterable[str], needs: Iterable[str] | None = None, *, shared: bool = False
    ) -> Sequence[str]:
        """These tables will be asked for: begin with them on another connection, in this order."""
        files = [self.library.files[name] for name in names]
        tables = [file.name for file in files if file.materialize and file.columns]
        needs = tables if needs is None else list(needs)
        if not self.works_ahead or not self._missing(tables, needs):
            return ()
        try:
            with contextlib.suppress(sqlite3.Error, WbscopeError):  # told when they are asked for
                try:
                    with stoppable(self._connection):
                        self._take_ready()
                finally:
                    self._stop_ahead()
                if wanted := self._missing(tables, needs):
                    self._begin(wanted, shared)
                    return wanted
        except KeyboardInterrupt:
            self._params = None  # as in make()
            raise
        return ()

    @property
    def works_ahead(self) -> bool:
        """Whether another thread can begin with something now, and is worth it."""
        loaded = sum(count for _, count in self._recorded.counts.values())
        return (
            loaded >= _MANY_RECORDS
            and has_second_cpu()
            and os.getpid() == self._pid
            and not self._is_expecting()
            and self._is_same()
        )

    def _is_same(self) -> bool:
        """Whether the file that is open is still the one that has its name."""
        return _identity(self.database) == self._opened

    def _missing(self, tables: Sequence[str], needs: Iterable[str]) -> list[str]:
        """Of these tables, what has to be made for that."""
        asked = frozenset(self.library.closure(needs, self._there()))
        return [name for name in tables if name in asked]

    def _begin(self, wanted: Sequence[str], shared: bool) -> None:
        """Let another thread make these, in this order."""
        needed = frozenset(self.library.closure(wanted))
        made = self._definitions.statements(self._connection, wanted, needed)
        place: dict[str, int] = {}
        for table in wanted:
            for name in self.library.closure([table]):
                place.setdefault(name, len(place))
        made.sort(key=lambda one: place.get(one.name, -1))
        needs = {name: self.library.files[name].needs for name in place}
        database, opened = self.database, self._opened
        self._ahead = Ahead(
            database,
            self.shown,
            made,
            wanted,
            needs,
            is_same=lambda: _identity(database) == opened,
        )
        self._is_shared = shared
        # Of an engine that is dropped and not closed, the thread ends all the same.
        self._abandoning = weakref.finalize(self, self._ahead.abandon)
        self._ahead.start()

    def answer(
        self, about: str, names: Iterable[str], tables: Iterable[str], selects: Sequence[str]
    ) -> list[Rows]:
        """Make these views and give the rows of each SELECT."""

        def ask() -> list[Rows]:
            self.make(names, tables)
            return [self.rows(select) for select in selects]

        try:
            with stoppable(self._connection):
                return self.asked(ask)
        except sqlite3.Error as error:
            raise self._library_error(about, error) from error

    def script(
        self, names: Iterable[str], *, kept: bool = False, given: Collection[str] = ()
    ) -> Script:
        """What makes these views on another connection to the same file, but for those given.

        With `kept`, tables that took long to make are taken from where they are kept.
        """
        names = list(names)
        there = frozenset(given)
        ready: list[str] = []
        try:
            if kept:
                self._kept.save(self._connection)
                closure = frozenset(self.library.closure(names, there))
                ready, taken = self._kept.statements(closure, is_first=not there)
                there |= taken
            needed = frozenset(self.library.closure(names, there))
            with stoppable(self._connection):
                made = self._definitions.statements(self._connection, names, needed, there)
        except sqlite3.Error as error:
            raise self._library_error("timeline", error) from error
        statements = (statement for definition in made for statement in definition.statements)
        return Script((*ready, *statements), there | needed)

    def rest(self) -> None:
        """Read the file no more until the next question: its maker goes on to write."""
        self._stop_ahead()

    def rename(self, database: Path) -> None:
        """The file is whole and has this name: from now on tables are kept for it."""
        self.database = database
        self._kept.rename(database, self._recorded.meta)

    def close(self, *, keep: bool = True) -> None:
        """Close the database; what took long to make is kept for another session."""
        self._stop_ahead()
        if keep:
            self._kept.save(self._connection)
        self._connection.close()

    def asked(self, ask: Callable[[], _Answer]) -> _Answer:
        """Ask, and once more without the kept tables when those are damaged."""
        try:
            return ask()
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", None) or ""
            if not self._given or not name.startswith(DAMAGED):
                raise
            self._given = frozenset()
            self._kept.drop(self._connection)
            return ask()

    def make(self, names: Iterable[str], tables: Iterable[str]) -> None:
        """Make what is not there yet.

        Raises: sqlite3.Error, as `rows()` does.
        """
        names, tables = list(names), list(tables)
        try:
            while later := self._awaited(tables):
                if self._share(later):
                    continue
                # What needs none of them, before one is waited for.
                self._make(names, tables, frozenset(later))
                if not self._take(later[0]):
                    self._make([later[0]], [later[0]])
            self._make(names, tables)
        except KeyboardInterrupt:
            self._params = None  # it may come between any two steps: the next use() opens anew
            raise

    def _room(self) -> int:
        """How many more tables of another thread can be attached."""
        attached = self._connection.execute(
            "SELECT count(*) FROM pragma_database_list WHERE seq > 1"
        )
        # One place for the tables of an earlier session, if there will be any.
        free = self._limit() - attached.fetchone()[0] - (not self._kept.is_attached)
        return max(int(free), 0)

    def _limit(self) -> int:
        return self._connection.getlimit(sqlite3.SQLITE_LIMIT_ATTACHED)

    def _is_expecting(self) -> bool:
        """Whether something is made ahead, or soon will be, that has not been asked for yet."""
        if self._ahead is None or not self._is_shared or self._ahead.has_ended:
            return False
        return not self._there().issuperset(self._ahead.names)

    def _share(self, later: Sequence[str]) -> bool:
        """Make one of these that the other thread has not begun, and that needs none of them."""
        if self._ahead is None or not self._is_shared:
            return False
        others = frozenset(later)
        free = [name for name in later if others & set(self.library.closure([name])) == {name}]
        try:
            claimed = self._ahead.claim(free, can_lend=self._room() > 0)
            if claimed is None:
                return False
            name, is_needed = claimed
            if is_needed:
                self._lend(self._ahead, name)
            else:
                self._make([name], [name])
        except BaseException:
            self._stop_ahead()  # it would wait for what nobody makes
            raise
        return True

    def _awaited(self, tables: Iterable[str]) -> list[str]:
        """What is being made elsewhere, of all that is asked for."""
        if self._ahead is None:
            return []
        asked = self.library.closure(tables, self._there())
        return [name for name in self._ahead.names if name in asked]

    def _there(self) -> frozenset[str]:
        """What a table was made of is not asked for again."""
        return self._given | {name for name, is_table in self.made.items() if is_table}

    def _make(
        self, names: Iterable[str], tables: Iterable[str], later: frozenset[str] = frozenset()
    ) -> None:
        """But for `later` and all that needs it."""
        there = self._there() | later
        materialize = frozenset(self.library.closure(tables, there))
        made = self._definitions.statements(self._connection, names, materialize, there)
        waiting = set(later)
        for wanted in made:
            file = self.library.files.get(wanted.name)
            if file is not None and not waiting.isdisjoint(file.needs):
                waiting.add(wanted.name)
                continue
            is_table = self.made.get(wanted.name)
            if is_table or is_table == wanted.is_table:
                continue
            statements = list(wanted.statements)
            if is_table is not None:  # a view so far, which another question only mentioned
                statements.insert(0, _dropped(wanted.name))
            started = time.monotonic_ns()
            self._all_or_none(statements)
            if wanted.is_table:
                self._kept.note(wanted.name, time.monotonic_ns() - started)
            self.made[wanted.name] = wanted.is_table

    def _take_ready(self) -> None:
        """What was made ahead for nobody yet, before its maker goes."""
        if self._ahead is not None and self._ahead.has_ended:
            for name in self._ahead.names:
                if name not in self._there():
                    self._take(name)

    def _take(self, name: str) -> bool:
        """Let this name be the table that was made ahead, if it was."""
        ready = self._ahead.table(name) if self._ahead else None
        if ready is None:
            return False
        try:
            self._connection.execute(f"ATTACH ? AS {ready.schema}", (ready.uri,))
        except sqlite3.Error:  # no more can be attached
            return False
        dropped = [_dropped(name)] if name in self.made else []
        try:
            (pages,) = self._connection.execute(f"PRAGMA {ready.schema}.page_count").fetchone()
            # The last place is for a file to keep tables in.
            if is_copied := pages <= _FEW_PAGES or not self._room():
                made = self._copying(name, ready.schema)
            else:
                made = [f"CREATE TEMP VIEW {name} AS SELECT * FROM {ready.schema}.{name}"]
            self._all_or_none([*dropped, *made])
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute(f"DETACH {ready.schema}")
            raise
        if is_copied:
            self._connection.execute(f"DETACH {ready.schema}")
        else:
            self._taken[name] = ready.schema
        self._kept.note(name, ready.elapsed_ns)
        self.made[name] = True
        return True

    def _copying(self, name: str, schema: str) -> list[str]:
        """What copies a table of another database."""
        file = self.library.files[name]
        return [
            f"CREATE TEMP TABLE {name} ({', '.join(table_columns(file))})",
            f"INSERT INTO {name} SELECT * FROM {schema}.{name}",
            *(index_statement(file, columns, "temp.") for columns in file.indexes),
        ]

    def _lend(self, other: Ahead, name: str) -> None:
        """Make a table where the other thread, which left it to us, can read it, too."""
        ready = holder = None
        try:
            file = self.library.files[name]
            self._make(file.needs, file.needs)
            kept = frozenset([name])
            made = self._definitions.statements(self._connection, kept, kept, self._there())
            (one,) = (one for one in made if one.name == name)
            if name in self.made:
                self._all_or_none([_dropped(name)])
                del self.made[name]
            ready = published(self._connection, one, time.monotonic_ns())
            self._taken[name] = ready.schema
            self.made[name] = True
            self._kept.note(name, ready.elapsed_ns)
            if not self._room():  # the last place is for others, as in _take()
                holder = sqlite3.connect(ready.uri, uri=True)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_FULL" and "too many attached" not in str(error):
                raise
        finally:
            other.lend(name, ready, holder)
        if ready is not None and holder is not None:
            self._all_or_none([_dropped(name), *self._copying(name, ready.schema)])
            self._connection.execute(f"DETACH {self._taken.pop(name)}")
        if ready is None:
            self._make([name], [name])

    def rows(self, sql: str, most: int | None = None) -> Rows:
        """All rows, or one more than `most`, which tells that there are more."""
        cursor = self._connection.execute(sql)
        columns = unique_names([column[0] for column in cursor.description or ()])
        return columns, cursor.fetchall() if most is None else cursor.fetchmany(most + 1)

    def _open(self) -> None:
        """Without filters."""
        self._opened = _identity(self.database)
        self._pid = os.getpid()  # SQLite's connections are for no fork
        self._connection, self._recorded = open_database(self.database, self.shown)
        # Of temporary tables; the run's own file keeps what it has.
        self._connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        for schema in ("main", "temp"):
            self._connection.execute(f"PRAGMA {schema}.cache_size = -{_CACHE_KIB}")
        self._params = Params()
        self._definitions = Definitions(self.library, self._recorded, self._params, self.shown)
        self._unfiltered = self._definitions.filters(self._connection)
        self.made = {}
        self._taken = {}
        self._kept = KeptTables(self.database, self._recorded.meta, self.library)
        self._given = self._kept.attach(self._connection, frozenset(), self.made)

    def _change(self, params: Params) -> None:
        """Drop what is no longer so; of the rest, a view looks at what is there when it is read."""
        definitions = replace(self._definitions, params=params, texts={})
        row, before = (d.filters(self._connection) for d in (definitions, self._definitions))
        views = [PARAMS, *self._definitions.texts]
        stale = self.library.depending(_differing(row, before))
        filtered = self.library.depending(_differing(row, self._unfiltered))
        if self._ahead is not None and not stale.isdisjoint(self._ahead.names):
            self._stop_ahead()
        self._kept.forget(self._connection, stale)
        tables = [name for name in self.made if name in stale and self.made[name]]
        self._all_or_none(
            [
                *(_dropped(name, is_view=name in self._taken) for name in tables),
                *(_dropped(name) for name in views if name in self.made),
            ]
        )
        for name in (*tables, *views):
            self.made.pop(name, None)
            if schema := self._taken.pop(name, None):
                self._connection.execute(f"DETACH {schema}")
        self._definitions = definitions
        self._given = self._kept.attach(self._connection, filtered, self.made)

    def _stop_ahead(self) -> None:
        if self._ahead is not None:
            self._ahead.stop()
            self._ahead = None
        if self._abandoning is not None:
            self._abandoning.detach()

    def _all_or_none(self, statements: Iterable[str]) -> None:
        """One that is stopped by Ctrl-C leaves things as they were for the next question."""
        try:
            self._connection.execute("BEGIN")
            for statement in statements:
                self._connection.execute(statement)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _library_error(self, name: str, error: sqlite3.Error) -> Exception:
        """SQL of our own that SQLite refuses is a bug; the rest is the file's."""
        told = translate(error, self.shown)
        if told.slug == "too-big":
            return InputError(
                "text-too-long",
                self.shown,
                f"holds texts longer than those of a record: {error}",
                fix="wbscope ingest TRACE.dat -o RUN.db --force    # if the database was changed",
            )
        if getattr(error, "sqlite_errorname", None) == "SQLITE_ERROR" and told.exit_code == 5:
            return InternalError("library-sql", name, f"{error}, on {self.shown} (a bug in sql/)")
        return told


def _identity(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


def _differing(row: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [name for name in {**row, **other} if row.get(name) != other.get(name)]


def _dropped(name: str, *, is_view: bool = True) -> str:
    return f"DROP {'VIEW' if is_view else 'TABLE'} temp.{name}"
