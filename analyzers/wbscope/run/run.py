# SPDX-License-Identifier: Apache-2.0
"""The Python interface: open a run, ask queries of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import InputError, UsageError
from wbscope.base.result import Notice, Result
from wbscope.base.units import format_value, parse_duration, parse_number
from wbscope.ingest.program import Observer
from wbscope.library.contents import columns_of, file_texts, last_record, tables_of
from wbscope.library.database import Recorded
from wbscope.library.engine import Engine
from wbscope.library.library import ENGINES, Library, load_library
from wbscope.library.own_sql import run_select
from wbscope.library.params import DEFAULT_WINDOW_NS, MOST_WINDOWS, Params, windows_in
from wbscope.library.session import Session
from wbscope.library.sqlfile import SqlFile
from wbscope.library.sqlite import SqliteEngine
from wbscope.run.empty import unfiltered, why_empty
from wbscope.run.ingested import database_of
from wbscope.run.source import Source, find_source

__all__ = ["Run", "open_run"]

_INT64_MAX = 2**63 - 1


class Run:
    """One recorded run; use it in a `with` statement or close it."""

    def __init__(self, source: Source, engine: Engine, library: Library) -> None:
        self.source = source
        self.name = str(source.path)
        self.database = engine.database
        self.library = library
        self._opened: Session | None = Session(engine, library, self.name)

    def query(
        self,
        name: str,
        *,
        window: str | None = None,
        bdi: str | None = None,
        tid: int | None = None,
        task: str | int | None = None,
        cgroup: int | None = None,
        start: str | None = None,
        end: str | None = None,
    ) -> Result:
        """Answer a canned query; durations are texts such as '2s' or '500ms'.

        `task` is a tid or a pattern of names such as 'dd*'; start and end count
        from the run's first event.
        """
        file = self.library.query(name)
        _check_types(tid, task, bdi, cgroup)
        tid, comm_glob = _task(tid, task)
        t0_ns, t1_ns = self._range(start, end)
        window_ns = self._window(window, file, t0_ns, t1_ns)
        params = Params(t0_ns, t1_ns, window_ns, bdi, tid, comm_glob, cgroup)
        result = self._session.query(name, params)
        if result.rows or params == unfiltered(params):
            return result
        told = why_empty(params, self._session.query(name, unfiltered(params)))
        return replace(result, warnings=(*result.warnings, *told))

    def sql(
        self, statement: str, timeout: str | None = None, most_rows: int | None = None
    ) -> Result:
        """Run one SELECT; all views of the library are there to read.

        With `most_rows`, the rows after these are left out, with a warning.
        Raises: QueryError; UsageError sqlite-only, as all that reads the database itself.
        """
        limit = None if timeout is None else parse_duration("timeout", timeout, positive=True)
        return run_select(self._sqlite("sql"), statement, limit, most_rows)

    def tables(self) -> dict[str, str]:
        """The database's own tables, each with the statement that made it."""
        engine = self._sqlite("tables")
        return tables_of(engine.connection, engine.shown)

    def columns(self, table: str) -> list[tuple[str, str]]:
        """Name and type of each column of a table of the database."""
        engine = self._sqlite("columns")
        return columns_of(engine.connection, engine.shown, table)

    def warnings(self) -> tuple[Notice, ...]:
        """What holds for every number of the run: lost events, damage."""
        return self._session.warnings()

    def texts(self, names: Sequence[str]) -> dict[str, str]:
        """The texts of these files of the run folder, of those that were there."""
        engine = self._sqlite("texts")
        return file_texts(engine.connection, engine.shown, names)

    def recorded(self) -> Recorded:
        """Which events were recorded, how many, and the run's meta data."""
        return self._session.engine.recorded

    def statements(self, views: list[str]) -> list[str]:
        """The SQL that makes these views of the library over the database."""
        return self._session.statements(views)

    def duration_ns(self) -> int:
        """From the first to the last event of the trace."""
        first, last = self._span()
        return last - first

    def close(self) -> None:
        """Close the database and the engine."""
        if self._opened is not None:
            self._opened.engine.close()
            self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _session(self) -> Session:
        if self._opened is None:
            raise UsageError(
                "run-closed",
                self.name,
                "is closed, wanted an open run",
                fix=f"wbscope.open({self.name!r})",
            )
        return self._opened

    def _sqlite(self, what: str) -> SqliteEngine:
        """The engine for what only a database can answer."""
        engine = self._session.engine
        if isinstance(engine, SqliteEngine):
            return engine
        raise UsageError(
            "sqlite-only",
            what,
            "runs on the engine sqlite only",
            fix="wbscope sql-package -o wbscope && trace_processor_shell --add-sql-package"
            " ./wbscope TRACE",
        )

    def _span(self) -> tuple[int, int]:
        meta = self.recorded().meta
        return int(meta.get("first_ts") or 0), int(meta.get("last_ts") or 0)

    def _window(
        self, window: str | None, file: SqlFile, t0_ns: int | None, t1_ns: int | None
    ) -> int | None:
        window_ns = None
        if window is not None:
            window_ns = parse_duration("window", window, positive=True)
        if window_ns is None and not file.is_of_windows():
            return None
        first, last = self._span()
        start = first if t0_ns is None else t0_ns
        end = last + 1 if t1_ns is None else t1_ns
        count = windows_in(start, end, window_ns or DEFAULT_WINDOW_NS)
        if count > MOST_WINDOWS:
            least_s = max(2, -(-(end - start) // (MOST_WINDOWS * 10**9)))
            length = format_value("run_ns", "ns", end - start)
            at = None if t1_ns is not None else self._last_record()
            fix = Phrase(
                Argument("window", f"{least_s}s"),
                ", or ",
                Argument("start"),
                " and ",
                Argument("end"),
                " for a part of the run",
            )
            most = f"at most {MOST_WINDOWS} are allowed"
            if window is None:  # it is the run that is odd
                told = f"lasts {length}, {count} windows of 2s, {most}"
                raise InputError("run-too-long", self.name, told, at=at, fix=fix)
            told = f"cuts {length} into {count} windows, {most}"
            subject = Phrase(Argument("window", window))
            raise UsageError("window-too-small", subject, told, at=at, fix=fix)
        return window_ns

    def _last_record(self) -> str | None:
        engine = self._session.engine
        if not isinstance(engine, SqliteEngine):
            return None
        return last_record(engine.connection, engine.shown, engine.recorded)

    def _range(self, start: str | None, end: str | None) -> tuple[int | None, int | None]:
        if start is None and end is None:
            return None, None
        first, last = self._span()
        t0 = None if start is None else first + parse_duration("start", start)
        t1 = None if end is None else min(first + parse_duration("end", end), _INT64_MAX)
        if t0 is not None and t0 > last:
            raise UsageError(
                "empty-range",
                Phrase(Argument("start", start)),
                f"is after the last event, which is {last - first} ns after the first",
                fix=Phrase(Argument("start", "0s")),
            )
        if (first if t0 is None else t0) >= (last + 1 if t1 is None else t1):
            raise UsageError(
                "empty-range",
                Phrase(Argument("end", end)),
                Phrase("leaves nothing: wanted a time after ", Argument("start", start or "0s")),
                fix=_in_order(start, end) if t0 != t1 else Phrase(Argument("start", start)),
            )
        return t0, t1


def open_run(
    path: str | Path | Source,
    *,
    library: Library | None = None,
    observer: Observer | None = None,
    engine: str = ENGINES[0],
) -> Run:
    """Open a run folder, a trace or a database; ingests a trace if needed.

    With the engine "perfetto", a Perfetto trace is queried inside trace processor.
    """
    source = path if isinstance(path, Source) else find_source(str(path))
    if engine == "perfetto":
        from wbscope.perfetto.open import open_engine

        return Run(source, *open_engine(source, observer))
    library = library or load_library()
    database = database_of(source, library, observer)
    return Run(source, SqliteEngine(database, str(source.path), library), library)


def _in_order(start: str | None, end: str | None) -> Phrase:
    if start is None:
        return Phrase(Argument("end", "1s"))
    return Phrase(Argument("start", end), " ", Argument("end", start))


def _check_types(tid: object, task: object, bdi: object, cgroup: object) -> None:
    """What the command line makes sure of; other types would only fit no row."""
    number, name = ("a whole number", int), ("a text", str)
    for option, value, (wanted, *types), example in (
        ("tid", tid, number, "tid=1234"),
        ("task", task, ("a tid or a pattern of names", int, str), "task='dd*'"),
        ("bdi", bdi, name, "bdi='8:0'"),
        ("cgroup", cgroup, number, "cgroup=1"),
    ):
        if value is None or (isinstance(value, tuple(types)) and not isinstance(value, bool)):
            continue
        raise UsageError(
            "bad-type",
            f"{option}={value!r}",
            f"is of type {type(value).__name__}, wanted {wanted}",
            fix=example,
        )
    if bdi == "":
        raise UsageError(
            "no-bdi",
            Phrase(Argument("bdi", "")),
            "is empty, wanted a name of events",
            fix=Phrase(Argument("bdi", "8:0")),
        )


def _task(tid: int | None, task: str | int | None) -> tuple[int | None, str | None]:
    """A task as a tid and a pattern of names; digits alone are a tid."""
    if task == "":
        raise UsageError(
            "no-task",
            Phrase(Argument("task", "")),
            "is empty, wanted a tid or a pattern of names",
            fix=Phrase(Argument("task", "dd*")),
        )
    if isinstance(task, str) and task.isdecimal():
        task = parse_number("task", task)
    if not isinstance(task, int):
        return tid, task
    if tid is not None and tid != task:
        raise UsageError(
            "two-choices",
            Phrase(Argument("tid", tid), " ", Argument("task", task)),
            "are two threads, wanted one",
            fix=Phrase(Argument("tid", tid)),
        )
    return task, None
