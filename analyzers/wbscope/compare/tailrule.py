# SPDX-License-Identifier: Apache-2.0
"""Single runs far outside of what the base has: the middle may be as it was."""

from __future__ import annotations

import math
from dataclasses import dataclass

from wbscope.base.units import format_value
from wbscope.compare.comparison import Comparison, Row, Side
from wbscope.compare.sessions import Design
from wbscope.stats.shift import Scale
from wbscope.stats.tails import resolution, tail_of

__all__ = ["LEAST_RUNS", "FarRuns", "runs_far_out", "tail_rule"]

_MOST_NAMED = 10
# A side of fewer tells no spread.
LEAST_RUNS = 4


@dataclass(frozen=True)
class FarRuns:
    """What stalls now and then.

    runs      their paths
    p         of so many on this side, by chance
    is_worse  so many are no chance, at the level asked for
    told      which, with their values, and against what
    """

    runs: tuple[str, ...]
    p: float
    is_worse: bool
    told: str


def runs_far_out(comparison: Comparison, name: str) -> dict[str, list[Row]]:
    """The runs of a side that are far outside of what the base has, each with the metrics.

    Of metrics whose middle did not surely move: a stall now and then moves none.
    The one with most of them first; of sides of LEAST_RUNS and more, as fewer have no spread.
    """
    side = next(one for one in comparison.sides if one.name == name)
    found: dict[str, list[Row]] = {}
    for row in comparison.of_side(name):
        fewest = min(len(row.sample.values), len(row.base_sample.values))
        if row.shift is None or row.is_sure or row.metric.better == "neutral":
            continue
        if fewest < LEAST_RUNS:
            continue
        margin = comparison.margin
        if row.shift.scale == "difference":
            margin *= abs(row.base_sample.description.median or 0.0)
        far = tail_rule(row, row.shift.scale, margin, side, level=0.0)
        for run in far.runs if far is not None else ():
            found.setdefault(run, []).append(row)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def tail_rule(
    row: Row, scale: Scale, delta: float, side: Side, level: float, design: Design | None = None
) -> FarRuns | None:
    """Look at each run, on the scale of the shift, by the margin on that scale.

    None when no run is far out. Where their number is no chance, all beyond the border
    are told, else those that are also worse than any run of the base.  Where the design
    compares runs of the same sessions, each is seen against its own one.
    """
    lower = row.metric.better == "lower"
    margin = delta
    if scale == "ratio":
        margin = math.log1p(delta) if lower else -math.log1p(-delta)
    mine, base = row.sample.values, row.base_sample.values
    blocks = (design.side, design.base) if design and design.kind == "blocks" else None
    worse = _worse(mine, scale, lower), _worse(base, scale, lower)
    tick = resolution([*mine, *base])
    if row.metric.unit == "count":
        tick = min(tick, 1.0)  # what is counted is not rounded
    found = tail_of(*worse, margin, blocks, _one_more(tick, base, scale, lower))
    is_worse = found.p <= level
    places = found.beyond if is_worse else found.far
    if not places:
        return None
    n, m = design.runs if design and blocks else (len(mine), len(base))
    unit = row.metric.unit or None
    known = [run for run in side.runs if run.value(row.metric.name) is not None]
    runs = tuple(known[place].path or known[place].name for place in places)
    values = [format_value("", unit, mine[place]) for place in places]
    named = [f"{run} ({value})" for run, value in zip(runs, values, strict=True)]
    worst = format_value("", unit, max(base) if lower else min(base))
    told = f"{len(places)} of {n} runs are far outside of what {row.base} has"
    told += " in their sessions" if blocks else f" (at worst {worst})"
    if is_worse:
        where, within = (" in their sessions", " within them") if blocks else ("", "")
        told = f"{len(places)} of {n} runs are far outside of most of {row.base}{where}, of which"
        told += f" {found.there} of {m} are (Fisher's exact test{within}, p {found.p:.2g})"
    more = [f"and {len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
    return FarRuns(runs, found.p, is_worse, f"{told}: {', '.join([*named[:_MOST_NAMED], *more])}")


def _one_more(tick: float, base: tuple[float, ...], scale: Scale, lower: bool) -> float:
    """A tick on the scale of the shift, from the worst of the base on."""
    if scale == "difference":
        return tick
    if lower:
        return math.log1p(tick / max(base))
    return -math.log1p(-tick / min(base)) if tick < min(base) else math.inf


def _worse(values: tuple[float, ...], scale: Scale, lower: bool) -> list[float]:
    """Larger is worse."""
    sign = 1 if lower else -1
    return [sign * (math.log(value) if scale == "ratio" else value) for value in values]
