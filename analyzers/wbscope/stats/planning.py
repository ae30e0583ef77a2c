# SPDX-License-Identifier: Apache-2.0
"""What a number of runs can show: the smallest change found, the runs needed.

Both are for noise that is normal with the spread of the runs at hand, simulated
with a fixed seed, so that the same runs always give the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wbscope.stats.estimates import critical_rank, differences
from wbscope.stats.repeated import Block, blocked_rank
from wbscope.stats.tests import smallest_p

# Runs of both sides in each block.
Sizes = tuple[tuple[int, int], ...]

# A change is called detectable when 4 of 5 gates would find it.
POWER = 0.8
# Nobody makes more runs than this; above, the answer is "more than".
MOST_RUNS = 200

_TRIALS = 2000
_SEED = 19630601
# Above so many runs a side the normal approximation of the estimate is used.
_MOST_SIMULATED = 30


def pooled_sd(a: ArrayLike, b: ArrayLike) -> float | None:
    """Standard deviation within the sides; None when no side has two values.

    Shape: a (n,), b (m,).
    """
    sides = [np.asarray(a, dtype=float), np.asarray(b, dtype=float)]
    degrees = sum(side.size - 1 for side in sides if side.size > 1)
    if degrees == 0:
        return None
    squares = sum(float(side.var()) * side.size for side in sides if side.size > 1)
    return math.sqrt(squares / degrees)


def within_sd(blocks: Sequence[Block]) -> float | None:
    """Standard deviation without what blocks and sides have in common; None when nothing is left.

    Shape: of each block a (n,), b (m,), n, m >= 1.
    Source: two-way layout with unequal numbers, no interaction: Searle, Linear Models, 7.1.
    """
    runs, values, sides, both = 0, 0.0, 0.0, 0.0
    for a, b in blocks:
        pair = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        value = np.concatenate(pair)
        side = np.repeat([1.0, 0.0], [pair[0].size, pair[1].size])
        value, side = value - value.mean(), side - side.mean()
        runs += value.size
        values += float(value @ value)
        sides += float(side @ side)
        both += float(value @ side)
    degrees = runs - len(blocks) - 1
    return math.sqrt(max(values - both**2 / sides, 0.0) / degrees) if degrees > 0 else None


def detectable(n: int, m: int, sd: float | None, margin: float, alpha: float) -> float | None:
    """The smallest shift that n and m runs would find at this level, 4 times in 5.

    Found means that the test refuses and that the estimate is beyond the margin.
    None: no shift, however large, can be found with so few runs, or nobody knows
    their spread.
    """
    rank = critical_rank(n, m, alpha)
    if rank is None or sd is None:
        return None
    if max(n, m) > _MOST_SIMULATED:
        error = sd * math.sqrt(math.pi / 3 * (1 / n + 1 / m))
        level, power = _quantiles(alpha)
        return max((level + power) * error, margin + power * error)
    # A shift is found when it lifts the k-th smallest difference above 0 and the
    # median above the margin.
    needed = np.maximum(-_noise(n, m)[:, rank - 1] * sd, margin - _medians(n, m) * sd)
    return float(np.quantile(needed, POWER))


def detectable_within(sizes: Sizes, sd: float | None, margin: float, alpha: float) -> float | None:
    """As detectable(), of runs that are compared within blocks."""
    rank = blocked_rank(sizes, alpha)
    if rank is None or sd is None:
        return None
    if max(map(sum, zip(*sizes, strict=True))) > _MOST_SIMULATED:
        pairs = sum(n * m for n, m in sizes)
        error = sd * math.sqrt(math.pi / 3 * sum(n * m * (n + m + 1) for n, m in sizes)) / pairs
        level, power = _quantiles(alpha)
        return max((level + power) * error, margin + power * error)
    steps = _noise_within(sizes)
    needed = np.maximum(-steps[:, rank - 1] * sd, margin - np.median(steps, axis=1) * sd)
    return float(np.quantile(needed, POWER))


def runs_to_confirm(sd: float | None, margin: float, alpha: float) -> int | None:
    """Runs a side with which unchanged code passes 4 times in 5.

    None = above 200, or nobody knows the spread.
    It passes when the interval ends before the margin.
    """
    if margin <= 0 or sd is None:
        return None
    least = next(n for n in range(2, 50) if critical_rank(n, n, alpha) is not None)
    if sd == 0:
        return least
    if sd * _upper(_MOST_SIMULATED, alpha) > margin:
        return _asymptotic(sd, margin, alpha)
    low, high = least, _MOST_SIMULATED
    while low < high:
        middle = (low + high) // 2
        if sd * _upper(middle, alpha) <= margin:
            high = middle
        else:
            low = middle + 1
    return low


def blocks_to_confirm(n: int, sd: float | None, margin: float, alpha: float) -> int | None:
    """As runs_to_confirm(): blocks of n runs a side."""
    if margin <= 0 or sd is None:
        return None
    # Few blocks have few levels, so that one more may be worse: the first one that will do.
    for blocks in range(1, _MOST_SIMULATED // n + 1):
        if sd * _upper_within(n, blocks, alpha) <= margin:
            return blocks
    wanted = (sum(_quantiles(alpha)) * sd / margin) ** 2
    found = math.ceil(math.pi * (2 * n + 1) / (3 * n * n) * wanted)
    return None if found * n > MOST_RUNS else max(found, _MOST_SIMULATED // n + 1)


def fewest_runs(alpha: float) -> int:
    """Runs a side with which the test can reach this level at all."""
    return next(n for n in range(1, 100) if smallest_p(n, n) <= alpha)


def fewest_blocks(n: int, alpha: float) -> int:
    """As fewest_runs(): blocks of n runs a side."""
    return next(k for k in range(1, 100) if 2 / math.comb(2 * n, n) ** k <= alpha)


@lru_cache(maxsize=64)
def _upper(n: int, alpha: float) -> float:
    """Where the interval of unchanged noise with s.d. 1 ends, 4 times in 5."""
    rank = critical_rank(n, n, alpha)
    if rank is None:
        return math.inf
    return float(np.quantile(_noise(n, n)[:, -rank], POWER))


@lru_cache(maxsize=256)
def _upper_within(n: int, blocks: int, alpha: float) -> float:
    """As _upper(), of blocks of n runs a side."""
    sizes = ((n, n),) * blocks
    rank = blocked_rank(sizes, alpha)
    if rank is None:
        return math.inf
    return float(np.quantile(_noise_within(sizes)[:, -rank], POWER))


def _asymptotic(sd: float, margin: float, alpha: float) -> int | None:
    """The estimate of the shift has the variance sd^2 pi/3 (1/n + 1/n) for large n."""
    runs = math.ceil(2 * math.pi / 3 * (sum(_quantiles(alpha)) * sd / margin) ** 2)
    return None if runs > MOST_RUNS else max(runs, _MOST_SIMULATED)


def _quantiles(alpha: float) -> tuple[float, float]:
    """Of the normal distribution: what the test wants, and what 4 times in 5 takes."""
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2), normal.inv_cdf(POWER)


@lru_cache(maxsize=64)
def _medians(n: int, m: int) -> NDArray[np.float64]:
    """The estimates of these simulated sides: (trials,)."""
    return np.asarray(np.median(_noise(n, m), axis=1))


@lru_cache(maxsize=16)
def _noise(n: int, m: int) -> NDArray[np.float64]:
    """Sorted differences of simulated sides of normal noise: (trials, n * m)."""
    random = np.random.default_rng(_SEED)
    trials = _TRIALS if n * m <= 400 else _TRIALS // 4
    return differences(random.standard_normal((trials, n)), random.standard_normal((trials, m)))


@lru_cache(maxsize=16)
def _noise_within(sizes: Sizes) -> NDArray[np.float64]:
    """As _noise(): of blocks, each with its own sides."""
    random = np.random.default_rng(_SEED)
    trials = _TRIALS if sum(n * m for n, m in sizes) <= 400 else _TRIALS // 4
    steps = [
        differences(random.standard_normal((trials, n)), random.standard_normal((trials, m)))
        for n, m in sizes
    ]
    return np.sort(np.concatenate(steps, axis=1), axis=1)
