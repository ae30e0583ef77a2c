# SPDX-License-Identifier: Apache-2.0
"""What adding runs to a dataset has come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wbscope.base.errors import WbscopeError
from wbscope.base.result import Notice
from wbscope.base.units import counted
from wbscope.render.jsondoc import document, rows_body

__all__ = ["Row", "added_json", "added_text"]

# Source, what came of it (added, known, failed), its run, why it could not be read, what it lost.
Row = tuple[str, str, str | None, WbscopeError | None, Sequence[Notice]]


def added_json(dataset: str, rows: Sequence[Row]) -> str:
    """One row a source; a warning for each that could not be read, or not as a whole."""
    listed = [
        {
            "source": source,
            "outcome": outcome,
            "run": run,
            "error": None if error is None else error.slug,
        }
        for source, outcome, run, error, _ in rows
    ]
    warnings = [
        replace(notice, run=source)
        for source, _, _, error, losses in rows
        for notice in (losses if error is None else [Notice(error.slug, error.message)])
    ]
    counts = {f"{outcome}_count": _count(rows, outcome) for outcome in ("added", "known", "failed")}
    return document("fleet-ingest", {"dataset": dataset, **counts}, rows_body(listed, warnings))


def added_text(dataset: str, rows: Sequence[Row]) -> str:
    """One line."""
    told = f"wrote {dataset}: {counted(_count(rows, 'added'), 'run')} added"
    if known := _count(rows, "known"):
        told += f", {known} there already"
    if failed := _count(rows, "failed"):
        told += f", {failed} refused (table ingest_errors)"
    return told


def _count(rows: Sequence[Row], outcome: str) -> int:
    return sum(row[1] == outcome for row in rows)
