# SPDX-License-Identifier: Apache-2.0
"""The library's views and tables on one connection: what is there, and what makes the rest."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterable, Sequence

from wbscope.library.ahead import Ready, published
from wbscope.library.definitions import Definition, Definitions, index_statement, table_columns
from wbscope.library.engine import PARAMS
from wbscope.library.kept import KeptTables
from wbscope.library.library import Library

__all__ = ["Objects"]

# A small table of another thread is copied: SQLite attaches ten files, and no more.
_FEW_PAGES = 16


class Objects:
    """What is there with the filters of `definitions`, made here, kept, or of another thread.

    Raises: sqlite3.Error in every method that makes or drops something.
    """

    def __init__(
        self, connection: sqlite3.Connection, definitions: Definitions, kept: KeptTables
    ) -> None:
        self.connection = connection
        self.definitions = definitions
        self.kept = kept
        self.made: dict[str, bool] = {}  # objects, and whether they are tables
        self.taken: dict[str, str] = {}  # tables in a database of a thread, and its schema
        self.given = kept.attach(connection, frozenset(), self.made)

    @property
    def library(self) -> Library:
        """What the objects are of."""
        return self.definitions.library

    def there(self) -> frozenset[str]:
        """The tables: what one was made of is not asked for again."""
        return self.given | {name for name, is_table in self.made.items() if is_table}

    def missing(self, tables: Sequence[str], needs: Iterable[str]) -> list[str]:
        """Of these tables, what has to be made for that."""
        asked = frozenset(self.library.closure(needs, self.there()))
        return [name for name in tables if name in asked]

    def make(
        self, names: Iterable[str], tables: Iterable[str], later: frozenset[str] = frozenset()
    ) -> None:
        """Make what is not there yet, but for `later` and all that needs it."""
        there = self.there() | later
        materialize = frozenset(self.library.closure(tables, there))
        made = self.definitions.statements(self.connection, names, materialize, there)
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
            self.run(statements)
            if wanted.is_table:
                self.kept.note(wanted.name, time.monotonic_ns() - started)
            self.made[wanted.name] = wanted.is_table

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
        self.kept.forget(self.connection, stale)
        tables = [name for name in self.made if name in stale and self.made[name]]
        self.run(
            [
                *(_dropped(name, is_view=name in self.taken) for name in tables),
                *(_dropped(name) for name in views if name in self.made),
            ]
        )
        for name in (*tables, *views):
            self.made.pop(name, None)
            if schema := self.taken.pop(name, None):
                self.connection.execute(f"DETACH {schema}")
        self.definitions = definitions
        self.given = self.kept.attach(self.connection, filtered, self.made)

    def drop_kept(self) -> None:
        """The tables of an earlier session are damaged: they will be made again."""
        self.given = frozenset()
        self.kept.drop(self.connection)

    def take(self, name: str, ready: Ready) -> bool:
        """Let this name be a table that another thread has made; False where no more can be."""
        try:
            self.connection.execute(f"ATTACH ? AS {ready.schema}", (ready.uri,))
        except sqlite3.Error:  # no more can be attached
            return False
        dropped = [_dropped(name)] if name in self.made else []
        try:
            (pages,) = self.connection.execute(f"PRAGMA {ready.schema}.page_count").fetchone()
            # The last place is for a file to keep tables in.
            if is_copied := pages <= _FEW_PAGES or not self.room():
                made = self._copying(name, ready.schema)
            else:
                made = [f"CREATE TEMP VIEW {name} AS SELECT * FROM {ready.schema}.{name}"]
            self.run([*dropped, *made])
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute(f"DETACH {ready.schema}")
            raise
        if is_copied:
            self.connection.execute(f"DETACH {ready.schema}")
        else:
            self.taken[name] = ready.schema
        self.kept.note(name, ready.elapsed_ns)
        self.made[name] = True
        return True

    def publish(self, name: str) -> Ready:
        """Make a table, and what it is made of, where another thread can read it, too."""
        file = self.library.files[name]
        self.make(file.needs, file.needs)
        one = self._definition(name)
        if name in self.made:
            self.run([_dropped(name)])
            del self.made[name]
        ready = published(self.connection, one, time.monotonic_ns())
        self.taken[name] = ready.schema
        self.made[name] = True
        self.kept.note(name, ready.elapsed_ns)
        return ready

    def copy(self, name: str) -> None:
        """Have a copy of a published table, and its place for others."""
        schema = self.taken[name]
        self.run([_dropped(name), *self._copying(name, schema)])
        self.connection.execute(f"DETACH {self.taken.pop(name)}")

    def room(self) -> int:
        """How many more tables of another thread can be attached."""
        attached = self.connection.execute(
            "SELECT count(*) FROM pragma_database_list WHERE seq > 1"
        )
        # One place for the tables of an earlier session, if there will be any.
        free = self._limit() - attached.fetchone()[0] - (not self.kept.is_attached)
        return max(int(free), 0)

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

    def _limit(self) -> int:
        return self.connection.getlimit(sqlite3.SQLITE_LIMIT_ATTACHED)

    def _definition(self, name: str) -> Definition:
        """What makes this table of what is there."""
        kept = frozenset([name])
        made = self.definitions.statements(self.connection, kept, kept, self.there())
        (one,) = (one for one in made if one.name == name)
        return one

    def _copying(self, name: str, schema: str) -> list[str]:
        """What copies a table of another database."""
        file = self.library.files[name]
        return [
            f"CREATE TEMP TABLE {name} ({', '.join(table_columns(file))})",
            f"INSERT INTO {name} SELECT * FROM {schema}.{name}",
            *(index_statement(file, columns, "temp.") for columns in file.indexes),
        ]


def _dropped(name: str, *, is_view: bool = True) -> str:
    return f"DROP {'VIEW' if is_view else 'TABLE'} temp.{name}"
