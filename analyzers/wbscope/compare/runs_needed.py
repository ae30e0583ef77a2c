# SPDX-License-Identifier: Apache-2.0
"""What runs of such a spread could have shown, and how many would be enough."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wbscope.compare.comparison import Row
from wbscope.measure.metric import Metric
from wbscope.stats.planning import detectable, fewest_runs, pooled_sd, runs_to_confirm
from wbscope.stats.shift import Scale

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """What these runs could show; a share is planned for on the scale of logarithms."""

    metric: Metric
    row: Row
    scale: Scale
    delta: float
    alpha: float
    compared: int
    min_runs: int

    @property
    def _is_ratio(self) -> bool:
        return self.scale == "ratio"

    @property
    def _sd(self) -> float | None:
        sides = [np.array(s.values) for s in (self.row.sample, self.row.base_sample)]
        return pooled_sd(*(np.log(side) if self._is_ratio else side for side in sides))

    @property
    def _margin(self) -> float:
        if not self._is_ratio:
            return self.delta
        if self.metric.better == "lower":
            return math.log1p(self.delta)
        return -math.log1p(-self.delta) if self.delta < 1 else math.inf

    def detectable(self, n: int, m: int) -> float | None:
        """With the level that Holm leaves to a single change."""
        found = detectable(n, m, self._sd, self._margin, self.alpha / self.compared)
        if found is None or not self._is_ratio:
            return found
        return math.expm1(found) if self.metric.better == "lower" else -math.expm1(-found)

    def runs_needed(self) -> int | None:
        """For a PASS of what did not change, and for a FAIL to be possible at all."""
        runs = runs_to_confirm(self._sd, self._margin, self.alpha)
        if runs is None:
            return None
        return max(runs, fewest_runs(self.alpha / self.compared), self.min_runs)
