# SPDX-License-Identifier: Apache-2.0
"""Where a series of numbers moved to another level, and how surely.

ruptures proposes the points: a segmentation by kernel, with the Gaussian one, which a single
far value cannot move. A permutation test of the values on both sides of a point then says how
often chance alone, wherever the point may be, cuts so well. The kernel sees any other
distribution, such as a smaller spread, so that the rank test has to see another level as well.
docs/statistics.md has the table by which this was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wbscope.stats.tests import rank_test, smallest_p

Array = NDArray[np.float64]

# Fewer on a side of a point are outliers, not a level.
_LEAST_SIDE = 3
# More on a side add nothing but time.
_MOST_SIDE = 40
# What one more point must gain, in logarithms of the length: 1 finds less, 0.5 not more.
_PENALTY = 0.75
# Points less sure than this are none.
_ALPHA = 0.01
# With fewer values no cut is so good that chance makes it in less than one of 100 orders.
LEAST_VALUES = 10
# Without another number: no p is below 0.0002, then.
PERMUTATIONS = 4999
# Numbers that one step of the test holds in memory.
_STEP = 1 << 17
_ROUNDING = 1e-9
# Directions that hold less than such a share of the largest are noise, and time.
_SMALL = 1e-3


@dataclass(frozen=True)
class ChangePoint:
    """The values from `index` on are of another level than those before.

    p  how often values of one level, in any order, are cut so well anywhere, or the Mann-Whitney
       p of both parts where this is larger; of the values up to the points before and after,
       and 40 at most on each side
    """

    index: int
    p: float


def change_points(values: Sequence[float], permutations: int = PERMUTATIONS) -> list[ChangePoint]:
    """All of a series, in its order; the same series always gives the same.

    permutations  of each point; no p is below 1 / (permutations + 1)

    Shape:  values (n,), finite; with n < LEAST_VALUES, or all alike, there is none.
    """
    series = np.asarray(values, dtype=float)
    if len(series) < LEAST_VALUES or not np.ptp(series):
        return []
    found = _proposed(series)
    while found:
        borders = [0, *found, len(series)]
        tested = [
            ChangePoint(point, _p(*_around(series, before, point, after), permutations))
            for before, point, after in zip(borders, found, borders[2:], strict=False)
        ]
        weakest = max(tested, key=lambda point: point.p)
        if weakest.p <= _ALPHA:
            return tested
        found.remove(weakest.index)  # its neighbours have more values to be tested by now
    return []


def earliest_told(count: int, p: float) -> int | None:
    """After how many of so many values a new level, however clear, can have such a p.

    The best cut there is has its like in two orders at least: the new values last, and first.
    """
    for new in range(_LEAST_SIDE, count // 2 + 1 if count >= LEAST_VALUES else 0):
        if smallest_p(min(count - new, _MOST_SIDE), min(new, _MOST_SIDE)) <= p:
            return new
    return None


def _proposed(series: Array) -> list[int]:
    from ruptures import KernelCPD

    width = _width(series)
    detector = KernelCPD(kernel="rbf", min_size=_LEAST_SIDE, params={"gamma": 1 / width})
    cuts = detector.fit(series.reshape(-1, 1)).predict(pen=_PENALTY * np.log(len(series)))
    return [int(cut) for cut in cuts[:-1]]  # the last is the end


def _around(series: Array, before: int, point: int, after: int) -> tuple[Array, Array]:
    """What a point is judged by: values up to the points before and after it."""
    left = series[max(before, point - _MOST_SIDE) : point]
    return left, series[point : min(after, point + _MOST_SIDE)]


def _p(left: Array, right: Array, permutations: int) -> float:
    """A change of level has to pass both tests: one sees any change, the other the level."""
    level = rank_test(left, right).p
    if level > _ALPHA:
        return level
    return max(level, _chance(np.concatenate([left, right]), permutations))


def _width(series: Array) -> float:
    """The middle of the squared distances of values that differ: the usual width of a kernel."""
    apart = (series[:, None] - series[None, :]) ** 2
    return float(np.median(apart[apart > 0]))


def _chance(series: Array, permutations: int) -> float:
    """p of the best cut of these values among those of the same values in other orders."""
    points = _points(np.exp(-((series[:, None] - series[None, :]) ** 2) / _width(series)))
    best = _best_gain(points[None])[0]
    generator = np.random.default_rng(0)
    at_once = max(1, _STEP // points.size)
    as_good = 0
    for first in range(0, permutations, at_once):
        count = min(at_once, permutations - first)
        orders = generator.permuted(np.tile(np.arange(len(series)), (count, 1)), axis=1)
        as_good += int((_best_gain(points[orders]) >= best - _ROUNDING).sum())
    return (1 + as_good) / (1 + permutations)


def _points(alike: Array) -> Array:
    """Points whose inner products are nearly the kernel's values: sums of them are short.

    Shape: (n, n) -> (n, r)
    """
    sizes, vectors = np.linalg.eigh(alike)
    kept = sizes > _SMALL * sizes[-1]
    points: Array = vectors[:, kept] * np.sqrt(sizes[kept])
    return points


def _best_gain(points: Array) -> Array:
    """How much likeness the best cut keeps within the two parts.

    Shape: points (k, n, r), of n values in k orders -> (k,)
    """
    n = points.shape[1]
    cut = np.arange(_LEAST_SIDE, n - _LEAST_SIDE + 1)
    sums = points.cumsum(1)
    left = sums[:, cut - 1]
    right = sums[:, -1:] - left
    kept: Array = ((left**2).sum(2) / cut + (right**2).sum(2) / (n - cut)).max(1)
    return kept
