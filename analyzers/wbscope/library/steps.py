# SPDX-License-Identifier: Apache-2.0
"""The library's steps over one run: tables that are made once, by at most two workers.

A worker writes them into a file of its own, which all connections of the session attach; with the
session's end the files go to the cache, where later sessions find them. They are those without
filters. What `wbscope ingest` has saved in the run's own file is read there.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wbscope.base.errors import SetupError, WbscopeError
from wbscope.base.outputs import private_folder
from wbscope.base.watch import temp_limit
from wbscope.library.database import Recorded, open_database
from wbscope.library.definitions import Definitions
from wbscope.library.guard import stoppable
from wbscope.library.library import Library
from wbscope.library.params import Params, quote
from wbscope.library.step_files import KEPT, KeptSteps, uri_of

_WORKERS = 2
# What the names of the workers' files begin with.
_OWN = "steps_"
_PAGE_BYTES = 16384
_CACHE_KIB = 32768
# What took less time to make is not worth a file.
_WORTH_NS = 50_000_000
# How late a waiting thread looks whether it is wanted any more.
_LOOK_SECONDS = 0.2
# Errors of a file that is no database, or none any more.
DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR")


_sessions: weakref.WeakSet[Steps] = weakref.WeakSet()


@dataclass
class _Plan:
    """What is to be made, what is being made, and what is there; all under one lock."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    # A table is there in this schema of all connections.
    there: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, frozenset[str]] = field(default_factory=dict)  # and the steps it needs
    worth: dict[str, int] = field(default_factory=dict)
    urgent: set[str] = field(default_factory=set)
    doing: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    is_stopped: bool = False

    def next(self) -> str | None:
        """The step to be made now; None where there is none left for this worker."""
        with self.changed:
            while not self.is_stopped:
                left = self.left()
                if not left:
                    return None
                ready = [name for name in left if self.wanted[name] <= self.there.keys()]
                if ready:
                    name = max(ready, key=lambda n: (n in self.urgent, self.worth[n], n))
                    self.doing.add(name)
                    return name
                if not self.doing:  # they stand on one that cannot be made
                    self.failed |= left
                    self.changed.notify_all()
                    return None
                self.changed.wait(_LOOK_SECONDS)
            return None

    def left(self) -> set[str]:
        """What no worker has begun with."""
        return self.wanted.keys() - self.there.keys() - self.doing - self.failed

    def done(self, name: str, schema: str | None) -> None:
        """It is there, or cannot be made, nor what is made of it."""
        with self.changed:
            self.doing.discard(name)
            if schema is None:
                self._fail({name})
            else:
                self.there[name] = schema
            self.changed.notify_all()

    def lose(self, schema: str) -> None:
        """A file is gone, and its steps with it: who wants them makes them."""
        with self.changed:
            lost = {name for name, place in self.there.items() if place == schema}
            for name in lost:
                del self.there[name]
            self._fail(lost)
            self.changed.notify_all()

    def _fail(self, names: set[str]) -> None:
        self.failed |= names
        while new := {name for name in self.left() if self.wanted[name] & self.failed}:
            self.failed |= new


class Steps:
    """Steps of one run without filters; `saved` are in its own file, put there just now.

    With `is_private` the file will be another one soon: nothing is kept.
    """

    def __init__(
        self,
        database: Path,
        shown: str,
        library: Library,
        recorded: Recorded,
        saved: Iterable[str] = (),
        *,
        opened: tuple[int, int] | None = None,
        is_private: bool = False,
    ) -> None:
        """`opened` is what identity_of() said of the database before it was opened."""
        self.database = database
        self._shown = shown
        self._library = library
        self._recorded = recorded
        self._is_private = is_private
        self._kept = KeptSteps(library, saved)
        self._pid = os.getpid()  # SQLite's connections are for no fork
        self._opened = opened or identity_of(database)
        self._plan = _Plan()
        self._open = ExitStack()
        self._folder: Path | None = None
        self._threads: list[threading.Thread] = []
        self._connections: list[sqlite3.Connection] = []
        self._spent_ns = 0
        self._is_forgotten = False
        self._running = 0
        _sessions.add(self)
        if not is_private:
            self.rename(database, recorded.meta)

    def rename(self, database: Path, meta: dict[str, Any]) -> None:
        """The steps are of this file."""
        self.database = database
        self._kept.rename(database, meta)

    @property
    def is_worth_it(self) -> bool:
        """Whether workers can begin, and are worth it."""
        return (
            self._recorded.is_long
            and self._is_here
            and not self._plan.is_stopped
            # The file that is open is still the one that has its name.
            and identity_of(self.database) == self._opened
        )

    def is_step(self, name: str) -> bool:
        """Whether it can be a table that all sessions read."""
        file = self._library.files.get(name)
        if file is None:
            return False
        return (file.materialize and bool(file.columns)) or file.is_answer()

    def there(self) -> dict[str, str]:
        """The steps that can be read, and the schema of each."""
        if not self._is_here:
            return {}
        with self._plan.changed:
            return dict(self._plan.there)

    def begin(self, connection: sqlite3.Connection) -> None:
        """Attach what is kept.

        Raises: sqlite3.Error, of a damaged file.
        """
        self._plan.there |= self._kept.attach(connection)

    def want(self, names: Iterable[str], *, urgent: bool = False) -> list[str]:
        """These steps will be asked for, the urgent ones first; returns them in that order."""
        plan, names = self._plan, list(names)
        if not names or not self.is_worth_it:
            return []
        with plan.changed:
            new = [name for name in names if name not in plan.wanted]
            for name in new:
                plan.wanted[name] = self._needs(name)
            if new:
                self._weigh()
            if urgent:
                plan.urgent.update(names)
            there = sum(thread.is_alive() for thread in self._threads)
            missing = min(len(plan.left()), _WORKERS, len(os.sched_getaffinity(0))) - there
            plan.changed.notify_all()
        for _ in range(missing):
            self._start()
        return sorted(names, key=lambda name: -plan.worth[name])

    def wait(self, name: str, check: Callable[[], None] = lambda: None) -> str | None:
        """The schema that it is in, once it is there; None where it has to be made otherwise.

        Meanwhile `check` is called, which may raise.
        """
        plan = self._plan
        if not self._is_here:
            return None
        with plan.changed:
            while self._is_coming(name):
                check()
                plan.changed.wait(_LOOK_SECONDS)
            return plan.there.get(name)

    def _is_coming(self, name: str) -> bool:
        plan = self._plan
        return (
            name in plan.wanted
            and name not in plan.failed
            and name not in plan.there
            and not plan.is_stopped
            and any(thread.is_alive() for thread in self._threads)
        )

    def claim(self, name: str) -> bool:
        """Whether no worker has begun with it: none does from now on."""
        plan = self._plan
        if not self._is_here:
            return True
        with plan.changed:
            if name in plan.there or name in plan.doing:
                return False
            plan.wanted.pop(name, None)
            return True

    def attach(self, connection: sqlite3.Connection, schema: str) -> None:
        """Let this connection read a schema of there(), if it does not yet."""
        found = {row[1] for row in connection.execute("PRAGMA database_list")}
        if schema not in found:
            connection.execute(f"ATTACH ? AS {schema}", (uri_of(self._path_of(schema), "ro"),))

    def lose(self, schema: str) -> None:
        """A file is gone, and its steps with it: who wants them makes them."""
        self._plan.lose(schema)

    def statements(self, wanted: Collection[str]) -> tuple[list[str], frozenset[str]]:
        """What lets a program read those of these that are there, and which they are."""
        there = {name: schema for name, schema in self.there().items() if name in wanted}
        made = []
        for schema in sorted(set(there.values()) - {"main"}):
            path = self._path_of(schema)
            made.append(f"ATTACH {quote(str(path))} AS {schema}")
        made += [step_view(name, schema) for name, schema in sorted(there.items())]
        return made, frozenset(there)

    def drop(self, connection: sqlite3.Connection) -> None:
        """Forget what is damaged: nothing is read from files any more."""
        self.stop()
        with self._plan.changed:
            self._plan.there.clear()
        # Each that has a file of ours, also of an attach() that failed half-way.
        for _, schema, _ in connection.execute("PRAGMA database_list").fetchall():
            if schema.startswith((_OWN, KEPT)):
                with contextlib.suppress(sqlite3.Error):
                    connection.execute(f"DETACH {schema}")
        self._kept.remove()

    def abandon(self) -> None:
        """No more is made; without a wait or a lock, for garbage is collected anywhere."""
        self._plan.is_stopped = True
        for connection in tuple(self._connections):
            with contextlib.suppress(sqlite3.Error):
                connection.interrupt()

    def stop(self) -> None:
        """No more is made; what is there can be read."""
        self.abandon()
        if self._is_here:
            for thread in self._threads:
                while thread.is_alive():
                    self.abandon()  # it was between two statements
                    thread.join(0.01)

    def forget(self) -> None:
        """As close(), of a session that is dropped; the last worker to end removes its files."""
        if not self._is_here:
            return
        self._is_forgotten = True
        self.abandon()
        if not any(thread.is_alive() for thread in self._threads):
            self._open.close()

    def close(self, *, keep: bool = True) -> None:
        """Once no connection reads them: let later sessions find them."""
        if not self._is_here:
            return
        self.stop()
        try:
            if keep and self._kept.place is not None:
                used = sorted(set(self._plan.there.values())) if self._spent_ns >= _WORTH_NS else []
                made = [self._path_of(schema) for schema in used if schema.startswith(_OWN)]
                if made or self._kept.is_to_tell:
                    with contextlib.suppress(sqlite3.Error, OSError, SetupError):
                        self._kept.keep(made, self._made_folder())
        finally:
            self._open.close()

    @property
    def _is_here(self) -> bool:
        """Whether this is no fork: SQLite's connections, locks and threads are not for those."""
        return os.getpid() == self._pid

    def _needs(self, name: str) -> frozenset[str]:
        """The steps that it reads, by itself or by views."""
        found, seen, waiting = set(), set(), list(self._library.files[name].needs)
        while waiting:
            need = waiting.pop()
            if need in seen:
                continue
            seen.add(need)
            if self.is_step(need):
                found.add(need)
            else:
                waiting += self._library.files[need].needs
        return frozenset(found)

    def _weigh(self) -> None:
        """A step is worth the time of the longest chain that begins with it."""
        wanted, worth = self._plan.wanted, self._plan.worth
        worth.clear()
        for name in reversed(self._library.closure(wanted)):
            if name in wanted:
                worth[name] = worth.get(name, 0) + max(self._library.files[name].cost, 1)
                for need in wanted[name]:
                    worth[need] = max(worth.get(need, 0), worth[name])

    def _start(self) -> None:
        try:
            self._made_folder()
        except (OSError, SetupError):
            self._plan.is_stopped = True  # no room for steps: who asks makes what they need
            return
        for number in range(_WORKERS):
            if number < len(self._threads) and self._threads[number].is_alive():
                continue
            thread = threading.Thread(
                target=self._work, args=(f"{_OWN}{number}",), name="wbscope-steps", daemon=True
            )
            # First: whatever comes then, it is waited for.
            self._threads[number : number + 1] = [thread]
            with contextlib.suppress(RuntimeError):  # no more threads
                thread.start()
            return

    def _made_folder(self) -> Path:
        if self._folder is None:
            place = self._kept.place
            with contextlib.suppress(SetupError):
                if place is not None:
                    self._folder = self._open.enter_context(private_folder(place))
        if self._folder is None:
            # The folder of who writes the file is private, and goes with it.
            shared = Path(tempfile.gettempdir(), "wbscope-steps")
            beside = self.database if self._is_private else shared
            self._folder = self._open.enter_context(private_folder(beside))
        return self._folder

    def _work(self, schema: str) -> None:
        """Make steps as long as there are some; runs in a thread of its own."""
        with self._plan.changed:
            self._running += 1
        # Whatever goes wrong here, who asks meets it, too; KeyboardInterrupt: a signal has stopped
        # the statement.
        try:
            with contextlib.suppress(Exception, KeyboardInterrupt):
                connection, recorded = open_database(self.database, self._shown)
                with contextlib.closing(connection):
                    if identity_of(self.database) != self._opened:
                        return  # another file was put in the place of the run
                    self._connections.append(connection)
                    try:
                        self._make_all(connection, recorded, schema)
                    finally:
                        self._connections.remove(connection)
        finally:
            with self._plan.changed:
                self._running -= 1
                is_last = self._running == 0
                self._plan.changed.notify_all()
            if is_last and self._is_forgotten:
                self._open.close()

    def _make_all(self, connection: sqlite3.Connection, recorded: Recorded, schema: str) -> None:
        path = self._path_of(schema)
        connection.execute(f"ATTACH ? AS {schema}", (uri_of(path, "rwc"),))
        most_pages = temp_limit() // (_WORKERS * _PAGE_BYTES)
        for pragma in (
            f"page_size = {_PAGE_BYTES}",
            "journal_mode = WAL",  # others read it meanwhile
            "synchronous = OFF",
            "wal_autocheckpoint = 0",
            f"cache_size = -{_CACHE_KIB}",
            f"max_page_count = {max(most_pages, 1)}",
        ):
            connection.execute(f"PRAGMA {schema}.{pragma}")
        definitions = Definitions(self._library, recorded, Params(), self._shown)
        views: set[str] = set()
        while (name := self._plan.next()) is not None:
            began = time.monotonic_ns()
            is_made = False
            try:
                with (
                    contextlib.suppress(sqlite3.Error, WbscopeError),
                    stoppable(connection, is_stopped=lambda: self._plan.is_stopped),
                ):
                    self._make(connection, definitions, name, schema, views)
                    is_made = True
            finally:
                self._plan.done(name, schema if is_made else None)
            with self._plan.changed:
                self._spent_ns += time.monotonic_ns() - began

    def _make(
        self,
        connection: sqlite3.Connection,
        definitions: Definitions,
        name: str,
        schema: str,
        views: set[str],
    ) -> None:
        """Make a step, with the views that it is made of, of which `views` are there."""
        there = self.there()
        for need in self._plan.wanted[name] - views:
            self.attach(connection, there[need])
            connection.execute(step_view(need, there[need]))
            views.add(need)
        for one in definitions.statements(connection, [name], frozenset([name]), there):
            if one.name == name:
                connection.execute("BEGIN")
                try:
                    for statement in one.placed(schema):
                        connection.execute(statement)
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            elif one.name not in views:
                for statement in one.statements:
                    connection.execute(statement)
                views.add(one.name)

    def _path_of(self, schema: str) -> Path:
        return self._kept.path_of(schema) or self._made_folder() / f"{schema}.db"


def step_view(name: str, schema: str) -> str:
    """What lets a step be read under its name, which hides a table of the file so named."""
    return f"CREATE TEMP VIEW {name} AS SELECT * FROM {schema}.{name}"


def _close_all() -> None:
    """Sessions that nobody has closed leave no files."""
    for one in tuple(_sessions):
        one.close(keep=False)


atexit.register(_close_all)


def identity_of(path: Path) -> tuple[int, int] | None:
    """Which file has this name now."""
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None
