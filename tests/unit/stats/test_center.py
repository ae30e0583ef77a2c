# SPDX-License-Identifier: Apache-2.0
"""The interval of a median against SciPy's, and against what it promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats
from support.properties import for_all
from wbscope.stats.estimates import median_interval

_VALUES = st.integers(1, 60).flatmap(
    lambda n: st.lists(st.floats(-1e9, 1e9), min_size=n, max_size=n)
)


@for_all(200, values=_VALUES, confidence=st.sampled_from([0.8, 0.95, 0.99]))
def test_as_scipy_has_it(values: list[float], confidence: float) -> None:
    found = stats.quantile_test(values).confidence_interval(confidence)
    told = median_interval(values, confidence)
    if told is None:
        assert np.isnan(found.low) or np.isnan(found.high)
    else:
        assert told == (found.low, found.high)


def test_five_runs_have_none_and_six_have_all_of_them() -> None:
    assert median_interval([]) is None
    assert median_interval([1, 2, 3, 4, 5]) is None
    assert median_interval([6, 1, 2, 3, 4, 5]) == (1, 6)


@pytest.mark.parametrize("n", [6, 9, 20])
def test_it_holds_the_median_as_often_as_it_says(n: int) -> None:
    random = np.random.default_rng(n)
    trials = random.exponential(size=(4000, n))
    held = [low <= np.log(2) <= high for low, high in map(median_interval, trials)]  # type: ignore[misc]
    assert np.mean(held) >= 0.94
