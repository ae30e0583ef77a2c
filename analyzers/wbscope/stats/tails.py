# SPDX-License-Identifier: Apache-2.0
"""Runs that are far outside of what the others are, which no shift of the middle shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wbscope.stats.margins import is_beyond, rounding_of

__all__ = [
    "SPREADS",
    "Blocks",
    "Counts",
    "Tail",
    "fisher",
    "fisher_within",
    "resolution",
    "spread",
    "tail_of",
]

# The block of each value of both sides; "" = the value is left out.
Blocks = tuple[Sequence[str], Sequence[str]]
# x of n here, y of m there.
Counts = tuple[int, int, int, int]

# So many spreads from the median are far. Chosen by simulation (docs/statistics.md): with it
# unchanged code loses less than 5 points of its PASS rate, also where runs are t2.
SPREADS = 12.0
# Of normal noise, half of the values are within so many s.d. of the median,
_HALF_WITHIN = NormalDist().inv_cdf(0.75)
# and so many times the mean deviation are the s.d.
_OF_MEAN = 1.2533


@dataclass(frozen=True)
class Tail:
    """Which runs are far out.

    beyond  places of those beyond the border
    far     of these, those that are also worse than the worst of the base
    there   runs of the base beyond the border
    p       of so many on this side, and so few on the base, by chance
    """

    beyond: tuple[int, ...]
    far: tuple[int, ...]
    there: int
    p: float


def tail_of(
    a: ArrayLike, b: ArrayLike, margin: float, blocks: Blocks | None = None, tick: float = 0.0
) -> Tail:
    """The runs of a that are far above the base b; larger is worse.

    Far is above the median of b by the margin and 12 robust spreads. One such run is
    named if it is above the largest of b by the margin, too: the base has no such run.
    And by more than a tick of the clock: one up or down is what rounding does.
    With blocks each value is what it is above the median of its block, of both sides.

    Shape: a (n,), b (m,), n, m >= 1, finite.
    """
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    names = blocks or (("all",) * first.size, ("all",) * second.size)
    labels = tuple(np.asarray(one, dtype=object) for one in names)
    if blocks is not None:
        first, second = _off_the_middle(first, second, labels[0], labels[1])
    kept, base_kept = (one != "" for one in labels)
    base = second[base_kept]
    border = margin + SPREADS * spread(base)
    rounding = rounding_of("difference", [*first.tolist(), *second.tolist(), border])
    above, base_above = (
        (one - np.median(base) > border + rounding) & of_block
        for one, of_block in ((first, kept), (second, base_kept))
    )
    beyond = tuple(int(place) for place in np.flatnonzero(above))
    least = max(margin, tick)
    far = tuple(one for one in beyond if is_beyond(first[one] - base.max(), least, rounding))
    counts: list[Counts] = []
    for name in dict.fromkeys(labels[0][kept]):
        mine, theirs = above[labels[0] == name], base_above[labels[1] == name]
        counts.append((int(mine.sum()), mine.size, int(theirs.sum()), theirs.size))
    return Tail(beyond, far, int(base_above.sum()), fisher_within(counts))


def spread(values: ArrayLike) -> float:
    """The median deviation from the median as an s.d.; where it is 0, the mean one.

    Source: Iglewicz and Hoaglin 1993, How to Detect and Handle Outliers, 3.3.
    """
    found = np.asarray(values, dtype=float)
    away = np.abs(found - np.median(found))
    return float(np.median(away)) / _HALF_WITHIN or _OF_MEAN * float(away.mean())


def resolution(values: Iterable[float]) -> float:
    """What the values are whole multiples of: 1e9 of whole seconds in ns; 0 where all are 0.

    Of two different values it is a power of ten: 12 and 24 s are not two ticks of a clock.
    """
    # Twelve digits: more are what a conversion of units makes.
    exact = {Decimal(f"{value:.12g}") for value in values}
    digits = [one.normalize().as_tuple() for one in exact if one]
    least = min((int(one.exponent) for one in digits), default=0)
    counts = [int(one.scaleb(-least)) for one in exact]
    ticks = math.gcd(*counts) if len(exact) > 2 else 1
    return float(Decimal(ticks).scaleb(least)) if digits else 0.0


def fisher(x: int, n: int, y: int, m: int) -> float:
    """One-sided: the chance of x or more of n, when x + y of n + m are drawn blindly.

    Source: Fisher's exact test, whose tail is that of the hypergeometric distribution.
    """
    if x == 0:
        return 1.0
    from scipy.stats import hypergeom  # a second, and most gates have no such run

    return float(hypergeom.sf(x - 1, n + m, n, x + y))


def fisher_within(blocks: Sequence[Counts]) -> float:
    """One-sided, where each block is drawn from by itself: so many or more of all blocks.

    Source: the exact conditional test of a common odds ratio; Agresti, Categorical Data
            Analysis, 3rd ed., 7.3.5.
    """
    told = [one for one in blocks if one[0] + one[2]]
    if len(told) < 2:
        return fisher(*told[0]) if told else 1.0
    from scipy.stats import hypergeom

    ways = np.ones(1)
    for x, n, y, m in told:
        ways = np.convolve(ways, hypergeom.pmf(np.arange(n + 1), n + m, n, x + y))
    return float(min(1.0, ways[sum(one[0] for one in told) :].sum()))


def _off_the_middle(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    mine: NDArray[np.object_],
    theirs: NDArray[np.object_],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of both sides, so that the side with more runs in a block is treated as the other."""
    first, second = first.copy(), second.copy()
    for name in {*mine, *theirs}:
        middle = np.median(np.concatenate([first[mine == name], second[theirs == name]]))
        first[mine == name] -= middle
        second[theirs == name] -= middle
    return first, second
