# SPDX-License-Identifier: Apache-2.0
"""How much two sides differ: the Hodges-Lehmann shift and its exact interval."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wbscope.stats.ranktest import rank_test, tail

__all__ = ["Scale", "Shift", "critical_rank", "shift"]

Scale = Literal["ratio", "difference"]


@dataclass(frozen=True)
class Shift:
    """From b to a: as a ratio a / b, or as a difference a - b.

    low and high are None where so few runs cannot bound the shift with this
    confidence.  p belongs to the same data and to both scales.
    """

    scale: Scale
    estimate: float
    low: float | None
    high: float | None
    p: float
    method: str

    @property
    def relative(self) -> float | None:
        """The change as a share of b; None on the scale of differences."""
        return self.estimate - 1 if self.scale == "ratio" else None


def shift(
    a: ArrayLike, b: ArrayLike, confidence: float = 0.95, scale: Scale | None = None
) -> Shift:
    """The median of all differences between a value of a and one of b.

    Of logarithms (so a ratio) unless a value is 0 or negative, or another scale
    is asked for.  The interval has all shifts that an exact Mann-Whitney test at
    1 - confidence does not refuse.

    Shape:  a (n,), b (m,), n, m >= 1, finite.
    Raises: ValueError when a ratio is asked for and a value is not above 0.
    Source: Hodges and Lehmann 1963; Hollander, Wolfe, Chicken: Nonparametric
            Statistical Methods, 3rd ed., 4.2 and 4.3.
    """
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    tested = rank_test(first, second)
    positive = bool((first > 0).all() and (second > 0).all())
    chosen: Scale = scale or ("ratio" if positive else "difference")
    if chosen == "ratio":
        if not positive:
            raise ValueError("a ratio needs values above 0")
        first, second = np.log(first), np.log(second)
    steps = np.sort(np.subtract.outer(first, second), axis=None)
    rank = critical_rank(first.size, second.size, 1 - confidence)
    bounds = None if rank is None else (float(steps[rank - 1]), float(steps[-rank]))
    found = [float(np.median(steps)), *(bounds or ())]
    if chosen == "ratio":
        found = [float(np.exp(value)) for value in found]
    low, high = (found[1], found[2]) if bounds else (None, None)
    return Shift(chosen, found[0], low, high, tested.p, tested.method)


@cache
def critical_rank(n: int, m: int, alpha: float) -> int | None:
    """k of the interval from the k-th smallest to the k-th largest difference.

    The largest k with P(U <= k - 1) <= alpha / 2; None when not even the whole
    range of differences is wide enough.
    """
    low, high = 0, n * m // 2
    while low < high:
        middle = (low + high + 1) // 2
        if tail(n, m, middle - 1) <= alpha / 2:
            low = middle
        else:
            high = middle - 1
    return low or None


def differences(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """All differences of each row of a (k, n) and of b (k, m), sorted: (k, n * m)."""
    steps = a[:, :, None] - b[:, None, :]
    return np.sort(steps.reshape(len(a), -1), axis=1)
