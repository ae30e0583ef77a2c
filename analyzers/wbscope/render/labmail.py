# SPDX-License-Identifier: Apache-2.0
"""The report of a lab for a mailing list: 72 columns of plain text, and how to do it again."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len

from wbscope.base.result import unit_of
from wbscope.base.units import format_value
from wbscope.lab.summary import LabReport
from wbscope.measure.metric import Metric
from wbscope.render.changes import better_text
from wbscope.render.labpage import (
    cell_text,
    change_cells,
    heads_of,
    interval_note,
    made_lines,
    pairs_note,
    tried_text,
)
from wbscope.render.printable import folded, printable

__all__ = ["lab_mail"]

_WIDTH = 72
_MACHINE = ("machine", "cpus_count", "memory_bytes", "swap_bytes", "page_bytes", "hz")


def lab_mail(report: LabReport) -> str:
    """The block; only commands and lines of the matrix file may be longer than 72 columns."""
    lines = [printable(report.lab.title), "", folded(tried_text(report), _WIDTH)]
    lines += [folded(line, _WIDTH) for line in made_lines(report)]
    lines += [folded(line, _WIDTH) for line in _recorded_on(report)]
    if report.undecidable:
        lines += ["", folded(report.undecidable, _WIDTH)]
    lines += ["", folded(interval_note(report), _WIDTH)]
    for metric in report.metrics:
        lines += ["", *_of_metric(metric, report)]
    lines += [line for pair in _pairs(report) for line in ("", *pair)]
    if report.pairs:
        lines += ["", folded(pairs_note(report, has_noise=False), _WIDTH)]
    return "\n".join([*lines, "", *_again(report)]) + "\n"


def _of_metric(metric: Metric, report: LabReport) -> Iterator[str]:
    yield folded(printable(f"{metric.name} ({better_text(metric)})"), _WIDTH)
    rows = [
        [printable(cell), *cell_text(metric, report, cell), _n(report, cell, metric)]
        for cell in report.sides
    ]
    sizes = [max(cell_len(row[index]) for row in rows) for index in range(4)]
    for name, median, interval, n in rows:
        bracket = f"[{interval}]" if interval else ""
        yield (
            f"  {name}{' ' * (sizes[0] - cell_len(name))}"
            f"  {' ' * (sizes[1] - cell_len(median))}{median}"
            f"  {bracket}{' ' * (sizes[2] + 2 - cell_len(bracket))}  {n}"
        ).rstrip()


def _n(report: LabReport, cell: str, metric: Metric) -> str:
    return f"n={report.of(cell, metric).sample.description.n}"


def _pairs(report: LabReport) -> Iterator[list[str]]:
    """Each pair with a line for each metric; what decides stands in front."""
    heads = heads_of(report.metrics)
    for pair in report.pairs:
        lines = [folded(f"{pair.cell} against {pair.base} ({pair.axis})", _WIDTH)]
        for change in pair.changes:
            name, moved, interval, _, p, n, told = change_cells(change, heads)
            if change.row.shift is None:
                lines.append(folded(f"  {name}: {told}", _WIDTH))
                continue
            between = "" if interval == "-" else f" ({interval})"
            lines.append(folded(f"  {name}: {moved}{between}, p {p}, n {n}: {told}", _WIDTH))
        yield lines


def _recorded_on(report: LabReport) -> Iterator[str]:
    """Kernels by the cells that had them, and the machine, which all cells may share."""
    kernels: dict[str, list[str]] = {}
    for cell, values in report.facts("kernel").items():
        for value in values:
            kernels.setdefault(str(value or "unknown"), []).append(cell)
    several = len(kernels) > 1
    told = (f"{name} ({' '.join(cells)})" if several else name for name, cells in kernels.items())
    yield printable(f"Kernel: {', '.join(told)}")
    parts = []
    for fact in _MACHINE:
        values = dict.fromkeys(v for cell in report.facts(fact).values() for v in cell)
        shown = [format_value(fact, unit_of(fact), value) for value in values if value is not None]
        if shown:
            name = "" if fact == "machine" else f"{fact.partition('_')[0]} "
            parts.append(f"{name}{' or '.join(dict.fromkeys(shown))}")
    yield printable(f"Machine: {', '.join(parts) or 'not known'}")


def _again(report: LabReport) -> Iterator[str]:
    lab = report.lab
    yield f"To reproduce, with wbscope {printable(lab.version)}:"
    yield ""
    yield f"  {printable(lab.searched) or 'wbscope lab matrix.toml'} -o lab"
    yield "  wbscope lab report lab --style lkml"
    yield ""
    yield f"matrix.toml (digest of its cells {printable(lab.digest)}, seed {lab.seed}):"
    yield ""
    for line in lab.matrix.splitlines() or ["(not kept)"]:
        yield f"  {printable(line)}".rstrip()
