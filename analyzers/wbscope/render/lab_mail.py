# SPDX-License-Identifier: Apache-2.0
"""The report of a lab for a mailing list: 72 columns of plain text, and how to do it again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.cells import cell_len

from wbscope.base.result import Result, unit_of
from wbscope.base.units import counted, format_value
from wbscope.lab.bisect import Found
from wbscope.lab.judging import Confirmed, Plan
from wbscope.lab.summary import LabReport
from wbscope.measure.metric import Metric
from wbscope.render.changes import amount_text, better_text, interval_text, p_text, value_text
from wbscope.render.json import document, rows_body
from wbscope.render.lab import (
    cell_text,
    change_cells,
    heads_of,
    interval_note,
    made_lines,
    pairs_note,
    tried_text,
)
from wbscope.render.text import PAGE_WIDTH, folded, printable, table_text
from wbscope.stats.estimates import Shift

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


def bisect_text(
    found: Found[str], metric: Metric | None, plan: Plan, width: int = PAGE_WIDTH
) -> str:
    """The answer first, then the border, then each point that was looked at."""
    lines = [folded(line, width) for line in _answer(found)]
    if metric is not None:
        lines.append(folded(printable(f"by {metric.name} ({better_text(metric)})"), width))
        told_of = {"between the two, by fresh runs": found.border, "between the ends": found.ends}
        for what, compared in told_of.items():
            if compared is not None and compared.shift is not None:
                lines.append(folded(_compared(what, metric, compared, compared.shift), width))
    if found.tests:
        rows = [
            (
                printable(test.point),
                len(test.values),
                "-" if metric is None else _median(metric, test.values),
                test.verdict,
                printable(test.why),
            )
            for test in found.tests
        ]
        result = Result("bisect", ("point", "runs", "median", "verdict", "why"), {}, rows)
        lines += ["", table_text(result, width).rstrip("\n")]
    told = f"{counted(found.runs, 'run')} counted."
    if found.ends is not None and found.ends.shift is not None:
        told += (
            f" A wrong one is named in at most {100 * plan.alpha:g} % of such searches, when all"
            f" points before the border are as the good end and all behind it as the bad end;"
            f" worse is by more than {100 * plan.margin:g} %, and one comparison is decided at"
            f" p {plan.level:.2g}."
        )
    return "\n".join([*lines, "", folded(told, width)]) + "\n"


def _answer(found: Found[str]) -> list[str]:
    good, bad = found.last_good, found.first_bad
    ends = [f"good end: {good}", f"bad end: {bad}"]
    match found.status:
        case "found":
            return [f"first bad: {bad}", f"last good: {good}"]
        case "nothing":
            return [f"nothing to find: {found.why}", *ends]
        case "unmeasured":
            return [f"no answer, an end could not be measured: {found.why}", *ends]
        case "unconfirmed":
            return [
                f"not confirmed: {found.why}",
                f"it pointed at {bad}, after {good}",
            ]
    if found.ends is None:
        return [f"not decided whether they differ: {found.why}", *ends]
    return [f"not decided: {found.why}", f"the first bad one is behind {good}, up to {bad}"]


def _compared(what: str, metric: Metric, compared: Confirmed, shift: Shift) -> str:
    change = amount_text(metric, shift, shift.estimate)
    interval = interval_text(metric, shift)
    told = "" if interval == "-" else f" ({interval})"
    return f"{what}: {change}{told}, p {p_text(shift.p)}, {compared.runs} runs of each"


def _median(metric: Metric, values: tuple[float, ...]) -> str:
    return value_text(metric, float(np.median(values))) if values else "-"


def bisect_json(found: Found[str], metric: Metric | None, plan: Plan) -> str:
    """`rows`: one for each point that was looked at, in that order."""
    head: dict[str, Any] = {
        "status": found.status,
        "first_bad": found.first_bad if found.status == "found" else None,
        "last_good": found.last_good if found.status == "found" else None,
        "range": [found.last_good, found.first_bad],
        "why": found.why or None,
        "metric": None if metric is None else metric.name,
        "unit": None if metric is None else metric.unit or None,
        "runs": found.runs,
        "alpha": plan.alpha,
        "level": plan.level,
        "margin": plan.margin,
        "looks": list(plan.looks),
        "ends": _record(found.ends),
        "border": _record(found.border),
    }
    rows = [
        {
            "point": test.point,
            "verdict": test.verdict,
            "why": test.why,
            "of_runs": list(test.values),
        }
        for test in found.tests
    ]
    return document("lab-bisect", head, rows_body(rows, ()))


def _record(compared: Confirmed | None) -> dict[str, Any] | None:
    if compared is None or compared.shift is None:
        return None
    return {
        "worse": compared.is_worse,
        "runs": compared.runs,
        "scale": compared.shift.scale,
        "estimate": compared.shift.estimate,
        "low": compared.shift.low,
        "high": compared.shift.high,
        "p": compared.shift.p,
    }
