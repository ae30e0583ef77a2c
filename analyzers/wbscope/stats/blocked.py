# SPDX-License-Identifier: Apache-2.0
"""Two sides that were run together several times: only runs of one time are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wbscope.stats.ranktest import is_countable, normal_tail_of, step_of, ways_of
from wbscope.stats.shift import Scale, Shift

__all__ = ["Block", "blocked_rank", "blocked_shift"]

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
