# SPDX-License-Identifier: Apache-2.0
"""A SELECT of the user's own on a run database: kept to reading, with errors that help."""

from __future__ import annotations

import difflib
import re
import shlex
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from wbscope.base.errors import QueryError
from wbscope.base.result import Notice, Result
from wbscope.library.database import Recorded, plain_tables, translate
from wbscope.library.definitions import quoted
from wbscope.library.engine import EVENTS, WARNINGS, Rows
from wbscope.library.finding import require_events
from wbscope.library.guard import (
    FUNCTIONS,
    TABLE_FUNCTIONS,
    check_one_select,
    reading_only,
    stoppable,
)
from wbscope.library.params import Params
from wbscope.library.session import notices_of, result_of
from wbscope.library.sqlite import SqliteEngine
from wbscope.library.statements import Select

_MOST_FILE_BYTES = 256 << 20
# Of a long run its beginning is enough to offer a name.
_MOST_OFFERED_OF = 100_000


def tables_of(connection: sqlite3.Connection, shown: str) -> dict[str, str]:
    """The database's own tables, each with the statement that made it."""
    find = "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' ORDER BY name"
    try:
        with stoppable(connection):
            return dict(connection.execute(find).fetchall())
    except sqlite3.Error as error:
        raise translate(error, shown) from error


def columns_of(connection: sqlite3.Connection, shown: str, table: str) -> list[tuple[str, str]]:
    """Name and type of each column of a table of the database."""
    find = "SELECT name, type FROM pragma_table_info(?, 'main')"
    try:
        with stoppable(connection):
            return connection.execute(find, (table,)).fetchall()
    except sqlite3.Error as error:
        raise translate(error, shown) from error


def file_texts(connection: sqlite3.Connection, shown: str, names: Iterable[str]) -> dict[str, str]:
    """The texts of these files that lay beside the trace, of those that were there."""
    find = "SELECT text FROM main.sidecar_text WHERE name = ?"
    try:
        if "sidecar_text" not in tables_of(connection, shown):
            return {}  # a Perfetto trace has no files beside it
        with stoppable(connection):
            plain_tables(connection, shown, ["sidecar_text"])
        with stoppable(connection), texts_up_to(connection, _MOST_FILE_BYTES):
            found = {name: connection.execute(find, (name,)).fetchone() for name in names}
    except sqlite3.Error as error:
        raise translate(error, shown) from error
    return {name: row[0] for name, row in found.items() if row is not None}


def cgroup_paths(connection: sqlite3.Connection, shown: str) -> dict[int, str]:
    """The path of each cgroup that the run folder names, by its inode."""
    rows = _rows_of(
        connection,
        shown,
        "cgroup",
        "SELECT cgroup_ino, path FROM main.cgroup"
        " WHERE typeof(cgroup_ino) = 'integer' AND typeof(path) = 'text'",
    )
    return dict(rows)


def mounted_devices(connection: sqlite3.Connection, shown: str) -> list[tuple[str, str, str]]:
    """The bdi, name and place of what was mounted on devices, in order, as wb_device has them."""
    of_bdis = "SELECT bdi, device, mount FROM main.sidecar_bdis"
    of_mounts = "SELECT device, substr(source, 6), mount FROM main.sidecar_mounts"
    texts = "typeof(device) = 'text' AND typeof(mount) = 'text'"
    return _rows_of(
        connection,
        shown,
        "sidecar_bdis",
        f"{of_bdis} WHERE typeof(bdi) = 'text' AND {texts} ORDER BY line",
    ) or _rows_of(
        connection,
        shown,
        "sidecar_mounts",
        f"{of_mounts} WHERE source GLOB '/dev/*' AND typeof(source) = 'text' AND {texts}"
        " ORDER BY line",
    )


def _rows_of(
    connection: sqlite3.Connection, shown: str, table: str, find: str
) -> list[tuple[Any, ...]]:
    """None where the database has no such table."""
    try:
        if table not in tables_of(connection, shown):
            return []
        with stoppable(connection):
            plain_tables(connection, shown, [table])
            return connection.execute(find).fetchall()
    except sqlite3.Error as error:
        raise translate(error, shown) from error


def throttling_bdis(connection: sqlite3.Connection, shown: str) -> list[str]:
    """The bdis that tasks were throttled for, as events name them, the busiest first."""
    table = "ev_balance_dirty_pages"
    find = (
        f"SELECT bdi FROM (SELECT bdi FROM main.{table} LIMIT {_MOST_OFFERED_OF})"
        " WHERE typeof(bdi) = 'text' GROUP BY bdi ORDER BY count(*) DESC, bdi"
    )
    try:
        if table not in tables_of(connection, shown):
            return []
        with stoppable(connection):
            plain_tables(connection, shown, [table])
            return [bdi for (bdi,) in connection.execute(find)]
    except sqlite3.Error:
        return []  # another error is being told: this only adds to it


def last_record(connection: sqlite3.Connection, shown: str, recorded: Recorded) -> str | None:
    """What and where the last loaded record is, and how long after the one before it."""
    found = []
    try:
        with stoppable(connection):
            for event, table in recorded.tables.items():
                if table is None:
                    continue
                plain_tables(connection, shown, [table])
                named = '"' + table.replace('"', '""') + '"'
                find = f"SELECT ts, cpu, tid FROM main.{named} ORDER BY seq DESC LIMIT 2"
                found += [(*row, event) for row in connection.execute(find)]
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


@contextmanager
def texts_up_to(connection: sqlite3.Connection, most_bytes: int) -> Iterator[None]:
    """Within, values may be longer than those of records."""
    before = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most_bytes)
    try:
        yield
    finally:
        # An interrupt may come before this is told of the end: then it goes with the connection.
        with suppress(sqlite3.ProgrammingError):
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, before)


# A user's own statement makes no longer text than this: zeroblob(), printf('%.*c').
_MOST_STATEMENT_BYTES = 64 << 20
_MOST_NEAR, _MOST_COLUMNS = 5, 20
_QUOTES = re.compile(r'["`\[\]]')
_OF_MAIN = re.compile(r"""\bmain\b["`\]\s]*\.\s*["`\[]?(\w+)""", re.IGNORECASE)


def run_select(
    engine: SqliteEngine, text: str, limit_ns: int | None = None, most_rows: int | None = None
) -> Result:
    """Run one SELECT with the views and queries that it names at hand, without filters.

    Of more than `most_rows` rows the first are given, and a warning.
    Raises: QueryError, InputError; EvidenceError for a query that the run cannot answer.
    """
    check_one_select(text)
    engine.use(Params())
    # Only these: to make hundreds of views takes longer than most answers.
    mentioned = _mentioned(engine, text)
    asked = [file for name in mentioned if (file := engine.library.files[name]).kind == "query"]
    for file in asked:
        require_events(file, engine.recorded, engine.shown, engine.library.profiles)
    warned = [file for file in (engine.library.files[WARNINGS], *asked) if file.warns]
    needs = [*mentioned, *(need for file in warned for need in file.warns_needs)]

    def ask() -> tuple[Rows, tuple[Notice, ...]]:
        engine.make(needs, needs)
        found = (notice for file in warned for notice in notices_of(engine.rows(file.warns)))
        warnings = tuple(dict.fromkeys(found))
        with _reading_only(engine, text), texts_up_to(engine.connection, _MOST_STATEMENT_BYTES):
            return engine.rows(text, most_rows), warnings

    try:
        with stoppable(engine.connection, limit_ns):
            (columns, rows), warnings = engine.asked(ask)
    except sqlite3.Error as error:
        raise _statement_error(engine, error, text) from error
    if most_rows is not None and len(rows) > most_rows:
        rows = rows[:most_rows]
        told = f"only the first {most_rows} rows are here; add LIMIT, or write them to a file"
        warnings = (*warnings, Notice("cut-short", told))
    return result_of("sql", (columns, rows), warnings)


def reads(engine: SqliteEngine, text: str, name: str) -> bool:
    """Whether a statement may read this object of the library, by itself or by a view."""
    return name in engine.library.closure(_mentioned(engine, text))


def _mentioned(engine: SqliteEngine, text: str) -> list[str]:
    words = _words(text.lower())  # SQL knows no case
    # Names of queries, and event, are words that columns have, too.
    read = {name.lower() for name in Select(_QUOTES.sub(" ", text).upper()).reads}
    answers = engine.library.answers(tables_of(engine.connection, engine.shown))
    return [
        name
        for name in (*engine.library.objects(), *answers)
        if name.lower() in (read if name in answers or name == EVENTS else words)
    ]


@contextmanager
def _reading_only(engine: SqliteEngine, text: str) -> Iterator[None]:
    """Within, the statement can neither change anything nor run what is in the file."""
    find = """
        SELECT lower(name) FROM main.sqlite_schema
        WHERE type = 'view' OR (type = 'table' AND sql LIKE 'CREATE VIRTUAL %')
    """
    there = {name for (name,) in engine.connection.execute(find)}
    modules = engine.connection.execute("SELECT lower(name) FROM pragma_module_list")
    there |= {name for (name,) in modules} - TABLE_FUNCTIONS
    # Views of the library hide those of the file, unless these are asked for as main.NAME.
    asked = {name.lower() for name in _OF_MAIN.findall(text)}
    ours = {name.lower() for name in engine.made}
    foreign = there - (ours - asked)
    with reading_only(engine.connection, foreign) as refused:
        try:
            yield
        except sqlite3.Error as error:
            # A virtual table asks for more before its name is heard of.
            refused += [name for name in _words(text.lower()) if name in foreign]
            if not refused or not _is_denied(error):
                raise
            if refused[0].endswith("()"):
                raise _not_allowed(refused[0]) from error
            raise QueryError(
                "not-a-table",
                "sql",
                f"reads {refused[0]!r}, which is a view or virtual table of {engine.shown}",
                effect="nothing that a file brings along is run",
                fix="read its tables, or the views of wbscope: .tables tells which",
            ) from error


def _not_allowed(function: str) -> QueryError:
    near = difflib.get_close_matches(function.removesuffix("()").lower(), FUNCTIONS, n=5)
    return QueryError(
        "function-not-allowed",
        "sql",
        f"calls {function}, which is none of the {len(FUNCTIONS)} functions that sql may call",
        have=", ".join(near) or None,
        effect="nothing was run",
        fix="wbscope sql RUN \"SELECT length('text')\"    # docs/sql.md lists them",
    )


def _statement_error(engine: SqliteEngine, error: sqlite3.Error, sql: str) -> Exception:
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
        have, fix = _unknown(engine, text, sql)
        return QueryError("sql-error", "sql", text, have=have, fix=fix)
    return translate(error, engine.shown)


def _unknown(engine: SqliteEngine, message: str, sql: str) -> tuple[str | None, str]:
    """Names like the one that is missing, or those there are; a command that tells more."""
    ask = f"wbscope sql {shlex.quote(engine.shown)}"
    keyword = re.match(r'near "(\w+)"', message)
    if keyword is not None and quoted(keyword[1]) != keyword[1]:
        have = "its name is a keyword of SQL, which quotation marks make a name"
        return have, f"{ask} 'SELECT * FROM {quoted(keyword[1])}'"
    missing = re.fullmatch(r"no such (table|column): (?:\w+\.)?(\w+)", message)
    if missing is None:
        return None, f"{ask} .tables"
    name = missing[2]
    tables = tables_of(engine.connection, engine.shown)
    objects = [*tables, *engine.library.objects(), *engine.library.answers(tables)]
    public = [one for one in dict.fromkeys(objects) if not one.startswith("_")]
    if missing[1] == "table":
        close = difflib.get_close_matches(name, public, n=_MOST_NEAR)
        return ", ".join(close) or None, f"{ask} .tables"
    words = _words(sql)
    find = "SELECT name FROM pragma_table_info(?)"
    of = {
        table: [row[0] for row in engine.connection.execute(find, (table,))]
        for table in dict.fromkeys(objects)
        if table in words
    }
    columns = list(dict.fromkeys(column for some in of.values() for column in some))
    close = difflib.get_close_matches(name, columns, n=_MOST_NEAR) or columns[:_MOST_COLUMNS]
    left = len(columns) - len(close) if close == columns[:_MOST_COLUMNS] else 0
    told = ", ".join(close) + (f" and {left} more" if left else "")
    first = next((table for table, some in of.items() if set(close) & set(some)), None)
    return told or None, f"{ask} '.schema {first}'" if first else f"{ask} .tables"


def _is_denied(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorname", None)
    return code == "SQLITE_AUTH" or any(t in str(error) for t in ("not authorized", "prohibited"))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))
