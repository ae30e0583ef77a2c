# SPDX-License-Identifier: Apache-2.0
"""Trace processor as an engine of the library: opened, asked, and the SQL that it takes.

Events come from trace processor. What its tables do not tell (page size, systems of events, where
records were lost, the files beside the trace) comes from a small database of facts, which the
ingester makes without any event; it stands in for those adapters.
"""

from __future__ import annotations

import sqlite3
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NoReturn

from wbscope.base.cache import scratch_folder
from wbscope.base.errors import Argument, InternalError, Phrase, UsageError
from wbscope.base.result import Column, unique_names
from wbscope.ingest.program import Observer
from wbscope.library.database import Recorded, open_database, translate
from wbscope.library.engine import PARAMS, Rows, Script
from wbscope.library.guard import stoppable
from wbscope.library.library import Library
from wbscope.library.params import Params, quote, quote_any, wide_enough
from wbscope.library.sqlfile import SqlFile
from wbscope.perfetto.perfetto_library import QUERY_PREFIX, perfetto_library
from wbscope.perfetto.to_database import died, ingest_facts, load
from wbscope.perfetto.trace_processor import TraceProcessor, TraceProcessorDied, TraceProcessorError
from wbscope.source.plain_files import report_of
from wbscope.source.source import Kind, Source

_WIDTH = 80
_TYPES = {"INTEGER": "LONG", "REAL": "DOUBLE", "TEXT": "STRING", "BLOB": "BYTES"}
# What PerfettoSQL cannot have in a list of columns, quoted or not. A raw event keeps the kernel's
# words, so its view has no list then: the columns are in the comment above it.
_KEYWORDS = {"group", "index", "limit", "order", "transaction"}


def object_name(file: SqlFile) -> str:
    """Views keep their names; a query or finding becomes a view of its own."""
    prefix = {"query": QUERY_PREFIX, "finding": f"{QUERY_PREFIX}finding_"}.get(file.kind, "")
    return f"{prefix}{file.name}"


def perfetto_type(column: Column) -> str:
    """The type in Perfetto's words; times are typed as such, so that its UI shows them."""
    if column.type == "INTEGER":
        if column.name == "ts" or column.name.endswith("_ts"):
            return "TIMESTAMP"
        if column.name == "dur":
            return "DURATION"
    return _TYPES[column.type]


def create(file: SqlFile, *, select: str | None = None, replace: bool = False) -> str:
    """The statement without its semicolon; `select` stands in for the file's own."""
    words = "CREATE OR REPLACE PERFETTO" if replace else "CREATE PERFETTO"
    kind = "TABLE" if file.materialize else "VIEW"
    head = f"{words} {kind} {object_name(file)}{_columns(file)}"
    return f"{head} AS\n{file.select if select is None else select}"


def indexes(file: SqlFile, *, replace: bool = False) -> list[str]:
    """What makes the indexes of a file's table: joins of large tables need them."""
    if not file.materialize:
        return []
    words = "CREATE OR REPLACE PERFETTO" if replace else "CREATE PERFETTO"
    return [
        f"{words} INDEX {file.name}_{'_'.join(columns)} ON {file.name}({', '.join(columns)})"
        for columns in file.indexes
    ]


def comment(text: str, indent: str = "") -> list[str]:
    """Lines of comment."""
    lead = f"{indent}-- "
    # A break behind a hyphen would make two words of one.
    return textwrap.wrap(
        text, _WIDTH, initial_indent=lead, subsequent_indent=lead, break_on_hyphens=False
    )


def has_schema(file: SqlFile) -> bool:
    """Whether the statement lists the columns."""
    return not any(column.name in _KEYWORDS for column in file.columns)


def _columns(file: SqlFile) -> str:
    if not has_schema(file):
        return ""
    columns = file.columns
    lines = []
    for place, column in enumerate(columns):
        lines += comment(column.description or column.name, "  ")
        comma = "," if place < len(columns) - 1 else ""
        lines.append(f"  {column.name} {perfetto_type(column)}{comma}")
    return "(\n" + "\n".join(lines) + "\n)"


# Facts that the trace processor has itself, in a better or the same form.
_OF_TRACE_PROCESSOR = {"task", "buffer", "event_task"}


class PerfettoEngine:
    """An Engine: one trace processor with one trace. Views that no filter changes are kept."""

    def __init__(self, source: Source, library: Library, observer: Observer | None = None) -> None:
        self.shown = str(source.path)
        self._library = library
        self._params = Params()
        self._texts: dict[str, str] = {}  # SELECTs that take the place of those of the library
        self._made: dict[str, str] = {}  # the text of each object that is there
        self._facts: dict[str, str] = {}  # what makes each table of facts
        self._open = ExitStack()
        try:
            self._processor = TraceProcessor()
            self._open.callback(self._processor.close)
            self.database = self._open.enter_context(scratch_folder()) / "facts.db"
            load(self._processor, source, None if observer is None else observer.advance)
            ingest_facts(self._processor, source, self.database, library)
            self.facts, facts = open_database(self.database, self.shown)
            self._open.callback(self.facts.close)
        except BaseException:
            self.close()
            raise
        # In the trace means at hand: every event can be read.
        self._recorded = replace(
            facts,
            tables={event: event.partition(":")[2] for event in facts.tables},
            counts={event: (count, count) for event, (count, _) in facts.counts.items()},
        )

    @property
    def recorded(self) -> Recorded:
        """Which events were recorded, how many, and the run's meta data."""
        return self._recorded

    def use(self, params: Params) -> None:
        """Answer with these filters from now on."""
        if params != self._params:
            self._texts.clear()
        self._params = params

    def put(self, name: str, select: str) -> None:
        """Let this view be that SELECT, until other filters are used."""
        self._texts[name] = select

    def expect(self, needs: Mapping[str, Iterable[str]]) -> list[str]:
        """Nothing: trace processor answers one question after the other."""
        return list(needs)

    def answered(self, query: str) -> str | None:
        """None."""
        return None

    def answer(
        self, about: str, names: Iterable[str], tables: Iterable[str], selects: Sequence[str]
    ) -> list[Rows]:
        """Make these views and give the rows of each SELECT."""
        try:
            with stoppable(self.facts):
                self._make(names)
                return [self._rows(select) for select in selects]
        except sqlite3.Error as error:
            raise translate(error, self.shown) from error

    def script(self, names: Iterable[str], *, kept: bool = False) -> Script:
        """What makes these views in another trace processor with the same trace; none is kept."""
        made = list(self._statements(names))
        statements = (
            part
            for name, statement in made
            for part in (statement, *indexes(self._library.files[name], replace=True))
        )
        return Script(tuple(statements), frozenset(name for name, _ in made))

    def close(self) -> None:
        """End trace processor."""
        self._open.close()

    def _make(self, names: Iterable[str]) -> None:
        """Make what is not there, and again what is made of something made again."""
        again: set[str] = set()
        for name, statement in self._statements(names):
            needs = self._library.files[name].needs
            if self._made.get(name) == statement and not again & set(needs):
                continue
            for part in (statement, *indexes(self._library.files[name], replace=True)):
                self._ask(part)
            self._made[name] = statement
            again.add(name)

    def _statements(self, names: Iterable[str]) -> list[tuple[str, str]]:
        closure = self._library.closure(names)
        return [(name, self._statement(self._library.files[name])) for name in closure]

    def _statement(self, file: SqlFile) -> str:
        select = self._texts.get(file.name)
        if file.name == PARAMS:
            row = self._ask(file.select)
            values = dict(zip(row[0], row[1][0], strict=True)) | self._params.given()
            values = wide_enough(values, self.recorded.meta)
            select = "SELECT " + ", ".join(f"{quote(v)} AS {name}" for name, v in values.items())
        elif file.source_table and file.source_table not in _OF_TRACE_PROCESSOR:
            return self._facts_statement(file)
        return create(file, select=select, replace=True)

    def _facts_statement(self, file: SqlFile) -> str:
        """The rows of a table of facts, which never change.

        A view would be read again wherever it is named: ten thousand mounts take all memory.
        """
        if file.name not in self._facts:
            rows = self._rows_of_facts(file)
            # A table of trace processor has values of one type in a column.
            kinds = [{type(row[place]) for row in rows} for place in range(len(file.columns))]
            is_table = bool(rows) and all(len(found - {type(None)}) == 1 for found in kinds)
            made = replace(file, materialize=is_table)
            self._facts[file.name] = create(made, select=_select_of(file, rows), replace=True)
        return self._facts[file.name]

    def _rows_of_facts(self, file: SqlFile) -> list[tuple[Any, ...]]:
        wanted = ", ".join(column.name for column in file.columns)
        if file.source_table == "event_counts":
            wanted = "event, count, count"
        return self.facts.execute(f"SELECT {wanted} FROM main.{file.source_table}").fetchall()

    def _rows(self, sql: str) -> Rows:
        columns, rows = self._ask(sql)
        return unique_names(columns), rows

    def _ask(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        try:
            return self._processor.table(sql)
        except TraceProcessorDied as error:
            raise died(self._processor, self.shown, error) from error
        except TraceProcessorError as error:
            self._bug(error)

    def _bug(self, error: TraceProcessorError) -> NoReturn:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise InternalError(
            "library-sql",
            lines[-1][:200] if lines else "trace processor",
            f"on {self.shown}, with Perfetto's trace processor (a bug in sql/)",
        ) from error


def _select_of(file: SqlFile, rows: Sequence[tuple[Any, ...]]) -> str:
    if not rows:
        typed = (f"CAST(NULL AS {c.type}) AS {c.name}" for c in file.columns)
        return f"SELECT {', '.join(typed)} WHERE 0"
    listed = ", ".join(column.name for column in file.columns)
    values = ",\n".join(f"({', '.join(map(quote_any, row))})" for row in rows)
    return f"WITH facts({listed}) AS (VALUES\n{values})\nSELECT {listed} FROM facts"


def open_engine(source: Source, observer: Observer | None = None) -> tuple[PerfettoEngine, Library]:
    """The run's trace in an engine, and the library whose adapters fit.

    Raises: UsageError when the run is no Perfetto trace.
    """
    if source.kind is not Kind.PERFETTO:
        shown = str(source.path)
        kinds = {Kind.DATABASE: "a run database", Kind.PACKED: "an archive, or packed"}
        kind = kinds.get(source.kind, "no Perfetto trace")
        raise UsageError(
            "not-for-engine",
            shown,
            f"is {kind}; the engine perfetto reads Perfetto traces as they are, in gz or in zip",
            fix=Phrase(
                f"{report_of(source.path)}    # without ",
                Argument("engine", "perfetto"),
            ),
        )
    library = perfetto_library()
    return PerfettoEngine(source, library, observer), library
