# SPDX-License-Identifier: Apache-2.0
"""Two sides of which each has sessions of its own: a session is one value."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wbscope.stats.margins import rounding_of
from wbscope.stats.shift import Scale, Shift, shift
from wbscope.stats.tails import resolution

__all__ = ["between_sd", "session_shift"]


def session_shift(
    a: Sequence[ArrayLike], b: Sequence[ArrayLike], confidence: float, scale: Scale
) -> Shift:
    """The difference of the sides' sessions, as far as sessions of one side differ.

    Each session is its pseudomedian (the median of the means of all pairs).  The test is t on
    these, with one spread for both sides, so that a side may have a single session; it is exact
    where sessions are normal and have equally many runs.  p is the larger one of it and of the
    test of runs, the interval holds both: that the runs differ is needed, too.  Sessions of one
    side that are equal to the last digit are as different as rounding hides.

    Shape:  sessions of (n,), n >= 1, finite; three sessions or more in all.
    Raises: ValueError for two sessions, which do not tell how much sessions differ, and when a
            ratio is asked for and a value is not above 0.
    Source: nested analysis of variance, Snedecor and Cochran: Statistical Methods, 13.
    """
    from scipy import stats

    runs = [np.concatenate([np.asarray(one, dtype=float) for one in side]) for side in (a, b)]
    within = shift(runs[0], runs[1], confidence, scale)
    mine, theirs = _locations(a, scale), _locations(b, scale)
    degrees = mine.size + theirs.size - 2
    if degrees < 1:
        raise ValueError("two sessions do not tell how much sessions differ")
    moved = float(mine.mean() - theirs.mean())
    squares = float(((mine - mine.mean()) ** 2).sum() + ((theirs - theirs.mean()) ** 2).sum())
    variance = squares / degrees
    if moved and math.sqrt(variance) <= rounding_of("difference", [*mine, *theirs]):
        variance = _hidden(runs, min(mine.min(), theirs.min()), scale)
    error = math.sqrt(variance * (1 / mine.size + 1 / theirs.size))
    p = within.p if error == 0 else float(2 * stats.t.sf(abs(moved) / error, degrees))
    reach = error * float(stats.t.isf((1 - confidence) / 2, degrees))
    ends = [moved, moved - reach, moved + reach]
    if scale == "ratio":
        ends = [_exp(one) for one in ends]
    low = None if within.low is None else min(within.low, ends[1])
    high = None if within.high is None else max(within.high, ends[2])
    return Shift(scale, ends[0], low, high, max(p, within.p), "sessions")


def between_sd(sessions: Sequence[ArrayLike]) -> float:
    """Standard deviation of what sessions have in common; 0 with one session.

    By the method of moments (one-way random effects); what noise of the runs explains is none.

    Shape:  sessions of (n,), n >= 1.
    Source: Searle, Casella, McCulloch: Variance Components, 3.6.
    """
    groups = [np.asarray(one, dtype=float) for one in sessions]
    sizes = np.array([one.size for one in groups], dtype=float)
    runs, k = sizes.sum(), len(groups)
    if k < 2 or runs <= k:
        return 0.0
    means = np.array([one.mean() for one in groups])
    mean = float((sizes * means).sum() / runs)
    between = float((sizes * (means - mean) ** 2).sum()) / (k - 1)
    within = sum(float(((one - one.mean()) ** 2).sum()) for one in groups) / (runs - k)
    size = (runs - float((sizes**2).sum()) / runs) / (k - 1)
    return math.sqrt(max(0.0, (between - within) / size))


def _locations(sessions: Sequence[ArrayLike], scale: Scale) -> NDArray[np.float64]:
    return np.array([_pseudomedian(np.asarray(one, dtype=float), scale) for one in sessions])


def _hidden(runs: Sequence[NDArray[np.float64]], lowest: float, scale: Scale) -> float:
    """The variance that rounding to whole ticks has, and may hide.

    Source: Sheppard's correction: of an even distribution over a tick.
    """
    tick = resolution(np.concatenate(runs).tolist())
    if scale == "ratio":
        tick = math.log1p(tick / math.exp(lowest))
    return tick**2 / 12


def _pseudomedian(values: NDArray[np.float64], scale: Scale) -> float:
    """Hodges and Lehmann's, for one sample."""
    if scale == "ratio":
        values = np.log(values)
    rows, columns = np.triu_indices(values.size)
    return float(np.median((values[rows] + values[columns]) / 2))


def _exp(value: float) -> float:
    """A border that is too far away is no border."""
    return math.exp(value) if value < 700 else math.inf
