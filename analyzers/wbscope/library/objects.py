# SPDX-License-Identifier: Apache-2.0
"""The library's views and tables on one connection: what is there, and what makes the rest."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterable, Sequence

from wbscope.library.definitions import Definitions
from wbscope.library.engine import PARAMS
from wbscope.library.guard import check_limit
from wbscope.library.library import Library
from wbscope.library.steps import Steps, step_view

__all__ = ["Objects"]


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
