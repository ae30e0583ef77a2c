# SPDX-License-Identifier: Apache-2.0
"""What can be named in a FROM: the run's tables and the library's views."""

from __future__ import annotations

import difflib
from collections.abc import Container
from dataclasses import dataclass

from wbscope.base.errors import QueryError
from wbscope.base.result import unit_of
from wbscope.library.engine import EVENTS
from wbscope.library.sqlfile import Column, SqlFile
from wbscope.run.run import Run

__all__ = ["Object", "Objects"]


@dataclass(frozen=True)
class Object:
    """A table, view or query; `file` is the text of the latter two, `sql` what defines it."""

    name: str
    kind: str
    summary: str
    columns: tuple[Column, ...]
    sql: str
    file: SqlFile | None = None

    def column_rows(self) -> list[tuple[str | None, ...]]:
        """Name, type, unit and meaning of each column."""
        return [(c.name, c.type, unit_of(c.name), c.description) for c in self.columns]


class Objects:
    """All of them by name, read once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        tables = {table.name: table for table in _tables(run)}
        self._objects = tables | {view.name: view for view in _views(run, tables)}

    def names(self) -> list[str]:
        """Tables first, then views, each by name."""
        return sorted(self._objects, key=lambda name: (self._objects[name].kind, name))

    def of_kind(self, kind: str) -> list[str]:
        """The names of the queries, views, tables, timelines, raw views or steps."""
        return [name for name in self.names() if self._objects[name].kind == kind]

    def columns(self, name: str) -> list[str]:
        """The columns of an object; none when there is no such object."""
        found = self._objects.get(name)
        return [] if found is None else [column.name for column in found.columns]

    def find(self, name: str) -> Object:
        """The object of this name; QueryError with the closest names otherwise."""
        found = self._objects.get(name)
        if found is not None:
            return found
        close = difflib.get_close_matches(name, self._objects, n=5, cutoff=0.5)
        raise QueryError(
            "no-such-table",
            name,
            f"is none of the {len(self._objects)} tables and views",
            have=", ".join(close) or None,
            fix=".tables",
        )


def _tables(run: Run) -> list[Object]:
    """The database's own; a table of an event has the meanings of its raw view."""
    meanings: dict[str, dict[str, Column]] = {}
    summaries: dict[str, str] = {}
    for file in run.library.files.values():
        if file.kind == "raw":
            table = run.recorded().first_table(file.source_events) or file.source_table
            meanings[table] = {column.name: column for column in file.columns}
            summaries[table] = file.summary
    objects = []
    for name, sql in run.tables().items():
        ours = run.library.files.get(name)
        if ours is not None and ours.kind != "query":
            continue  # saved in the file; the library's own is what a question reads
        known = meanings.get(name, {})
        columns = tuple(
            Column(column, kind, known[column].description if column in known else "")
            for column, kind in run.columns(name)
        )
        objects.append(Object(name, "table", summaries.get(name, ""), columns, sql))
    return objects


def _kind(file: SqlFile) -> str:
    if file.kind in ("query", "timeline"):
        return file.kind
    if file.kind == "raw" and file.name != EVENTS:
        return "raw view"
    return "shared step" if file.shared else "view"


def _views(run: Run, tables: Container[str]) -> list[Object]:
    return [
        Object(
            file.name,
            _kind(file),
            file.summary,
            file.columns,
            file.create_view() if file.name != EVENTS else "-- each ev_ table, with UNION ALL",
            file,
        )
        for file in run.library.files.values()
        if file.kind != "finding" and not file.is_private() and file.name not in tables
    ]
