# SPDX-License-Identifier: Apache-2.0
"""A session whose views and rows are trace processor's, with the same answers as SQLite's.

Events come from the engine. What its tables do not tell (page size, systems of events, where
records were lost, the files beside the trace) comes from a small database of facts, which the
ingester makes without any event; it stands in for those adapters.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from wbscope.base.cache import scratch_folder
from wbscope.base.errors import InternalError, UsageError
from wbscope.base.result import Notice, Result, unique_names
from wbscope.ingest.program import Observer
from wbscope.library.library import Library
from wbscope.library.params import Params, quote, wide_enough
from wbscope.library.session import Session
from wbscope.library.sqlfile import SqlFile
from wbscope.perfetto.engine import Engine, EngineDied, EngineError
from wbscope.perfetto.ingest import died, ingest_facts, load
from wbscope.perfetto.perfetto_sql import create, indexes
from wbscope.run.source import Source

__all__ = ["PerfettoSession", "PerfettoSessions"]

_PARAMS = "wb_params"
_WARNINGS = "wb_warning"
# Facts that the trace processor has itself, in a better or the same form.
_OF_THE_ENGINE = {"task", "buffer"}


class PerfettoSessions:
    """One engine with one trace; every set of filters has a session over it."""

    def __init__(self, source: Source, library: Library, observer: Observer | None = None) -> None:
        self._source = source
        self._library = library
        self._engine = Engine()
        self._scratch = ExitStack()
        try:
            self.database = self._scratch.enter_context(scratch_folder()) / "facts.db"
            load(self._engine, source, None if observer is None else observer.advance)
            ingest_facts(self._engine, source, self.database)
        except BaseException:
            self.close()
            raise
        self._made: dict[str, str] = {}

    def open(self, params: Params) -> PerfettoSession:
        """A session with these filters; views that do not depend on them are shared."""
        shown = str(self._source.path)
        return PerfettoSession(
            self._engine, self.database, shown, self._library, params, self._made
        )

    def close(self) -> None:
        """End the engine."""
        self._engine.close()
        self._scratch.close()


class PerfettoSession(Session):
    """As Session; `made` has the text of each object that the engine has."""

    def __init__(
        self,
        engine: Engine,
        facts: Path,
        shown: str,
        library: Library,
        params: Params,
        made: dict[str, str],
    ) -> None:
        super().__init__(facts, shown, library, params)
        self._engine = engine
        self._in_engine = made
        # In the trace means at hand: every event can be read.
        self.recorded = replace(
            self.recorded,
            tables={event: event.partition(":")[2] for event in self.recorded.tables},
            counts={event: (count, count) for event, (count, _) in self.recorded.counts.items()},
        )

    def sql(self, text: str, limit_ns: int | None = None, *_more: Any) -> Result:
        """Not on this engine: its own shell and UI are at hand for that."""
        raise UsageError(
            "sqlite-only",
            "sql",
            "runs on the engine sqlite only",
            fix="wbscope sql-package -o wbscope && trace_processor_shell --add-sql-package"
            " ./wbscope TRACE",
        )

    def statements(self, names: Iterable[str]) -> list[str]:
        """What makes these views on another engine with the same trace."""
        return [
            part
            for name, statement in self._statements(names)
            for part in (statement, *indexes(self._library.files[name], replace=True))
        ]

    def _make(self, names: Iterable[str], materialize: Iterable[str]) -> None:
        """Make what is not there, and again what is made of something made again."""
        again: set[str] = set()
        for name, statement in self._statements(names):
            needs = self._library.files[name].needs
            if self._in_engine.get(name) == statement and not again & set(needs):
                continue
            for part in (statement, *indexes(self._library.files[name], replace=True)):
                self._ask(part)
            self._in_engine[name] = statement
            again.add(name)

    def _statements(self, names: Iterable[str]) -> list[tuple[str, str]]:
        closure = self._library.closure(names)
        return [(name, self._statement(self._library.files[name])) for name in closure]

    def _statement(self, file: SqlFile) -> str:
        select = None
        if file.name == _PARAMS:
            row = self._ask(file.select)
            values = dict(zip(row[0], row[1][0], strict=True)) | self._params.given()
            values = wide_enough(values, self.recorded.meta)
            select = "SELECT " + ", ".join(f"{quote(v)} AS {name}" for name, v in values.items())
        elif file.source_table and file.source_table not in _OF_THE_ENGINE:
            select = self._facts(file)
        return create(file, select=select, replace=True)

    def _facts(self, file: SqlFile) -> str:
        """The rows of a table of facts, as a SELECT."""
        wanted = listed = ", ".join(column.name for column in file.columns)
        if file.source_table == "event_counts":
            wanted = "event, count, count"
        find = f"SELECT {wanted} FROM main.{file.source_table}"
        rows = self._connection.execute(find).fetchall()
        if not rows:
            typed = (f"CAST(NULL AS {c.type}) AS {c.name}" for c in file.columns)
            return f"SELECT {', '.join(typed)} WHERE 0"
        values = ",\n".join(f"({', '.join(map(_literal, row))})" for row in rows)
        return f"WITH facts({listed}) AS (VALUES\n{values})\nSELECT {listed} FROM facts"

    def _rows(self, sql: str, *_more: Any) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        columns, rows = self._ask(sql)
        return unique_names(columns), rows

    def _warnings(self, scope: str) -> tuple[Notice, ...]:
        _, rows = self._ask(
            f"SELECT slug, message FROM {_WARNINGS} WHERE scope IN ('*', {quote(scope)})"
        )
        return tuple(Notice(str(slug), str(message)) for slug, message in rows)

    def _ask(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        try:
            return self._engine.table(sql)
        except EngineDied as error:
            raise died(self._engine, self._shown, error) from error
        except EngineError as error:
            self._bug(error)

    def _bug(self, error: EngineError) -> NoReturn:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise InternalError(
            "library-sql",
            lines[-1][:200] if lines else "trace processor",
            f"on {self._shown}, with Perfetto's trace processor (a bug in sql/)",
        ) from error


def _literal(value: Any) -> str:
    """A fact as SQL: texts of a stranger's file may hold any character."""
    if isinstance(value, str):
        return "'" + value.replace("\0", "").replace("'", "''") + "'"
    if isinstance(value, float):
        return repr(value)
    return quote(value)
