# SPDX-License-Identifier: Apache-2.0
"""The two-sided Mann-Whitney test: exact, also where values are equal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb, erfc, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "MOST_EXACT",
    "RankTest",
    "normal_tail_of",
    "rank_order",
    "rank_test",
    "smallest_p",
    "tail",
    "ways_of",
]

# Up to so many runs a side the distribution is counted out; beyond, the normal
# approximation is as good.
MOST_EXACT = 50


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
    if max(n, m) > MOST_EXACT:
        above = float(doubled[:n].sum()) / 2 - n * (n + 1) / 2
        low = _normal_tail(n, m, min(above, n * m - above), float((equal**3 - equal).sum()))
        return RankTest(min(1.0, 2 * low), "asymptotic")
    ties = equal.size < n + m
    ranks = doubled if ties else doubled // 2
    seen = int(ranks[:n].sum())
    ways = ways_of(tuple(sorted(ranks.tolist())), n)
    low, high = ways[: seen + 1].sum(), ways[seen:].sum()
    p = float(min(1.0, 2 * min(low, high) / ways.sum()))
    return RankTest(p, "exact-ties" if ties else "exact")


def rank_order(values: ArrayLike) -> bytes:
    """Equal for values in the same order or in the reverse: what a two-sided rank test sees."""
    ranks = np.unique(np.asarray(values, dtype=float), return_inverse=True)[1]
    if ranks.size and ranks[ranks != ranks[0]].size and ranks[0] > ranks[ranks != ranks[0]][0]:
        ranks = ranks.max() - ranks
    return ranks.tobytes()


def smallest_p(n: int, m: int) -> float:
    """The least p that n and m runs without ties can give."""
    return min(1.0, 2 / comb(n + m, n))


def tail(n: int, m: int, u: int) -> float:
    """P(U <= u) of the Mann-Whitney U of n and m values when nothing differs."""
    if max(n, m) > MOST_EXACT:
        return _normal_tail(n, m, u)
    ways = ways_of(tuple(range(1, n + m + 1)), n)
    return float(ways[: u + n * (n + 1) // 2 + 1].sum() / ways.sum())


def _normal_tail(n: int, m: int, u: float, ties: float = 0) -> float:
    """P(U <= u), approximated; ties is the sum of t^3 - t for t equal values each.

    Source: Hollander, Wolfe, Chicken, 4.1, with the continuity correction.
    """
    runs = n + m
    variance = n * m / 12 * (runs + 1 - ties / (runs * (runs - 1)))
    return normal_tail_of(n * m / 2 - u, variance, 1)


def normal_tail_of(below: float, variance: float, step: int) -> float:
    """P of a sum of ranks so far below its mean or farther; sums are `step` apart."""
    return erfc((below - step / 2) / sqrt(2 * variance)) / 2


@lru_cache(maxsize=64)
def ways_of(ranks: tuple[int, ...], n: int) -> NDArray[np.float64]:
    """In how many ways n of these ranks have the sum 0, 1, 2, ...: rank by rank.

    Floating point holds the 10^29 ways of 50 + 50 with an error of 10^-14.
    Shape: ranks in ascending order; (largest sum + 1,).
    """
    top = sum(ranks[-n:])
    ways = np.zeros((n + 1, top + 1))  # by how many are chosen, by their sum
    ways[0, 0] = 1
    for number, rank in enumerate(ranks, 1):
        most = min(number, n)
        ways[1 : most + 1, rank:] += ways[:most, : top + 1 - rank].copy()
    counted: NDArray[np.float64] = ways[n].copy()
    counted.flags.writeable = False
    return counted
