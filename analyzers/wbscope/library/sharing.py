# SPDX-License-Identifier: Apache-2.0
"""Who makes which tables of a session: the one who asks, or another thread before that."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import weakref
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from wbscope.library.ahead import Ahead, has_second_cpu
from wbscope.library.definitions import Definition
from wbscope.library.engine import Rows
from wbscope.library.library import Library
from wbscope.library.objects import Objects
from wbscope.library.sqlfile import SqlFile

__all__ = ["Sharing", "identity_of"]

# With fewer records, another connection takes longer than it saves.
_MANY_RECORDS = 1 << 18
# What stands for all that is there before the first table.
_READY = "ready"
# What stands before the name of a query whose answer another thread makes.
_ANSWER = "answer_"


class Sharing:
    """The other thread of one connection's objects, if there is one.

    Raises: sqlite3.Error, where objects are made.
    """

    def __init__(
        self, objects: Objects, database: Path, shown: str, opened: tuple[int, int] | None
    ) -> None:
        """`opened` is what identity_of() said of the database before it was opened."""
        self.database = database
        self._objects = objects
        self._shown = shown
        self._opened = opened
        self._pid = os.getpid()  # SQLite's connections are for no fork
        self._ahead: Ahead | None = None
        self._tables: tuple[str, ...] = ()
        self._abandoning: weakref.finalize[..., Sharing] | None = None
        self._is_shared = False
        # Answers that nobody has asked for yet, and what they are made of.
        self._answers: dict[str, frozenset[str]] = {}

    @property
    def is_worth_it(self) -> bool:
        """Whether another thread can begin with something now, and is worth it."""
        loaded = sum(count for _, count in self._objects.definitions.recorded.counts.values())
        return (
            loaded >= _MANY_RECORDS
            and has_second_cpu()
            and os.getpid() == self._pid
            and not self._is_expecting()
            # The file that is open is still the one that has its name.
            and identity_of(self.database) == self._opened
        )

    def begin(
        self, wanted: Sequence[str], queries: Sequence[SqlFile] = (), *, shared: bool
    ) -> Sequence[str]:
        """Let another thread make these tables in this order, and then answers of queries.

        Only of those that need no other table: who asks may be making that, too. Returns the names.
        """
        library, definitions = self._objects.library, self._objects.definitions
        names = [*wanted, *(need for query in queries for need in query.needs)]
        # What an earlier session has made is read there, too.
        ready, there = self._objects.kept.statements(frozenset(library.closure(names)))
        needed = frozenset(library.closure(wanted, there))
        tables = {name for name, file in library.files.items() if file.materialize} - needed
        asked: dict[SqlFile, frozenset[str]] = {}
        for query in queries:
            parts = frozenset(library.closure(query.needs, there))
            if query.columns and tables.isdisjoint(parts):
                asked[query] = parts
        # Who asks comes last to those that wait for the last table.
        places = {name: number for number, name in enumerate(wanted)}
        last = {
            q: max((places.get(n, -1) for n in parts), default=-1) for q, parts in asked.items()
        }
        asked = {query: asked[query] for query in sorted(asked, key=lambda query: -last[query])}
        names = [*wanted, *(need for query in asked for need in query.needs)]
        made = definitions.statements(self._objects.connection, names, needed, there)
        made += map(_answering, asked)
        needs: dict[str, Sequence[str]] = {}
        for name in wanted:
            needs |= _parts(library, [name], there)
        # Each answer right after its own views: what is begun is for one answer.
        for query in asked:
            needs |= _parts(library, query.needs, there)
            needs[_ANSWER + query.name] = query.needs
        place = {name: number for number, name in enumerate(needs)}
        made.sort(key=lambda one: place.get(one.name, -1))
        made.insert(0, Definition(_READY, tuple(ready)))
        database, opened = self.database, self._opened
        self._ahead = Ahead(
            database,
            self._shown,
            made,
            [*wanted, *(_ANSWER + query.name for query in asked)],
            needs,
            is_same=lambda: identity_of(database) == opened,
        )
        self._tables = tuple(wanted)
        self._answers = {query.name: parts | {query.name} for query, parts in asked.items()}
        self._is_shared = shared
        # Of an engine that is dropped and not closed, the thread ends all the same.
        self._abandoning = weakref.finalize(self, self._ahead.abandon)
        self._ahead.start()
        return [*wanted, *self._answers]

    def stop(self) -> None:
        """Let go of the thread, and of what nobody has taken."""
        if self._ahead is not None:
            self._ahead.stop()
            self._ahead = None
            self._tables = ()
            self._answers = {}
        if self._abandoning is not None:
            self._abandoning.detach()

    def stop_for(self, stale: frozenset[str]) -> None:
        """stop(), if it makes some of these."""
        if not stale.isdisjoint(self._tables) or not all(
            map(stale.isdisjoint, self._answers.values())
        ):
            self.stop()

    def make(self, names: Iterable[str], tables: Iterable[str]) -> None:
        """Make what is not there yet, and take what the other thread makes."""
        names, tables = list(names), list(tables)
        while later := self._awaited(tables):
            if self._share(later):
                continue
            # What needs none of them, before one is waited for.
            self._objects.make(names, tables, frozenset(later))
            if not self._take(later[0]):
                self._objects.make([later[0]], [later[0]])
        self._objects.make(names, tables)

    def answer(self, query: str) -> Rows | None:
        """What this query says, where the other thread has begun with it: the caller does not.

        Raises: sqlite3.Error.
        """
        if self._ahead is None or self._answers.pop(query, None) is None:
            return None
        name = _ANSWER + query
        if self._ahead.claim([name]) is not None:
            return None
        ready = self._ahead.table(name)
        if ready is None:
            return None
        with contextlib.closing(sqlite3.connect(ready.uri, uri=True)) as connection:
            connection.text_factory = self._objects.connection.text_factory
            cursor = connection.execute(f"SELECT * FROM {name} ORDER BY rowid")
            return tuple(column[0] for column in cursor.description), cursor.fetchall()

    def take_ready(self) -> None:
        """What was made ahead for nobody yet, before its maker goes."""
        if self._ahead is not None and self._ahead.has_ended:
            for name in self._tables:
                if name not in self._objects.there():
                    self._take(name)

    def _is_expecting(self) -> bool:
        """Whether something is made ahead, or soon will be, that has not been asked for yet."""
        if self._ahead is None or not self._is_shared:
            return False
        if self._ahead.has_ended:
            # What could not be made is nobody's to wait for.
            for query in [q for q in self._answers if self._ahead.table(_ANSWER + q) is None]:
                del self._answers[query]
            return bool(self._answers)
        return bool(self._answers) or not self._objects.there().issuperset(self._tables)

    def _awaited(self, tables: Iterable[str]) -> list[str]:
        """What is being made elsewhere, of all that is asked for."""
        return self._objects.missing(self._tables, tables)

    def _take(self, name: str) -> bool:
        """Let this name be the table that was made ahead, if it was."""
        ready = self._ahead.table(name) if self._ahead else None
        return ready is not None and self._objects.take(name, ready)

    def _share(self, later: Sequence[str]) -> bool:
        """Make one of these that the other thread has not begun, and that needs none of them."""
        if self._ahead is None or not self._is_shared:
            return False
        closure = self._objects.library.closure
        others = frozenset(later)
        free = [name for name in later if others & set(closure([name])) == {name}]
        try:
            claimed = self._ahead.claim(free, can_lend=self._objects.room() > 0)
            if claimed is None:
                return False
            name, is_needed = claimed
            if is_needed:
                self._lend(self._ahead, name)
            else:
                self._objects.make([name], [name])
        except BaseException:
            self.stop()  # it would wait for what nobody makes
            raise
        return True

    def _lend(self, other: Ahead, name: str) -> None:
        """Make a table where the other thread, which left it to us, can read it, too."""
        ready = holder = None
        try:
            ready = self._objects.publish(name)
            if not self._objects.room():  # the last place is for others, as in Objects.take()
                holder = sqlite3.connect(ready.uri, uri=True)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_FULL" and "too many attached" not in str(error):
                raise
        finally:
            other.lend(name, ready, holder)
        if ready is not None and holder is not None:
            self._objects.copy(name)
        if ready is None:
            self._objects.make([name], [name])


def _parts(
    library: Library, names: Iterable[str], there: Container[str]
) -> dict[str, Sequence[str]]:
    """These and what they are made of, each with what it needs."""
    return {name: library.files[name].needs for name in library.closure(names, there)}


def _answering(query: SqlFile) -> Definition:
    """What puts its answer into a table, each value as it is: a type would change some."""
    name = _ANSWER + query.name
    columns = ", ".join(f'"{column.name}"' for column in query.columns)
    create = f"CREATE TEMP TABLE {name} ({columns})"
    return Definition(name, (create, f"INSERT INTO {name}\n{query.select}"), True)


def identity_of(path: Path) -> tuple[int, int] | None:
    """Which file has this name now."""
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None
