# SPDX-License-Identifier: Apache-2.0
"""How much two sides differ: shifts, margins, medians, means, and what is told of one side."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wbscope.stats.tests import rank_test, tail

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


# Of what is compared: double precision keeps 1e-16, logarithms of large numbers 1e-14.
_ROUNDING = 1e-12


def is_beyond(change: float, margin: float, rounding: float) -> bool:
    """True when the change is larger than the margin by more than rounding makes of it."""
    return change - margin > rounding


def rounding_of(scale: Scale, values: Iterable[float]) -> float:
    """How far off a shift of such values may be by rounding: a ratio is near 1, whatever they are.

    Shape: the values of both sides, finite.
    """
    if scale == "ratio":
        return _ROUNDING
    return _ROUNDING * max(map(abs, values), default=0.0)


def median_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float] | None:
    """The k-th smallest and the k-th largest value, with the largest k that is sure enough.

    None where not even all values are, as with 5 values and 95 %.

    Shape:  values (n,), n >= 0, finite.
    Source: Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, 3rd ed., 3.6
            (the sign test); no shape of the distribution is assumed.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    n = int(ordered.size)
    below, rank = 0, 0
    while rank < (n + 1) // 2:
        below += comb(n, rank)
        if 2 * below / 2**n > 1 - confidence:
            break
        rank += 1
    return (float(ordered[rank - 1]), float(ordered[n - rank])) if rank else None


# Without the smallest and the largest value there have to be two for an s.d.
_LEAST_TRIMMED = 4


@dataclass(frozen=True)
class Description:
    """Of n values; s.d. with n - 1, None where there are too few values.

    trimmed_mean and trimmed_sd leave the smallest and the largest value out, as
    "dropping the fastest and slowest" does.  That makes the s.d. too small by a
    factor of 0.6 (6 runs) to 0.7 (10 runs), so it must not feed a test.
    """

    n: int
    median: float | None = None
    mean: float | None = None
    sd: float | None = None
    least: float | None = None
    most: float | None = None
    trimmed_mean: float | None = None
    trimmed_sd: float | None = None


def describe(values: ArrayLike) -> Description:
    """Shape: values (n,), n >= 0, finite."""
    sorted_values = np.sort(np.asarray(values, dtype=float))
    n = sorted_values.size
    if n == 0:
        return Description(0)
    kept = sorted_values[1:-1] if n >= _LEAST_TRIMMED else None
    return Description(
        n=n,
        median=float(np.median(sorted_values)),
        mean=float(sorted_values.mean()),
        sd=float(sorted_values.std(ddof=1)) if n > 1 else None,
        least=float(sorted_values[0]),
        most=float(sorted_values[-1]),
        trimmed_mean=None if kept is None else float(kept.mean()),
        trimmed_sd=None if kept is None else float(kept.std(ddof=1)),
    )


# Shift.method of a test of published means.
WELCH = "Welch's t of published means"


@dataclass(frozen=True)
class Means:
    """mean and s.d. (with n - 1) of n values, n >= 2."""

    mean: float
    sd: float
    n: int


def welch(a: Means, b: Means, confidence: float = 0.95) -> Shift | None:
    """The difference of the means a - b with its interval, by Welch-Satterthwaite.

    None where neither side has any spread: rounded to nothing, it says nothing.

    Source: Welch 1947; p is that of scipy.stats.ttest_ind_from_stats.
    """
    from scipy import stats  # a second, and only published means want it

    parts = a.sd**2 / a.n, b.sd**2 / b.n
    error = math.sqrt(sum(parts))
    if not error > 0 or not math.isfinite(error):
        return None
    tested = stats.ttest_ind_from_stats(a.mean, a.sd, a.n, b.mean, b.sd, b.n, equal_var=False)
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (a.n - 1) + parts[1] ** 2 / (b.n - 1))
    reach = float(stats.t.ppf((1 + confidence) / 2, freedom)) * error
    estimate = a.mean - b.mean
    p = float(tested.pvalue)
    return Shift("difference", estimate, estimate - reach, estimate + reach, p, WELCH)
