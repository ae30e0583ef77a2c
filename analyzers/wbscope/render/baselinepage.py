# SPDX-License-Identifier: Apache-2.0
"""What a baseline holds, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from wbscope.base.result import Result
from wbscope.base.units import counted
from wbscope.compare.comparison import Side, metrics_of, sample_of
from wbscope.compare.rundata import RunData
from wbscope.render.changes import better_text, described_text, value_text
from wbscope.render.jsondoc import document, rows_body
from wbscope.render.messages import warning_text
from wbscope.render.printable import folded, printable
from wbscope.render.table import table_text

__all__ = ["baseline_json", "baseline_page"]


def baseline_page(runs: Sequence[RunData], width: int) -> str:
    """Runs, facts that they have in common, and the middle of each metric."""
    lines = [f"{counted(len(runs), 'run')}: {', '.join(printable(run.name) for run in runs)}"]
    lines += [warning_text(notice) for run in runs for notice in run.warnings]
    for name, fact in _facts(runs).items():
        lines.append(printable(f"{name}: {fact}"))
    side = Side("baseline", tuple(runs))
    rows = []
    for metric in metrics_of(runs):
        sample = sample_of(metric.name, side)
        rows.append(
            (
                printable(metric.name),
                value_text(metric, sample.description.median),
                described_text(metric, sample),
                len(sample.values),
                better_text(metric),
            )
        )
    columns = ("metric", "median", "mean ± s.d. (trimmed)", "n", "direction")
    table = table_text(Result("baseline", columns, {}, rows), width)
    told = [folded(line, width, whole_words=False) for line in lines]
    return "\n".join([*told, "", table])


def baseline_json(runs: Sequence[RunData]) -> str:
    """`wbscope.baseline-summary/1`: a row for each metric."""
    side = Side("baseline", tuple(runs))
    rows = []
    for metric in metrics_of(runs):
        sample = sample_of(metric.name, side)
        rows.append(
            {
                "metric": metric.name,
                "unit": metric.unit or None,
                "better": metric.better,
                "n": sample.description.n,
                "median": sample.description.median,
                "mean": sample.description.mean,
                "sd": sample.description.sd,
            }
        )
    head = {"runs": [run.name for run in runs], "fingerprint": _facts(runs)}
    warnings = [notice for run in runs for notice in run.warnings]
    return document("baseline-summary", head, rows_body(rows, warnings))


def _facts(runs: Sequence[RunData]) -> dict[str, str]:
    """Those that all runs tell and have in common."""
    found: dict[str, str] = {}
    for name, fact in (runs[0].fingerprint if runs else {}).items():
        values = {run.fingerprint.get(name) for run in runs}
        if values == {fact} and fact not in (None, ""):
            found[name] = str(fact)
    return found
