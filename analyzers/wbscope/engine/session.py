# SPDX-License-Identifier: Apache-2.0
"""One database with one set of filters: runs canned queries and plain SQL."""

from __future__ import annotations

import difflib
import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wbscope.engine.database import open_database, translate
from wbscope.engine.definitions import Definitions
from wbscope.engine.evidence import require_events
from wbscope.engine.guard import check_one_select, reading_only, stoppable
from wbscope.engine.library import Library
from wbscope.engine.params import Params
from wbscope.engine.result import Notice, Result, unique_names, unit_of
from wbscope.engine.sqlfile import SqlFile
from wbscope.errors import InternalError, QueryError, UsageError

__all__ = ["Session"]

_WARNINGS = "wb_warning"


class Session:
    """Views are made when first needed and kept: a report shares them."""

    def __init__(self, path: Path, shown: str, library: Library, params: Params) -> None:
        self._library = library
        self._shown = shown
        self._params = params
        self._connection, self.recorded = open_database(path, shown)
        self._definitions = Definitions(library, self.recorded, params)
        self._made: dict[str, bool] = {}  # objects, and whether they are tables

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def query(self, name: str) -> Result:
        """Run a canned query after checking that its events were recorded."""
        file = self._library.query(name)
        require_events(file, self.recorded, self._shown)
        self._check_filters(file)
        try:
            with stoppable(self._connection):
                self._make([*file.needs, _WARNINGS], materialize=file.needs)
                columns, rows = self._rows(file.select)
                warnings = self._warnings(name)
        except sqlite3.Error as error:
            raise self._library_error(file.name, error) from error
        return _result(name, columns, rows, warnings)

    def warnings(self) -> tuple[Notice, ...]:
        """What holds for every number of this run: lost events, damage."""
        try:
            with stoppable(self._connection):
                self._make([_WARNINGS], materialize=[_WARNINGS])
                return self._warnings("*")
        except sqlite3.Error as error:
            raise self._library_error(_WARNINGS, error) from error

    def sql(self, text: str, limit_ns: int | None = None) -> Result:
        """Run one SELECT of the user's, with all views of the library at hand."""
        check_one_select(text)
        # Views cost nothing until used; only those that the text may name are
        # worth turning into tables first.
        mentioned = [n for n in self._library.objects() if n in _words(text)]
        try:
            with stoppable(self._connection, limit_ns):
                self._make(self._library.objects(), materialize=mentioned)
                warnings = self._warnings("*")
                with reading_only(self._connection):
                    columns, rows = self._rows(text)
        except TimeoutError as error:
            raise QueryError(
                "time-limit",
                "sql",
                "the statement ran into its time limit and was stopped",
                fix="give a longer --timeout, or select less",
            ) from error
        except sqlite3.Error as error:
            raise self._statement_error(error) from error
        return _result("sql", columns, rows, warnings)

    def statements(self, names: Iterable[str]) -> list[str]:
        """What makes these views on another connection to the same file."""
        try:
            made = self._definitions.statements(
                self._connection, names, frozenset(self._library.closure(names))
            )
        except sqlite3.Error as error:
            raise self._library_error("timeline", error) from error
        return [statement for definition in made for statement in definition.statements]

    def _make(self, names: Iterable[str], materialize: Iterable[str]) -> None:
        tables = frozenset(self._library.closure(materialize))
        for wanted in self._definitions.statements(self._connection, names, tables):
            is_table = self._made.get(wanted.name)
            if is_table or is_table == wanted.is_table:
                continue
            if is_table is not None:  # a view so far, which another question only mentioned
                self._connection.execute(f"DROP VIEW temp.{wanted.name}")
            for statement in wanted.statements:
                self._connection.execute(statement)
            self._made[wanted.name] = wanted.is_table

    def _rows(self, sql: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        cursor = self._connection.execute(sql)
        columns = unique_names([column[0] for column in cursor.description or ()])
        return columns, cursor.fetchall()

    def _warnings(self, scope: str) -> tuple[Notice, ...]:
        rows = self._connection.execute(
            f"SELECT slug, message FROM {_WARNINGS} WHERE scope IN ('*', ?)", (scope,)
        )
        return tuple(Notice(slug, message) for slug, message in rows)

    def _check_filters(self, file: SqlFile) -> None:
        """A filter that a query never looks at would silently change nothing."""
        ignored = [name for name in self._params.filters() if name not in file.filters]
        if ignored:
            raise UsageError(
                "no-such-filter",
                file.name,
                f"does not take {', '.join(ignored)}",
                have=", ".join(file.filters) or "no filter: it covers the whole run",
                fix=f"wbscope query {file.name} RUN",
            )

    def _library_error(self, name: str, error: sqlite3.Error) -> Exception:
        """SQL of our own that SQLite refuses is a bug; the rest is the file's."""
        if getattr(error, "sqlite_errorname", None) == "SQLITE_ERROR":
            return InternalError("library-sql", name, f"{error}, on {self._shown} (a bug in sql/)")
        return translate(error, self._shown)

    def _statement_error(self, error: sqlite3.Error) -> Exception:
        text = str(error)
        code = getattr(error, "sqlite_errorname", None)
        if code == "SQLITE_AUTH" or "not authorized" in text or "prohibited" in text:
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
                fix="wbscope sql RUN once for each statement",
            )
        if code == "SQLITE_ERROR" or code is None:
            return QueryError("sql-error", "sql", text, have=self._similar(text))
        return translate(error, self._shown)

    def _similar(self, message: str) -> str | None:
        """Tables and views with a name like the one SQLite did not find."""
        missing = re.fullmatch(r"no such table: (?:\w+\.)?(\w+)", message)
        if missing is None:
            return None
        tables = self._connection.execute("SELECT name FROM sqlite_schema")
        names = [*(row[0] for row in tables), *self._library.objects()]
        return ", ".join(difflib.get_close_matches(missing[1], names, n=5)) or None


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _result(
    name: str,
    columns: tuple[str, ...],
    rows: list[tuple[Any, ...]],
    warnings: tuple[Notice, ...],
) -> Result:
    units = {column: unit for column in columns if (unit := unit_of(column))}
    return Result(name, columns, units, rows, warnings)
