# SPDX-License-Identifier: Apache-2.0
"""Welch's t of means that somebody published with s.d. and n: their runs are not there."""

from __future__ import annotations

import math
from dataclasses import dataclass

from wbscope.stats.shift import Shift

__all__ = ["WELCH", "Means", "welch"]

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
