# SPDX-License-Identifier: Apache-2.0
"""The statements that build the library's views over one run's database."""

from __future__ import annotations

import re
import shlex
import sqlite3
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from wbscope.base.errors import InputError
from wbscope.library.catalog import events_select
from wbscope.library.database import Recorded, plain_tables
from wbscope.library.engine import EVENTS, PARAMS
from wbscope.library.library import Library
from wbscope.library.params import Params, quote, wide_enough
from wbscope.library.sqlfile import SqlFile

_KEYWORDS = ("check",)  # a query, which is a view, too
_EVENT_COLUMNS = ("ts", "cpu", "tid", "buffer")
_PREVIOUS = "prev_seq"
_RAW = re.compile(r"\b(?P<word>FROM|JOIN)\s+(?P<name>raw_\w+)\b(?P<alias>\s+AS\s+\w+)?")
_SOURCE = re.compile(r"\bFROM\s+(\w+)\b")


@dataclass(frozen=True)
class Definition:
    """The statements that make one object, a view or a table."""

    name: str
    statements: tuple[str, ...]
    is_table: bool = False

    def placed(self, schema: str) -> list[str]:
        """What makes this table in another schema than temp, of the same rows."""
        create, insert, *indexes = self.statements
        begins = (
            (create, f"CREATE TEMP TABLE {self.name} ", f"CREATE TABLE {schema}.{self.name} "),
            (insert, f"INSERT INTO {self.name}\n", f"INSERT INTO {schema}.{self.name}\n"),
            *((text, "CREATE INDEX temp.", f"CREATE INDEX {schema}.") for text in indexes),
        )
        return [there + text.removeprefix(here) for text, here, there in begins]


@dataclass(frozen=True)
class Definitions:
    """Turns names of the library into CREATE TEMP statements.

    TEMP, because the database is open read-only: definitions live and die with
    the connection, and a newer library needs no change of the file.
    """

    library: Library
    recorded: Recorded
    params: Params
    shown: str
    schema: str = "main."
    # SELECTs that take the place of those of the library.
    texts: dict[str, str] = field(default_factory=dict)
    # Columns of the file's tables, which are asked for again and again.
    _present: dict[str | None, set[str]] = field(default_factory=dict)
    # SELECTs of raw sources, which many views read.
    _raw: dict[str, str] = field(default_factory=dict)

    def statements(
        self,
        connection: sqlite3.Connection,
        names: Iterable[str],
        materialize: frozenset[str],
        given: Container[str] = (),
    ) -> list[Definition]:
        """In the order of need; those of `materialize` may become tables.

        What is given is there already.
        """
        closure = self.library.closure(names, given)
        shims = self._shims(connection, closure)
        return shims + [self._create(connection, name, materialize) for name in closure]

    def select(self, connection: sqlite3.Connection, name: str) -> str:
        """What makes the rows of an object, of tables of the file and objects that it needs.

        Where it reads raw sources, the SELECTs that make them stand in the place of their names.
        """
        file = self.library.files[name]
        if name == PARAMS:
            return self._params(connection)
        if name == EVENTS:
            return self._events(connection)
        if name in self.texts:
            return self.texts[name]

        def inlined(match: re.Match[str]) -> str:
            raw = self.library.files[match["name"]]
            alias = match["alias"] or f" AS {raw.name}"
            return f"{match['word']} ({self._raw_select(connection, raw)}){alias}"

        return _RAW.sub(inlined, file.select)

    def filters(self, connection: sqlite3.Connection) -> dict[str, Any]:
        """The one row of wb_params: the library's default with the given values put in."""
        cursor = connection.execute(self.library.files[PARAMS].select)
        row = dict(zip((c[0] for c in cursor.description), cursor.fetchone(), strict=True))
        row.update(self.params.given())
        return wide_enough(row, self.recorded.meta)

    def _raw_select(self, connection: sqlite3.Connection, file: SqlFile) -> str:
        if file.name not in self._raw:
            shim = self._shim_select(connection, [file])

            def inlined(match: re.Match[str]) -> str:
                return f"FROM ({shim})" if match[1] == file.source_view else match[0]

            self._raw[file.name] = _SOURCE.sub(inlined, file.select)
        return self._raw[file.name]

    def _create(
        self, connection: sqlite3.Connection, name: str, materialize: frozenset[str]
    ) -> Definition:
        file = self.library.files[name]
        if name in (PARAMS, EVENTS):
            return Definition(name, (_view(name, self.select(connection, name)),))
        if not (file.materialize or file.is_answer()) or name not in materialize:
            return Definition(name, (_view(name, self.texts.get(name, file.select)),))
        indexes = tuple(index_statement(file, columns, "temp.") for columns in file.indexes)
        if not file.columns:
            create = f"CREATE TEMP TABLE {name} AS\n{file.select}"
            return Definition(name, (create, *indexes), True)
        create = f"CREATE TEMP TABLE {name} ({', '.join(table_columns(file))})"
        return Definition(name, (create, f"INSERT INTO {name}\n{file.select}", *indexes), True)

    def _events(self, connection: sqlite3.Connection) -> str:
        tables = sorted((e, t) for e, t in self.recorded.tables.items() if t is not None)
        return events_select(
            (event, table, self._source(table, is_event=True))
            for event, table in tables
            if self._columns(connection, table).issuperset(("ts", "cpu", "tid"))
        )

    def _params(self, connection: sqlite3.Connection) -> str:
        row = self.filters(connection)
        return "SELECT " + ", ".join(f"{quote(value)} AS {name}" for name, value in row.items())

    def _shims(self, connection: sqlite3.Connection, names: Iterable[str]) -> list[Definition]:
        """One view for each raw source, with NULL for fields this trace lacks.

        Adapters are plain SQL with a fixed list of columns; which of them a
        kernel records differs, and only the database knows.
        """
        shims: dict[str, list[SqlFile]] = {}
        for name in names:
            file = self.library.files[name]
            if file.source_view:
                shims.setdefault(file.source_view, []).append(file)
        return [
            Definition(view, (_view(view, self._shim_select(connection, f)),))
            for view, f in shims.items()
        ]

    def _shim_select(self, connection: sqlite3.Connection, files: list[SqlFile]) -> str:
        first = files[0]
        # Two adapters may read one source: the shim then has the fields of both.
        fields = dict.fromkeys(field for file in files for field in file.fields)
        table: str | None
        if first.source_events:
            table = self.recorded.first_table(first.source_events)
            wanted = [*_EVENT_COLUMNS, *fields]
        else:
            table = first.source_table
            wanted = list(fields)
        present = self._columns(connection, table)
        if present and first.group and (self.recorded.instances > 1 or _PREVIOUS not in present):
            return self._linked_select(connection, first, wanted)
        if present and _PREVIOUS not in present and any(file.previous for file in files):
            raise self._no_links(table)
        # Quoted, because kernel fields are called limit, group or order.
        selected = ", ".join(
            f'"{name}"' if name in present else f'NULL AS "{name}"' for name in wanted
        )
        source = self._source(table, is_event=bool(first.source_events)) if present else "WHERE 0"
        return f"SELECT {selected} {source}"

    def _source(self, table: str | None, *, is_event: bool) -> str:
        """The rows of a table that are looked at."""
        # Unqualified where it may become a view of the file, which has one schema only.
        named = self.schema + '"' + str(table).replace('"', '""') + '"'
        if is_event and self.recorded.instances > 1:
            # An event enabled in two tracing instances is in the trace twice.
            return f"FROM {named} WHERE buffer = (SELECT min(buffer) FROM {named})"
        return f"FROM {named}"

    def _linked_select(
        self, connection: sqlite3.Connection, file: SqlFile, wanted: Sequence[str]
    ) -> str:
        """With links that the ingester did not make.

        So has a file of an older one; and of a trace with several instances another buffer may
        be taken for either end of a call.
        """
        own = self.recorded.first_table(file.source_events)
        fields = [name for name in wanted if name not in ("seq", "tid", _PREVIOUS)]
        rows = []
        for other in self.library.files.values():
            table = self.recorded.first_table(other.source_events) if other.group else None
            present = self._columns(connection, table)
            if other.group != file.group or not present:
                continue
            taken = present if table == own else ()
            cells = (f'"{name}"' if name in taken else f'NULL AS "{name}"' for name in fields)
            selected = ", ".join((f"{int(table == own)} AS is_own", "seq", "tid", *cells))
            rows.append(f"SELECT {selected} {self._source(table, is_event=True)}")
        within = "PARTITION BY r.tid " if file.previous == "tid" else ""
        names = (f'l."{name}"' for name in wanted)
        return (
            f"SELECT {', '.join(names)}"
            f' FROM (SELECT r.*, lag(r.seq) OVER ({within}ORDER BY r.seq) AS "{_PREVIOUS}"'
            f" FROM ({' UNION ALL '.join(rows)}) AS r) AS l WHERE l.is_own = 1"
        )

    def _columns(self, connection: sqlite3.Connection, table: str | None) -> set[str]:
        """The columns of a table; empty when there is no such table.

        Raises: InputError where it is none that only stores rows.
        """
        if table not in self._present:
            plain_tables(connection, self.shown, [table] if table else [])
            rows = connection.execute("SELECT name FROM pragma_table_info(?, 'main')", (table,))
            self._present[table] = {row[0] for row in rows}
        return self._present[table]

    def _no_links(self, table: str | None) -> InputError:
        """The ingester makes the links on request only; NULL would mean that there is no row."""
        return InputError(
            "no-links",
            self.shown,
            f"table {table} has no column {_PREVIOUS}, wanted one with the row before each row",
            effect="queries that read pairs of rows would be wrong without a word",
            fix=f"wbscope ingest {self.recorded.source()} -o {shlex.quote(self.shown)} --force",
        )


def table_columns(file: SqlFile) -> list[str]:
    """The columns of a table that stands in for a view.

    With types, as SQLite uses an index only for values that compare as its column does. It keeps
    rows in the order of the key: no index, no sorting. Of an answer each value is as it is.
    """
    if file.kind == "query":
        return [f'"{column.name}"' for column in file.columns]
    typed = ((f'"{column.name}" {column.type}', column.name) for column in file.columns)
    return [f"{text} PRIMARY KEY" if name == file.key else text for text, name in typed]


def saved_table(file: SqlFile) -> str:
    """What makes the table in a run's own file, for whoever reads it there."""
    columns = ",\n  ".join(table_columns(file))
    return f"CREATE TABLE {file.name} (\n  -- {told(file)}\n  {columns}\n)"


def told(file: SqlFile) -> str:
    """What it is, and what a row of it, on one line."""
    return f"{' '.join(file.summary.split())} One row: {file.grain}."


def index_statement(file: SqlFile, columns: tuple[str, ...], schema: str = "") -> str:
    """What makes an index of a table."""
    index = "_".join((file.name, *columns))
    return f"CREATE INDEX {schema}{index} ON {file.name}({', '.join(columns)})"


def _view(name: str, select: str) -> str:
    return f"CREATE TEMP VIEW {quoted(name)} AS\n{select}"


def quoted(name: str) -> str:
    """As SQL takes it; the names of the library are words, one of them a keyword."""
    return f'"{name}"' if name in _KEYWORDS else name
