# SPDX-License-Identifier: Apache-2.0
"""A history as one HTML file that needs nothing else: what changed, and a plot of each metric."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median
from typing import Any

from wbscope.base.units import prefix_step
from wbscope.base.version import __version__
from wbscope.compare.trend import Change, Point, Trend, Trends
from wbscope.measure.metric import Metric
from wbscope.plot.trendplot import Column, Step, trend_svg
from wbscope.render.changes import better_text, p_text, value_text
from wbscope.render.historypage import (
    change_sentence,
    changed_text,
    head_text,
    how_sure,
    summary_text,
)
from wbscope.render.messages import warning_text
from wbscope.render.pageassets import asset, policy
from wbscope.render.printable import printable

__all__ = ["history_html"]

_STYLE = "history.css"


def history_html(found: Trends, file: str) -> str:
    """The page: changes by evidence, their metrics, then those without a change.

    The same history gives the same bytes.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = asset(_STYLE)
    trends = {trend.metric.name: trend for trend in found.trends}
    changes = [*found.changes(), *found.changes(sure=False)]
    changed = list(dict.fromkeys(change.metric.name for change in changes))
    return environment.get_template("history.html.j2").render(
        title=printable(f"{Path(file).name}: {summary_text(found)}"),
        head=printable(head_text(found)),
        policy=policy((), [style]),
        style=style,
        doubts=[printable(warning_text(notice)) for notice in found.warnings],
        changes=[_row(change, trends[change.metric.name], changed) for change in changes],
        changed=[_figure(trends[name], number) for number, name in enumerate(changed)],
        others=[
            _figure(trend, len(changed) + number)
            for number, trend in enumerate(t for t in found.trends if t.metric.name not in changed)
        ],
        how_sure=how_sure(found),
        version=__version__,
    )


def _row(change: Change, trend: Trend, changed: list[str]) -> dict[str, Any]:
    metric = change.metric
    return {
        "outcome": change.outcome,
        "figure": _anchor(changed.index(metric.name)),
        "metric": printable(metric.name),
        "told": change_sentence(change, len(trend.points)),
        "commit": printable(change.commit.short),
        "whole": printable(change.commit.name),
        "day": change.commit.date.date().isoformat(),
        "before": value_text(metric, change.level_before),
        "after": value_text(metric, change.level),
        "change": changed_text(change),
        "p": p_text(change.p),
        "p_adjusted": p_text(change.p_adjusted),
        "differing": printable(", ".join(change.differing)),
    }


def _figure(trend: Trend, number: int) -> dict[str, str]:
    metric = trend.metric
    return {
        "anchor": _anchor(number),
        "name": printable(metric.name),
        "meaning": printable(f"{metric.meaning} ({better_text(metric)})"),
        "left_out": f"{trend.left_out} older runs count another thing" if trend.left_out else "",
        "plot": _plot(trend),
    }


def _anchor(number: int) -> str:
    return f"metric-{number + 1}"


def _plot(trend: Trend) -> str:
    if not trend.points:
        return ""
    metric, points = trend.metric, trend.points
    steps = [
        Step(one.index, one.level, printable(one.commit.short), one.outcome)
        for one in trend.changes
    ]
    changes = trend.changes
    first = changes[0].level_before if changes else median(point.median for point in points)
    return trend_svg(
        [Column(point.values, printable(_told(metric, point))) for point in points],
        first,
        steps,
        (_end(points[0]), _end(points[-1]) if len(points) > 1 else ""),
        lambda value: _tick(metric, value),
        prefix_step(metric.unit),
    )


def _told(metric: Metric, point: Point) -> str:
    commit = point.commit
    values = ", ".join(value_text(metric, value) for value in point.values)
    kernels = "".join(f", Linux {kernel}" for kernel in commit.kernels)
    return f"{commit.short}, {commit.date.date().isoformat()}{kernels}: {values}"


def _end(point: Point) -> str:
    return printable(f"{point.commit.short}, {point.commit.date.date().isoformat()}")


def _tick(metric: Metric, value: float) -> str:
    """10 MiB, not 10.0 MiB: ticks are round."""
    return re.sub(r"(\.\d*?)0+(?= )", r"\1", value_text(metric, value)).replace(". ", " ")
