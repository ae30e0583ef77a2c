# SPDX-License-Identifier: Apache-2.0
"""The Python interface: open a run, ask queries of it."""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import get_ident
from types import TracebackType
from typing import Any, Self

from wbscope.base.errors import Argument, InputError, Phrase, UsageError
from wbscope.base.result import Notice, Result
from wbscope.base.span import WHOLE, Span, parse_span
from wbscope.base.units import format_value, parse_duration
from wbscope.ingest.program import Observer
from wbscope.library.database import Recorded
from wbscope.library.engine import FINDINGS, Engine, Script
from wbscope.library.finding import Finding
from wbscope.library.library import ENGINES, Library, load_library
from wbscope.library.own_sql import (
    columns_of,
    file_texts,
    last_record,
    reads,
    run_select,
    tables_of,
    throttling_bdis,
)
from wbscope.library.params import DEFAULT_WINDOW_NS, MOST_WINDOWS, Params, windows_in
from wbscope.library.session import Session
from wbscope.library.sqlfile import SqlFile
from wbscope.library.sqlite import SqliteEngine
from wbscope.run.filters import Filters, check_text, parse_filters
from wbscope.run.ingested import damage_told, engine_of
from wbscope.run.labels import Names, has_named, names_of
from wbscope.source.plain_files import run_word
from wbscope.source.source import Source, find_source

_SHOWN = 5

# Filter of wb_params: its argument, the columns that it is compared with, and how.
_Fits = Callable[[Any, Any], bool]
_CHOICES: dict[str, tuple[str, tuple[str, ...], _Fits]] = {
    "bdi": ("bdi", ("bdi", "device"), lambda found, wanted: found == wanted),
    "tid": ("tid", ("tid",), lambda found, wanted: found == wanted),
    "comm_glob": ("task", ("comm",), lambda found, wanted: _glob(found, wanted)),
    "cgroup_ino": ("cgroup", ("cgroup_ino",), lambda found, wanted: found == wanted),
}


def unfiltered(params: Params) -> Params:
    """Without the filters that choose among devices, tasks and cgroups."""
    return replace(params, bdi=None, tid=None, comm_glob=None, cgroup_ino=None)


def why_empty(params: Params, whole: Result) -> tuple[Notice, ...]:
    """A warning for each filter that fits no row of the answer without filters."""
    notices = []
    for name, wanted in params.given().items():
        if name not in _CHOICES:
            continue
        argument, columns, fits = _CHOICES[name]
        index = next((i for i, column in enumerate(whole.columns) if column in columns), None)
        if index is None:
            continue
        found = {row[index] for row in whole.rows} - {None}
        if found and not any(fits(value, wanted) for value in found):
            some = _nearest(str(wanted), {str(value) for value in found})
            message = Phrase(Argument(argument, wanted), f" fits no row; there are {some}")
            notices.append(Notice(f"no-such-{argument}", message))
    return tuple(notices)


def _glob(found: Any, wanted: Any) -> bool:
    """As the queries compare: SQLite's GLOB, where [^a] is what fnmatch calls [!a]."""
    with closing(sqlite3.connect(":memory:")) as connection:
        row = connection.execute("SELECT ? GLOB ?", (found, wanted)).fetchone()
    return bool(row[0])


def _nearest(wanted: str, found: set[str]) -> str:
    close = difflib.get_close_matches(wanted.strip("*"), sorted(found), n=_SHOWN, cutoff=0.5)
    shown = close or sorted(found)[:_SHOWN]
    more = len(found) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


# What writes a report: by the layers above, which this one must not import.
_REPORTERS: dict[str, Callable[..., str]] = {}
# What an error lists of them.
_MOST_BDIS = 8


class Run:
    """One recorded run; use it in a `with` statement or close it."""

    def __init__(self, source: Source, engine: Engine, library: Library) -> None:
        self.source = source
        self.name = run_word(source.path)
        self.database = engine.database
        self.library = library
        self._thread = get_ident()  # SQLite's connection is for this one only
        self._names: Names | None = None
        self._opened: Session | None = Session(engine, library, self.name)

    def query(
        self,
        name: str,
        *,
        window: str | None = None,
        bdi: str | None = None,
        tid: int | None = None,
        task: str | int | None = None,
        cgroup: int | str | None = None,
        start: str | None = None,
        end: str | None = None,
        time_range: str | None = None,
    ) -> Result:
        """Answer a canned query; durations are texts such as '2s' or '500ms'.

        `task` is a tid or a pattern of names such as 'dd*'; `bdi` is a number, a device or
        a mount point; `cgroup` an inode or a path. Times count from the run's
        first event ('2s'), or are those of the trace clock ('@12.5s', '@5712345678901' in
        ns); `start` and `end` say the same as `time_range`, 'START..END'.
        Raises: QueryError, EvidenceError, UsageError.
        """
        check_text("name", name, "name='fairness'")
        self.library.query(name)
        filters = parse_filters(window, bdi, tid, task, cgroup, start, end, time_range)
        return self.ask(name, filters)

    def ask(self, name: str, filters: Filters) -> Result:
        """As query(), with filters that were read before."""
        params = self._params(name, filters)
        result = self._session.query(name, params, self._label, filters.span)
        if has_named(result.columns):
            result = replace(result, labels=self.names().labels())
        if outside := self.outside(filters.span):
            result = replace(result, warnings=(*result.warnings, *outside))
        if result.rows or params == unfiltered(params):
            return result
        told = why_empty(params, self._session.query(name, unfiltered(params)))
        return replace(result, warnings=(*result.warnings, *told))

    def expect(self, names: Iterable[str], filters: Filters | None = None) -> list[str]:
        """All these queries will be asked with these filters: what they need is begun with.

        Returns them in an order in which what they need is there early. Of a long trace, a second
        thread works from now on until the run is closed: a process that forks meanwhile may hang.
        Raises: as ask().
        """
        names = list(names)
        params = None
        if names and filters is not None and filters.names():
            params = self._params(names[0], filters)
        return self._session.expect(names, params)

    def begin(self, views: Iterable[str]) -> None:
        """The whole run will be drawn by these views: what they need is begun with, too."""
        self._session.begin(views)

    def findings(self, span: Span = WHOLE) -> list[Finding]:
        """What is worth telling of the run, or of a part of it, what matters most first.

        Raises: UsageError for a part that no event can be in.
        """
        t0_ns, t1_ns = self.on_clock(span)
        return self._session.findings(Params(t0_ns=t0_ns, t1_ns=t1_ns), self._label, span)

    def report(
        self,
        *,
        full: bool = False,
        section: str | Sequence[str] = (),
        format: str = "text",
        start: str | None = None,
        end: str | None = None,
        time_range: str | None = None,
        clock: bool = False,
        width: int = 80,
    ) -> str:
        """The page that `wbscope report` prints: the verdict, then the tables that show it.

        `section` names queries whose tables stand there instead, `full` has all; `format` is
        'text', 'markdown', 'html' or 'json'. A part of the time is named as for query(); with
        `clock` times are those of the trace clock. `width` is that of a page of text.
        Raises: UsageError, QueryError.
        """
        is_list = isinstance(section, Iterable) and not isinstance(section, str)
        sections = tuple(section) if is_list else (section,)
        for one in sections:
            check_text("section", one, "section='fairness'")
        span = parse_span(start, end, time_range)
        make = _REPORTERS["report"]
        return make(self, span, sections, format, full=full, clock=clock, width=width)

    def sql(
        self, statement: str, timeout: str | None = None, most_rows: int | None = None
    ) -> Result:
        """Run one SELECT; all views of the library are there to read.

        With `most_rows`, the rows after these are left out, with a warning.
        Raises: QueryError; UsageError sqlite-only, as all that reads the database itself.
        """
        check_text("statement", statement, "statement='SELECT ...'")
        limit_ns = None if timeout is None else parse_duration("timeout", timeout, positive=True)
        return self.select(statement, limit_ns, most_rows)

    def select(
        self, statement: str, limit_ns: int | None = None, most_rows: int | None = None
    ) -> Result:
        """As sql(), with a limit that was read before."""
        engine = self._sqlite("sql")
        if reads(engine, statement, FINDINGS):
            # Whatever was asked before, the view says the same.
            self._session.tell(Params(), self._label)
        return run_select(engine, statement, limit_ns, most_rows)

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

    def names(self) -> Names:
        """What its backing devices and cgroups are called; read once."""
        if self._names is None:
            self._names = names_of(self._session.engine)
        return self._names

    def recorded(self) -> Recorded:
        """Which events were recorded, how many, and the run's meta data."""
        return self._session.engine.recorded

    def script(
        self,
        views: list[str],
        told: Iterable[Finding] = (),
        *,
        kept: bool = False,
    ) -> Script:
        """The SQL that makes these views of the library over the database.

        `told` are the findings that wb_finding has there. With `kept` tables that this session
        has made are read from the cache, as long as it has them.
        """
        return self._session.script(views, told, kept=kept)

    def on_clock(self, span: Span) -> tuple[int | None, int | None]:
        """First time and end of a part of the run on the trace clock; None as in `Params`.

        A time outside of the run is none: in what follows it nothing was recorded.
        Raises: UsageError when no event can be in it.
        """
        if not span:
            return None, None
        first, last = self.bounds()
        t0_ns, t1_ns = span.on_clock(first, last)
        return (
            None if t0_ns is not None and t0_ns < first else t0_ns,
            None if t1_ns is not None and t1_ns > last + 1 else t1_ns,
        )

    def outside(self, span: Span) -> tuple[Notice, ...]:
        """A warning for each time of a part that lies outside of the run."""
        return tuple(Notice("outside-run", told) for told in span.outside(*self.bounds()))

    def bounds(self) -> tuple[int, int]:
        """First and last event of the trace, on its clock; 0 where that is not known."""
        meta = self.recorded().meta
        return int(meta.get("first_ts") or 0), int(meta.get("last_ts") or 0)

    def duration_ns(self) -> int:
        """How long was recorded: by meta.json, else from the first to the last event."""
        first, last = self.bounds()
        meta = self.recorded().meta
        began, ended = meta.get("record_started_ts"), meta.get("record_ended_ts")
        if began is None or ended is None or meta.get("range_first_ts") is not None:
            return last - first
        return max(int(ended) - int(began), last - first)

    def __repr__(self) -> str:
        if self._opened is None:
            return f"<wbscope run {self.name!r}: closed>"
        recorded = self.recorded()
        count = sum(count for count, _ in recorded.counts.values())
        length = format_value("run_ns", "ns", self.duration_ns())
        release = recorded.meta.get("kernel_release") or "unknown"
        return f"<wbscope run {self.name!r}: kernel {release}, {length}, {count} events>"

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
        if told := damage_told(error, self.source, self.database):
            raise told from error

    @property
    def _session(self) -> Session:
        if self._opened is None:
            raise UsageError(
                "run-closed",
                self.name,
                "is closed, wanted an open run",
                fix=f"wbscope.open({self.name!r})",
            )
        if isinstance(self._opened.engine, SqliteEngine) and get_ident() != self._thread:
            raise UsageError(
                "other-thread",
                self.name,
                "was opened in another thread, wanted an open run of this one",
                fix=f"wbscope.open({self.name!r})    # in each thread",
            )
        return self._opened

    def _label(self, column: str, value: object) -> str | None:
        """What people call a value of this column: vda (/data)."""
        return self.names().label(column, value)

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

    def _params(self, name: str, filters: Filters) -> Params:
        """What a query with these filters is asked with."""
        t0_ns, t1_ns = self.on_clock(filters.span)
        cgroup = filters.cgroup
        return Params(
            t0_ns=t0_ns,
            t1_ns=t1_ns,
            window_ns=self._window(filters, self.library.query(name), t0_ns, t1_ns),
            bdi=None if filters.bdi is None else self._bdi(filters.bdi),
            tid=filters.tid,
            comm_glob=filters.comm_glob,
            cgroup_ino=self.names().cgroup(cgroup) if isinstance(cgroup, str) else cgroup,
        )

    def _bdi(self, text: str) -> str:
        """Raises: UsageError that offers one that a task of this run waited for."""
        try:
            return self.names().bdi(text)
        except UsageError as error:
            engine = self._session.engine
            found = throttling_bdis(engine.facts, engine.shown)
            known = [bdi for bdi in found if bdi in str(error.have)] or found
            if known:
                error.fix = Phrase(Argument("bdi", known[0]))
                error.have = f"{error.have}; in its events: {', '.join(found[:_MOST_BDIS])}"
            raise

    def _window(
        self, filters: Filters, file: SqlFile, t0_ns: int | None, t1_ns: int | None
    ) -> int | None:
        window_ns = filters.window_ns
        if window_ns is None and not file.is_of_windows():
            return None
        first, last = self.bounds()
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
            if filters.window is None:  # it is the run that is odd
                told = f"lasts {length}, {count} windows of 2s, {most}"
                raise InputError("run-too-long", self.name, told, at=at, fix=fix)
            told = f"cuts {length} into {count} windows, {most}"
            subject = Phrase(Argument("window", filters.window))
            raise UsageError("window-too-small", subject, told, at=at, fix=fix)
        return window_ns

    def _last_record(self) -> str | None:
        engine = self._session.engine
        if not isinstance(engine, SqliteEngine):
            return None
        return last_record(engine.connection, engine.shown, engine.recorded)


def reporter(make: Callable[..., str]) -> Callable[..., str]:
    """Decorates what Run.report() calls."""
    _REPORTERS["report"] = make
    return make


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
        from wbscope.perfetto.perfetto_engine import open_engine

        return Run(source, *open_engine(source, observer))
    library = library or load_library()
    return Run(source, engine_of(source, library, observer), library)
