# SPDX-License-Identifier: Apache-2.0
"""The report: what the run was, then every query with an @order, in that order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wbscope.base.errors import EvidenceError
from wbscope.base.result import Notice, Result
from wbscope.base.span import WHOLE, Span
from wbscope.library.sqlfile import SqlFile
from wbscope.run.filters import Filters
from wbscope.run.run import Run

__all__ = ["Report", "Section", "build_report", "page_window_ns"]


_SUMMARY = "run_summary"
_SECOND_NS = 10**9
# Lengths of windows that people think in, in s; the first that fits a page is taken.
_WINDOWS = (2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 21600)
_MOST_WINDOWS = 16
_WHOLE = Notice("whole-run", "of the whole run: this question takes no part of the time")


@dataclass(frozen=True)
class Section:
    """One question: its answer, or why the run cannot answer it."""

    query: SqlFile
    result: Result | None
    skipped: EvidenceError | None


@dataclass(frozen=True)
class Report:
    """Warnings that hold for the whole run come before any number.

    `part_ns` is the part of the time that the answers are of, from the run's first event.
    """

    run: str
    warnings: tuple[Notice, ...]
    summary: Result
    sections: tuple[Section, ...]
    part_ns: tuple[int, int] | None = None


def build_report(run: Run, span: Span = WHOLE) -> Report:
    """Ask all of them for a part of the time; one that lacks its events does not stop the rest.

    Raises: UsageError for a part that no event can be in.
    """
    warnings = run.warnings()
    queries = [query for query in run.library.queries() if query.order > 0]
    queries.sort(key=lambda query: query.order)
    part_ns = _part(run, span)
    start, end = part_ns or (0, run.duration_ns())
    asked = Filters(window_ns=page_window_ns(end - start), span=span)
    return Report(
        run=run.name,
        warnings=warnings,
        summary=run.ask(_SUMMARY, Filters()),
        sections=tuple(_section(run, query, asked) for query in queries),
        part_ns=part_ns,
    )


def page_window_ns(duration_ns: int) -> int:
    """The shortest window that cuts a run of this length into a page of rows."""
    for window in _WINDOWS:
        if duration_ns <= _MOST_WINDOWS * window * _SECOND_NS:
            return window * _SECOND_NS
    return -(-duration_ns // (_MOST_WINDOWS * _SECOND_NS)) * _SECOND_NS


def _part(run: Run, span: Span) -> tuple[int, int] | None:
    if not span:
        return None
    first, last = run.bounds()
    t0_ns, t1_ns = run.on_clock(span)
    start = first if t0_ns is None else t0_ns
    return start - first, (last + 1 if t1_ns is None else t1_ns) - first


def _section(run: Run, query: SqlFile, asked: Filters) -> Section:
    try:
        return Section(query, _ask(run, query, asked), None)
    except EvidenceError as error:
        return Section(query, None, error)


def _ask(run: Run, query: SqlFile, asked: Filters) -> Result:
    if not query.is_of_windows():
        asked = replace(asked, window_ns=None)
    if not asked.span or "range" in query.filters:
        return run.ask(query.name, asked)
    result = run.ask(query.name, replace(asked, span=WHOLE))
    return replace(result, warnings=(*result.warnings, _WHOLE))
