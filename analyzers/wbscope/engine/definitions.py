# SPDX-License-Identifier: Apache-2.0
"""The statements that build the library's views over one run's database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from wbscope.engine.database import Recorded
from wbscope.engine.library import Library
from wbscope.engine.params import Params, quote
from wbscope.engine.sqlfile import SqlFile

__all__ = ["Definitions"]

_PARAMS = "wb_params"
_EVENT_COLUMNS = ("ts", "cpu", "tid", "buffer")


@dataclass(frozen=True)
class Definitions:
    """Turns names of the library into CREATE TEMP statements.

    TEMP, because the database is open read-only: definitions live and die with
    the connection, and a newer library needs no change of the file.
    """

    library: Library
    recorded: Recorded
    params: Params

    def statements(
        self,
        connection: sqlite3.Connection,
        names: Iterable[str],
        materialize: frozenset[str],
    ) -> list[tuple[str, str]]:
        """(object, statement) in order; `materialize` may become tables."""
        closure = self.library.closure(names)
        shims = self._shims(connection, closure)
        return shims + [(n, self._create(connection, n, materialize)) for n in closure]

    def _create(
        self, connection: sqlite3.Connection, name: str, materialize: frozenset[str]
    ) -> str:
        file = self.library.files[name]
        if name == _PARAMS:
            return f"CREATE TEMP VIEW {name} AS\n{self._params(connection, file)}"
        kind = "TABLE" if file.materialize and name in materialize else "VIEW"
        return f"CREATE TEMP {kind} {name} AS\n{file.select}"

    def _params(self, connection: sqlite3.Connection, file: SqlFile) -> str:
        """The library's default row with the given values put in."""
        cursor = connection.execute(file.select)
        row = dict(zip((c[0] for c in cursor.description), cursor.fetchone(), strict=True))
        row.update(self.params.given())
        values = ", ".join(f"{quote(value)} AS {name}" for name, value in row.items())
        return f"SELECT {values}"

    def _shims(self, connection: sqlite3.Connection, names: Iterable[str]) -> list[tuple[str, str]]:
        """One view for each raw source, with NULL for fields this trace lacks.

        Adapters are plain SQL with a fixed list of columns; which of them a
        kernel records differs, and only the database knows.
        """
        shims: dict[str, list[SqlFile]] = {}
        for name in names:
            file = self.library.files[name]
            if file.source_view:
                shims.setdefault(file.source_view, []).append(file)
        return [(view, self._shim(connection, view, f)) for view, f in shims.items()]

    def _shim(self, connection: sqlite3.Connection, view: str, files: list[SqlFile]) -> str:
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
        present = _columns(connection, table)
        # Quoted, because kernel fields are called limit, group or order.
        selected = ", ".join(
            f'"{name}"' if name in present else f'NULL AS "{name}"' for name in wanted
        )
        source = f'FROM main."{table}"' if present else "WHERE 0"
        if first.source_events and present and self.recorded.instances > 1:
            # An event enabled in two tracing instances is in the trace twice.
            source += f' WHERE buffer = (SELECT min(buffer) FROM main."{table}")'
        return f"CREATE TEMP VIEW {view} AS SELECT {selected} {source}"


def _columns(connection: sqlite3.Connection, table: str | None) -> set[str]:
    """The columns of a table; empty when there is no such table."""
    rows = connection.execute("SELECT name FROM pragma_table_info(?, 'main')", (table,))
    return {row[0] for row in rows}
