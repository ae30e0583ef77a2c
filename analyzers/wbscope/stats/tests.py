# SPDX-License-Identifier: Apache-2.0
"""Tests of two sides, and p values of many tests and of several looks at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import comb, erfc, prod, sqrt
from statistics import NormalDist
from sys import float_info
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

# The distribution is counted out while that takes no more additions: 50 + 50 runs with ties, 60 +
# 60 without, 4 + 1000.  Beyond, both sides have many runs, and the normal approximation is as good.
_MOST_ADDED = 4e7
# With more runs on both sides the least p is none that a float can tell from 0.
_MANY = 600


@dataclass(frozen=True)
class RankTest:
    """p and how it was found: exact, exact-ties, asymptotic or equal."""

    p: float
    method: str


def rank_test(a: ArrayLike, b: ArrayLike) -> RankTest:
    """Could the values of both sides be of one kind?  Two-sided: twice the smaller tail.

    Shape:  a (n,), b (m,), n, m >= 1, finite.
    Raises: ValueError when a side is empty.
    Source: Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, 3rd ed.,
            4.1; with ties its comment on the exact conditional distribution.
    """
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    n, m = first.size, second.size
    if n == 0 or m == 0:
        raise ValueError("a side has no values")
    _, place, equal = np.unique(
        np.concatenate([first, second]), return_inverse=True, return_counts=True
    )
    if equal.size == 1:
        return RankTest(1.0, "equal")
    # Ranks of equal values are their mean, so halves: doubled, all are whole numbers.
    doubled = (2 * np.cumsum(equal) - equal + 1)[place]
    step = step_of(doubled)
    ranks = (doubled - doubled.min()) // step
    if equal[-1] > equal[0]:  # many equal ones at 0 are cheap, and both tails count
        ranks = ranks.max() - ranks
    if not is_countable(np.sort(ranks), n):
        above = float(doubled[:n].sum()) / 2 - n * (n + 1) / 2
        ties = float((equal.astype(float) ** 3 - equal).sum())
        low = _normal_tail(n, m, min(above, n * m - above), ties, max(step, 2) / 2)
        return RankTest(min(1.0, 2 * low), "asymptotic")
    seen = int(ranks[:n].sum())
    ways = ways_of(tuple(np.sort(ranks).tolist()), n)
    p = float(min(1.0, 2 * min(ways[: seen + 1].sum(), ways[seen:].sum())))
    return RankTest(p, "exact-ties" if equal.size < n + m else "exact")


def rank_order(values: ArrayLike) -> bytes:
    """Equal for values in the same order or in the reverse: what a two-sided rank test sees."""
    ranks = np.unique(np.asarray(values, dtype=float), return_inverse=True)[1]
    if ranks.size and ranks[ranks != ranks[0]].size and ranks[0] > ranks[ranks != ranks[0]][0]:
        ranks = ranks.max() - ranks
    return ranks.tobytes()


def smallest_p(n: int, m: int) -> float:
    """The least p that n and m runs without ties can give; above 0, however many there are."""
    return smallest_p_of([(n, m)])


def smallest_p_of(blocks: Sequence[tuple[int, int]]) -> float:
    """... that blocks of so many runs a side can give together."""
    if any(min(sizes) > _MANY for sizes in blocks):
        return float_info.min
    return min(1.0, max(2 / prod(comb(n + m, n) for n, m in blocks), float_info.min))


def tail(n: int, m: int, u: int) -> float:
    """P(U <= u) of the Mann-Whitney U of n and m values when nothing differs."""
    if not is_countable(np.arange(n + m), n):
        return _normal_tail(n, m, u)
    ways = ways_of(tuple(range(n + m)), n)
    return float(ways[: u + n * (n - 1) // 2 + 1].sum())


def _normal_tail(n: int, m: int, u: float, ties: float = 0, step: float = 1) -> float:
    """P(U <= u), approximated; ties is the sum of t^3 - t for t equal values each.

    Source: Hollander, Wolfe, Chicken, 4.1, with the continuity correction.
    """
    runs = n + m
    variance = n * m / 12 * (runs + 1 - ties / (runs * (runs - 1)))
    return normal_tail_of(n * m / 2 - u, variance, step)


def normal_tail_of(below: float, variance: float, step: float) -> float:
    """P of a sum of ranks so far below its mean or farther; sums are `step` apart."""
    return erfc((below - step / 2) / sqrt(2 * variance)) / 2


def step_of(ranks: NDArray[np.int64]) -> int:
    """How far apart sums of so many of these ranks are at least; not all ranks are equal."""
    return int(np.gcd.reduce(ranks - ranks.min()))


def is_countable(ranks: NDArray[np.int64], n: int) -> bool:
    """True where ways_of() is quick: by how many runs have another rank than 0, and their sums.

    Shape: ranks in ascending order from 0 on, (n or more,).
    """
    fewer = min(n, ranks.size - n)
    moving = int(np.count_nonzero(ranks))
    most = float(ranks[ranks.size - fewer :].sum())
    return moving * min(fewer, moving) * most <= _MOST_ADDED


@lru_cache(maxsize=64)
def ways_of(ranks: tuple[int, ...], n: int) -> NDArray[np.float64]:
    """The share of the ways to choose n of these ranks that have the sum 0, 1, 2, ...

    Counted rank by rank, for the smaller one of what is chosen and what is left.
    Floating point holds the 10^29 ways of 50 + 50 with an error of 10^-14.
    Shape: ranks in ascending order from 0 on; (largest sum + 1,).
    """
    if 2 * n > len(ranks):
        # What is chosen and what is left have one sum together.
        left = ways_of(ranks, len(ranks) - n)
        least, top = sum(ranks[:n]), sum(ranks[-n:])
        counted = np.zeros(top + 1)
        counted[least:] = left[::-1][: top + 1 - least]
    else:
        counted = _counted([rank for rank in ranks if rank], ranks.count(0), n)
    counted.flags.writeable = False
    return counted


def _counted(ranks: list[int], zeros: int, n: int) -> NDArray[np.float64]:
    """Of ranks above 0 and so many zeros, which change no sum."""
    most = min(n, len(ranks))
    top = sum(ranks[len(ranks) - most :])
    ways = np.zeros((most + 1, top + 1))  # by how many are chosen, by their sum
    ways[0, 0] = 1
    for number, rank in enumerate(ranks, 1):
        # Not more than the largest sum so far, and not fewer than the rest can make up for.
        high = min(number, most)
        reach = sum(ranks[number - high : number])
        low = max(1, n - zeros - (len(ranks) - number))
        ways[low : high + 1, rank : reach + 1] += ways[low - 1 : high, : reach + 1 - rank].copy()
    # Divided as whole numbers: such numbers of ways are larger than a float can be.
    all_ways = comb(len(ranks) + zeros, n)
    weights = [comb(zeros, n - chosen) / all_ways for chosen in range(most + 1)]
    return np.asarray(np.array(weights) @ ways)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values, in the order given; each is at least its p.

    Source: S. Holm, A simple sequentially rejective multiple test procedure, 1979.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate((p.size - np.arange(p.size)) * p[order])
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(stepped, 1)
    return [float(value) for value in adjusted]


def false_discovery(p_values: Sequence[float]) -> list[float]:
    """q values, in the order given: of the tests with q at most a, at most a share a is false.

    Source: Y. Benjamini and Y. Hochberg, Controlling the false discovery rate, 1995; it holds
    also for tests that depend positively on each other.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")[::-1]
    stepped = np.minimum.accumulate(p.size / np.arange(p.size, 0, -1) * p[order])
    found = np.empty(p.size)
    found[order] = np.minimum(stepped, 1)
    return [float(value) for value in found]


Spending = Literal["pocock", "obrien-fleming"]

_POINTS = 801
# Farther out there is nothing that a level could be read from.
_FARTHEST = 8.5
_HALVINGS = 60


def look_levels(alpha: float, looks: Sequence[int], spending: Spending = "pocock") -> list[float]:
    """The two-sided level of the test at each look, so that all of them together err in alpha.

    looks  runs there are at each look that is planned, rising

    Raises: ValueError for looks that do not rise.
    Source: Lan and DeMets 1983, with their functions of Pocock's and of O'Brien and Fleming's
            type; the recursion is that of Armitage, McPherson and Rowe 1969.
    """
    if any(a >= b for a, b in pairwise(looks)):
        raise ValueError(f"looks {list(looks)} do not rise")
    return list(_levels(alpha, tuple(look / looks[-1] for look in looks), spending))


def _spent(alpha: float, share: float, spending: Spending) -> float:
    """Until this share of the runs."""
    if spending == "pocock":
        return alpha * math.log1p((math.e - 1) * share)
    normal = NormalDist()
    return 4 - 4 * normal.cdf(normal.inv_cdf(1 - alpha / 4) / math.sqrt(share))


@lru_cache(maxsize=256)
def _levels(alpha: float, shares: tuple[float, ...], spending: Spending) -> tuple[float, ...]:
    """Of the sum of normal steps, that of the paths which no look has stopped."""
    from scipy.stats import norm

    found, before, spent = [], 0.0, 0.0
    places = weights = np.zeros(0)
    for share in shares:
        step = math.sqrt(share - before)
        goal = _spent(alpha, share, spending)
        low, high = 0.0, _FARTHEST
        for _ in range(_HALVINGS):
            border = (low + high) / 2
            reach = border * math.sqrt(share)
            if places.size:
                beyond = norm.sf((reach - places) / step) + norm.cdf((-reach - places) / step)
                crossing = float((weights * beyond).sum())
            else:
                crossing = 2 * float(norm.sf(border))
            low, high = (border, high) if crossing > goal - spent else (low, border)
        border = (low + high) / 2
        found.append(2 * float(norm.sf(border)))
        reach = border * math.sqrt(share)
        grid = np.linspace(-reach, reach, _POINTS)
        if places.size:
            density = (norm.pdf((grid[:, None] - places) / step) * weights).sum(axis=1) / step
        else:
            density = norm.pdf(grid / step) / step
        width = grid[1] - grid[0]
        simpson = np.full(_POINTS, 2.0)
        simpson[1::2], simpson[[0, -1]] = 4.0, 1.0
        places, weights = grid, density * simpson * width / 3
        before, spent = share, goal
    return tuple(found)
