# SPDX-License-Identifier: Apache-2.0
"""Holm's adjustment by hand and against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from wbscope.stats.holm import holm


def test_by_hand() -> None:
    """0.005 x 4, 0.01 x 3, then 0.03 x 2, and 0.04 is no smaller than that."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_one_is_itself_and_none_is_none() -> None:
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


def test_never_above_one_and_never_below_its_p() -> None:
    p = np.random.default_rng(5).uniform(size=40)
    adjusted = holm(list(p))
    assert all(p <= adjusted)
    assert max(adjusted) <= 1


def test_it_refuses_what_holm_refuses() -> None:
    """Step down: refuse the smallest while p(i) <= alpha / (m - i + 1)."""
    random = np.random.default_rng(6)
    for _ in range(50):
        p = random.uniform(size=6) ** 3
        order = np.argsort(p)
        refused = set()
        for step, index in enumerate(order):
            if p[index] > 0.05 / (6 - step):
                break
            refused.add(int(index))
        assert {i for i, value in enumerate(holm(list(p))) if value <= 0.05} == refused


def test_runs_that_six_metrics_need() -> None:
    """With 6 + 6 runs (p 0.00216) 23 metrics can fail and 24 cannot."""
    least = 2 / 924
    assert max(holm([least] * 23)) <= 0.05 < max(holm([least] * 24))
