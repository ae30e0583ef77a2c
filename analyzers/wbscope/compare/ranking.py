# SPDX-License-Identifier: Apache-2.0
"""Many rows at once: which changes are more than chance among so many, and which matter most."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from wbscope.compare.comparison import Comparison, Outcome, Row, Sample, is_published
from wbscope.measure.metric import split_name
from wbscope.stats.estimates import Shift
from wbscope.stats.tests import false_discovery, rank_order

# Of what is marked in a table that is looked through, so much may be chance.
FALSE_SHARE = 0.1


@dataclass(frozen=True)
class Tally:
    """How many metrics of a side are what, of those that both sides have.

    constant    of the same ones: a single value in all runs of both sides
    alone       of the undecided ones: would be sure if it were the only metric
    by_chance   so many would be sure alone if nothing had changed
    """

    counts: dict[Outcome, int]
    constant: int
    alone: int
    by_chance: float

    @property
    def all(self) -> int:
        """All of them."""
        return sum(self.counts.values())

    def of(self, outcome: Outcome) -> int:
        """How many have this outcome."""
        return self.counts.get(outcome, 0)


@dataclass(frozen=True)
class Told:
    """A row that stands for others, told once.

    All moved in the same direction and, where there is a test, have the same verdict. Their runs
    rank in the same order, which is one fact, or they are keys of one metric.
    """

    row: Row
    alike: tuple[Row, ...]


def discovered(rows: Iterable[Row]) -> list[Row]:
    """The rows of one side, with q; what may be chance among so many is undecided.

    Rows whose runs rank alike are one test, and one that no value can differ in is none.
    One that has no mark whatever its p is (within the margin, or its interval touches no
    change) is no discovery, and makes none of others: it counts as p 1.
    """
    listed = list(rows)
    p_values: dict[Hashable, float] = {}
    for row in listed:
        if row.shift is not None and not is_constant(row):
            p = row.shift.p if row.is_sure else 1.0
            p_values[_ranks(row)] = min(p, p_values.get(_ranks(row), 1.0))
    q_values = dict(zip(p_values, false_discovery(list(p_values.values())), strict=True))
    return [_with_q(row, q_values) for row in listed]


def looked_through(comparison: Comparison) -> Comparison:
    """Each side's rows among each other, in the order that they had."""
    sides = [side.name for side in comparison.sides[1:]]
    found = {name: iter(discovered(comparison.of_side(name))) for name in sides}
    return replace(comparison, rows=tuple(next(found[row.side]) for row in comparison.rows))


def _with_q(row: Row, q_values: dict[Hashable, float]) -> Row:
    if row.shift is None or is_constant(row):
        return row
    found = replace(row, q=q_values[_ranks(row)])
    if not row.is_sure or q_values[_ranks(row)] <= FALSE_SHARE:
        return found
    many = f"p {row.shift.p:.2g} may be chance among {len(q_values)} metrics"
    return replace(found, outcome="undecided", reason=many)


def tally(rows: Iterable[Row], alpha: float) -> Tally:
    """Of the rows that both sides have."""
    there = [row for row in rows if row.sample.values and row.base_sample.values]
    tests = {_ranks(row) for row in there if row.shift is not None and not is_constant(row)}
    undecided = [row for row in there if row.outcome == "undecided" and row.q is not None]
    return Tally(
        counts=dict(Counter(row.outcome for row in there)),
        constant=sum(map(is_constant, there)),
        alone=sum(row.shift is not None and row.shift.p <= alpha for row in undecided),
        by_chance=alpha * len(tests),
    )


def is_constant(row: Row) -> bool:
    """One value in all runs: there is nothing to see."""
    values = {*row.sample.values, *row.base_sample.values}
    return row.shift is not None and len(values) == 1


def matter_most(rows: Iterable[Row], most: int) -> list[Told]:
    """What surely changed, better and worse first, then by q and by the effect over the noise.

    Of one run each, which nothing tests, the largest changes: those that have a direction first.
    """
    sure = [row for row in rows if row.is_sure or (row.is_untested and not is_constant(row))]
    sure.sort(key=lambda row: (_is_side_note(row), _q(row), -_strength(row)))
    found: dict[Hashable, list[Row]] = {}
    places: dict[Hashable, Hashable] = {}
    for row in sure:
        verdict = (row.outcome, _rises(row))
        names = [(verdict, split_name(row.metric.name)[0]), (verdict, _ranks(row))]
        # Two runs are always in one of two orders, which says nothing.
        names = names[:1] if row.is_untested else names
        place = next((places[name] for name in names if name in places), row.metric.name)
        places |= {name: places.get(name, place) for name in names}
        found.setdefault(place, []).append(row)
    return [Told(first, tuple(alike)) for first, *alike in list(found.values())[:most]]


def _is_side_note(row: Row) -> bool:
    return row.outcome == "changed" or (row.is_untested and row.metric.better == "neutral")


def _rises(row: Row) -> bool:
    found = row.shift
    return found is not None and found.estimate > (1 if found.scale == "ratio" else 0)


def _q(row: Row) -> float:
    return 1.0 if row.q is None or row.is_untested else row.q


def _ranks(row: Row) -> Hashable:
    """The order of all runs, or the reverse: what the test sees; means have none."""
    if is_published(row.shift):
        return row.metric.name
    values = [*row.base_sample.values, *row.sample.values]
    return (len(row.base_sample.values), rank_order(values))


def _strength(row: Row) -> float:
    """The shift in robust spreads of both sides; without a spread it is as large as can be."""
    found = row.shift
    if found is None:
        return 0.0
    size = abs(math.log(found.estimate)) if found.scale == "ratio" else abs(found.estimate)
    if row.is_untested:  # sizes in units of their own are no sizes beside shares
        return size if found.scale == "ratio" else 0.0
    noise = _spread(row.sample, found) + _spread(row.base_sample, found)
    return size / noise if noise else math.inf


def _spread(sample: Sample, found: Shift) -> float:
    values = np.log(sample.values) if found.scale == "ratio" else np.asarray(sample.values)
    return float(np.median(np.abs(values - np.median(values))))
