# SPDX-License-Identifier: Apache-2.0
"""Welch's t from mean, s.d. and n is that of the values behind them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats
from support.properties import for_all
from wbscope.stats.estimates import WELCH, Means, welch


def means(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Means:
    return Means(float(values.mean()), float(values.std(ddof=1)), values.size)


# With a spread that is no rounding: the variance of sums has fewer digits than the values.
_VALUES = (
    st.lists(st.integers(-1000, 1000), min_size=2, max_size=20)
    .filter(lambda values: len(set(values)) > 1)
    .map(lambda values: np.array(values) / 8 + 200)
)


@for_all(60, a=_VALUES, b=_VALUES)
def test_it_is_the_test_of_the_values(
    a: np.ndarray[tuple[int], np.dtype[np.float64]], b: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> None:
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
