# SPDX-License-Identifier: Apache-2.0
"""The pictures of a lab: one PNG for each metric."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wbscope.base.units import prefix_step
from wbscope.lab.summary import LabReport
from wbscope.measure.metric import Metric
from wbscope.plot.celldots import CellDots, cells_png
from wbscope.render.changes import better_text, value_text
from wbscope.render.printable import printable

__all__ = ["lab_plots"]


def lab_plots(report: LabReport) -> Iterator[tuple[str, bytes]]:
    """File name and content."""
    for metric in report.metrics:
        cells = list(_dots(report, metric))
        if any(cell.values for cell in cells):
            title = printable(f"{report.lab.title}: {metric.name} ({better_text(metric)})")
            name = re.sub(r"[^A-Za-z0-9._=-]+", "_", metric.name).strip("_")
            yield f"{name}.png", _picture(title, metric, cells)


def _picture(title: str, metric: Metric, cells: list[CellDots]) -> bytes:
    def label(value: float) -> str:
        return value_text(metric, value)

    return cells_png(title, cells, label, prefix_step(metric.unit))


def _dots(report: LabReport, metric: Metric) -> Iterator[CellDots]:
    """Cells of one name of the last axis have one colour: that axis changes from line to line."""
    lab = report.lab
    axis = list(lab.axes)[-1] if lab.axes else None
    for cell in lab.cells:
        if cell.name in report.sides:
            told = report.of(cell.name, metric)
            if not told.sample.values:
                continue  # nothing to draw a line of
            group = lab.axes[axis].index(cell.values[axis]) if axis else 0
            yield CellDots(
                printable(cell.name),
                told.sample.values,
                told.sample.description.median,
                told.interval,
                group,
            )
