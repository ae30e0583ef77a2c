# SPDX-License-Identifier: Apache-2.0
"""What runs of such a spread could have shown, and how many would be enough."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wbscope.compare.comparison import Row
from wbscope.compare.sessions import Design
from wbscope.measure.metric import Metric
from wbscope.stats.planning import (
    blocks_to_confirm,
    detectable,
    detectable_within,
    fewest_blocks,
    fewest_runs,
    pooled_sd,
    runs_to_confirm,
    within_sd,
)
from wbscope.stats.shift import Scale

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """What these runs could show; a share is planned for on the scale of logarithms.

    Of sessions that are apart it is nothing: more of them decide, not more runs.
    """

    metric: Metric
    row: Row
    scale: Scale
    delta: float
    alpha: float
    compared: int
    min_runs: int
    design: Design

    @property
    def _is_ratio(self) -> bool:
        return self.scale == "ratio"

    @property
    def _sd(self) -> float | None:
        sides = [np.array(s.values) for s in (self.row.sample, self.row.base_sample)]
        mine, theirs = (np.log(side) if self._is_ratio else side for side in sides)
        if self.design.kind == "blocks":
            return within_sd(self.design.blocks(mine.tolist(), theirs.tolist()))
        return pooled_sd(mine, theirs)

    @property
    def _margin(self) -> float:
        if not self._is_ratio:
            return self.delta
        if self.metric.better == "lower":
            return math.log1p(self.delta)
        return -math.log1p(-self.delta) if self.delta < 1 else math.inf

    def detectable(self, n: int, m: int) -> float | None:
        """With the level that Holm leaves to a single change."""
        level = self.alpha / self.compared
        if self.design.kind == "sessions":
            return None
        if self.design.kind == "blocks":
            found = detectable_within(self.design.sizes, self._sd, self._margin, level)
        else:
            found = detectable(n, m, self._sd, self._margin, level)
        if found is None or not self._is_ratio:
            return found
        return math.expm1(found) if self.metric.better == "lower" else -math.expm1(-found)

    def runs_needed(self) -> int | None:
        """For a PASS of what did not change, and for a FAIL to be possible at all."""
        level = self.alpha / self.compared
        if self.design.kind == "sessions":
            return None
        if self.design.kind == "blocks":
            # More sessions with as many runs in each.
            each = max(1, min(self.design.runs) // len(self.design.sizes))
            blocks = blocks_to_confirm(each, self._sd, self._margin, self.alpha)
            if blocks is None:
                return None
            least = max(blocks, fewest_blocks(each, level), math.ceil(self.min_runs / each))
            return least * each
        runs = runs_to_confirm(self._sd, self._margin, self.alpha)
        if runs is None:
            return None
        return max(runs, fewest_runs(level), self.min_runs)
