# SPDX-License-Identifier: Apache-2.0
"""A comparison as mmtests prints it: a column a side, per cent of gain in brackets.

As in mmtests, values are means and a gain is positive when it is better, whichever
way that is.  Different from it, on purpose: a fall to 0 of what is better higher is
-100 %, not 0 %; a rise from 0 has no per cent; the table of vmstat has per cent, too;
what makes numbers doubtful stands above the table, and what is not judged has no per
cent and is named below with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from wbscope.base.units import seconds
from wbscope.compare.comparison import Comparison, Row, Sample
from wbscope.measure.metric import Metric, split_name
from wbscope.render.changes import mean_text
from wbscope.render.comparepage import doubt_lines, left_out
from wbscope.render.printable import folded, printable
from wbscope.render.table import PAGE_WIDTH

__all__ = ["gain", "mmtests_text"]

_OPS = "ops."
_VMSTAT = "mmtests_vmstat.value"
_NO_PERCENT = "---"
# Times are in seconds where two decimals of them say something.
_LEAST_SECONDS = 0.1
# Above this, two decimals are no digits of the number.
_MOST_DECIMALS = 1e15


def mmtests_text(comparison: Comparison, width: int = PAGE_WIDTH) -> str:
    """All metrics that the base and another side have; text around them has this width."""
    rows = [row for row in comparison.rows if row.base_sample.values and row.sample.values]
    names = list(dict.fromkeys(row.metric.name for row in rows))
    by_side = {(row.side, row.metric.name): row for row in rows}
    sides = [side.name for side in comparison.sides]
    table = [["", *(cell for side in sides for cell in (printable(side), ""))]]
    for name in names:
        found = [by_side.get((side, name)) for side in sides[1:]]
        table.append(_line(next(row for row in found if row is not None), found))
    doubts = [f"{line}\n" for line in doubt_lines(comparison, width)]
    text = "".join([*doubts, "\n"] if doubts else []) + _aligned(table)
    return text + _left_out(comparison, width) + _legend(comparison, rows, width)


def gain(metric: Metric, base: float, value: float) -> float | None:
    """Per cent by which it is better, or by which it moved where neither way is.

    None where the base is 0 and the value is not.
    """
    if base == value:
        return 0.0
    if base == 0:
        return None
    change = (value - base) * 100 / abs(base)
    if metric.better == "neutral":
        return abs(change)
    return -change if metric.better == "lower" else change


def _line(first: Row, rows: Sequence[Row | None]) -> list[str]:
    metric, base = first.metric, first.base_sample
    samples = [base, *(row.sample for row in rows if row is not None)]
    in_seconds = _in_seconds(metric, samples)
    cells = [_label(metric), _number(metric, base, in_seconds), _percent(0.0, False)]
    for row in rows:
        if row is None:
            cells += ["-", ""]
        else:
            cells += [_number(metric, row.sample, in_seconds), _percent(_gain(row), row.is_sure)]
    return cells


def _in_seconds(metric: Metric, samples: Sequence[Sample]) -> bool:
    """Of what benchmarks measure, as mmtests has it; other times have their unit."""
    if metric.unit != "ns" or not metric.name.startswith(_OPS):
        return False
    means = [abs(s.description.mean) for s in samples if s.description.mean]
    return not means or (seconds(max(means)) >= 1 and seconds(min(means)) >= _LEAST_SECONDS)


def _label(metric: Metric) -> str:
    """Ops NAME, the words of vmstat's table, or the metric's name."""
    if metric.name.startswith(_OPS):
        name = metric.name.removeprefix(_OPS)
        return printable(f"Ops {name.removesuffix('_ns').removesuffix('_count')}")
    family, keys = split_name(metric.name)
    return keys["name"].replace("_", " ") if family == _VMSTAT else printable(metric.name)


def _number(metric: Metric, sample: Sample, in_seconds: bool) -> str:
    """Seconds and what benchmarks count with two decimals, the rest with its unit."""
    mean = sample.description.mean
    if mean is None:
        return "-"
    if metric.name.startswith(_VMSTAT):
        if metric.unit == "%":
            return f"{mean:.0f}%"
        return f"{mean:.0f}" if metric.unit != "pages/s" else f"{mean:.3f}"
    if abs(mean) >= _MOST_DECIMALS:
        return mean_text(metric, mean)
    if in_seconds:
        return f"{seconds(mean):.2f}"
    if metric.name.startswith(_OPS) and metric.unit not in ("ns", "bytes", "bytes/s", "ratio"):
        return f"{mean:.2f}"
    return mean_text(metric, mean)


def _gain(row: Row) -> float | None:
    """None also for what is not judged."""
    old, new = row.base_sample.description.mean, row.sample.description.mean
    if old is None or new is None or row.shift is None:
        return None
    return gain(row.metric, old, new)


def _percent(change: float | None, is_sure: bool) -> str:
    shown = _NO_PERCENT if change is None else f"{change:.2f}%"
    left, right = ("*", "*") if is_sure else ("(", ")")
    return f"{left}{shown:>7}{right}"


def _aligned(table: list[list[str]]) -> str:
    sizes = [max(cell_len(row[index]) for row in table) for index in range(len(table[0]))]
    lines = []
    for row in table:
        cells = [row[0] + " " * (sizes[0] - cell_len(row[0]))]
        cells += [" " * (s - cell_len(c)) + c for c, s in zip(row[1:], sizes[1:], strict=True)]
        lines.append(" ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def _left_out(comparison: Comparison, width: int) -> str:
    told = []
    for side in comparison.sides[1:]:
        name = f"{printable(side.name)}: " if len(comparison.sides) > 2 else ""
        told += [folded(name + line, width) for line in left_out(comparison.of_side(side.name))]
    return "".join(["\n", *(f"{line}\n" for line in told)] if told else [])


def _legend(comparison: Comparison, rows: Sequence[Row], width: int) -> str:
    runs = " + ".join(str(len(side.runs)) for side in comparison.sides)
    told = f"means of {runs} runs; per cent: better is positive"
    if any(row.metric.better == "neutral" for row in rows):
        told += ", without a sign where neither way is better"
    if any(row.is_sure for row in rows):
        told += f"; in ** where p is at most {comparison.alpha:g}"
    else:
        told += "; none is told apart from chance"
    return f"\n{folded(told, width)}\n"
