# SPDX-License-Identifier: Apache-2.0
"""A comparison as mmtests prints it: a column a side, per cent of gain in brackets.

As in mmtests, values are means and a gain is positive when it is better, whichever
way that is.  Different from it, on purpose: a fall to 0 of what is better higher is
-100 %, not 0 %; a rise from 0 has no per cent; the table of vmstat has per cent, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from wbscope.compare.comparison import Comparison, Row, Sample
from wbscope.compare.metric import Metric, split_name
from wbscope.render.printable import printable
from wbscope.render.units import seconds

__all__ = ["gain", "mmtests_text"]

_OPS = "ops."
_VMSTAT = "mmtests_vmstat.value"
_NO_PERCENT = "---"


def mmtests_text(comparison: Comparison) -> str:
    """All metrics that the base and another side have."""
    rows = [row for row in comparison.rows if row.base_sample.values and row.sample.values]
    names = list(dict.fromkeys(row.metric.name for row in rows))
    by_side = {(row.side, row.metric.name): row for row in rows}
    sides = [side.name for side in comparison.sides]
    table = [["", *(cell for side in sides for cell in (printable(side), ""))]]
    for name in names:
        found = [by_side.get((side, name)) for side in sides[1:]]
        table.append(_line(next(row for row in found if row is not None), found))
    text = _aligned(table)
    told = [f"warning: {difference.text()}" for difference in comparison.differing]
    return "".join(f"{printable(line)}\n" for line in told) + text + _legend(comparison, rows)


def gain(metric: Metric, base: float, value: float) -> float | None:
    """Per cent by which it is better; None where the base is 0 and the value is not."""
    if base == value:
        return 0.0
    if base == 0:
        return None
    change = (value - base) * 100 / abs(base)
    return -change if metric.better == "lower" else change


def _line(first: Row, rows: Sequence[Row | None]) -> list[str]:
    metric, base = first.metric, first.base_sample
    cells = [_label(metric), _number(metric, base), _percent(metric, base, base, False)]
    for row in rows:
        if row is None:
            cells += ["-", ""]
        else:
            cells += [
                _number(metric, row.sample),
                _percent(metric, base, row.sample, row.is_sure),
            ]
    return cells


def _label(metric: Metric) -> str:
    """Ops NAME, the words of vmstat's table, or the metric's name."""
    if metric.name.startswith(_OPS):
        name = metric.name.removeprefix(_OPS)
        return printable(f"Ops {name.removesuffix('_ns').removesuffix('_count')}")
    family, keys = split_name(metric.name)
    return keys["name"].replace("_", " ") if family == _VMSTAT else printable(metric.name)


def _number(metric: Metric, sample: Sample) -> str:
    mean = sample.description.mean
    if mean is None:
        return "-"
    if not metric.name.startswith(_VMSTAT):
        return f"{seconds(mean) if metric.unit == 'ns' else mean:.2f}"
    if metric.unit == "%":
        return f"{mean:.0f}%"
    return f"{mean:.0f}" if metric.unit != "pages/s" else f"{mean:.3f}"


def _percent(metric: Metric, base: Sample, sample: Sample, is_sure: bool) -> str:
    old, new = base.description.mean, sample.description.mean
    if old is None or new is None:
        return ""
    change = gain(metric, old, new)
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


def _legend(comparison: Comparison, rows: Sequence[Row]) -> str:
    runs = " + ".join(str(len(side.runs)) for side in comparison.sides)
    told = f"\nmeans of {runs} runs; per cent: better is positive"
    if any(row.is_sure for row in rows):
        return f"{told}; in ** where p is at most {comparison.alpha:g}\n"
    return f"{told}; none is told apart from chance\n"
