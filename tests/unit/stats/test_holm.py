# SPDX-License-Identifier: Apache-2.0
"""Holm's adjustment by hand and against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from support.properties import for_all
from wbscope.stats.tests import holm


def test_by_hand() -> None:
    """0.005 x 4, 0.01 x 3, then 0.03 x 2, and 0.04 is no smaller than that."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_one_is_itself_and_none_is_none() -> None:
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


@for_all(60, p=st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_never_above_one_and_never_below_its_p(p: list[float]) -> None:
    adjusted = holm(p)
    assert all(one <= new for one, new in zip(p, adjusted, strict=True))
    assert max(adjusted) <= 1


# Around what decides, and of whole millionths, so that no rounding does.
_P = st.integers(1, 100_000) | st.integers(1, 999_999)


@for_all(100, parts=st.lists(_P, min_size=1, max_size=8))
def test_it_refuses_what_holm_refuses(parts: list[int]) -> None:
    """Step down: refuse the smallest while p(i) <= alpha / (m - i + 1)."""
    p = [(part + 0.5) / 1_000_000 for part in parts]
    refused = set()
    for step, index in enumerate(np.argsort(p)):
        if p[index] > 0.05 / (len(p) - step):
            break
        refused.add(int(index))
    assert {i for i, value in enumerate(holm(p)) if value <= 0.05} == refused


def test_runs_that_six_metrics_need() -> None:
    """With 6 + 6 runs (p 0.00216) 23 metrics can fail and 24 cannot."""
    least = 2 / 924
    assert max(holm([least] * 23)) <= 0.05 < max(holm([least] * 24))
