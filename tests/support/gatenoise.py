# SPDX-License-Identifier: Apache-2.0
"""Simulated sides of runs, and how often each way to decide says that something changed.

Shared by the test of the suite and by tools/validate_gate.py, which takes its time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from wbscope.compare.comparison import compare_sides
from wbscope.compare.gate import Verdict, judge
from wbscope.compare.policy import Margin, Policy, Rule

from support.rundata import metric, side

Array = NDArray[np.float64]
LEVEL = 100.0
SLOWED = 0.10  # share of runs that something else slowed down
TAIL = 0.20  # by so much on average, exponentially


@dataclass(frozen=True)
class Noise:
    """Normal with a coefficient of variation; with outliers, some runs are slowed.

    kind  normal; lognormal or t2: the logarithm is normal, or of Student's t with 2
          degrees of freedom, times the variation
    tick  what the clock tells, 0 = all digits
    """

    name: str
    variation: float = 0.04
    outliers: bool = False
    kind: str = "normal"
    level: float = LEVEL
    tick: float = 0.0

    def runs(self, random: np.random.Generator, n: int, change: float) -> Array:
        """n runs of a thing that takes longer by this share."""
        values = self.level * (1 + change) * self._factor(random, n)
        if self.outliers:
            slowed = random.uniform(size=n) < SLOWED
            values *= 1 + slowed * random.exponential(TAIL, n)
        if self.tick:
            values = self.tick * np.round(values / self.tick)
        return np.maximum(values, 1e-3)

    def _factor(self, random: np.random.Generator, n: int) -> Array:
        if self.kind == "t2":
            return np.exp(self.variation * random.standard_t(2, n))
        one = self.variation * random.standard_normal(n)
        return np.exp(one) if self.kind == "lognormal" else 1 + one


NORMAL = Noise("normal")
OUTLIERS = Noise("outliers", outliers=True)
WIDE = Noise("normal, 10 %", variation=0.10)

# What runs can be like of which nothing changed: light, skewed and heavy tails.
TAILS = (
    Noise("normal, 2 %", 0.02),
    Noise("normal, 4 %", 0.04),
    Noise("normal, 10 %", 0.10),
    Noise("lognormal, 3 %", 0.03, kind="lognormal"),
    Noise("lognormal, 30 %", 0.30, kind="lognormal"),
    Noise("t2, 1 %", 0.01, kind="t2"),
    Noise("t2, 2 %", 0.02, kind="t2"),
    Noise("t2, 5 %", 0.05, kind="t2"),
    Noise("12.35 s in whole seconds, 1 %", 0.01, level=12.35, tick=1.0),
)
STALL = 10.0  # so many times longer takes a run that stalls

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
    return verdict(a, b).status


def verdict(a: Array, b: Array) -> Verdict:
    """With what it is made of."""
    sides = side("A", {TIME: list(a)}), side("B", {TIME: list(b)})
    return judge(*sides, POLICY, []).verdicts[0]


def tail_counts(noise: Noise, n: int, stalled: float, trials: int) -> Counter[str]:
    """Verdicts where this share of runs stalls, and nothing else changed.

    "lost" are those that the rule about single runs took from PASS.
    """
    random = np.random.default_rng([n, round(stalled * 100), trials])
    counts: Counter[str] = Counter()
    for _ in range(trials):
        a, b = noise.runs(random, n, 0), noise.runs(random, n, 0)
        a = np.where(random.uniform(size=n) < stalled, a * STALL, a)
        found = verdict(a, b)
        counts[found.status] += 1
        passes = {"not worse by more than the margin", "better"} & set(found.reasons)
        counts["lost"] += bool(passes) and found.status != "PASS"
    return counts


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
