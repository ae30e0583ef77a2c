# SPDX-License-Identifier: Apache-2.0
"""The library's views saved in a run's database, for whoever reads it without wbscope.

wbscope itself does not read them: a file may come from anybody, and its own library may be newer.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from wbscope.base.errors import InputError, QueryError
from wbscope.base.result import Notice
from wbscope.library.database import open_database, translate
from wbscope.library.definitions import Definitions, index_statement, table_columns
from wbscope.library.engine import FINDINGS
from wbscope.library.finding import Finding, findings_select
from wbscope.library.guard import stoppable
from wbscope.library.library import Library
from wbscope.library.params import Params
from wbscope.library.sqlfile import SqlFile

__all__ = ["save_views"]

# A view's step becomes a table where what it is made from has no more rows than this, in a trace
# with no more events than that: plain SQLite answers at once then, and the ingest of a large trace,
# which takes a second, does not take two.
_MOST_ROWS = 100_000
_MOST_EVENTS = 10 * _MOST_ROWS
# An overflow, a number twice that is a key, a text where a number is.
_OF_THE_VALUES = ("SQLITE_ERROR", "SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG")
_MOST_NS = 60_000_000_000
_HINT = re.compile(r"\bAS (?:NOT )?MATERIALIZED \(")

# The findings of the database whose path is given.
Find = Callable[[Path], Iterable[Finding]]


def save_views(database: Path, library: Library, shown: str, find: Find) -> list[Notice]:
    """Add the views, the private steps that they are made of, and the findings.

    The findings of a large trace take as long as its ingest, so they are left out: no wb_finding
    is better than one without rows.
    Nobody else uses the file yet. A trace whose values no question can be asked of, or would take
    too long, goes without, and a warning says so. Raises: SetupError.
    """
    try:
        _save(database, library, shown, find)
    except (InputError, QueryError) as error:
        return [
            Notice(
                "no-views-saved",
                f"the library's views are not in {shown}: {error.message}",
            )
        ]
    return []


def _save(database: Path, library: Library, shown: str, find: Find) -> None:
    reader, recorded = open_database(database, shown)
    events = sum(count for count, _ in recorded.counts.values())
    is_large = events > _MOST_EVENTS
    with contextlib.closing(reader), contextlib.closing(_writer(database)) as writer:
        definitions = Definitions(library, recorded, Params(), shown, schema="")
        if not is_large:
            # For a file that others get: where it lies here is not theirs to know.
            definitions.texts[FINDINGS] = findings_select(find(database), "RUN")
        counts = {event: loaded for event, (_, loaded) in recorded.counts.items()}
        names = library.closure(_named(library))
        steps = frozenset(need for name in names for need in library.files[name].needs)
        saving = _Saving(writer, definitions, counts, steps, is_large)
        try:
            with stoppable(writer, _MOST_NS):
                writer.execute("BEGIN")
                for name in names:
                    if not library.files[name].source_view and not (is_large and name == FINDINGS):
                        saving.save(library.files[name])
                saving.put_views()
                writer.execute("COMMIT")
        except sqlite3.Error as error:
            raise translate(error, shown, database) from error
        finally:
            if writer.in_transaction:
                writer.execute("ROLLBACK")


def _named(library: Library) -> Iterable[str]:
    """Views for everybody, and steps that several subjects share: warnings are one."""
    return (f.name for f in library.files.values() if f.kind == "view" and not f.is_private())


def _writer(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(database, isolation_level=None)
    # A file that is thrown away if this does not end well.
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -65536")  # KiB
    return connection


@dataclass
class _Saving:
    connection: sqlite3.Connection
    definitions: Definitions
    counts: dict[str, int]
    # What other views read: the rest is made once a question anyway.
    steps: frozenset[str]
    is_large: bool = False
    # Rows that a reader of each object goes through.
    rows: dict[str, int] = field(default_factory=dict)
    grounds: dict[str, bool] = field(default_factory=dict)
    # Views that are not in the file yet, and what makes them.
    views: dict[str, str] = field(default_factory=dict)

    def save(self, file: SqlFile) -> None:
        # SQLite before 3.35 knows no such word, and could not read the file at all.
        select = _HINT.sub("AS (", self.definitions.select(self.connection, file.name))
        read = sum(self._rows(need) for need in file.needs)
        self.rows[file.name] = read
        is_step = (file.materialize and not self.is_large) or self._is_ground(file.name)
        if is_step and file.name in self.steps and read <= _MOST_ROWS and self._table(file, select):
            count = f"SELECT count(*) FROM {file.name}"
            self.rows[file.name] = self.connection.execute(count).fetchone()[0]
            return
        create = f"CREATE VIEW {file.name} AS\n-- {_told(file)}\n{select}"
        if file.name in self.definitions.texts:
            self.connection.execute(create)  # names of the trace are in it: SQLite checks it
        else:
            self.views[file.name] = create

    def put_views(self) -> None:
        """What no table was made of: rows of the schema, as CREATE VIEW would leave them.

        SQLite parses each of its statements twice, which took a tenth of a large trace's ingest.
        """
        try:
            self.connection.execute("PRAGMA writable_schema = ON")
            self.connection.executemany(
                "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql)"
                " VALUES ('view', ?1, ?1, 0, ?2)",
                self.views.items(),
            )
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_ERROR":
                raise
            # An SQLite that is built to defend its schema.
            for create in self.views.values():
                self.connection.execute(create)
        finally:
            self.connection.execute("PRAGMA writable_schema = OFF")

    def _put(self, names: Iterable[str]) -> None:
        """Make the views among these, for a table that is made of them."""
        for name in self.definitions.library.closure(names):
            if create := self.views.pop(name, None):
                self.connection.execute(create)

    def _is_ground(self, name: str) -> bool:
        """What stands on no event is read by all, and SQLite would plan it again and again."""
        if name not in self.grounds:
            file = self.definitions.library.files[name]
            self.grounds[name] = not file.source_events and all(map(self._is_ground, file.needs))
        return self.grounds[name]

    def _rows(self, name: str) -> int:
        if name not in self.rows:
            self.rows[name] = self._raw_rows(self.definitions.library.files[name])
        return self.rows[name]

    def _raw_rows(self, file: SqlFile) -> int:
        if file.source_events:
            return sum(self.counts.get(event, 0) for event in file.source_events)
        find = "SELECT 1 FROM sqlite_schema WHERE name = ?"
        if self.connection.execute(find, (file.source_table,)).fetchone() is None:
            return 0
        found = self.connection.execute(f"SELECT count(*) FROM {file.source_table}").fetchone()
        return int(found[0])

    def _table(self, file: SqlFile, select: str) -> bool:
        """Whether it could be made of what this trace holds; if not, a view says why when asked."""
        if not file.columns:
            return False
        self._put(file.needs)
        columns = ",\n  ".join(table_columns(file))
        self.connection.execute(f"CREATE TABLE {file.name} (\n  -- {_told(file)}\n  {columns}\n)")
        try:
            self.connection.execute(f"INSERT INTO {file.name}\n{select}")
            for indexed in file.indexes:
                self.connection.execute(index_statement(file, indexed))
        except sqlite3.Error as error:
            if not error.sqlite_errorname.startswith(_OF_THE_VALUES):
                raise
            self.connection.execute(f"DROP TABLE {file.name}")
            return False
        return True


def _told(file: SqlFile) -> str:
    return f"{' '.join(file.summary.split())} One row: {file.grain}."
