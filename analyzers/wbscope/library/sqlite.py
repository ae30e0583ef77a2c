# SPDX-License-Identifier: Apache-2.0
"""The SQLite engine, and the library's views and tables on its connection."""

from __future__ import annotations

import contextlib
import sqlite3
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from wbscope.base.errors import InputError, InternalError
from wbscope.base.result import unique_names
from wbscope.library.database import Recorded, open_database, translate
from wbscope.library.definitions import Definitions
from wbscope.library.engine import PARAMS, Rows, Script
from wbscope.library.guard import check_limit, stoppable
from wbscope.library.library import Library
from wbscope.library.params import Params
from wbscope.library.steps import DAMAGED, Steps, identity_of, step_view


class Objects:
    """What is there with the filters of `definitions`: made here, or steps of the run.

    Steps whose rows depend on the filters in force, and those of a small run, are temporary tables.
    Raises: sqlite3.Error in every method that makes or drops something.
    """

    def __init__(
        self, connection: sqlite3.Connection, definitions: Definitions, steps: Steps
    ) -> None:
        self.connection = connection
        self.definitions = definitions
        self.steps = steps
        self.made: dict[str, bool] = {}  # objects, and whether they are tables
        self.taken: set[str] = set()  # steps among them
        self._filtered: frozenset[str] = frozenset()
        # At exit Steps are closed, not forgotten.
        weakref.finalize(self, steps.forget).atexit = False

    @property
    def library(self) -> Library:
        """What the objects are of."""
        return self.definitions.library

    def given(self) -> frozenset[str]:
        """The steps that are there, of which no row depends on the filters in force."""
        return frozenset(self.steps.there()) - self._filtered

    def want(self, names: Iterable[str], *, urgent: bool = False) -> list[str]:
        """Let steps that these need be begun with; all of them, what takes longest first."""
        steps = filter(self._is_step, self.library.closure(names, self.taken))
        return self.steps.want(steps, urgent=urgent)

    def make(self, names: Iterable[str], tables: Iterable[str]) -> None:
        """Make what is not there yet."""
        names, tables = list(names), list(tables)
        self.take(names, tables)
        there = self._there()
        materialize = frozenset(self.library.closure(tables, there))
        made = self.definitions.statements(self.connection, names, materialize, there)
        for wanted in made:
            is_table = self.made.get(wanted.name)
            if is_table or is_table == wanted.is_table:
                continue
            self._replace(wanted.name, wanted.statements)
            self.made[wanted.name] = wanted.is_table

    def answered(self, query: str) -> str | None:
        """What reads the rows of a query that a worker has made or begun to make."""
        if not self._is_step(query) or self.steps.claim(query):
            return None
        schema = self._attached(query)
        if schema is None:
            return None
        return f"SELECT * FROM {schema}.{query}"

    def put(self, name: str, select: str) -> None:
        """Let this view be that SELECT from now on."""
        self.definitions.texts[name] = select
        if self.made.pop(name, None) is not None:
            self.connection.execute(f"DROP VIEW temp.{name}")

    def change(
        self, definitions: Definitions, stale: frozenset[str], filtered: frozenset[str]
    ) -> None:
        """Drop what is stale; of the rest, a view looks at what is there when it is read.

        `filtered` are those whose rows depend on filters that are in force from now on.
        """
        views = [PARAMS, *self.definitions.texts]
        tables = [name for name in self.made if name in stale and self.made[name]]
        self.run(
            [
                *(_dropped(name, is_view=name in self.taken) for name in tables),
                *(_dropped(name) for name in views if name in self.made),
            ]
        )
        for name in (*tables, *views):
            self.made.pop(name, None)
            self.taken.discard(name)
        self.definitions = definitions
        self._filtered = filtered

    def drop_steps(self) -> None:
        """Files of steps are damaged: they will be made again."""
        # First, for SQLite reads a damaged schema with any statement.
        self.steps.drop(self.connection)
        self.run([_dropped(name) for name in self.taken])
        for name in self.taken:
            del self.made[name]
        self.taken.clear()

    def _there(self) -> frozenset[str]:
        """The tables: what one was made of is not asked for again."""
        return frozenset(name for name, is_table in self.made.items() if is_table)

    def _is_step(self, name: str) -> bool:
        return self.steps.is_step(name) and name not in self._filtered

    def take(self, names: Sequence[str], tables: Sequence[str]) -> None:
        """Have all that is asked for stand on steps as far as there are any."""
        if not self.steps.is_worth_it and not self.steps.there():
            return
        self.want(tables, urgent=True)
        library, there = self.library, self._there()
        steps = set(filter(self._is_step, library.closure(tables)))
        steps |= self.given().intersection(library.closure([*names, *tables]))
        while True:
            between = library.closure([*names, *tables], there | steps)
            read = {*names, *tables, *(n for name in between for n in library.files[name].needs)}
            missing = [name for name in sorted(read & steps) if name not in self.taken]
            steps -= (failed := {name for name in missing if not self._take_step(name)})
            if not failed:
                return

    def _take_step(self, name: str) -> bool:
        if self.made.get(name):
            return True  # as a temporary table
        schema = self._attached(name)
        if schema is None:
            return False
        self._replace(name, [step_view(name, schema)])
        self.made[name] = True
        self.taken.add(name)
        return True

    def _attached(self, name: str) -> str | None:
        """Where a step can be read here, once it is there."""
        schema = self.steps.wait(name, lambda: check_limit(self.connection))
        if schema is None:
            return None
        try:
            self.steps.attach(self.connection, schema)
        except sqlite3.Error as error:
            if error.sqlite_errorname == "SQLITE_INTERRUPT":
                raise
            self.steps.lose(schema)  # somebody has cleared the cache
            return None
        return schema

    def _replace(self, name: str, statements: Iterable[str]) -> None:
        # A view so far, which another question only mentioned.
        self.run([*([_dropped(name)] if name in self.made else []), *statements])

    def run(self, statements: Iterable[str]) -> None:
        """All or none: what Ctrl-C stops leaves things as they were for the next question."""
        try:
            self.connection.execute("BEGIN")
            for statement in statements:
                self.connection.execute(statement)
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise


def _dropped(name: str, *, is_view: bool = True) -> str:
    return f"DROP {'VIEW' if is_view else 'TABLE'} temp.{name}"


_Answer = TypeVar("_Answer")
# Sorts of a few ten thousand rows stay in memory.
_CACHE_KIB = 16384
_PAGE_BYTES = 8192
_MOST_FETCHED = (1 << 31) - 1


class SqliteEngine:
    """An Engine. What does not depend on the filters that change stays as it was made.

    `saved` are tables of the library that were put into the file just now.
    """

    def __init__(
        self, database: Path, shown: str, library: Library, saved: Iterable[str] = ()
    ) -> None:
        self.database = database
        self.shown = shown
        self.library = library
        self._saved = frozenset(saved)
        self._params: Params | None = None
        self._open()

    @property
    def connection(self) -> sqlite3.Connection:
        """With the filters of the last `use()`."""
        return self._objects.connection

    @property
    def facts(self) -> sqlite3.Connection:
        """The same: the run's database has all tables."""
        return self._objects.connection

    @property
    def recorded(self) -> Recorded:
        """Which events were recorded, how many, and the run's meta data."""
        return self._recorded

    @property
    def made(self) -> dict[str, bool]:
        """The objects that are there, and whether they are tables."""
        return self._objects.made

    @property
    def given(self) -> frozenset[str]:
        """The steps that are there: kept in the cache, in the run's own file, or made just now."""
        return self._objects.given()

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
        self._objects.put(name, select)

    def expect(self, needs: Mapping[str, Iterable[str]]) -> list[str]:
        """These questions will be asked, each of these views: workers begin with the steps.

        Returns the questions in the order in which the last of their steps will be there.
        """
        with self._interruptible():
            steps = self._objects.want([*chain.from_iterable(needs.values()), *needs])
        if not steps:
            return list(needs)
        places = {name: place for place, name in enumerate(steps)}

        def last(question: str) -> tuple[int, int]:
            """Answers that workers begin with the dearest of come last, in the other order."""
            parts = self.library.closure(needs[question])
            cost = self.library.files[question].cost if question in places else 0
            return cost, max((places.get(name, -1) for name in parts), default=-1)

        return sorted(needs, key=last)

    def answered(self, query: str) -> str | None:
        """The SELECT of what workers have made of this query, if they have begun with it."""
        with (
            contextlib.suppress(sqlite3.Error),
            self._interruptible(),
            stoppable(self.connection),
        ):
            return self._objects.answered(query)
        return None  # whoever asks meets the error, too

    def answer(
        self, about: str, names: Iterable[str], tables: Iterable[str], selects: Sequence[str]
    ) -> list[Rows]:
        """Make these views and give the rows of each SELECT."""

        def ask() -> list[Rows]:
            self.make(names, tables)
            return [self.rows(select) for select in selects]

        try:
            with self._interruptible(), stoppable(self.connection):
                return self.asked(ask)
        except sqlite3.Error as error:
            raise self._library_error(about, error) from error

    def script(self, names: Iterable[str], *, kept: bool = False) -> Script:
        """What makes these views on another connection to the same file.

        With `kept`, steps are read from their files.
        """
        names = list(names)
        ready: list[str] = []
        there: frozenset[str] = frozenset()
        try:
            if kept:
                with self._interruptible(), stoppable(self.connection):
                    self._objects.take(names, names)
                ready, there = self._steps.statements(self.library.closure(names))
            needed = frozenset(self.library.closure(names, there))
            definitions = self._objects.definitions
            with stoppable(self.connection):
                made = definitions.statements(self.connection, names, needed, there)
        except sqlite3.Error as error:
            raise self._library_error("timeline", error) from error
        statements = (statement for definition in made for statement in definition.statements)
        return Script((*ready, *statements), there | needed)

    def rest(self) -> None:
        """Read the file no more until the next question: its maker goes on to write."""
        self._steps.stop()

    def rename(self, database: Path) -> None:
        """The file is whole and has this name: from now on tables are kept for it."""
        self.database = database
        meta = self._recorded.meta
        with contextlib.suppress(sqlite3.Error):  # its maker may have written to it since
            meta = dict(self.connection.execute("SELECT key, value FROM main.meta"))
        self._steps.rename(database, meta)

    def close(self, *, keep: bool = True) -> None:
        """Close the database; what took long to make is kept for another session."""
        self._steps.stop()
        self.connection.close()
        self._steps.close(keep=keep)

    def asked(self, ask: Callable[[], _Answer]) -> _Answer:
        """Ask, and once more without the kept tables when those are damaged."""
        try:
            return ask()
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", None) or ""
            if not self.given or not name.startswith(DAMAGED):
                raise
            self._objects.drop_steps()
            return ask()

    def make(self, names: Iterable[str], tables: Iterable[str]) -> None:
        """Make what is not there yet.

        Raises: sqlite3.Error, as `rows()` does.
        """
        with self._interruptible():
            self._objects.make(names, tables)

    def rows(self, sql: str, most: int | None = None) -> Rows:
        """All rows, or one more than `most`, which tells that there are more."""
        cursor = self.connection.execute(sql)
        columns = unique_names([column[0] for column in cursor.description or ()])
        # It takes a C int.
        most = None if most is None or most >= _MOST_FETCHED else most + 1
        return columns, cursor.fetchall() if most is None else cursor.fetchmany(most)

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C may come between any two steps: then the next use() opens the file anew."""
        try:
            yield
        except KeyboardInterrupt:
            self._params = None
            raise

    def _open(self) -> None:
        """Without filters."""
        # First: a file that is put in its place just now is another one then.
        opened = identity_of(self.database)
        connection, self._recorded = open_database(self.database, self.shown)
        # Of temporary tables; the run's own file keeps what it has.
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        for schema in ("main", "temp"):
            connection.execute(f"PRAGMA {schema}.cache_size = -{_CACHE_KIB}")
        self._params = Params()
        definitions = Definitions(self.library, self._recorded, self._params, self.shown)
        try:
            self._unfiltered = definitions.filters(connection)
        except sqlite3.Error as error:
            connection.close()
            raise self._library_error("filters", error) from error
        self._steps = Steps(
            self.database, self.shown, self.library, self._recorded, self._saved, opened=opened
        )
        self._objects = Objects(connection, definitions, self._steps)
        try:
            self._steps.begin(connection)
        except sqlite3.Error:
            self._steps.drop(connection)

    def _change(self, params: Params) -> None:
        """Let what does not depend on the filters that change stay as it is."""
        before = self._objects.definitions
        definitions = replace(before, params=params, texts={})
        row, row_before = (d.filters(self.connection) for d in (definitions, before))
        stale = self.library.depending(_differing(row, row_before))
        filtered = self.library.depending(_differing(row, self._unfiltered))
        self._objects.change(definitions, stale, filtered)

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


def _differing(row: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [name for name in {**row, **other} if row.get(name) != other.get(name)]
