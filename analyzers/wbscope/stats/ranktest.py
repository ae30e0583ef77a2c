# SPDX-License-Identifier: Apache-2.0
"""The two-sided Mann-Whitney test: exact, also where values are equal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, combinations
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["RankTest", "rank_test", "smallest_p", "tail"]

# Up to so many runs a side the distribution is counted out; beyond, the normal
# approximation is as good.
MOST_EXACT = 50
# Ways to deal the runs out to two sides: 10 + 10 runs have 184,756.
_MOST_PARTITIONS = 200_000
_RESAMPLES = 99_999
_SEED = 20110725


@dataclass(frozen=True)
class RankTest:
    """p and how it was found: exact, exact-ties, permutation, asymptotic or equal."""

    p: float
    method: str


def rank_test(a: ArrayLike, b: ArrayLike) -> RankTest:
    """Could the values of both sides be of one kind?  Two-sided.

    Shape:  a (n,), b (m,), n, m >= 1, finite.
    Raises: ValueError when a side is empty.
    Source: scipy.stats.mannwhitneyu; with ties the rank sums under all ways to
            deal the values out, or under those that scipy.stats.permutation_test
            draws, with a fixed seed, where there are more than 200,000.
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
    ranks = stats.rankdata(both)
    null, method = _rank_sums(np.sort(ranks), first.size)
    return RankTest(_two_sided(null, float(ranks[: first.size].sum()), method), method)


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


def _rank_sums(ranks: NDArray[np.float64], n: int) -> tuple[NDArray[np.float64], str]:
    """Rank sums of n of these ranks under all (or many) ways to choose them."""
    from scipy import stats

    if comb(ranks.size, n) <= _MOST_PARTITIONS:
        return ranks[_choices(ranks.size, n)].sum(axis=1), "exact-ties"
    found = stats.permutation_test(
        (ranks[:n], ranks[n:]),
        lambda chosen, _others, axis: chosen.sum(axis=axis),
        vectorized=True,
        permutation_type="independent",
        n_resamples=_RESAMPLES,
        rng=np.random.default_rng(_SEED),
    )
    return np.asarray(found.null_distribution), "permutation"


@lru_cache(maxsize=4)
def _choices(size: int, n: int) -> NDArray[np.uint8]:
    """All ways to choose n of so many places, one a row."""
    places = np.fromiter(chain.from_iterable(combinations(range(size), n)), dtype=np.uint8)
    return places.reshape(-1, n)


def _two_sided(null: NDArray[np.float64], seen: float, method: str) -> float:
    """Twice the smaller tail, as SciPy has it; random ones count what was seen, too."""
    added = 0 if method == "exact-ties" else 1
    # Rank sums are halves of whole numbers: exact in floating point.
    low = (np.count_nonzero(null <= seen) + added) / (null.size + added)
    high = (np.count_nonzero(null >= seen) + added) / (null.size + added)
    return float(min(1.0, 2 * min(low, high)))
