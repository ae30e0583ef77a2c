# SPDX-License-Identifier: Apache-2.0
"""The two-sided Mann-Whitney test: exact, also where values are equal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["RankTest", "rank_test", "smallest_p", "tail"]

# Up to so many runs a side the distribution is counted out; beyond, the normal
# approximation is as good.
MOST_EXACT = 50


@dataclass(frozen=True)
class RankTest:
    """p and how it was found: exact, exact-ties, asymptotic or equal."""

    p: float
    method: str


def rank_test(a: ArrayLike, b: ArrayLike) -> RankTest:
    """Could the values of both sides be of one kind?  Two-sided.

    Shape:  a (n,), b (m,), n, m >= 1, finite.
    Raises: ValueError when a side is empty.
    Source: scipy.stats.mannwhitneyu; with ties the rank sums under all ways to
            deal the values out, which it does not count.
    """
    from scipy import stats

    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if first.size == 0 or second.size == 0:
        raise ValueError("a side has no values")
    both = np.concatenate([first, second])
    distinct = np.unique(both).size
    if distinct == 1:
        return RankTest(1.0, "equal")
    if distinct == both.size:
        method = "exact" if max(first.size, second.size) <= MOST_EXACT else "asymptotic"
        found = stats.mannwhitneyu(first, second, alternative="two-sided", method=method)
        return RankTest(float(found.pvalue), method)
    if max(first.size, second.size) > MOST_EXACT:
        found = stats.mannwhitneyu(first, second, alternative="two-sided", method="asymptotic")
        return RankTest(float(found.pvalue), "asymptotic")
    # Ranks of equal values are halves: doubled, all are whole numbers.
    doubled = np.rint(2 * stats.rankdata(both)).astype(int)
    return RankTest(_two_sided(doubled, first.size), "exact-ties")


def smallest_p(n: int, m: int) -> float:
    """The least p that n and m runs without ties can give."""
    return min(1.0, 2 / comb(n + m, n))


@cache
def tail(n: int, m: int, u: int) -> float:
    """P(U <= u) of the Mann-Whitney U of n and m values when nothing differs.

    Source: scipy.stats.mannwhitneyu of values that were made to have this U.
    """
    from scipy import stats

    a, b = _with_u(n, m, u)
    method = "exact" if max(n, m) <= MOST_EXACT else "asymptotic"
    return float(stats.mannwhitneyu(a, b, alternative="less", method=method).pvalue)


def _with_u(n: int, m: int, u: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values without ties in which u of the n * m pairs have the first above the second."""
    above, rest = divmod(u, m)
    b = 2.0 * np.arange(m) + 1
    between = [2.0 * rest] if above < n else []
    below = -1.0 - np.arange(n - above - len(between))
    a = np.concatenate([2.0 * m + 2 + np.arange(above), between, below])
    return a.astype(float), b.astype(float)


def _two_sided(ranks: NDArray[np.int_], n: int) -> float:
    """Twice the smaller tail of the sum of the first n ranks, as SciPy has it."""
    seen = int(ranks[:n].sum())
    ways = _ways(ranks, n)
    low, high = ways[: seen + 1].sum(), ways[seen:].sum()
    return float(min(1.0, 2 * min(low, high) / ways.sum()))


def _ways(ranks: NDArray[np.int_], n: int) -> NDArray[np.float64]:
    """In how many ways n of these ranks have the sum 0, 1, 2, ...: rank by rank.

    Floating point holds the 10^29 ways of 50 + 50 with an error of 10^-14.
    """
    top = int(np.sort(ranks)[-n:].sum())
    ways = np.zeros((n + 1, top + 1))  # by how many are chosen, by their sum
    ways[0, 0] = 1
    for rank in ranks.tolist():
        ways[1:, rank:] += ways[:-1, : top + 1 - rank].copy()
    counted: NDArray[np.float64] = ways[n]
    return counted
