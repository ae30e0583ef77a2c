# SPDX-License-Identifier: Apache-2.0
"""The report: what the run was, then every query with an @order, in that order."""

from __future__ import annotations

from dataclasses import dataclass

from wbscope.engine.result import Notice, Result
from wbscope.engine.sqlfile import SqlFile
from wbscope.errors import EvidenceError
from wbscope.run import Run

__all__ = ["Report", "Section", "build_report"]


_SUMMARY = "run_summary"


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
    return Report(
        run=run.name,
        warnings=warnings,
        summary=run.query(_SUMMARY),
        sections=tuple(_section(run, query) for query in queries),
    )


def _section(run: Run, query: SqlFile) -> Section:
    try:
        return Section(query, run.query(query.name), None)
    except EvidenceError as error:
        return Section(query, None, error)
