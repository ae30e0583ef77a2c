# SPDX-License-Identifier: Apache-2.0
"""Tables of the library that are there already: kept in the cache, or in the run's own file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote as quote_uri

from wbscope.base.cache import entry_of, trim_cache, used
from wbscope.base.errors import SetupError
from wbscope.library.definitions import index_statement, saved_table, table_columns
from wbscope.library.engine import PARAMS
from wbscope.library.library import Library
from wbscope.library.params import quote

__all__ = ["DAMAGED", "KeptTables"]

# Tables made faster than this are made again; larger ones cost more to copy.
_SLOW_NS = 50_000_000
_MOST_ROWS = 1 << 20
# Of a new file: half of the time of SQLite's default of 4 KiB.
_PAGE_BYTES = 16384

_BUSY_MS = 5000  # as Python's sqlite3 has it
# Errors of a file that is no database, or none any more.
DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR")
_SCHEMA = "kept"
_NEW = "kept_new"
# Names of tables that are in the run's own file: its ingest has saved them there.
_IN_RUN = "in_run"


class KeptTables:
    """A database beside the run's own, in the cache folder, for one library and SQLite.

    Its tables are as they are without filters: with filters in force, those that depend on them
    neither go in nor come out. It is a cache: whatever goes wrong with it, the tables are made
    again.
    It says, too, which tables this library has saved in the run's own file, for that file alone
    could be anybody's: `saved` are those that were put there just now.
    """

    def __init__(
        self,
        database: Path,
        meta: dict[str, Any],
        library: Library,
        saved: Iterable[str] = (),
    ) -> None:
        self._library = library
        self._in_run = frozenset(saved)
        self._is_told = not self._in_run
        self._filtered: frozenset[str] = frozenset()
        self.is_attached = False
        self._slow: list[str] = []
        self._saved: set[str] = set()
        self._views: list[str] = []
        self._entry: Path | None = None
        self.rename(database, meta)

    def rename(self, database: Path, meta: dict[str, Any]) -> None:
        """It is this file that the tables are of."""
        self._entry = None
        with contextlib.suppress(SetupError, OSError):
            versions = ("tables", self._library.digest(), sqlite3.sqlite_version)
            about = [*versions, *_identity(database), sorted(meta.items())]
            folder = os.path.dirname(os.path.realpath(database))
            if folder != os.path.realpath(entry_of(about).parent):
                about += _times(database)
            self._entry = entry_of(about)

    def attach(
        self, connection: sqlite3.Connection, filtered: frozenset[str], there: Container[str]
    ) -> frozenset[str]:
        """The tables that can be read, each as a view, which hides a table of the file so named.

        `filtered` are those that depend on the filters now in force; `there` is made already.
        """
        self._filtered = filtered
        try:
            for schema, names in self._found(connection):
                for name in names:
                    if self._is_usable(name) and name not in there and name not in self._views:
                        connection.execute(_view(name, schema))
                        self._views.append(name)
            return frozenset(self._views)
        except sqlite3.Error as error:
            if (getattr(error, "sqlite_errorname", None) or DAMAGED[0]).startswith(DAMAGED):
                self.drop(connection)
            return frozenset(self._views)

    def _found(self, connection: sqlite3.Connection) -> list[tuple[str, Iterable[str]]]:
        """The tables of each schema."""
        found: list[tuple[str, Iterable[str]]] = []
        if self._entry is not None and (self.is_attached or used(self._entry)):
            if not self.is_attached:
                connection.execute(f"ATTACH ? AS {_SCHEMA}", (_uri(self._entry, "ro"),))
                self.is_attached = True
            tables = self._tables_of(connection, _SCHEMA)
            if _IN_RUN in tables:
                self._in_run |= _names(connection, _SCHEMA)
            found.append((_SCHEMA, tables))
        if not self._is_as_saved(connection):
            self._in_run = frozenset()
        return [*found, ("main", sorted(self._in_run))]

    def _is_as_saved(self, connection: sqlite3.Connection) -> bool:
        """Whether the run's own file has all these tables, each as this library makes it."""
        wanted = {n: saved_table(f) for n in self._in_run if (f := self._library.files.get(n))}
        select = "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table'"
        found = connection.execute(select).fetchall() if wanted else []
        return {name: sql for name, sql in found if name in self._in_run} == wanted

    def drop(self, connection: sqlite3.Connection) -> None:
        """Forget what is damaged."""
        # First, for SQLite reads a damaged schema with any statement.
        with contextlib.suppress(sqlite3.Error):
            connection.execute(f"DETACH {_SCHEMA}")
        self.is_attached = False
        while self._views:
            with contextlib.suppress(sqlite3.Error):
                connection.execute(f"DROP VIEW temp.{self._views.pop()}")
        self._in_run, self._is_told = frozenset(), True
        if self._entry is not None:
            self._entry.unlink(missing_ok=True)

    def note(self, name: str, elapsed_ns: int) -> None:
        """A table has been made in so much time."""
        if elapsed_ns >= _SLOW_NS and name not in self._filtered:
            self._slow.append(name)

    def forget(self, connection: sqlite3.Connection, names: frozenset[str]) -> None:
        """These will not be there any more: keep what is not kept yet, and drop the views."""
        if not names.isdisjoint(self._slow):
            self.save(connection)
        self._slow = [name for name in self._slow if name not in names]
        for name in names.intersection(self._views):
            connection.execute(f"DROP VIEW temp.{name}")
            self._views.remove(name)

    def save(self, connection: sqlite3.Connection) -> None:
        """Copy what was slow; all of it or nothing."""
        if self._entry is None or (self._is_told and not self._slow):
            return
        # Beside what is read from: that stays even if another process has cleared the cache.
        try:
            with contextlib.suppress(sqlite3.Error, OSError):
                connection.execute("PRAGMA busy_timeout = 100")
                connection.execute(f"ATTACH ? AS {_NEW}", (_uri(self._entry, "rwc"),))
                connection.execute(f"PRAGMA {_NEW}.page_size = {_PAGE_BYTES}")
                # Not IMMEDIATE, which locks what is read from, too: the file of both.
                connection.execute("BEGIN")
                for name in self._worth_keeping():
                    self._copy(connection, name)
                if not self._is_told:
                    self._tell(connection)
                connection.execute("COMMIT")
                self._is_told = True
                self._saved.update(self._slow)
                self._slow.clear()
                trim_cache(self._entry)
        finally:
            # COMMIT fails while another process reads the file, and leaves the transaction open.
            with contextlib.suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            with contextlib.suppress(sqlite3.Error):
                connection.execute(f"DETACH {_NEW}")
            with contextlib.suppress(sqlite3.Error):
                connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")

    def statements(
        self, wanted: frozenset[str], *, is_first: bool = True
    ) -> tuple[list[str], frozenset[str]]:
        """What gives another connection the wanted tables that are kept, and which these are.

        One that was told before has the first in a schema of its own.
        """
        in_run = frozenset(filter(self._is_usable, self._in_run & wanted))
        made = [_view(name, "main") for name in sorted(in_run)]
        if self._entry is None or not used(self._entry):
            return made, in_run
        with contextlib.suppress(sqlite3.Error):
            with contextlib.closing(sqlite3.connect(_uri(self._entry, "ro"), uri=True)) as kept:
                found = self._tables_of(kept, "main")
                names = frozenset(filter(self._is_usable, found)) & wanted - in_run
            # Opened as the other connection's own file is: to be read only.
            schema = _SCHEMA if is_first else f"{_SCHEMA}_later"
            made.append(f"ATTACH {quote(str(self._entry))} AS {schema}")
            made += (_view(name, schema) for name in sorted(names))
            return made, in_run | names
        return made, in_run

    def _worth_keeping(self) -> list[str]:
        """What is slow, but for private steps that only other kept tables are made of."""
        kept = {*self._slow, *self._saved, *self._views}
        readers = [file.needs for name, file in self._library.files.items() if name not in kept]
        return [
            name
            for name in self._slow
            if not name.startswith("_") or any(name in needs for needs in readers)
        ]

    def _copy(self, connection: sqlite3.Connection, name: str) -> None:
        there = f"SELECT 1 FROM {_NEW}.sqlite_schema WHERE name = ?"
        if connection.execute(there, (name,)).fetchone():
            return  # another session was faster
        if connection.execute(f"SELECT count(*) FROM temp.{name}").fetchone()[0] > _MOST_ROWS:
            return
        file = self._library.files[name]
        columns = table_columns(file)
        if columns:
            connection.execute(_created(f"{_NEW}.{name}", columns))
        else:
            connection.execute(f"CREATE TABLE {_NEW}.{name} AS SELECT * FROM temp.{name} WHERE 0")
        connection.execute(f"INSERT INTO {_NEW}.{name} SELECT * FROM temp.{name}")
        for indexed in file.indexes:
            connection.execute(index_statement(file, indexed, f"{_NEW}."))

    def _tell(self, connection: sqlite3.Connection) -> None:
        """Say which tables the run's own file has."""
        connection.execute(f"CREATE TABLE IF NOT EXISTS {_NEW}.{_IN_RUN} (name TEXT)")
        connection.execute(f"DELETE FROM {_NEW}.{_IN_RUN}")
        rows = ((name,) for name in sorted(self._in_run))
        connection.executemany(f"INSERT INTO {_NEW}.{_IN_RUN} VALUES (?)", rows)

    def _tables_of(self, connection: sqlite3.Connection, schema: str) -> list[str]:
        """What is kept; one byte of a column's name that has changed makes a file no database.

        Raises: sqlite3.DatabaseError.
        """
        select = f"SELECT name, sql FROM {schema}.sqlite_schema WHERE type = 'table'"
        rows = connection.execute(select).fetchall()
        for name, sql in rows:
            file = self._library.files.get(name)
            columns = table_columns(file) if file is not None else []
            if columns and sql != _created(name, columns):
                raise sqlite3.DatabaseError(f"{name} has other columns than were kept")
        return [name for name, _ in rows]

    def _is_usable(self, name: str) -> bool:
        # The filters are those in force.
        return name in self._library.files and name not in self._filtered and name != PARAMS


def _names(connection: sqlite3.Connection, schema: str) -> frozenset[str]:
    """Tables that are in the run's own file, as it is told there; no other value is a name."""
    rows = connection.execute(f"SELECT name FROM {schema}.{_IN_RUN}").fetchall()
    return frozenset(name for (name,) in rows if isinstance(name, str))


def _view(name: str, schema: str) -> str:
    return f"CREATE TEMP VIEW {name} AS SELECT * FROM {schema}.{name}"


def _created(name: str, columns: Sequence[str]) -> str:
    return f"CREATE TABLE {name} ({', '.join(columns)})"


def _times(database: Path) -> list[int]:
    """When it was changed: ctime cannot be set back. Those of the cache tell of its use."""
    status = os.stat(database)
    return [status.st_mtime_ns, status.st_ctime_ns]


def _identity(database: Path) -> list[Any]:
    """What changes when SQLite has written to the file."""
    real = os.path.realpath(database)
    if os.path.exists(f"{real}-wal"):
        raise FileExistsError(real)  # its header does not tell what is in the log
    status = os.stat(real)
    with open(real, "rb") as file:
        # With SQLite's counter of changes.
        return [real, status.st_ino, status.st_size, file.read(100).hex()]


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote_uri(os.fsencode(path))}?mode={mode}"
