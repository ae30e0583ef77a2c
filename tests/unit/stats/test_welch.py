# SPDX-License-Identifier: Apache-2.0
"""Welch's t from mean, s.d. and n is that of the values behind them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from wbscope.stats.welch import WELCH, Means, welch


def means(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Means:
    return Means(float(values.mean()), float(values.std(ddof=1)), values.size)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "m"), [(2, 2), (6, 6), (3, 20)])
def test_it_is_the_test_of_the_values(seed: int, n: int, m: int) -> None:
    draw = np.random.default_rng(seed)
    a, b = draw.normal(100, 3, n), draw.normal(97, 8, m)
    found = welch(means(a), means(b), 0.9)
    told = stats.ttest_ind(a, b, equal_var=False)
    low, high = told.confidence_interval(0.9)
    assert found is not None
    assert found.p == pytest.approx(told.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9)
    assert found.estimate == pytest.approx(a.mean() - b.mean())
    assert (found.scale, found.method) == ("difference", WELCH)


def test_no_spread_is_no_test() -> None:
    assert welch(Means(5, 0, 3), Means(6, 0, 3)) is None
    one = welch(Means(5, 0, 3), Means(6, 1, 3))
    assert one is not None
    assert 0 < one.p < 1


def test_false_alarms_are_alpha() -> None:
    """4,000 pairs of the same, with other spreads on each side: at most 5 % look changed."""
    draw = np.random.default_rng(1)
    hits = 0
    for _ in range(4000):
        found = welch(means(draw.normal(0, 1, 6)), means(draw.normal(0, 3, 10)))
        hits += found is not None and found.p <= 0.05
    assert 0.03 <= hits / 4000 <= 0.055
