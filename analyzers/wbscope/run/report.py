# SPDX-License-Identifier: Apache-2.0
"""The report: what the run was, then every query with an @order, in that order."""

from __future__ import annotations

from dataclasses import dataclass

from wbscope.base.errors import EvidenceError
from wbscope.base.result import Notice, Result
from wbscope.base.units import parse_duration
from wbscope.library.sqlfile import SqlFile
from wbscope.run.run import Run

__all__ = ["Report", "Section", "build_report", "page_window"]


_SUMMARY = "run_summary"
# Lengths of windows that people think in; the first that fits a page is taken.
_WINDOWS = ("2s", "5s", "10s", "30s", "1m", "2m", "5m", "10m", "30m", "60m", "360m")
_MOST_WINDOWS = 16


@dataclass(frozen=True)
class Section:
    """One question: its answer, or why the run cannot answer it."""

    query: SqlFile
    result: Result | None
    skipped: EvidenceError | None


@dataclass(frozen=True)
class Report:
    """Warnings that hold for the whole run come before any number."""

    run: str
    warnings: tuple[Notice, ...]
    summary: Result
    sections: tuple[Section, ...]


def build_report(run: Run) -> Report:
    """Ask all of them; one that lacks its events does not stop the rest."""
    warnings = run.warnings()
    queries = [query for query in run.library.queries() if query.order > 0]
    queries.sort(key=lambda query: query.order)
    window = page_window(run.duration_ns())
    return Report(
        run=run.name,
        warnings=warnings,
        summary=_ask(run, run.library.query(_SUMMARY), window),
        sections=tuple(_section(run, query, window) for query in queries),
    )


def page_window(duration_ns: int) -> str:
    """The shortest window that cuts a run of this length into a page of rows."""
    for window in _WINDOWS:
        if duration_ns <= _MOST_WINDOWS * parse_duration("window", window):
            return window
    return f"{-(-duration_ns // (_MOST_WINDOWS * parse_duration('window', '1s')))}s"


def _section(run: Run, query: SqlFile, window: str) -> Section:
    try:
        return Section(query, _ask(run, query, window), None)
    except EvidenceError as error:
        return Section(query, None, error)


def _ask(run: Run, query: SqlFile, window: str) -> Result:
    return run.query(query.name, window=window if query.is_of_windows() else None)
