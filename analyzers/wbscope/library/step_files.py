# SPDX-License-Identifier: Apache-2.0
"""Files of the cache that keep the steps of a run for later sessions."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote as quote_uri

from wbscope.base.cache import entry_of, trim_cache, used
from wbscope.base.errors import SetupError
from wbscope.library.definitions import saved_table, table_columns
from wbscope.library.engine import PARAMS
from wbscope.library.library import Library

# Each session that makes steps adds two. SQLite attaches ten, and a session needs two for itself.
_SLOTS = 6
# The table that names the steps that ingest has saved in the run's own file.
_IN_RUN = "in_run"
# What the schemas of the files begin with.
KEPT = "kept_"


class KeptSteps:
    """Steps of one run, without filters, for one library and version of SQLite.

    The files say, too, which tables this library has saved in the run's own file, which alone
    could be anybody's: `saved` are those that were put there just now.
    """

    def __init__(self, library: Library, saved: Iterable[str] = ()) -> None:
        self._library = library
        self._saved = frozenset(saved)
        self._files: list[Path] = []
        self._slots: list[Path] = []

    def rename(self, database: Path, meta: dict[str, Any]) -> None:
        """Keep the steps of this file."""
        self._slots = []
        with contextlib.suppress(SetupError, OSError):
            versions = ("steps", self._library.digest(), sqlite3.sqlite_version)
            about = [*versions, *_state(database), sorted(map(repr, meta.items()))]
            folder = os.path.dirname(os.path.realpath(database))
            if folder != os.path.realpath(entry_of(about).parent):
                about += _times(database)
            self._slots = [entry_of([*about, number]) for number in range(_SLOTS)]

    @property
    def place(self) -> Path | None:
        """A file of the cache, beside which others can be made; None without a cache."""
        return self._slots[0] if self._slots else None

    @property
    def is_to_tell(self) -> bool:
        """Whether no file says yet which steps ingest has saved."""
        return bool(self._saved) and not self._files

    def path_of(self, schema: str) -> Path | None:
        """The file that attach() has given this name."""
        is_kept = schema.startswith(KEPT)
        return self._files[int(schema.removeprefix(KEPT))] if is_kept else None

    def attach(self, connection: sqlite3.Connection) -> dict[str, str]:
        """The steps that are kept, and the schema of each.

        Raises: sqlite3.Error, of a damaged file.
        """
        there: dict[str, str] = {}
        saved = self._saved
        self._files = [path for path in self._slots if used(path)]
        for number, path in enumerate(self._files):
            schema = f"{KEPT}{number}"
            try:
                connection.execute(f"ATTACH ? AS {schema}", (uri_of(path, "ro"),))
            except sqlite3.OperationalError:
                continue  # another command has just trimmed it
            tables = self._tables_of(connection, schema)
            if _IN_RUN in tables:
                saved |= _names(connection, schema)
            there |= dict.fromkeys((n for n in tables if n in self._library.files), schema)
        saved = frozenset(n for n in saved & self._library.files.keys() if n != PARAMS)
        self._saved = saved if self._is_as_saved(connection, saved) else frozenset()
        return there | dict.fromkeys(self._saved, "main")

    def keep(self, made: Sequence[Path], folder: Path) -> None:
        """Move these files, which nobody reads or writes, to the cache; `folder` is for more.

        Raises: sqlite3.Error, OSError.
        """
        made = list(made)
        if self.is_to_tell:
            made.insert(0, folder / "saved.db")
            _tell(made[0], self._saved)
        free = [path for path in self._slots if not os.path.lexists(path)]
        for path, slot in zip(made, free, strict=False):
            with contextlib.closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA journal_mode = DELETE")
            os.replace(path, slot)
        if made and self._slots:
            trim_cache(self._slots[0])

    def remove(self) -> None:
        """Files are damaged."""
        self._saved = frozenset()
        for path in self._files:
            path.unlink(missing_ok=True)

    def _is_as_saved(self, connection: sqlite3.Connection, saved: Collection[str]) -> bool:
        """Whether the run's own file has all these tables, each as this library makes it."""
        wanted = {name: saved_table(self._library.files[name]) for name in saved}
        select = "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table'"
        found = connection.execute(select).fetchall() if wanted else []
        return {name: sql for name, sql in found if name in saved} == wanted

    def _tables_of(self, connection: sqlite3.Connection, schema: str) -> list[str]:
        """What is kept; one byte of a column's name that has changed makes a file no database.

        Raises: sqlite3.DatabaseError.
        """
        select = f"SELECT name, sql FROM {schema}.sqlite_schema WHERE type = 'table'"
        rows = connection.execute(select).fetchall()
        for name, sql in rows:
            file = self._library.files.get(name)
            columns = ", ".join(table_columns(file)) if file is not None else ""
            if columns and sql != f"CREATE TABLE {name} ({columns})":
                raise sqlite3.DatabaseError(f"{name} has other columns than were kept")
        return [name for name, _ in rows]


def _tell(path: Path, saved: Iterable[str]) -> None:
    """Say which tables the run's own file has."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE {_IN_RUN} (name TEXT)")
        connection.executemany(f"INSERT INTO {_IN_RUN} VALUES (?)", ((n,) for n in sorted(saved)))


def _names(connection: sqlite3.Connection, schema: str) -> frozenset[str]:
    """Tables that are in the run's own file, as it is told there; no other value is a name."""
    rows = connection.execute(f"SELECT name FROM {schema}.{_IN_RUN}").fetchall()
    return frozenset(name for (name,) in rows if isinstance(name, str))


def _times(database: Path) -> list[int]:
    """When it was changed: ctime cannot be set back. Those of the cache tell of its use."""
    status = os.stat(database)
    return [status.st_mtime_ns, status.st_ctime_ns]


def _state(database: Path) -> list[Any]:
    """What changes when SQLite has written to the file."""
    real = os.path.realpath(database)
    if os.path.exists(f"{real}-wal"):
        raise FileExistsError(real)  # its header does not tell what is in the log
    status = os.stat(real)
    with open(real, "rb") as file:
        # With SQLite's counter of changes.
        return [real, status.st_ino, status.st_size, file.read(100).hex()]


def uri_of(path: Path, mode: str) -> str:
    """As ATTACH takes it; mode is ro or rwc."""
    return f"file:{quote_uri(os.fsencode(path))}?mode={mode}"
