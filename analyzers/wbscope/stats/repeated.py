# SPDX-License-Identifier: Apache-2.0
"""Runs that were made together, and runs far outside of the others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wbscope.stats.estimates import Scale, Shift, is_beyond, rounding_of, shift
from wbscope.stats.tests import is_countable, normal_tail_of, step_of, ways_of

Block = tuple[ArrayLike, ArrayLike]


def blocked_shift(blocks: Sequence[Block], confidence: float, scale: Scale) -> Shift:
    """The median of all differences within a block; the test sums Mann-Whitney's U of the blocks.

    What a block has in common falls out of it.  With one block it is shift().

    Shape:  of each block a (n,), b (m,), n, m >= 1, finite.
    Raises: ValueError when a ratio is asked for and a value is not above 0.
    Source: van Elteren 1960, with equal weights; Hollander, Wolfe, Chicken: Nonparametric
            Statistical Methods, 3rd ed., 4.1 and comment on blocks; exact where
            rank_test() would be.
    """
    sides = [(np.asarray(a, dtype=float), np.asarray(b, dtype=float)) for a, b in blocks]
    if scale == "ratio":
        if any((side <= 0).any() for side in chain.from_iterable(sides)):
            raise ValueError("a ratio needs values above 0")
        sides = [(np.log(a), np.log(b)) for a, b in sides]
    steps = np.sort(np.concatenate([np.subtract.outer(a, b).ravel() for a, b in sides]))
    p, method = _tested(sides)
    rank = blocked_rank(tuple((a.size, b.size) for a, b in sides), 1 - confidence)
    found = [float(np.median(steps))]
    found += [] if rank is None else [float(steps[rank - 1]), float(steps[-rank])]
    if scale == "ratio":
        found = [math.exp(value) for value in found]
    low, high = (None, None) if rank is None else found[1:]
    return Shift(scale, found[0], low, high, p, method)


@lru_cache(maxsize=64)
def blocked_rank(sizes: tuple[tuple[int, int], ...], alpha: float) -> int | None:
    """As critical_rank(), of the sum over blocks."""
    pairs = sum(n * m for n, m in sizes)
    if all(is_countable(np.arange(n + m), n) for n, m in sizes):
        ways = [ways_of(tuple(range(n + m)), n)[n * (n - 1) // 2 :] for n, m in sizes]
        below = np.cumsum(_joined(ways))
        rank = int(np.searchsorted(below, alpha / 2, side="right"))
        return min(rank, (pairs + 1) // 2) or None
    variance = sum(n * m / 12 * (n + m + 1) for n, m in sizes)
    low, high = 0, pairs // 2
    while low < high:
        middle = (low + high + 1) // 2
        if normal_tail_of(pairs / 2 - (middle - 1), variance, 1) <= alpha / 2:
            low = middle
        else:
            high = middle - 1
    return low or None


def _tested(sides: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> tuple[float, str]:
    """Doubled ranks are whole numbers, ties or not."""
    seen, variance, middle, step = 0, 0.0, 0.0, 0
    ranked: list[tuple[NDArray[np.int64], int]] = []
    for a, b in sides:
        _, place, equal = np.unique(np.concatenate([a, b]), return_inverse=True, return_counts=True)
        doubled = (2 * np.cumsum(equal) - equal + 1)[place]
        ranks, runs = doubled - doubled.min(), a.size + b.size
        seen += int(ranks[: a.size].sum())
        middle += a.size * float(ranks.mean())
        step = math.gcd(step, step_of(ranks))
        ranked.append((np.sort(ranks), int(a.size)))
        ties = float((equal.astype(float) ** 3 - equal).sum())
        if runs > 1:
            variance += a.size * b.size / 3 * (runs + 1 - ties / (runs * (runs - 1)))
    if step == 0:
        return 1.0, "equal"
    ranked = [(ranks // step, n) for ranks, n in ranked]
    if not all(is_countable(*one) for one in ranked):
        low = normal_tail_of(abs(seen - middle), variance, max(step, 2))
        return min(1.0, 2 * low), "blocks-asymptotic"
    counts = _joined([ways_of(tuple(ranks.tolist()), n) for ranks, n in ranked])
    low, high = counts[: seen // step + 1].sum(), counts[seen // step :].sum()
    return float(min(1.0, 2 * min(low, high))), "blocks"


def _joined(ways: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Of the sum over blocks: shares."""
    joined = np.ones(1)
    for one in ways:
        joined = np.convolve(joined, one)
    return joined


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
