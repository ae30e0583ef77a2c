# SPDX-License-Identifier: Apache-2.0
"""Simulated sides of runs, and how often each way to decide says that something changed.

Shared by the test of the suite and by tools/validate_gate.py, which takes its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from wbscope.compare.comparison import compare_sides
from wbscope.compare.gate import judge
from wbscope.compare.policy import Margin, Policy, Rule

from support.rundata import metric, side

Array = NDArray[np.float64]
LEVEL = 100.0
SLOWED = 0.10  # share of runs that something else slowed down
TAIL = 0.20  # by so much on average, exponentially


@dataclass(frozen=True)
class Noise:
    """Normal with a coefficient of variation; with outliers, some runs are slowed."""

    name: str
    variation: float = 0.04
    outliers: bool = False

    def runs(self, random: np.random.Generator, n: int, change: float) -> Array:
        """n runs of a thing that takes longer by this share."""
        values = LEVEL * (1 + change) * (1 + self.variation * random.standard_normal(n))
        if self.outliers:
            slowed = random.uniform(size=n) < SLOWED
            values *= 1 + slowed * random.exponential(TAIL, n)
        return np.maximum(values, 1e-3)


NORMAL = Noise("normal")
OUTLIERS = Noise("outliers", outliers=True)
WIDE = Noise("normal, 10 %", variation=0.10)

TIME = metric("x.time_ns")
POLICY = Policy((Rule(TIME.name, Margin("5%", 0.05)),))
_FIVE = [metric(f"x.m{index}_ns") for index in range(5)]
FAMILY = Policy(tuple(Rule(one.name, Margin("5%", 0.05)) for one in _FIVE))


def welch(a: Array, b: Array) -> bool:
    return bool(stats.ttest_ind(a, b, equal_var=False).pvalue <= 0.05)


def trimmed_welch(a: Array, b: Array) -> bool:
    """Drop the fastest and the slowest, then test what is left as if it were all."""
    return welch(np.sort(a)[1:-1], np.sort(b)[1:-1])


def moved(a: Array, b: Array) -> bool:
    return bool(abs(a.mean() / b.mean() - 1) > 0.05)


def rank_test(a: Array, b: Array) -> bool:
    return bool(stats.mannwhitneyu(a, b, method="exact").pvalue <= 0.05)


def face(a: Array, b: Array) -> bool:
    """A face of `wbscope compare`."""
    found = compare_sides(side("B", {TIME: list(b)}), [side("A", {TIME: list(a)})])
    return found.rows[0].outcome in ("better", "worse")


def status(a: Array, b: Array) -> str:
    """The verdict of `wbscope gate`."""
    return judge(side("A", {TIME: list(a)}), side("B", {TIME: list(b)}), POLICY, []).status


def family_fails(random: np.random.Generator, noise: Noise, n: int) -> bool:
    """Does any of five metrics fail that did not change?"""
    a = side("A", {one: list(noise.runs(random, n, 0)) for one in _FIVE})
    b = side("B", {one: list(noise.runs(random, n, 0)) for one in _FIVE})
    return judge(a, b, FAMILY, []).status == "FAIL"


def pairs(noise: Noise, n: int, change: float, trials: int) -> Iterator[tuple[Array, Array]]:
    """The same ones each time."""
    random = np.random.default_rng([n, round(change * 100), noise.outliers, trials])
    for _ in range(trials):
        yield noise.runs(random, n, change), noise.runs(random, n, 0)


def share(
    rule: Callable[[Array, Array], bool], noise: Noise, n: int, change: float, trials: int
) -> float:
    return sum(rule(a, b) for a, b in pairs(noise, n, change, trials)) / trials
