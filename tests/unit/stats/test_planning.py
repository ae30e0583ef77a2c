# SPDX-License-Identifier: Apache-2.0
"""What runs can show, checked by simulating the gate's own rule."""

from __future__ import annotations

import numpy as np
import pytest
from wbscope.stats.planning import detectable, fewest_runs, pooled_sd, runs_to_confirm
from wbscope.stats.shift import shift

TRIALS = 300


def test_the_spread_within_sides() -> None:
    """Sums of squares 2 and 8 over 2 + 2 degrees of freedom."""
    assert pooled_sd([1, 2, 3], [10, 12, 14]) == pytest.approx((10 / 4) ** 0.5)
    assert pooled_sd([5], [1, 3]) == pytest.approx(2**0.5)
    assert pooled_sd([5, 5], [7]) == 0


def test_a_spread_that_nobody_knows_plans_nothing() -> None:
    assert pooled_sd([5], [7]) is None
    assert detectable(6, 6, None, 0.05, 0.05) is None
    assert runs_to_confirm(None, 0.05, 0.05) is None


def test_runs_for_a_level() -> None:
    """Exact Mann-Whitney: 2 / 70 with 4, 2 / 252 with 5, 2 / 924 with 6 runs a side."""
    assert fewest_runs(0.05) == 4
    assert fewest_runs(0.05 / 6) == 5
    assert fewest_runs(0.05 / 23) == 6
    assert fewest_runs(0.05 / 24) == 7


def test_three_runs_detect_nothing() -> None:
    assert detectable(3, 3, 0.04, 0.05, 0.05) is None
    assert detectable(6, 6, 0.04, 0.05, 0.05 / 24) is None


def test_without_noise_the_margin_is_detected() -> None:
    assert detectable(6, 6, 0.0, 0.05, 0.05) == pytest.approx(0.05)
    assert runs_to_confirm(0.0, 0.05, 0.05) == 4


@pytest.mark.parametrize(("n", "sd"), [(6, 0.04), (10, 0.04), (6, 0.1), (40, 0.04), (40, 0.2)])
def test_what_is_detectable_is_found_four_times_in_five(n: int, sd: float) -> None:
    least = detectable(n, n, sd, 0.05, 0.05)
    assert least is not None
    random = np.random.default_rng(11)
    found = 0
    for _ in range(TRIALS):
        seen = shift(random.normal(least, sd, n), random.normal(0, sd, n), scale="difference")
        found += seen.p <= 0.05 and seen.estimate > 0.05
    assert found / TRIALS == pytest.approx(0.8, abs=0.07)


@pytest.mark.parametrize(("sd", "margin"), [(0.04, 0.05), (0.04, 0.1), (0.02, 0.1)])
def test_so_many_runs_pass_what_did_not_change(sd: float, margin: float) -> None:
    runs = runs_to_confirm(sd, margin, 0.05)
    assert runs is not None
    passed = {}
    for n in (runs, max(4, runs - 3)):
        random = np.random.default_rng(12)
        passed[n] = 0
        for _ in range(TRIALS):
            seen = shift(random.normal(0, sd, n), random.normal(0, sd, n), scale="difference")
            passed[n] += seen.high is not None and seen.high <= margin
    assert passed[runs] / TRIALS > 0.73
    if runs > 7:
        assert passed[runs - 3] < passed[runs]


def test_many_runs_by_the_normal_approximation() -> None:
    """sd 10 %, margin 5 %: near 2 pi/3 (1.96 + 0.84)^2 (0.1 / 0.05)^2 = 65.7."""
    assert runs_to_confirm(0.1, 0.05, 0.05) == 66
    assert runs_to_confirm(1.0, 0.05, 0.05) is None


def test_a_margin_of_nothing_is_never_confirmed() -> None:
    assert runs_to_confirm(0.04, 0.0, 0.05) is None
