# SPDX-License-Identifier: Apache-2.0
"""A comparison at a glance: the verdict, how many metrics are what, and those that matter most."""

from __future__ import annotations

from collections.abc import Iterable

from wbscope.compare.comparison import Comparison
from wbscope.compare.marks import FALSE_SHARE, Told, matter_most
from wbscope.render.changes import FACES, change_text, interval_text, median_text, row_p
from wbscope.render.comparepage import (
    folded,
    is_tested,
    is_untested,
    laid_out,
    level_text,
    one_run_each,
    shown_rows,
    tests_text,
    verdict_first,
)
from wbscope.render.comparewords import verdict_lines
from wbscope.render.printable import printable
from wbscope.render.table import PAGE_WIDTH

__all__ = ["MOST_TOLD", "glance_text", "is_short"]

# Of the metrics that surely changed.
MOST_TOLD = 10
_ONCE = "keys of one metric once where they moved in the same direction"


def is_short(comparison: Comparison) -> bool:
    """Whether all metrics are no more than would be told."""
    sides = (side.name for side in comparison.sides[1:])
    return all(len(shown_rows(comparison.of_side(name))) <= MOST_TOLD for name in sides)


def glance_text(comparison: Comparison, width: int = PAGE_WIDTH, faces: bool = True) -> str:
    """A screen; all metrics are a `--full` away."""
    lines = verdict_first(comparison, width)
    for side in comparison.sides[1:]:
        if len(comparison.sides) > 2:
            words = verdict_lines(comparison, side.name)
            lines += ["", *(folded(line, width) for line in words)]
        lines += _glance(comparison, side.name, width, faces)
    lines += ["", folded(" ".join(_how_to_read(comparison, faces)), width)]
    lines.append(folded("All metrics: --full. A page with a dot for each run: --html FILE.", width))
    return "\n".join(lines) + "\n"


def _glance(comparison: Comparison, side: str, width: int, faces: bool) -> list[str]:
    """Of one side what matters most by evidence."""
    lines: list[str] = []
    told = matter_most(comparison.of_side(side), MOST_TOLD)
    if not told:
        return lines
    heads = ["", "", comparison.base.name, side, "change", "interval", "p"]
    table = [[printable(head) for head in heads], *(_cells(one, faces) for one in told)]
    head, *body = laid_out(table, width)
    if told[0].row.is_untested:
        lines += ["", "The largest changes, as they are:"]
    lines += ["", head]
    each = len(body) // len(told)  # a row is one line, or two
    for place, one in enumerate(told):
        lines += body[place * each : (place + 1) * each]
        if one.alike:
            names = ", ".join(row.metric.name for row in one.alike)
            lines.append(_shortened(printable(f"    and alike: {names}"), width))
    return lines


def _cells(one: Told, faces: bool) -> list[str]:
    row = one.row
    return [
        FACES[row.outcome] if faces else "",
        printable(row.metric.name),
        median_text(row.metric, row.base_sample),
        median_text(row.metric, row.sample),
        change_text(row),
        interval_text(row.metric, row.shift),
        row_p(row),
    ]


def _how_to_read(comparison: Comparison, faces: bool) -> Iterable[str]:
    if not is_tested(comparison):
        if is_untested(comparison):
            yield from one_run_each(comparison)
            yield f"Listed are the largest changes, {_ONCE}."
        return
    yield (
        "Medians of runs; change is the Hodges-Lehmann shift, interval what it can be with"
        f" {level_text(comparison)} confidence."
    )
    yield (
        f"Listed is what {tests_text(comparison, 'an')} tells from chance among all these metrics"
        f" (Benjamini-Hochberg: at most {FALSE_SHARE * 100:g} % of it is expected to be chance),"
        f" metrics with the same order of runs and {_ONCE}."
    )
    if is_untested(comparison):
        yield "Of metrics with one run each, which nothing tests, it is the largest changes."
    margin = f"{comparison.margin * 100:g} %"
    if faces:
        yield f":) better and :( worse by more than {margin} as estimated."
    yield f"same: within {margin}, whatever the interval allows; cannot tell: all else."


def _shortened(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 4].rpartition(',')[0]}, ..."
