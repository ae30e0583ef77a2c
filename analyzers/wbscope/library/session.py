# SPDX-License-Identifier: Apache-2.0
"""One database with one set of filters: runs canned queries and plain SQL."""

from __future__ import annotations

import difflib
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from wbscope.base.errors import InputError, InternalError, QueryError
from wbscope.base.result import Notice, Result, typed_columns, unique_names, unit_of
from wbscope.library.database import open_database, plain_tables, translate
from wbscope.library.definitions import Definitions
from wbscope.library.evidence import require_events
from wbscope.library.guard import check_one_select, reading_only, stoppable
from wbscope.library.kept import KeptTables
from wbscope.library.library import Library
from wbscope.library.params import Params, check_filters
from wbscope.library.sqlfile import Column

__all__ = ["Session"]

_WARNINGS = "wb_warning"
_Answer = TypeVar("_Answer")
# A user's own statement makes no longer text than this: zeroblob(), printf('%.*c').
_MOST_STATEMENT_BYTES = 64 << 20
_MOST_FILE_BYTES = 256 << 20
_OF_MAIN = re.compile(r"""\bmain\b["`\]\s]*\.\s*["`\[]?(\w+)""", re.IGNORECASE)
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR")


class Session:
    """Views are made when first needed and kept: a report shares them."""

    def __init__(self, path: Path, shown: str, library: Library, params: Params) -> None:
        self._library = library
        self._shown = shown
        self._params = params
        self._connection, self.recorded = open_database(path, shown)
        self._definitions = Definitions(library, self.recorded, params, shown)
        self._made: dict[str, bool] = {}  # objects, and whether they are tables
        filtered = bool(params.given())
        self._kept = KeptTables(path, self.recorded.meta, library, filtered=filtered)
        self._given = self._kept.attach(self._connection)

    def close(self) -> None:
        """Close the database; what took long to make is kept for another session."""
        self._kept.save(self._connection)
        self._connection.close()

    def query(self, name: str) -> Result:
        """Run a canned query after checking that its events were recorded."""
        file = self._library.query(name)
        require_events(file, self.recorded, self._shown, self._library.profiles)
        check_filters(file, self._params.filters())

        def ask() -> Result:
            self._make([*file.needs, _WARNINGS], materialize=file.needs)
            columns, rows = self._rows(file.select)
            return _result(name, columns, rows, self._warnings(name), file.columns)

        try:
            with stoppable(self._connection):
                return self._answer(ask)
        except sqlite3.Error as error:
            raise self._library_error(file.name, error) from error

    def warnings(self) -> tuple[Notice, ...]:
        """What holds for every number of this run: lost events, damage."""
        try:
            with stoppable(self._connection):
                self._make([_WARNINGS], materialize=[_WARNINGS])
                return self._warnings("*")
        except sqlite3.Error as error:
            raise self._library_error(_WARNINGS, error) from error

    def sql(self, text: str, limit_ns: int | None = None, most_rows: int | None = None) -> Result:
        """Run one SELECT of the user's, with all views of the library at hand.

        Of more than `most_rows` rows the first are given, and a warning.
        """
        check_one_select(text)
        # Views cost nothing until used; only those that the text may name are
        # worth turning into tables first.
        mentioned = [n for n in self._library.objects() if n in _words(text)]

        def ask() -> tuple[tuple[str, ...], list[tuple[Any, ...]], tuple[Notice, ...]]:
            self._make(self._library.objects(), materialize=mentioned)
            warnings = self._warnings("*")
            with self._reading_only(text), self._texts_up_to(_MOST_STATEMENT_BYTES):
                return *self._rows(text, most_rows), warnings

        try:
            with stoppable(self._connection, limit_ns):
                columns, rows, warnings = self._answer(ask)
        except sqlite3.Error as error:
            raise self._statement_error(error, text) from error
        if most_rows is not None and len(rows) > most_rows:
            rows = rows[:most_rows]
            told = f"only the first {most_rows} rows are here; add LIMIT, or write them to a file"
            warnings = (*warnings, Notice("cut-short", told))
        return _result("sql", columns, rows, warnings)

    @contextmanager
    def _texts_up_to(self, most_bytes: int) -> Iterator[None]:
        """Within, values may be longer than those of records."""
        before = self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most_bytes)
        try:
            yield
        finally:
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, before)

    @contextmanager
    def _reading_only(self, text: str) -> Iterator[None]:
        """Within, the statement can neither change anything nor run what is in the file."""
        find = """
            SELECT lower(name) FROM main.sqlite_schema
            WHERE type = 'view' OR (type = 'table' AND sql LIKE 'CREATE VIRTUAL %')
        """
        there = {name for (name,) in self._connection.execute(find)}
        # Views of the library hide those of the file, unless these are asked for as main.NAME.
        asked = {name.lower() for name in _OF_MAIN.findall(text)}
        foreign = there - ({name.lower() for name in self._made} - asked)
        with reading_only(self._connection, foreign) as refused:
            try:
                yield
            except sqlite3.Error as error:
                # A virtual table asks for more before its name is heard of.
                refused += [name for name in _words(text.lower()) if name in foreign]
                if not refused or not _is_denied(error):
                    raise
                raise QueryError(
                    "not-a-table",
                    "sql",
                    f"reads {refused[0]!r}, which is a view or virtual table of {self._shown}",
                    effect="nothing that a file brings along is run",
                    fix="read its tables, or the views of wbscope: .tables tells which",
                ) from error

    def tables(self) -> dict[str, str]:
        """The database's own tables, each with the statement that made it."""
        find = "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' ORDER BY name"
        try:
            with stoppable(self._connection):
                return dict(self._connection.execute(find).fetchall())
        except sqlite3.Error as error:
            raise translate(error, self._shown) from error

    def texts(self, names: Iterable[str]) -> dict[str, str]:
        """The texts of these files that lay beside the trace."""
        find = "SELECT text FROM main.sidecar_text WHERE name = ?"
        try:
            if "sidecar_text" not in self.tables():
                return {}  # a Perfetto trace has no files beside it
            with stoppable(self._connection):
                plain_tables(self._connection, self._shown, ["sidecar_text"])
            with stoppable(self._connection), self._texts_up_to(_MOST_FILE_BYTES):
                found = {name: self._connection.execute(find, (name,)).fetchone() for name in names}
        except sqlite3.Error as error:
            raise translate(error, self._shown) from error
        return {name: row[0] for name, row in found.items() if row is not None}

    def columns(self, table: str) -> list[tuple[str, str]]:
        """Name and type of each column of a table of the database."""
        find = "SELECT name, type FROM pragma_table_info(?, 'main')"
        try:
            with stoppable(self._connection):
                return self._connection.execute(find, (table,)).fetchall()
        except sqlite3.Error as error:
            raise translate(error, self._shown) from error

    def last_record(self) -> str | None:
        """What and where the last loaded record is, and how long after the one before it."""
        found = []
        try:
            with stoppable(self._connection):
                for event, table in self.recorded.tables.items():
                    if table is None:
                        continue
                    plain_tables(self._connection, self._shown, [table])
                    named = '"' + table.replace('"', '""') + '"'
                    find = f"SELECT ts, cpu, tid FROM main.{named} ORDER BY seq DESC LIMIT 2"
                    found += [(*row, event) for row in self._connection.execute(find)]
        except sqlite3.Error:
            return None  # another error is being told: this only adds to it
        found = sorted((row for row in found if isinstance(row[0], int)), key=lambda row: row[0])
        if len(found) < 2:
            return None
        ts, cpu, tid, event = found[-1]
        return (
            f"the last record: {event}, ts {ts}, cpu {cpu}, tid {tid},"
            f" {ts - found[-2][0]} ns after the one before it"
        )

    def statements(self, names: Iterable[str]) -> list[str]:
        """What makes these views on another connection to the same file."""
        try:
            with stoppable(self._connection):
                made = self._definitions.statements(
                    self._connection, names, frozenset(self._library.closure(names))
                )
        except sqlite3.Error as error:
            raise self._library_error("timeline", error) from error
        return [statement for definition in made for statement in definition.statements]

    def _answer(self, ask: Callable[[], _Answer]) -> _Answer:
        """Ask, and once more without the kept tables when those are damaged."""
        try:
            return ask()
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", None) or ""
            if not self._given or not name.startswith(_DAMAGED):
                raise
            self._given = frozenset()
            self._kept.drop(self._connection)
            return ask()

    def _make(self, names: Iterable[str], materialize: Iterable[str]) -> None:
        tables = frozenset(self._library.closure(materialize, self._given))
        made = self._definitions.statements(self._connection, names, tables, self._given)
        for wanted in made:
            is_table = self._made.get(wanted.name)
            if is_table or is_table == wanted.is_table:
                continue
            statements = list(wanted.statements)
            if is_table is not None:  # a view so far, which another question only mentioned
                statements.insert(0, f"DROP VIEW temp.{wanted.name}")
            started = time.monotonic_ns()
            self._all_or_none(statements)
            if wanted.is_table:
                self._kept.note(wanted.name, time.monotonic_ns() - started)
            self._made[wanted.name] = wanted.is_table

    def _all_or_none(self, statements: Iterable[str]) -> None:
        """One that is stopped by Ctrl-C leaves things as they were for the next question."""
        self._connection.execute("BEGIN")
        try:
            for statement in statements:
                self._connection.execute(statement)
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _rows(
        self, sql: str, most: int | None = None
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """All rows, or one more than `most`, which tells that there are more."""
        cursor = self._connection.execute(sql)
        columns = unique_names([column[0] for column in cursor.description or ()])
        return columns, cursor.fetchall() if most is None else cursor.fetchmany(most + 1)

    def _warnings(self, scope: str) -> tuple[Notice, ...]:
        rows = self._connection.execute(
            f"SELECT slug, message FROM {_WARNINGS} WHERE scope IN ('*', ?)", (scope,)
        )
        return tuple(Notice(slug, message) for slug, message in rows)

    def _library_error(self, name: str, error: sqlite3.Error) -> Exception:
        """SQL of our own that SQLite refuses is a bug; the rest is the file's."""
        told = translate(error, self._shown)
        if told.slug == "too-big":
            return InputError(
                "text-too-long",
                self._shown,
                f"holds texts longer than those of a record: {error}",
                fix="wbscope ingest TRACE.dat -o RUN.db --force    # if the database was changed",
            )
        if getattr(error, "sqlite_errorname", None) == "SQLITE_ERROR" and told.exit_code == 5:
            return InternalError("library-sql", name, f"{error}, on {self._shown} (a bug in sql/)")
        return told

    def _statement_error(self, error: sqlite3.Error, sql: str) -> Exception:
        text = str(error)
        code = getattr(error, "sqlite_errorname", None)
        if _is_denied(error):
            return QueryError(
                "read-only",
                "sql",
                "the statement would write, attach or load; sql only reads",
                fix="sqlite3 RUN.db    # on a copy, to change something",
            )
        if "one statement at a time" in text:
            return QueryError(
                "several-statements",
                "sql",
                "holds more than one statement, wanted one",
                fix="wbscope sql RUN -f FILE",
            )
        if code == "SQLITE_ERROR" or code is None:
            return QueryError(
                "sql-error",
                "sql",
                text,
                have=self._similar(text, sql),
                fix="wbscope sql RUN    # .tables and .schema NAME tell what there is",
            )
        return translate(error, self._shown)

    def _similar(self, message: str, sql: str) -> str | None:
        """Tables, or columns of the tables that it names, like the one that is missing."""
        missing = re.fullmatch(r"no such (table|column): (?:\w+\.)?(\w+)", message)
        if missing is None:
            return None
        names = [*self.tables(), *self._library.objects()]
        if missing[1] == "column":
            words = _words(sql)
            find = "SELECT name FROM pragma_table_info(?)"
            tables = [name for name in names if name in words]
            rows = (row for table in tables for row in self._connection.execute(find, (table,)))
            names = [row[0] for row in rows]
        return ", ".join(difflib.get_close_matches(missing[2], names, n=5)) or None


def _is_denied(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorname", None)
    return code == "SQLITE_AUTH" or any(t in str(error) for t in ("not authorized", "prohibited"))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _result(
    name: str,
    columns: tuple[str, ...],
    rows: list[tuple[Any, ...]],
    warnings: tuple[Notice, ...],
    header: tuple[Column, ...] = (),
) -> Result:
    units = {column: unit for column in columns if (unit := unit_of(column))}
    return Result(name, columns, units, rows, warnings, typed_columns(columns, rows, header))
