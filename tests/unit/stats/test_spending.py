# SPDX-License-Identifier: Apache-2.0
"""Levels of several looks: published borders, and that they add up to alpha."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from wbscope.stats.tests import Spending, look_levels

# Reboussin, DeMets, Kim, Lan: Computations for group sequential boundaries using the Lan-DeMets
# spending function method, 2000: five equal looks, two-sided 0.05.
_PUBLISHED: dict[Spending, list[float]] = {
    "obrien-fleming": [4.8769, 3.3569, 2.6803, 2.2898, 2.0310],
    "pocock": [2.4380, 2.4268, 2.4101, 2.3966, 2.3859],
}


@pytest.mark.parametrize("spending", list(_PUBLISHED))
def test_published_borders(spending: Spending) -> None:
    borders = [
        NormalDist().inv_cdf(1 - level / 2)
        for level in look_levels(0.05, [1, 2, 3, 4, 5], spending)
    ]
    assert borders == pytest.approx(_PUBLISHED[spending], abs=2e-4)


def test_one_look_has_all() -> None:
    assert look_levels(0.05, [10]) == pytest.approx([0.05])


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_paths_cross_in_alpha_of_cases(alpha: float) -> None:
    """200,000 simulated paths of uneven looks."""
    looks = [6, 9, 14, 24]
    chance = np.random.default_rng(2)
    steps = chance.standard_normal((200_000, looks[-1])).cumsum(axis=1)
    crossed = np.zeros(len(steps), dtype=bool)
    for look, level in zip(looks, look_levels(alpha, looks), strict=True):
        crossed |= np.abs(steps[:, look - 1]) > look**0.5 * NormalDist().inv_cdf(1 - level / 2)
    assert crossed.mean() == pytest.approx(alpha, rel=0.05)


def test_looks_rise() -> None:
    with pytest.raises(ValueError, match="do not rise"):
        look_levels(0.05, [6, 6])
