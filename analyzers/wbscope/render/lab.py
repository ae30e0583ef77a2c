# SPDX-License-Identifier: Apache-2.0
"""The report of a lab, and its pictures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from wbscope.base.result import Amount, Result
from wbscope.base.units import prefix_step
from wbscope.lab.summary import Change, LabReport, Pair
from wbscope.measure.metric import Metric
from wbscope.measure.tables import PRINTED
from wbscope.plot.dots import CellDots, cells_png
from wbscope.render.blocks import (
    Block,
    Document,
    Heading,
    Items,
    Table,
    Text,
    blocks_text,
    table_of,
)
from wbscope.render.changes import (
    amount_text,
    better_text,
    interval_text,
    row_p,
    runs_text,
    value_text,
)
from wbscope.render.compare_json import row_record
from wbscope.render.json import document, rows_body
from wbscope.render.text import printable, warning_text

# More are in the JSON document.
MOST_PAIRS = 12


def lab_document(report: LabReport, pairs: int = MOST_PAIRS) -> Document:
    """What was tried, what is missing, the cells; then the pairs, in text so many at most."""
    return Document(
        lambda: lab_blocks(report, len(report.pairs)),
        lambda: lab_report_json(report),
        lambda: table_of("lab", _rows(report)),
        lambda width: blocks_text(lab_blocks(report, pairs), width),
        warnings=report.warnings,
    )


def lab_blocks(report: LabReport, pairs: int) -> Iterator[Block]:
    """The same, block by block."""
    yield Heading(f"wbscope lab report: {report.lab.title}", 1, is_line=True)
    yield Text(tried_text(report))
    yield from (Text(line, is_doubt=True) for line in (*made_lines(report), *_doubts(report)))
    yield Table(_cells(report), "Cells")
    yield Text(interval_note(report), is_aside=True)
    yield Items(tuple(legend_lines(report)))
    if pairs:
        yield from _pairs(report, pairs)


def tried_text(report: LabReport) -> str:
    """The axes, and how many runs."""
    lab = report.lab
    axes = [f"{axis} ({', '.join(names)})" for axis, names in lab.axes.items()]
    cells = "1 cell" if len(lab.cells) == 1 else f"{len(lab.cells)} cells"
    what = f"{' x '.join(axes)}: {cells}" if axes else "one cell"
    if lab.searched:
        return printable(f"{what}, {lab.made} runs, as many as a bisection took")
    wanted = lab.wanted * len(lab.cells)
    return printable(f"{what}, {lab.made} of {wanted} runs ({lab.wanted} of each cell, in turns)")


def made_lines(report: LabReport) -> Iterator[str]:
    """Runs that are not there, by cell."""
    for cell in report.lab.cells:
        for number, why in cell.failed.items():
            yield printable(f"failed: {cell.name} run {number}: {why}")
        if cell.missing:
            numbers = ", ".join(_spans(cell.missing))
            yield printable(f"not made: {cell.name} run {numbers}")


def _spans(numbers: Sequence[int]) -> Iterator[str]:
    """1, 3, 5 to 1000."""
    first = last = numbers[0]
    for number in (*numbers[1:], None):
        if number == last + 1:
            last = number
            continue
        if last - first > 1:
            yield f"{first} to {last}"
        else:
            yield from map(str, range(first, last + 1))
        if number is not None:
            first = last = number


def _doubts(report: LabReport) -> Iterator[str]:
    """What many runs say alike is told once."""
    runs: dict[tuple[str, str], list[str]] = {}
    for notice in report.warnings:
        runs.setdefault((notice.slug, notice.message), []).append(notice.run or "")
    for notice in report.warnings:
        names = runs.pop((notice.slug, notice.message), None)
        if names is not None:
            more = f" (and {len(names) - 1} more runs)" if len(names) > 1 else ""
            yield printable(f"{warning_text(notice)}{more}")


def heads_of(metrics: Sequence[Metric]) -> dict[str, str]:
    """Metric -> a short name; the whole one where two would be alike."""
    short = {metric.name: _short(metric) for metric in metrics}
    seen = Counter(short.values())
    return {name: text if seen[text] == 1 else name for name, text in short.items()}


def _short(metric: Metric) -> str:
    name = metric.name.partition(".")[2] or metric.name
    family, bracket, keys = name.partition("[")
    for suffix in ("_bytes_per_s", "_pages_per_s", "_bytes", "_ns", "_count", "_ratio"):
        family = family.removesuffix(suffix)
    return f"{family}{bracket}{keys}"


def cell_text(metric: Metric, report: LabReport, cell: str) -> tuple[str, str]:
    """Median, and the interval of it, else the range of the runs; the unit once."""
    told = report.of(cell, metric)
    described = told.sample.description
    if described.median is None or described.least is None or described.most is None:
        return "-", ""
    low, high = told.interval or (described.least, described.most)
    if described.n == 1:
        return value_text(metric, described.median), ""
    first, last = value_text(metric, low), value_text(metric, high)
    if first == last == value_text(metric, described.median):
        return first, ""
    number, _, unit = first.partition(" ")
    if unit and last.partition(" ")[2] == unit:
        first = number
    return value_text(metric, described.median), f"{first} to {last}"


def _cells(report: LabReport) -> Result:
    """As a result, so that wide ones go on below."""
    heads = heads_of(report.metrics)
    columns = ("cell", "runs", *(heads[metric.name] for metric in report.metrics))
    rows = []
    for cell, side in report.sides.items():
        texts = []
        for metric in report.metrics:
            median, interval = cell_text(metric, report, cell)
            known = report.of(cell, metric).sample.description.n
            some = "" if known in (0, len(side.runs)) else f" (n {known})"
            texts.append(f"{median} [{interval}]{some}" if interval else f"{median}{some}")
        rows.append((cell, len(side.runs), *texts))
    return Result("lab", columns, {"runs": "count"}, rows)


def interval_note(report: LabReport) -> str:
    level = f"{100 - 100 * report.alpha:g} %"
    sides = report.sides.values()
    has = [any(report.of(s.name, m).interval for m in report.metrics) for s in sides]
    if not any(has):
        told = "their range, as an interval takes 6 runs or more"
    else:
        told = f"what they can be with {level} confidence"
        told += "" if all(has) else "; of fewer than 6 runs the range"
    return f"Medians of runs, and in brackets {told} (none: all are alike)."


def legend_lines(report: LabReport) -> Iterator[str]:
    """A line for each metric, and one for all that only a benchmark knows the meaning of."""
    heads = heads_of(report.metrics)
    printed: dict[str, list[Metric]] = {}
    for metric in report.metrics:
        if metric.meaning.endswith(PRINTED):
            printed.setdefault(better_text(metric), []).append(metric)
    for metric in report.metrics:
        better = better_text(metric)
        alike = printed.get(better, []) if metric.meaning.endswith(PRINTED) else []
        if len(alike) < 2:
            name = printable(f"{heads[metric.name]} = {metric.name}")
            yield f"{name} ({better}): {printable(metric.meaning)}"
        elif metric == alike[0]:
            names = printable(", ".join(heads[one.name] for one in alike))
            yield f"{names} = ops.* of these names ({better}): as the benchmark printed them."


def change_cells(change: Change, heads: dict[str, str]) -> list[str]:
    """Metric, change, interval, change over noise, p, n, whether it is decided."""
    row = change.row
    if row.shift is None:
        return [printable(heads[row.metric.name]), "-", "-", "-", "-",
                runs_text(row.sample, row.base_sample), f"not compared: {row.reason}"]  # fmt: skip
    noise = "-" if change.over_noise is None else f"{abs(change.over_noise):.1f}"
    return [
        printable(heads[row.metric.name]),
        amount_text(row.metric, row.shift, row.shift.estimate),
        interval_text(row.metric, row.shift),
        noise,
        row_p(row),
        runs_text(row.sample, row.base_sample),
        row.outcome if change.is_decided else "not decided",
    ]


_HEADS = ("", "metric", "change", "interval", "over noise", "p", "n", "decided")


def _pairs(report: LabReport, most: int) -> Iterator[Block]:
    if not report.pairs:
        yield Text("No two cells with runs differ in one axis only.", apart=True)
        return
    yield Heading("Pairs that differ in one axis, the largest change over noise first", 3)
    if report.undecidable:
        yield Text(report.undecidable)
    heads = heads_of(report.metrics)
    for pair in report.pairs[:most]:
        yield Text(_pair_head(pair), apart=True)
        rows = []
        for change in pair.changes:
            name, *numbers, decided = change_cells(change, heads)
            rows.append(("", name, *map(Amount, numbers), Amount(decided)))
        table = Result("lab", _HEADS, {}, rows)
        yield Table(table, _pair_head(pair), layout="lean", apart=False)
    if (more := len(report.pairs) - most) > 0:
        yield Text(f"{more} more pairs: --json lists them", apart=True)
    yield Text(pairs_note(report), is_aside=True, apart=True)


def _pair_head(pair: Pair) -> str:
    told = f"{pair.axis}: {pair.cell} against {pair.base}"
    return printable(f"{told} (recorded with other {pair.facts})" if pair.facts else told)


def pairs_note(report: LabReport, has_noise: bool = True) -> str:
    """What the columns of a change are."""
    count = sum(change.row.shift is not None for pair in report.pairs for change in pair.changes)
    sure = f"{100 - 100 * report.alpha:g} % confidence"
    if has_noise:
        told = (
            f"change is the Hodges-Lehmann shift, interval what it can be with {sure},"
            " over noise the change by the standard deviation within the cells."
        )
    else:
        told = f"Changes are Hodges-Lehmann shifts, in brackets what they can be with {sure}."
    told += (
        " Decided: the exact Mann-Whitney test, p at most"
        f" {report.alpha:g}, for each line by itself"
    )
    if count > 1:
        told += f"; of {count} lines about {count * report.alpha:.2g} are decided by chance alone"
    return f"{told}."


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
