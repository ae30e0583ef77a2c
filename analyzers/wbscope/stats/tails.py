# SPDX-License-Identifier: Apache-2.0
"""Runs that are far outside of what the others are, which no shift of the middle shows."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["SPREADS", "Tail", "fisher", "spread", "tail_of"]

# So many spreads from the median are far. Chosen by simulation (docs/compare.md): with it
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


def tail_of(a: ArrayLike, b: ArrayLike, margin: float) -> Tail:
    """The runs of a that are far above the base b; larger is worse.

    Far is above the median of b by the margin and 12 robust spreads. One such run is
    named if it is above the largest of b by the margin, too: the base has no such run.

    Shape: a (n,), b (m,), n, m >= 1, finite.
    """
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    border = float(np.median(second)) + margin + SPREADS * spread(second)
    beyond = tuple(int(place) for place in np.flatnonzero(first > border))
    far = tuple(place for place in beyond if first[place] > second.max() + margin)
    there = int((second > border).sum())
    return Tail(beyond, far, there, fisher(len(beyond), first.size, there, second.size))


def spread(values: ArrayLike) -> float:
    """The median deviation from the median as an s.d.; where it is 0, the mean one.

    Source: Iglewicz and Hoaglin 1993, How to Detect and Handle Outliers, 3.3.
    """
    found = np.asarray(values, dtype=float)
    away = np.abs(found - np.median(found))
    return float(np.median(away)) / _HALF_WITHIN or _OF_MEAN * float(away.mean())


def fisher(x: int, n: int, y: int, m: int) -> float:
    """One-sided: the chance of x or more of n, when x + y of n + m are drawn blindly.

    Source: Fisher's exact test, whose tail is that of the hypergeometric distribution.
    """
    if x == 0:
        return 1.0
    from scipy.stats import hypergeom  # a second, and most gates have no such run

    return float(hypergeom.sf(x - 1, n + m, n, x + y))
