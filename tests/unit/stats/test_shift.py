# SPDX-License-Identifier: Apache-2.0
"""The Hodges-Lehmann shift and its interval against R, hand counts and the test itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from support.properties import for_all
from wbscope.stats.estimates import critical_rank, shift
from wbscope.stats.tests import rank_test

TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
EARLY = [1.15, 0.88, 0.90, 0.74, 1.21]


def test_a_published_example() -> None:
    """R: wilcox.test(x, y, conf.int = TRUE): 0.305, 95 % from -0.15 to 0.76."""
    found = shift(TERM, EARLY, scale="difference")
    assert found.estimate == pytest.approx(0.305)
    assert (found.low, found.high) == pytest.approx((-0.15, 0.76))


def test_by_hand() -> None:
    """Differences 9 10 11 19 20 21 29 30 31 and so on: the middle ones."""
    found = shift([11, 21, 31, 41], [0, 1, 2, 3], scale="difference")
    steps = sorted(x - y for x in (11, 21, 31, 41) for y in (0, 1, 2, 3))
    assert found.estimate == (steps[7] + steps[8]) / 2
    assert (found.low, found.high) == (steps[0], steps[-1])  # 4 + 4: the whole range


def test_a_ratio_of_positive_values() -> None:
    found = shift([20, 22, 24, 26], [10, 11, 12, 13])
    assert found.scale == "ratio"
    ratios = sorted(x / y for x in (20, 22, 24, 26) for y in (10, 11, 12, 13))
    assert found.estimate == pytest.approx((ratios[7] * ratios[8]) ** 0.5)
    assert found.relative == pytest.approx(found.estimate - 1)
    back = shift([10, 11, 12, 13], [20, 22, 24, 26])
    assert back.estimate == pytest.approx(1 / found.estimate)


@pytest.mark.parametrize("a", [[0, 0, 0, 0], [-1, 2, 3, 4]])
def test_zero_or_less_is_a_difference(a: list[float]) -> None:
    found = shift(a, [667839, 667840, 667841, 667842])
    assert found.scale == "difference"
    assert found.relative is None
    assert found.estimate < -660000
    with pytest.raises(ValueError, match="above 0"):
        shift(a, [1, 2, 3, 4], scale="ratio")


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 2), (3, 3), (1, 30), (2, 7)])
def test_so_few_runs_have_no_interval(n: int, m: int) -> None:
    found = shift(np.arange(1, n + 1), np.arange(101, 101 + m))
    assert (found.low, found.high) == (None, None)
    assert found.estimate < 1


def test_published_ranks_of_the_interval() -> None:
    """k = critical U + 1: D(k) and D(nm + 1 - k)."""
    ranks = {(4, 4): 1, (5, 5): 3, (6, 6): 6, (8, 8): 14, (10, 10): 24}
    for (n, m), rank in ranks.items():
        assert critical_rank(n, m, 0.05) == rank
    assert critical_rank(3, 3, 0.05) is None
    assert critical_rank(3, 3, 0.1) == 1


# Of differences that are some distance apart, so that a tiny step is between two of them.
_PLACES = st.lists(st.integers(-50, 50), min_size=13, max_size=13)


@for_all(60, places=_PLACES)
def test_the_interval_has_the_shifts_that_the_test_does_not_refuse(places: list[int]) -> None:
    values = np.array([place + number / 1000 for number, place in enumerate(places)])
    a, b = values[:6], values[6:]
    found = shift(a, b, scale="difference")
    assert found.low is not None
    assert found.high is not None
    tiny = 1e-9
    assert rank_test(a - (found.low + tiny), b).p > 0.05
    assert rank_test(a - (found.high - tiny), b).p > 0.05
    assert rank_test(a - (found.low - tiny), b).p <= 0.05
    assert rank_test(a - (found.high + tiny), b).p <= 0.05


def test_the_interval_covers_what_is_true_as_often_as_it_says() -> None:
    random = np.random.default_rng(99)
    hits = 0
    for _ in range(400):
        found = shift(random.normal(3, 1, 6), random.normal(0, 1, 6), scale="difference")
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 3 <= found.high
    assert hits / 400 > 0.93


def test_ties_and_equal_sides() -> None:
    found = shift([5, 5, 5, 5], [5, 5, 5, 5])
    assert (found.estimate, found.low, found.high, found.p) == (1, 1, 1, 1)
    found = shift([0, 0, 0, 0], [0, 0, 0, 0])
    assert (found.scale, found.estimate, found.low, found.high) == ("difference", 0, 0, 0)
