# SPDX-License-Identifier: Apache-2.0
"""The database of a run: opened, checked, what was recorded and lost, temporary room."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote as quote_uri

from wbscope.base.errors import InputError, QueryError, SetupError, WbscopeError
from wbscope.base.result import Notice
from wbscope.base.system import absolute
from wbscope.base.units import seconds
from wbscope.library.guard import stoppable

# Of the view wb_warning.
_LOST = ("lost-events", "records-overwritten", "records-not-read")
_DAMAGED = (
    *("damaged-trace", "part-of-trace", "recording-cut-short", "lines-not-understood"),
    "missing-field",
)
_DATA_LOSS = "data-loss-"
_UNTIMED = "clock-without-unit"
_EMPTY = "no-events"


def is_lost(slug: str) -> bool:
    """Whether it says that events are lost."""
    return slug in _LOST


def is_damaged(slug: str) -> bool:
    """Whether it says that only a part of the trace was read."""
    return slug in _DAMAGED or slug.startswith(_DATA_LOSS)


def is_untimed(slug: str) -> bool:
    """Whether it says that the trace clock counts ticks: no time and no rate is one then."""
    return slug == _UNTIMED


def is_empty(slug: str) -> bool:
    """Whether it says that no event was recorded."""
    return slug == _EMPTY


def of_losses(warnings: Iterable[Notice]) -> tuple[Notice, ...]:
    """Those that say that it is not whole."""
    return tuple(one for one in warnings if is_lost(one.slug) or is_damaged(one.slug))


_CANDIDATES = "$SQLITE_TMPDIR, $TMPDIR, /var/tmp, /usr/tmp, /tmp or ."


def no_room(why: str, shown: str, database: Path | None) -> SetupError:
    """Of a write that failed while `shown` was used; database: where it lies, if it was written.

    SQLite has given back what its statement had taken, so the folder with less room is the one.
    """
    temp = _temp_folder()
    if temp is None:
        return _cannot_write_temp(_CANDIDATES, why, shown, "none of them can be written")
    free = _free_bytes(temp)
    if database is not None and _free_bytes(str(database.parent)) < free:
        return SetupError(
            "cannot-write-database",
            shown,
            why,
            have=f"its folder has {_room(str(database.parent))}",
            effect="nothing was written under that name",
            fix="check the free space and permissions of its directory",
        )
    return _cannot_write_temp(temp, why, shown, _room(temp))


def _cannot_write_temp(folder: str, why: str, shown: str, have: str) -> SetupError:
    return SetupError(
        "no-room",
        folder,
        f"SQLite cannot write its temporary files: {why}",
        at=f"using {shown}",
        have=have,
        fix="export SQLITE_TMPDIR=FOLDER    # one with room",
    )


def can_write_temp() -> bool:
    """Whether SQLite can make temporary files at all: not so where all is read only."""
    import tempfile  # an error is rare

    try:
        with tempfile.TemporaryFile(dir=_temp_folder() or "/nonexistent"):
            return True
    except OSError:
        return False


def _temp_folder() -> str | None:
    """Where SQLite makes its temporary files (https://sqlite.org/tempfiles.html, 5)."""
    named = (os.environ.get(name) for name in ("SQLITE_TMPDIR", "TMPDIR"))
    for folder in (*named, "/var/tmp", "/usr/tmp", "/tmp", "."):
        if folder and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    return None


def _free_bytes(folder: str) -> int:
    try:
        room = os.statvfs(folder)
    except OSError:
        return 0
    return room.f_bavail * room.f_frsize


def _room(folder: str) -> str:
    return f"{_free_bytes(folder)} bytes free, less than it takes"


# The layout of tables that this version reads; wbscope-ingest writes it to meta.
SCHEMA_VERSION = 7

# Larger ones are no text of a record; a few megabytes in each row would fill the disk.
_MOST_VALUE_BYTES = 1 << 20
# For a file that anybody may have written: nothing in its schema runs, its pages are checked.
_OF_A_STRANGER = ("PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON")
_MANY_RECORDS = 1 << 17
# Sums and differences of two of them are still 64-bit numbers.
_MOST_NUMBER = 2**62
# Keys of meta that are whole numbers where they are known (docs/schema.md).
_NUMBERS = ("first_ts", "last_ts", "events_count", "loaded_count", "page_bytes", "damaged")


@dataclass(frozen=True)
class Recorded:
    """What the run's events are, and which of them have a table.

    `tables` has every event that could have been recorded, with its table or
    None; `counts` has (count, loaded_count) of those that occurred. `instances`
    is how many tracing instances of the trace have pages.
    """

    tables: dict[str, str | None]
    counts: dict[str, tuple[int, int]]
    meta: dict[str, Any]
    instances: int = 1

    @property
    def is_long(self) -> bool:
        """Whether more connections than one save more time than they take."""
        return sum(loaded for _, loaded in self.counts.values()) >= _MANY_RECORDS

    def first_table(self, events: tuple[str, ...]) -> str | None:
        """The table of the first of these events that has one."""
        found = (self.tables.get(event) for event in events)
        return next((table for table in found if table is not None), None)

    def source(self) -> str:
        """The name of the trace, as one word of a command line."""
        return shlex.quote(str(self.meta.get("source_name") or "TRACE.dat"))


def check_times(path: Path, shown: str) -> None:
    """Of a database that was just made of a trace.

    Raises: InputError where its times are none that open_database() takes: they are the trace's.
    """
    find = "SELECT value FROM meta WHERE key IN ('first_ts', 'last_ts')"
    try:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            times = [value for (value,) in connection.execute(find)]
    except sqlite3.Error:
        return  # which is told of when it is opened
    far = [ts for ts in times if isinstance(ts, int) and abs(ts) > _MOST_NUMBER]
    if far:
        most = f"{seconds(_MOST_NUMBER):.0f} s"
        raise InputError(
            "bad-stamps",
            shown,
            f"has records of {seconds(far[0]):.0f} s, wanted time stamps of at most {most}",
            effect="nothing was written",
            fix="record or copy the trace again",
        )


def check_database(path: Path, shown: str) -> None:
    """Raise InputError for a file that is no run database, whatever else is in it."""
    connection, _ = open_database(path, shown)
    connection.close()


def open_database(path: Path, shown: str) -> tuple[sqlite3.Connection, Recorded]:
    """A read-only connection and what it holds; `shown` is the user's path."""
    uri = f"file:{quote_uri(os.fsencode(absolute(path)))}?mode=ro"
    try:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise translate(error, shown) from error
    # A task name is any 15 bytes: show strange ones instead of refusing them.
    connection.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_VALUE_BYTES)
    try:
        with stoppable(connection):
            for pragma in _OF_A_STRANGER:
                connection.execute(pragma)
            return connection, _recorded(connection, shown)
    except sqlite3.Error as error:
        connection.close()
        if getattr(error, "sqlite_errorname", None) == "SQLITE_ERROR":
            raise _not_a_run(shown, f"is no wbscope database: {error}") from error
        raise translate(error, shown) from error
    except UnicodeDecodeError as error:  # of a statement in its schema
        connection.close()
        raise _not_a_run(shown, f"holds names that are no text: {error}") from error
    except BaseException:
        connection.close()
        raise


def plain_tables(connection: sqlite3.Connection, shown: str, names: Iterable[str]) -> None:
    """InputError unless each of these that is there is a table that only stores its rows.

    A view, a virtual table or a generated column would run what the writer of the file put there.
    """
    for name in names:
        find = "SELECT type, sql FROM main.sqlite_schema WHERE name = ? COLLATE NOCASE"
        for kind, sql in connection.execute(find, (name,)).fetchall():
            if kind in ("index", "trigger"):
                continue  # these have names of their own, and do not run when rows are read
            what = kind if kind != "table" else None
            if kind == "table" and not re.match(r"CREATE\s+TABLE\b", str(sql), re.IGNORECASE):
                what = "virtual table"
            elif kind == "table" and _generated(connection, name):
                what = "table with columns that are computed"
            if what is not None:
                raise _not_a_run(
                    shown,
                    f"has a {what} named {name!r}, wanted a plain table",
                    effect="it was not read: it could run anything",
                )


def _generated(connection: sqlite3.Connection, table: str) -> bool:
    find = "SELECT 1 FROM pragma_table_xinfo(?, 'main') WHERE hidden <> 0"
    return connection.execute(find, (table,)).fetchone() is not None


def translate(error: sqlite3.Error, shown: str, written: Path | None = None) -> WbscopeError:
    """The cause behind an SQLite error that is not the fault of the SQL text.

    written: the database itself, where it is written to.
    """
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return InputError(
            "damaged-database",
            shown,
            f"SQLite cannot read it: {error} ({name})",
            fix="wbscope ingest TRACE.dat -o RUN.db --force",
        )
    if name == "SQLITE_ERROR" and "overflow" in str(error):
        return InputError(
            "number-too-large",
            shown,
            f"holds numbers beyond what a trace can have: {error}",
            fix="wbscope ingest TRACE.dat -o RUN.db --force    # if the database was changed",
        )
    if name.startswith("SQLITE_CANTOPEN") and not can_write_temp():
        return no_room(f"{error} ({name})", shown, written)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return InputError(
            "unfinished-database",
            shown,
            f"cannot be read as it is: {error} ({name})",
            have="another program was writing it, and was killed or has not ended",
            fix=f"d=$(mktemp -d) && cp {shlex.quote(shown)}* $d && sqlite3"
            f" $d/{shlex.quote(Path(shown).name)} 'SELECT count(*) FROM meta'    # name that copy",
        )
    if name.startswith(("SQLITE_IOERR_WRITE", "SQLITE_IOERR_GETTEMPPATH")) or name == "SQLITE_FULL":
        return no_room(f"{error} ({name})", shown, written)
    if name.startswith(("SQLITE_NOMEM", "SQLITE_TOOBIG")):
        return QueryError(
            "too-big",
            shown,
            f"the result is too large: {error}",
            fix="select fewer rows or parts of long values: LIMIT 1000, substr(value, 1, 1000)",
        )
    return SetupError("database-access", shown, f"cannot be used: {error} ({name})")


def _recorded(connection: sqlite3.Connection, shown: str) -> Recorded:
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema")]
    if "meta" not in tables:
        raise _not_a_run(
            shown,
            "is an SQLite file without a table 'meta', wanted a wbscope database",
            have=", ".join(tables[:8]) or "no tables",
        )
    plain_tables(connection, shown, ("meta", "event_format", "event_counts", "buffer"))
    meta = dict(connection.execute("SELECT key, value FROM meta"))
    _check_schema(meta, shown)
    _check_numbers(meta, shown)
    formats = connection.execute("SELECT event, table_name FROM event_format")
    counts = connection.execute("SELECT event, count, loaded_count FROM event_counts").fetchall()
    for event, *numbers in counts:
        if not all(isinstance(number, int) for number in numbers):
            raise _not_a_run(shown, f"has {numbers!r:.80} as counts of {event!r:.80}")
    return Recorded(
        tables=dict(formats.fetchall()),
        counts={event: (count, loaded) for event, count, loaded in counts},
        meta=meta,
        instances=connection.execute("SELECT count(subbuf_bytes) FROM buffer").fetchone()[0],
    )


def _check_numbers(meta: dict[str, Any], shown: str) -> None:
    for key in _NUMBERS:
        value = meta.get(key)
        if value is not None and (not isinstance(value, int) or abs(value) > _MOST_NUMBER):
            wanted = f"wanted a whole number of at most {_MOST_NUMBER}"
            raise _not_a_run(shown, f"has {value!r:.80} as meta.{key}, {wanted}")


def _check_schema(meta: dict[str, Any], shown: str) -> None:
    found = meta.get("schema_version")
    if str(found) == str(SCHEMA_VERSION):
        return
    fix = f"wbscope ingest TRACE.dat -o {shlex.quote(shown)} --force"
    if re.fullmatch(r"\d{1,9}", str(found)) and int(str(found)) > SCHEMA_VERSION:
        fix = "upgrade wbscope to the version that wrote it, or ingest its trace with this one"
    raise InputError(
        "schema-version",
        shown,
        f"has schema_version {found}, this wbscope reads {SCHEMA_VERSION}",
        have=f"written by wbscope {meta.get('wbscope_version', 'of unknown version')}",
        fix=fix,
    )


def _not_a_run(
    shown: str, message: str, have: str | None = None, effect: str | None = None
) -> InputError:
    return InputError(
        "not-a-run",
        shown,
        message,
        have=have,
        effect=effect,
        fix="wbscope ingest TRACE.dat -o RUN.db",
    )
