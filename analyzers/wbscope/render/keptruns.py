# SPDX-License-Identifier: Apache-2.0
"""What was kept of runs, in a baseline or in a history, as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wbscope.compare.rundata import RunData
from wbscope.render.jsondoc import document, rows_body

if TYPE_CHECKING:
    from wbscope.compare.history import Place

__all__ = ["added_runs_json", "merged_json", "saved_json"]


def saved_json(output: str, runs: Sequence[RunData]) -> str:
    """`wbscope.baseline-save/1`: the file that was written."""
    return document("baseline-save", {"runs": [run.name for run in runs]}, _written(output, runs))


def merged_json(output: str, runs: Sequence[RunData]) -> str:
    """`wbscope.baseline-merge/1`: the same."""
    return document("baseline-merge", {"runs": [run.name for run in runs]}, _written(output, runs))


def added_runs_json(
    file: str, place: Place, new: Sequence[RunData], known: Sequence[tuple[RunData, str]]
) -> str:
    """`wbscope.history-add/1`: what came of each run, and at which commit it is."""
    told = [
        *((run, "added", place.commit) for run in new),
        *((run, "known", at) for run, at in known),
    ]
    rows = [
        {"run": run.name, "outcome": outcome, "commit": at, "metrics_count": len(run.scalars)}
        for run, outcome, at in told
    ]
    head = {
        "file": file,
        "commit": place.commit,
        "date": place.date.isoformat(),
        "branch": place.branch or None,
        "added_count": len(new),
        "known_count": len(known),
    }
    warnings = [notice for run, _, _ in told for notice in run.named_warnings]
    return document("history-add", head, rows_body(rows, warnings, {"metrics_count": "count"}))


def _written(output: str, runs: Sequence[RunData]) -> dict[str, Any]:
    row = {
        "output": output,
        "runs_count": len(runs),
        "metrics_count": len({name for run in runs for name in run.scalars}),
    }
    warnings = [notice for run in runs for notice in run.named_warnings]
    return rows_body([row], warnings, dict.fromkeys(("runs_count", "metrics_count"), "count"))
