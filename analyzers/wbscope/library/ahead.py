# SPDX-License-Identifier: Apache-2.0
"""Tables that another thread makes on a connection of its own before they are asked for."""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.errors import WbscopeError
from wbscope.library.database import open_database
from wbscope.library.definitions import Definition
from wbscope.library.guard import stoppable

__all__ = ["Ahead", "Ready", "has_second_cpu"]

# A table that is larger is not worth its memory: SQLite then says that the database is full.
_PAGE_BYTES = 8192
_MOST_PAGES = (64 << 20) // _PAGE_BYTES
_COUNTER = itertools.count()


@dataclass(frozen=True)
class Ready:
    """A table that is there, in a database in memory that connections of this process can attach.

    `elapsed_ns` is how long it took with all that it alone was made of.
    """

    uri: str
    schema: str
    elapsed_ns: int


class Ahead:
    """Tables of one run, in the making, each in a database of its own: no reader meets a writer.

    `users` are, of all that is `made`, those of `names` that need it, in their order: what only
    claimed tables need is not made here.
    Whatever goes wrong, they are not there: who asks for them makes them and meets the error.
    """

    def __init__(
        self,
        database: Path,
        shown: str,
        made: Iterable[Definition],
        names: Sequence[str],
        users: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._place = database, shown
        self._made = tuple(made)
        self._users = users or {}
        self._begun: set[str] = set()
        self._claimed: set[str] = set()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._is_stopped = False
        self._ready: dict[str, Ready] = {}
        self._told = {name: threading.Event() for name in names}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="wbscope-ahead", daemon=True)
        with contextlib.suppress(RuntimeError):  # no more threads
            self._thread.start()

    @property
    def names(self) -> list[str]:
        """What is being made, in this order."""
        return list(self._told)

    def table(self, name: str) -> Ready | None:
        """This one, once it is there."""
        if name not in self._told or self._is_stopped or self._thread.ident is None:
            return None
        self._told[name].wait()
        return self._ready.get(name)

    def claim(self, names: Sequence[str]) -> str | None:
        """The last of these that is not begun, and not needed here: from now on the caller's."""
        with self._lock:
            for name in reversed(names):
                users = set(self._users.get(name, [name])) - self._claimed
                if name in self._told and name not in self._begun and users == {name}:
                    self._claimed.add(name)
                    return name
        return None

    def stop(self) -> None:
        """Let go of what is being made, and of what nobody has attached."""
        self._is_stopped = True
        self._end.set()
        while self._thread.is_alive():
            if (connection := self._connection) is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.interrupt()
            self._thread.join(0.01)  # it may have been between two statements

    def _work(self) -> None:
        # KeyboardInterrupt: a signal has stopped the statement; the main thread hears of it, too.
        with contextlib.suppress(sqlite3.Error, WbscopeError, KeyboardInterrupt):
            try:
                connection, _ = open_database(*self._place)
                with contextlib.closing(connection):
                    self._make(connection)
                    # Such a database is gone with the last connection to it.
                    self._end.wait()
            finally:
                self._tell_all()

    def _make(self, connection: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.Error, WbscopeError), stoppable(connection):
            self._connection = connection
            try:
                started = time.monotonic_ns()
                for one in self._made:
                    if self._is_stopped:
                        return
                    if not self._begin(one.name):
                        continue
                    if one.is_table and one.name in self._told:
                        self._publish(connection, one, started)
                        started = time.monotonic_ns()
                    else:
                        for statement in one.statements:
                            connection.execute(statement)
            finally:
                self._connection = None
        self._tell_all()

    def _begin(self, name: str) -> bool:
        """Whether this is to be made; the table that it is for cannot be claimed any more."""
        with self._lock:
            users = self._users.get(name, [name])
            wanted = [user for user in users if user not in self._claimed]
            if wanted:
                self._begun |= {wanted[0], name}
            return bool(wanted)

    def _publish(self, connection: sqlite3.Connection, one: Definition, started: int) -> None:
        number = next(_COUNTER)
        schema = f"ahead_{number}"
        uri = f"file:/wbscope-{os.getpid()}-{number}?vfs=memdb"
        connection.execute("ATTACH ? AS " + schema, (uri,))
        connection.execute(f"PRAGMA {schema}.page_size = {_PAGE_BYTES}")
        connection.execute(f"PRAGMA {schema}.max_page_count = {_MOST_PAGES}")
        connection.execute("BEGIN")
        for statement in one.placed(schema):
            connection.execute(statement)
        connection.execute("COMMIT")
        connection.execute(f"CREATE TEMP VIEW {one.name} AS SELECT * FROM {schema}.{one.name}")
        self._ready[one.name] = Ready(uri, schema, time.monotonic_ns() - started)
        self._told[one.name].set()

    def _tell_all(self) -> None:
        for told in self._told.values():
            told.set()


def has_second_cpu() -> bool:
    """Whether two threads of this process can run at the same time."""
    return len(os.sched_getaffinity(0)) > 1
