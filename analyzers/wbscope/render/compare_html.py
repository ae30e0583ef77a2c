# SPDX-License-Identifier: Apache-2.0
"""A comparison as one HTML file that needs nothing else: tables, sentences and plots."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from wbscope.base.units import prefix_step
from wbscope.compare.comparison import Comparison, Outcome, Row
from wbscope.compare.ranking import matter_most
from wbscope.measure.metric import Metric
from wbscope.plot.dots import Curve, Strip, dots_svg, ecdf_svg
from wbscope.render.changes import (
    better_text,
    change_text,
    described_text,
    interval_text,
    median_text,
    row_p,
    runs_text,
    value_text,
    verdict_lines,
)
from wbscope.render.compare import (
    MOST_TOLD,
    constant_text,
    doubt_lines,
    group_name,
    how_to_read,
    is_short,
    left_out,
    short_metric,
    shown_rows,
    title_line,
    warned_text,
)
from wbscope.render.sections import asset, policy, template
from wbscope.render.text import printable
from wbscope.stats.estimates import Shift

# Not every font has faces.
_MOUTHS: dict[Outcome, str] = {"better": "M6 12 Q10 17 14 12", "worse": "M6 15 Q10 10 14 15"}
_STRAIGHT = "M6 13 H14"
_FACE = (
    '<svg class="face" viewBox="0 0 20 20" width="20" height="20" role="img" aria-label="{told}">'
    '<circle cx="10" cy="10" r="9"/><circle cx="7" cy="8" r="1"/><circle cx="13" cy="8" r="1"/>'
    '<path d="{mouth}"/></svg>'
)
_NS = Metric("pause_ns", "ns", "lower", "length of a pause", "pause_distribution")


def compare_html(
    comparison: Comparison, pauses: Mapping[str, Sequence[Curve]], faces: bool = True
) -> str:
    """The page; `pauses` has the curves of each side's runs, if there are any."""
    known = {name: curves for name, curves in pauses.items() if any(curves)}
    script, style = asset("compare.js"), asset("compare.css")
    return template("compare.html.j2").render(
        script=script,
        style=style,
        policy=policy([script], [style]),
        title=title_line(comparison),
        warned=warned_text(comparison),
        doubts=doubt_lines(comparison),
        ecdf=_pauses(known) if known else "",
        sides=[_side(comparison, side.name, faces) for side in comparison.sides[1:]],
        how_to_read=" ".join(how_to_read(comparison, False)),
    )


def _side(comparison: Comparison, name: str, faces: bool) -> dict[str, Any]:
    rows = comparison.of_side(name)
    groups = groupby(shown_rows(rows), key=group_name)
    verdict, *words = verdict_lines(comparison, name)
    told = [one.row for one in matter_most(rows, MOST_TOLD)] if not is_short(comparison) else []
    return {
        "name": printable(name),
        "base": printable(comparison.base.name),
        "title": verdict,
        "words": words,
        "told": [{**_row(row, faces), "name": printable(row.metric.name)} for row in told],
        "constant": constant_text(rows),
        "groups": [
            {"name": printable(group), "rows": [_row(row, faces) for row in members]}
            for group, members in groups
        ],
        "left_out": list(left_out(rows)),
    }


def _row(row: Row, faces: bool) -> dict[str, str]:
    metric = row.metric
    return {
        "outcome": row.outcome,
        "reason": row.reason,
        "face": _face(row.outcome) if faces else "",
        "name": printable(short_metric(row)),
        "meaning": metric.meaning,
        "better": better_text(metric),
        "base": median_text(metric, row.base_sample),
        "base_mean": described_text(metric, row.base_sample),
        "value": median_text(metric, row.sample),
        "mean": described_text(metric, row.sample),
        "change": change_text(row),
        "interval": interval_text(row.metric, row.shift),
        "p": row_p(row),
        "n": runs_text(row.sample, row.base_sample),
        "plot": _plot(row),
        # What the columns are sorted by.
        "by_change": _sorting(row),
        "by_p": "" if row.shift is None else f"{row.shift.p:.6g}",
    }


def _sorting(row: Row) -> str:
    """The size of the change on its scale; those that nothing was found of come last."""
    if row.shift is None or not row.is_sure:
        return ""
    found = row.shift
    size = abs(math.log(found.estimate)) if found.scale == "ratio" else abs(found.estimate)
    return f"{size:.6g}"


def _pauses(curves: Mapping[str, Sequence[Curve]]) -> str:
    named = {printable(name): mine for name, mine in curves.items()}
    return ecdf_svg(named, lambda length: _tick(_NS, length), prefix_step(_NS.unit))


def _plot(row: Row) -> str:
    """Nothing where one axis cannot hold both sides."""
    metric = row.metric
    if len({*row.base_sample.units, *row.sample.units}) > 1:
        return ""
    return dots_svg(
        list(_strips(row)), lambda value: _tick(metric, value), prefix_step(metric.unit)
    )


def _tick(metric: Metric, value: float) -> str:
    """10 MiB, not 10.0 MiB: ticks are round."""
    return re.sub(r"(\.\d*?)0+(?= )", r"\1", value_text(metric, value)).replace(". ", " ")


def _face(outcome: Outcome) -> str:
    return _FACE.format(told=outcome, mouth=_MOUTHS.get(outcome, _STRAIGHT))


def _strips(row: Row) -> Iterator[Strip]:
    base, mine = row.base_sample, row.sample
    assert base.description.median is not None
    assert mine.description.median is not None
    yield Strip(printable(row.base), base.values, base.description.median)
    expected = None if row.shift is None else _moved(row.shift, base.description.median)
    yield Strip(printable(row.side), mine.values, mine.description.median, expected)


def _moved(found: Shift, base: float) -> tuple[float, float] | None:
    """The base's median, moved by the interval of the shift."""
    if found.low is None or found.high is None:
        return None
    if found.scale == "ratio":
        return base * found.low, base * found.high
    return base + found.low, base + found.high
