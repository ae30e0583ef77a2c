# SPDX-License-Identifier: Apache-2.0
"""Tables that another thread makes on a connection of its own before they are asked for."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.errors import WbscopeError
from wbscope.library.database import open_database
from wbscope.library.definitions import Definition
from wbscope.library.guard import stoppable

__all__ = ["Ahead", "Ready", "has_second_cpu", "published"]

# A table that is larger is not worth its memory: SQLite then says that the database is full.
_PAGE_BYTES = 8192
_MOST_PAGES = (64 << 20) // _PAGE_BYTES
# SQLite attaches ten files, and no more: smaller ones are copied.
_FEW_PAGES = 16
# Of all tables of one thread.
_ALL_PAGES = (256 << 20) // _PAGE_BYTES
_COUNTER = itertools.count()
# How late a thread hears that nobody needs it any more.
_LOOK_SECONDS = 0.2


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

    `needs` has, of all that is `made`, what it is made of. What only claimed tables need is not
    made here; they themselves are read where their maker lends them.
    Whatever goes wrong, they are not there: who asks for them makes them and meets the error.
    A file that `only_grows` is being written by somebody who changes nothing that is read.
    """

    def __init__(
        self,
        database: Path,
        shown: str,
        made: Iterable[Definition],
        names: Sequence[str],
        needs: Mapping[str, Sequence[str]] | None = None,
        is_same: Callable[[], bool] = lambda: True,
        *,
        only_grows: bool = False,
    ) -> None:
        self._open = functools.partial(open_database, database, shown, only_grows=only_grows)
        self._is_same = is_same
        self._pid = os.getpid()
        self._made = tuple(made)
        self._needs = needs or {}
        self._users: tuple[int, dict[str, list[str]]] = -1, {}
        self._begun: set[str] = set()
        self._claimed: set[str] = set()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._is_stopped = False
        self._has_ended = False
        self._ready: dict[str, Ready] = {}
        self._attached: dict[str, Ready] = {}
        self._holders: list[sqlite3.Connection] = []
        self._free_pages = _ALL_PAGES
        self._lent: dict[str, Ready | None] = {}
        self._told = {name: threading.Event() for name in names}
        self._end = threading.Event()
        self._is_open = threading.Event()
        self._lent_holders: list[sqlite3.Connection] = []
        self._thread = threading.Thread(target=self._work, name="wbscope-ahead", daemon=True)

    def start(self) -> None:
        """Begin; whoever holds this can stop it, also where Ctrl-C comes just now."""
        with contextlib.suppress(RuntimeError):  # no more threads
            self._thread.start()

    def wait_until_open(self) -> None:
        """From then on it knows what tables the file has."""
        while not self._is_open.wait(_LOOK_SECONDS) and not self.has_ended:
            pass

    @property
    def names(self) -> list[str]:
        """What is being made, in this order."""
        return list(self._told)

    @property
    def has_ended(self) -> bool:
        """Nothing more will be made; what is there can be read."""
        return self._has_ended or self._is_forked() or not self._thread.is_alive()

    def _is_forked(self) -> bool:
        """Whether this process is a fork of the one whose thread works."""
        return os.getpid() != self._pid

    def table(self, name: str, most_s: float | None = None) -> Ready | None:
        """This one, once it is there; None where it takes longer than `most_s`."""
        if name not in self._told or self._is_stopped or self._thread.ident is None:
            return None
        if self._is_forked():
            return None
        self._told[name].wait(most_s)
        return self._ready.get(name)

    def claim(self, names: Sequence[str], *, can_lend: bool = True) -> tuple[str, bool] | None:
        """The last of these that is not begun: from now on the caller's.

        One that is not needed here comes first. The caller will lend() one that is (True), if
        it can.
        """
        if self.has_ended:
            return None  # nobody to share with
        with self._lock:
            if self._has_ended:
                return None
            gone = self._begun | self._claimed
            free = [name for name in reversed(names) if name in self._told and name not in gone]
            if not free:
                return None
            alone = [name for name in free if self._users_of(name) == [name]]
            if not alone and not can_lend:
                return None
            name = (alone or free)[0]
            self._claimed.add(name)
            return name, not alone

    def lend(
        self, name: str, ready: Ready | None, holder: sqlite3.Connection | None = None
    ) -> None:
        """A claimed table is there; None: it could not be made where others can read it.

        The holder is what keeps it there, if the lender does not; it is closed by stop().
        """
        if holder is not None:
            self._lent_holders.append(holder)
        self._lent[name] = ready
        self._told[name].set()

    def _users_of(self, name: str) -> list[str]:
        """The tables to be made here that need this, in their order."""
        claimed, users = self._users
        if claimed != len(self._claimed):
            users = {}
            for table in self._told:
                for part in self._parts(table) if table not in self._claimed else ():
                    users.setdefault(part, []).append(table)
            self._users = len(self._claimed), users
        # Sources have no entry: any table may read them.
        return users.get(name, [] if name in self._needs else [name])

    def _parts(self, table: str, ready: Container[str] = ()) -> set[str]:
        """This and all that it is made of, but for what claimed and ready ones are made of."""
        found = {table}
        waiting = [table]
        while waiting:
            name = waiting.pop()
            if name == table or (name not in self._claimed and name not in ready):
                new = [need for need in self._needs.get(name, ()) if need not in found]
                found.update(new)
                waiting += new
        return found

    def stop(self) -> None:
        """Let go of what is being made, and of what nobody has attached."""
        self.abandon()
        self._end.set()
        self._tell_all()
        while not self._is_forked() and self._thread.is_alive():
            self.abandon()  # it may have been between two statements
            self._thread.join(0.01)
        for holder in self._lent_holders:
            holder.close()

    def abandon(self) -> None:
        """As stop(), without a wait or a lock, for garbage is collected anywhere."""
        self._is_stopped = True
        if (connection := self._connection) is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.interrupt()

    def _work(self) -> None:
        # KeyboardInterrupt: a signal has stopped the statement; the main thread hears of it, too.
        with contextlib.suppress(sqlite3.Error, WbscopeError, KeyboardInterrupt):
            try:
                connection, _ = self._open()
                self._is_open.set()
                with contextlib.closing(connection):
                    if not self._is_same():
                        return  # another file was put in the place of the run
                    self._make(connection)
                    # Such a database is gone with the last connection to it.
                    while not self._is_stopped:
                        self._end.wait(_LOOK_SECONDS)
            finally:
                self._ready.clear()  # gone with the connections
                for holder in self._holders:
                    holder.close()
                self._tell_all()

    def _make(self, connection: sqlite3.Connection) -> None:
        try:
            with contextlib.suppress(sqlite3.Error, WbscopeError, KeyboardInterrupt):
                self._connection = connection
                self._make_all(connection)
        finally:
            self._connection = None
            self._has_ended = True
            self._tell_all()

    def _make_all(self, connection: sqlite3.Connection) -> None:
        started = time.monotonic_ns()
        borrowed: set[str] = set()
        left = list(self._made)
        while left and not self._is_stopped:
            one = left.pop(self._first_free(left))
            if not self._begin(one.name):
                continue
            waited = time.monotonic_ns()
            for name in self._to_borrow(one) - borrowed:
                if not self._borrow(connection, name):
                    return
                borrowed.add(name)
            started += time.monotonic_ns() - waited
            # Not around all of it: time that is waited is not that of a question.
            with stoppable(connection):
                if one.is_table and one.name in self._told:
                    self._publish(connection, one, started)
                    started = time.monotonic_ns()
                else:
                    for statement in one.statements:
                        connection.execute(statement)

    def _first_free(self, left: Sequence[Definition]) -> int:
        """The place of the first that waits for no claimed table; 0 where all of them wait.

        What is made of one that waits, waits too.
        """
        with self._lock:
            waiting = {name for name in self._claimed if not self._told[name].is_set()}
            for place, one in enumerate(left if waiting else ()):
                if not one.is_table or not waiting & self._parts(one.name):
                    return place
                waiting.add(one.name)
        return 0

    def _to_borrow(self, one: Definition) -> set[str]:
        """The claimed tables that this is made of; a view reads nothing yet."""
        with self._lock:
            return self._parts(one.name) & self._claimed if one.is_table else set()

    def _borrow(self, connection: sqlite3.Connection, name: str) -> bool:
        """Whether a claimed table can be read here, once it is there."""
        while not self._told[name].wait(_LOOK_SECONDS):
            if self._is_stopped:
                return False
        ready = self._lent.get(name)
        if ready is None or self._is_stopped:
            return False
        if not self._make_room(connection):
            return False
        connection.execute(f"ATTACH ? AS {ready.schema}", (ready.uri,))
        connection.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {ready.schema}.{name}")
        self._attached[name] = ready
        return True

    def _make_room(self, connection: sqlite3.Connection) -> bool:
        """Whether one more can be attached; one that nothing here is made of any more is let go."""
        attached = "SELECT count(*) FROM pragma_database_list WHERE seq > 1"
        limit = connection.getlimit(sqlite3.SQLITE_LIMIT_ATTACHED)
        if connection.execute(attached).fetchone()[0] < limit:
            return True
        with self._lock:
            later = [name for name in self._told if name not in {*self._ready, *self._claimed}]
            needed = {part for name in later for part in self._parts(name, self._ready)}
        for name in self._attached.keys() - needed:
            ready = self._attached.pop(name)
            if name in self._ready:  # one that is lent has a connection already
                self._holders.append(sqlite3.connect(ready.uri, uri=True))
            connection.execute(f"DROP VIEW temp.{name}")
            connection.execute(f"DETACH {ready.schema}")
            return True
        return False

    def _begin(self, name: str) -> bool:
        """Whether this is to be made; the table that it is for cannot be claimed any more."""
        with self._lock:
            if name in self._claimed:
                return False
            wanted = self._users_of(name)
            if wanted:
                self._begun |= {wanted[0], name}
            return bool(wanted)

    def _publish(self, connection: sqlite3.Connection, one: Definition, started: int) -> None:
        if not self._make_room(connection):
            # For what is made of it here; whoever asks for it makes it.
            for statement in one.statements:
                connection.execute(statement)
            self._told[one.name].set()
            return
        ready = published(connection, one, started, self._free_pages)
        (pages,) = connection.execute(f"PRAGMA {ready.schema}.page_count").fetchone()
        self._free_pages -= pages
        self._ready[one.name] = ready
        if pages <= _FEW_PAGES:
            self._copy(connection, one, ready)
        else:
            self._attached[one.name] = ready
        self._told[one.name].set()

    def _copy(self, connection: sqlite3.Connection, one: Definition, ready: Ready) -> None:
        """Have a small table of one's own, and its place for others."""
        self._holders.append(sqlite3.connect(ready.uri, uri=True))
        create, _, *indexes = one.statements
        connection.execute(f"DROP VIEW temp.{one.name}")
        connection.execute(create)
        connection.execute(f"INSERT INTO {one.name} SELECT * FROM {ready.schema}.{one.name}")
        for index in indexes:
            connection.execute(index)
        connection.execute(f"DETACH {ready.schema}")

    def _tell_all(self) -> None:
        for told in self._told.values():
            told.set()


def published(
    connection: sqlite3.Connection, one: Definition, started_ns: int, most: int = _MOST_PAGES
) -> Ready:
    """Make a table that other connections of this process can read; here its name is a view.

    Raises: sqlite3.Error, also where it is too large for that.
    """
    number = next(_COUNTER)
    schema = f"ahead_{number}"
    uri = f"file:/wbscope-{os.getpid()}-{number}?vfs=memdb"
    connection.execute("ATTACH ? AS " + schema, (uri,))
    try:
        connection.execute(f"PRAGMA {schema}.page_size = {_PAGE_BYTES}")
        connection.execute(f"PRAGMA {schema}.max_page_count = {max(min(most, _MOST_PAGES), 1)}")
        connection.execute("BEGIN")
        for statement in one.placed(schema):
            connection.execute(statement)
        connection.execute("COMMIT")
        connection.execute(f"CREATE TEMP VIEW {one.name} AS SELECT * FROM {schema}.{one.name}")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        with contextlib.suppress(sqlite3.Error):
            connection.execute(f"DETACH {schema}")
        raise
    return Ready(uri, schema, time.monotonic_ns() - started_ns)


def has_second_cpu() -> bool:
    """Whether two threads of this process can run at the same time."""
    return len(os.sched_getaffinity(0)) > 1
