# SPDX-License-Identifier: Apache-2.0
"""What SQL of the user's own may do: read, and call the functions that are listed.

An allow-list, for an SQLite may be built with more: some load code, tell where it lies in memory,
or open files. Names are those of https://sqlite.org/lang_corefunc.html and the pages beside it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from wbscope.base.errors import QueryError
from wbscope.base.watch import Running, default_limit_ns, running

_CORE = """
    abs char coalesce concat concat_ws format glob hex ifnull iif if instr length like likelihood
    likely lower ltrim max min nullif octet_length printf quote random randomblob replace round
    rtrim sign soundex sqlite_version substr substring trim typeof unhex unicode unistr
    unistr_quote unlikely upper zeroblob
"""
_TIMES = """
    current_date current_time current_timestamp date datetime julianday strftime time timediff
    unixepoch
"""
_AGGREGATES = """
    avg count group_concat max median min percentile percentile_cont percentile_disc string_agg
    sum total
"""
_WINDOWS = """
    cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank
    row_number
"""
_MATH = """
    acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10
    log2 mod pi pow power radians sin sinh sqrt tan tanh trunc
"""
_JSON = """
    -> ->> json json_array json_array_insert json_array_length json_error_position json_extract
    json_group_array json_group_object json_insert json_object json_patch json_pretty json_quote
    json_remove json_replace json_set json_type json_valid
    jsonb jsonb_array jsonb_array_insert jsonb_extract jsonb_group_array jsonb_group_object
    jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set
"""
FUNCTIONS = frozenset(f"{_CORE} {_TIMES} {_AGGREGATES} {_WINDOWS} {_MATH} {_JSON}".split())
# Of SQLite's own tables that are not in the file; the others show its pages or its statements.
TABLE_FUNCTIONS = frozenset(
    ("json_each", "json_tree", "pragma_table_info", "pragma_table_list", "pragma_table_xinfo")
)


# Virtual-machine steps between looks at the clock: about half a millisecond.
_STEPS = 50_000

# What runs on each connection, by its id.
_running: dict[int, Running] = {}

_COMMENTS = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$))*", re.DOTALL)
_READING_PRAGMAS = ("table_info", "table_xinfo", "table_list")
_ALLOWED = (
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_RECURSIVE,
)


def check_is_text(sql: str, command: str = "wbscope sql RUN") -> None:
    """QueryError unless it is UTF-8 without NUL; `command` takes a statement from stdin."""
    if "\0" in sql or sql != sql.encode("utf-8", "ignore").decode("utf-8"):
        raise QueryError(
            "not-text",
            "sql",
            "holds bytes that are not UTF-8 text",
            fix=f"iconv -c -f UTF-8 -t UTF-8 FILE | tr -d '\\000' | {command}",
        )


def check_one_select(sql: str) -> None:
    """QueryError unless the text starts as a SELECT; SQLite checks the rest."""
    check_is_text(sql)
    start = _COMMENTS.match(sql)
    rest = sql[start.end() :] if start else sql
    word = re.match(r"\w*", rest)
    first = word[0].upper() if word else ""
    if first not in ("SELECT", "WITH", "VALUES"):
        found = f"starts with '{rest.split()[0][:24]}'" if rest else "is empty"
        raise QueryError(
            "not-a-select",
            "sql",
            f"the statement {found}, wanted SELECT, WITH or VALUES: sql only reads",
            fix='wbscope sql RUN "SELECT event, count FROM event_counts"',
        )


@contextmanager
def reading_only(
    connection: sqlite3.Connection, foreign: Collection[str] = ()
) -> Iterator[list[str]]:
    """Within, any statement that would write, attach or load is an error.

    So is one that runs a view or virtual table of the file, and what calls a function that is
    not on the list; `foreign` are names of the former, in lower case. Gives what was refused,
    functions with a "()" behind.
    """
    refused: list[str] = []

    def authorize(
        action: int,
        first: str | None,
        second: str | None,
        database: str | None,
        inner: str | None,
    ) -> int:
        if action == sqlite3.SQLITE_READ and database != "temp":
            for name in (first, inner):
                if name is not None and name.lower() in foreign:
                    refused.append(name)
                    return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in FUNCTIONS:
            refused.append(f"{second}()")
            return sqlite3.SQLITE_DENY
        return _authorize(action, first)

    connection.execute("PRAGMA query_only = ON")
    connection.set_authorizer(authorize)
    try:
        yield refused
    finally:
        connection.set_authorizer(None)
        connection.execute("PRAGMA query_only = OFF")


def _authorize(action: int, first: str | None) -> int:
    allowed = (
        action in _ALLOWED
        or action == sqlite3.SQLITE_FUNCTION  # one of the list
        or (action == sqlite3.SQLITE_PRAGMA and first in _READING_PRAGMAS)
        # SQLite reports this when it sets up a table-valued function such as
        # json_each; the file itself is open read-only and stays as it is.
        or (action == sqlite3.SQLITE_UPDATE and first == "sqlite_master")
    )
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


@contextmanager
def stoppable(
    connection: sqlite3.Connection,
    limit_ns: int | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Iterator[None]:
    """Within, signals and limits stop a running statement; without a limit there is the default.

    `is_stopped` is asked again and again: True is as a signal.
    Raises: QueryError for a limit, KeyboardInterrupt for a signal.
    """

    def interrupt() -> None:
        with suppress(connection.Error):  # it is closed
            connection.interrupt()

    with running(interrupt, limit_ns or default_limit_ns()) as run:
        connection.set_progress_handler(lambda: is_stopped() or run.is_late(), _STEPS)
        outer = _running.get(id(connection))
        _running[id(connection)] = run
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_INTERRUPT":
                raise
            if run.broken is not None:
                raise run.broken from error
            if run.is_late():
                raise run.too_late() from error
            # Python drops an exception raised inside the handler and SQLite reports
            # an interrupt: nothing but a signal can be behind it.
            raise KeyboardInterrupt from error
        finally:
            connection.set_progress_handler(None, 0)
            del _running[id(connection)]
            if outer is not None:
                _running[id(connection)] = outer


def check_limit(connection: sqlite3.Connection) -> None:
    """For who waits within stoppable() while no statement runs.

    Raises: QueryError for a limit.
    """
    run = _running.get(id(connection))
    if run is not None and (run.broken is not None or run.is_late()):
        raise run.broken or run.too_late()
