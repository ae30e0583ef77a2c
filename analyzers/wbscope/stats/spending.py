# SPDX-License-Identifier: Apache-2.0
"""Several looks at runs that become more: alpha is spent, not used again at each look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import Literal

import numpy as np

__all__ = ["Spending", "look_levels"]

Spending = Literal["pocock", "obrien-fleming"]

_POINTS = 801
# Farther out there is nothing that a level could be read from.
_FARTHEST = 8.5
_HALVINGS = 60


def look_levels(alpha: float, looks: Sequence[int], spending: Spending = "pocock") -> list[float]:
    """The two-sided level of the test at each look, so that all of them together err in alpha.

    looks  runs there are at each look that is planned, rising

    Raises: ValueError for looks that do not rise.
    Source: Lan and DeMets 1983, with their functions of Pocock's and of O'Brien and Fleming's
            type; the recursion is that of Armitage, McPherson and Rowe 1969.
    """
    if any(a >= b for a, b in pairwise(looks)):
        raise ValueError(f"looks {list(looks)} do not rise")
    return list(_levels(alpha, tuple(look / looks[-1] for look in looks), spending))


def _spent(alpha: float, share: float, spending: Spending) -> float:
    """Until this share of the runs."""
    if spending == "pocock":
        return alpha * math.log1p((math.e - 1) * share)
    normal = NormalDist()
    return 4 - 4 * normal.cdf(normal.inv_cdf(1 - alpha / 4) / math.sqrt(share))


@lru_cache(maxsize=256)
def _levels(alpha: float, shares: tuple[float, ...], spending: Spending) -> tuple[float, ...]:
    """Of the sum of normal steps, that of the paths which no look has stopped."""
    from scipy.stats import norm

    found, before, spent = [], 0.0, 0.0
    places = weights = np.zeros(0)
    for share in shares:
        step = math.sqrt(share - before)
        goal = _spent(alpha, share, spending)
        low, high = 0.0, _FARTHEST
        for _ in range(_HALVINGS):
            border = (low + high) / 2
            reach = border * math.sqrt(share)
            if places.size:
                beyond = norm.sf((reach - places) / step) + norm.cdf((-reach - places) / step)
                crossing = float((weights * beyond).sum())
            else:
                crossing = 2 * float(norm.sf(border))
            low, high = (border, high) if crossing > goal - spent else (low, border)
        border = (low + high) / 2
        found.append(2 * float(norm.sf(border)))
        reach = border * math.sqrt(share)
        grid = np.linspace(-reach, reach, _POINTS)
        if places.size:
            density = (norm.pdf((grid[:, None] - places) / step) * weights).sum(axis=1) / step
        else:
            density = norm.pdf(grid / step) / step
        width = grid[1] - grid[0]
        simpson = np.full(_POINTS, 2.0)
        simpson[1::2], simpson[[0, -1]] = 4.0, 1.0
        places, weights = grid, density * simpson * width / 3
        before, spent = share, goal
    return tuple(found)
