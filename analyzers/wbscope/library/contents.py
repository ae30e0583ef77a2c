# SPDX-License-Identifier: Apache-2.0
"""What is in a run database besides the library's views: its tables, columns and texts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from wbscope.library.database import Recorded, plain_tables, translate
from wbscope.library.guard import stoppable

__all__ = [
    "cgroup_paths",
    "columns_of",
    "file_texts",
    "last_record",
    "mounted_devices",
    "tables_of",
    "texts_up_to",
    "throttling_bdis",
]

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
