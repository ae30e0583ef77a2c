# SPDX-License-Identifier: Apache-2.0
"""The report of a lab as one JSON document."""

from __future__ import annotations

from typing import Any

from wbscope.lab.summary import LabReport
from wbscope.render.comparejson import row_record
from wbscope.render.jsondoc import document, rows_body

__all__ = ["lab_report_json"]


def lab_report_json(report: LabReport) -> str:
    """`rows`: one for each cell and metric; `pairs`: cells that differ in one axis."""
    lab = report.lab
    head = {
        "title": lab.title,
        "digest": lab.digest,
        "wbscope_version": lab.version,
        "alpha": report.alpha,
        "axes": {axis: list(names) for axis, names in lab.axes.items()},
        "wanted_runs": lab.wanted,
        "undecidable": report.undecidable,
        "cells": [
            {
                "cell": cell.name,
                "values": dict(cell.values),
                "runs": [path.name for path in cell.runs],
                "failed": [{"number": n, "why": why} for n, why in cell.failed.items()],
                "missing": list(cell.missing),
            }
            for cell in lab.cells
        ],
        "pairs": [
            {
                "axis": pair.axis,
                "cell": pair.cell,
                "against": pair.base,
                "differing": pair.facts,
                "changes": [
                    {
                        **row_record(change.row),
                        "over_noise": change.over_noise,
                        "decided": change.is_decided,
                    }
                    for change in pair.changes
                ],
            }
            for pair in report.pairs
        ],
    }
    return document("lab-report", head, rows_body(_rows(report), report.warnings))


def _rows(report: LabReport) -> list[dict[str, Any]]:
    values = {cell.name: dict(cell.values) for cell in report.lab.cells}
    rows = []
    for cell in report.sides:
        for metric in report.metrics:
            told = report.of(cell, metric)
            low, high = told.interval or (None, None)
            rows.append(
                {
                    "cell": cell,
                    "values": values[cell],
                    "metric": metric.name,
                    "unit": metric.unit or None,
                    "better": metric.better,
                    "n": told.sample.description.n,
                    "median": told.sample.description.median,
                    "low": low,
                    "high": high,
                    "of_runs": list(told.sample.values),
                    "missing": list(told.sample.missing),
                }
            )
    return rows
