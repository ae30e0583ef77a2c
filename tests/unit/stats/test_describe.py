# SPDX-License-Identifier: Apache-2.0
"""Means and standard deviations, with and without the extremes."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from scipy import stats
from wbscope.stats.estimates import Description, describe

VALUES = [4.0, 1.0, 9.0, 5.0, 100.0]


def test_against_pythons_own() -> None:
    found = describe(VALUES)
    assert found.median == statistics.median(VALUES)
    assert found.mean == pytest.approx(statistics.mean(VALUES))
    assert found.sd == pytest.approx(statistics.stdev(VALUES))
    assert (found.least, found.most, found.n) == (1, 100, 5)


def test_dropping_the_fastest_and_the_slowest() -> None:
    found = describe(VALUES)
    assert found.trimmed_mean == pytest.approx(6)
    assert found.trimmed_mean == pytest.approx(stats.trim_mean(VALUES, 1 / 5))
    assert found.trimmed_sd == pytest.approx(statistics.stdev([4, 5, 9]))


def test_trimming_makes_the_sd_too_small() -> None:
    """By the factors that docs/statistics.md names."""
    random = np.random.default_rng(3)
    for runs, factor in ((6, 0.58), (10, 0.70)):
        sds = [describe(random.normal(size=runs)).trimmed_sd for _ in range(4000)]
        assert np.mean([sd for sd in sds if sd is not None]) == pytest.approx(factor, abs=0.03)


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 4.0], [3.0, 4.0, 5.0]])
def test_few_values_have_no_trimmed_ones(values: list[float]) -> None:
    found = describe(values)
    assert (found.trimmed_mean, found.trimmed_sd) == (None, None)
    assert (found.sd is None) == (len(values) < 2)
    assert (found.median is None) == (not values)


def test_nothing() -> None:
    assert describe([]) == Description(0)
