# SPDX-License-Identifier: Apache-2.0
"""Runs far outside of the base: where the border is, and the test of their share."""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from wbscope.stats.repeated import (
    SPREADS,
    Counts,
    fisher,
    fisher_within,
    resolution,
    spread,
    tail_of,
)

BASE = [10.0, 10.1, 9.9, 10.2, 9.8, 10.0]


@pytest.mark.parametrize("counts", [(3, 20, 0, 20), (5, 20, 1, 20), (6, 6, 0, 6), (0, 5, 2, 9)])
def test_fisher_counts_the_ways(counts: tuple[int, int, int, int]) -> None:
    x, n, y, m = counts
    drawn = x + y
    ways = sum(comb(n, k) * comb(m, drawn - k) for k in range(x, min(n, drawn) + 1))
    expected = ways / comb(n + m, drawn)
    assert fisher(x, n, y, m) == pytest.approx(expected, rel=1e-12)


def test_the_spread_is_robust() -> None:
    values = np.random.default_rng(1).standard_normal(10_000)
    assert spread(values) == pytest.approx(1, rel=0.03)
    assert spread([*BASE, 1000.0]) < 0.3
    assert spread([0, 0, 0, 0, 4]) == pytest.approx(1.2533 * 0.8)  # most are equal
    assert spread([5.0] * 4) == 0


def test_the_border() -> None:
    border = 10.0 + 0.5 + SPREADS * spread(BASE)
    assert tail_of([border - 1e-9, 10.0], BASE, 0.5).beyond == ()
    found = tail_of([border + 1e-9, 10.0], BASE, 0.5)
    assert (found.beyond, found.far, found.there) == ((0,), (0,), 0)


def test_what_the_base_has_is_not_far() -> None:
    base = [*BASE, 100.0]
    found = tail_of([10.0, 99.0, 100.4, 101.0], base, 0.5)
    assert (found.beyond, found.far, found.there) == ((1, 2, 3), (3,), 1)
    assert found.p == pytest.approx(fisher(3, 4, 1, 7))


def test_equal_runs_have_no_spread() -> None:
    assert tail_of([5.0, 5.4, 5.6], [5.0] * 6, 0.5).far == (2,)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([12e9, 13e9], 1e9),  # whole seconds
        ([12e9, 24e9], 1e9),  # no two ticks of 12 s
        ([40.0, 44.0, 52.0], 4.0),  # a clock of 250 ticks a second, in ms
        ([40.0, 40.0], 10.0),
        ([12.25, 12.5, 0.0], 0.25),
        ([-3.0, 5.0], 1.0),
        ([0.1 + 0.2, 0.4], 0.1),
        ([0.0, 0.0], 0.0),
        ([], 0.0),
    ],
)
def test_what_a_clock_can_tell(values: list[float], expected: float) -> None:
    assert resolution(values) == pytest.approx(expected, rel=1e-12)


def test_one_tick_is_not_far() -> None:
    base = [12.0] * 10
    assert tail_of([13.0, 14.0], base, 0.5, tick=1.0).far == (1,)
    assert tail_of([13.0, 14.0], base, 0.5).far == (0, 1)


def test_exactly_the_margin_is_not_far() -> None:
    a, b = np.log([1.1, 1.1, 1.1]), np.log([1.0] * 6)
    assert a[0] > np.log1p(0.1) - 1e-15
    for level in (0.0, 25.0):
        assert tail_of(a + level, b + level, np.log1p(0.1)).beyond == ()


def test_fisher_within_blocks_counts_the_ways_of_each() -> None:
    """All ways to deal the marked runs of each block out to its two sides."""
    blocks: list[Counts] = [(2, 4, 0, 3), (1, 2, 1, 4), (0, 3, 0, 3)]
    each = []
    for x, n, y, m in blocks:
        dealt = combinations(range(n + m), n)
        each.append([sum(place < x + y for place in mine) for mine in dealt])
    sums = [sum(one) for one in product(*each)]
    expected = sum(one >= 3 for one in sums) / len(sums)
    assert fisher_within(blocks) == pytest.approx(expected, rel=1e-12)
    assert fisher_within(blocks[:1]) == fisher(*blocks[0])
    assert fisher_within(blocks[2:]) == fisher_within([]) == 1.0


def test_blocks_are_seen_against_their_own_middle() -> None:
    """The second block is 20 higher, and the third has nobody on the other side."""
    a = [*BASE[:5], 30.1, 29.9, 30.0, 33.0, 90.0]
    b = [*BASE, *(value + 20 for value in BASE)]
    names = (["x"] * 5 + ["y"] * 4 + [""], ["x"] * 6 + ["y"] * 6)
    assert tail_of(a, b, 0.5).far == ()
    found = tail_of(a, b, 0.5, names)
    assert (found.beyond, found.far, found.there) == ((8,), (8,), 0)
    assert found.p == pytest.approx(fisher(1, 4, 0, 6))
