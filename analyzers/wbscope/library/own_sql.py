# SPDX-License-Identifier: Apache-2.0
"""A SELECT of the user's own on a run database: kept to reading, with errors that help."""

from __future__ import annotations

import difflib
import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from wbscope.base.errors import QueryError
from wbscope.base.result import Notice, Result
from wbscope.library.contents import tables_of, texts_up_to
from wbscope.library.database import translate
from wbscope.library.definitions import quoted
from wbscope.library.engine import EVENTS, WARNINGS, Rows
from wbscope.library.evidence import require_events
from wbscope.library.functions import FUNCTIONS, TABLE_FUNCTIONS
from wbscope.library.guard import check_one_select, reading_only, stoppable
from wbscope.library.params import Params
from wbscope.library.session import notices_of, result_of
from wbscope.library.sqlite import SqliteEngine
from wbscope.library.statements import Select

__all__ = ["reads", "run_select"]

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
