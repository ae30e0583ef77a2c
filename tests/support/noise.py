# SPDX-License-Identifier: Apache-2.0
"""Simulated runs: noise of one session and of several, looks at more, and what is predicted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.signal import lfilter
from wbscope.compare.comparison import Side, compare_sides
from wbscope.compare.gate import GateResult, Verdict, judge
from wbscope.compare.pass_rate import LEAST_RUNS, pass_rate, until_decided
from wbscope.compare.policy import Margin, Policy, Rule
from wbscope.compare.rundata import RunData, Session
from wbscope.measure.metric import Scalars
from wbscope.stats.tests import Spending

from support.rundata import metric, side

from .rundata import run

__all__ = ["judged", "side_of"]


# Simulated sides of runs, and how often each way to decide says that something changed.
#
# Shared by the test of the suite and by tools/validate_gate.py, which takes its time.

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


# Simulated runs of several sessions: what sessions differ by, and noise that remembers.
#
# Shared by the tests of the suite and by tools/validate_gate.py, which takes its time.

IGNORE = replace(POLICY, sessions="ignore")


@dataclass(frozen=True)
class Machine:
    """drift: s.d. of what a session has in common; noise: of runs; memory: AR(1) of the noise."""

    drift: float = 0.0
    noise: float = 0.02
    memory: float = 0.0

    def series(self, random: np.random.Generator, n: int) -> Array:
        """n runs of a session, one after the other, as factors."""
        one = random.standard_normal(n)
        one[1:] *= (1 - self.memory**2) ** 0.5
        noise = lfilter([1.0], [1.0, -self.memory], one)
        return np.asarray((1 + self.drift * random.standard_normal()) * (1 + self.noise * noise))


@dataclass(frozen=True)
class Layout:
    """How the runs of two sides are made.

    apart     sessions of A and of B that have one side only, and runs of each
    together  sessions in which both are run in turns (A B B A), and runs of a side in each
    """

    name: str
    apart: tuple[int, int, int] = (0, 0, 0)
    together: tuple[int, int] = (0, 0)

    def sides(
        self, random: np.random.Generator, machine: Machine, change: float
    ) -> tuple[Side, Side]:
        """A takes longer by this share."""
        made: tuple[list[RunData], list[RunData]] = ([], [])

        def put(place: int, session: int, values: Sequence[float]) -> None:
            for value in values:
                name = f"{'AB'[place]}{len(made[place])}"
                value = max(value * LEVEL * (1 + change * (place == 0)), 1e-3)
                scalars = Scalars()
                scalars.add(TIME, value)
                made[place].append(RunData(name, name, scalars, session=Session(f"s{session}")))

        numbers = count(1)
        for place in (0, 1):
            for _ in range(self.apart[place]):
                put(place, next(numbers), machine.series(random, self.apart[2]).tolist())
        for _ in range(self.together[0]):
            number = next(numbers)
            values = machine.series(random, 2 * self.together[1])
            is_a = np.resize([True, False, False, True], values.size)
            put(0, number, values[is_a].tolist())
            put(1, number, values[~is_a].tolist())
        return Side("A", tuple(made[0])), Side("B", tuple(made[1]))


ONE_EACH = Layout("1 + 1 sessions of 10", apart=(1, 1, 10))
LAYOUTS = (
    ONE_EACH,
    Layout("1 + 3 sessions of 10", apart=(1, 3, 10)),
    Layout("1 + 6 sessions of 10", apart=(1, 6, 10)),
    Layout("3 + 1 sessions of 10", apart=(3, 1, 10)),
    Layout("3 + 3 sessions of 5", apart=(3, 3, 5)),
    Layout("6 + 6 sessions of 3", apart=(6, 6, 3)),
    Layout("in turns, 1 session of 10 + 10", together=(1, 10)),
    Layout("in turns, 2 sessions of 5 + 5", together=(2, 5)),
)


def counts(
    layout: Layout, machine: Machine, policy: Policy, change: float, trials: int
) -> Counter[str]:
    """Verdicts; the same ones each time."""
    random = np.random.default_rng(
        [round(1000 * machine.drift), round(10 * machine.memory), round(100 * change), trials]
    )
    found: Counter[str] = Counter()
    for _ in range(trials):
        a, b = layout.sides(random, machine, change)
        found[judge(a, b, policy, []).status] += 1
    return found


# Simulated gates that record until they decide: verdicts, and how many runs that took.
#
# Shared by the tests of the suite and by tools/validate_gate.py.


def sequential(
    noise: Noise,
    change: float,
    most: int,
    trials: int,
    spending: Spending | None = "pocock",
) -> tuple[Counter[str], float]:
    """Verdicts and runs a side on average; without spending, each look has all of alpha.

    "ever" counts runs of which any look said FAIL.
    """
    random = np.random.default_rng([most, round(change * 1000), trials])
    found: Counter[str] = Counter()
    runs = 0
    for _ in range(trials):
        a, b = noise.runs(random, most, change), noise.runs(random, most, 0)

        def make(n: int, a: object = a, b: object = b) -> tuple[Side, Side]:
            return side("A", {TIME: list(a[:n])}), side("B", {TIME: list(b[:n])})  # type: ignore[index]

        if spending is None:
            n = LEAST_RUNS
            while (status := judge(*make(n), POLICY, []).status) not in ("PASS", "FAIL"):
                if n == most:
                    break
                n = min(n + 1, most)
        else:
            result = until_decided(make, replace(POLICY), [], most, spending=spending)
            status, n = result.status, len(result.side.runs)
        found[status] += 1
        runs += n
    return found, runs / trials


# Sides of made-up runs in sessions, and the gate's word on them.


def side_of(name: str, sessions: Sequence[tuple[str, Sequence[float]]]) -> Side:
    """One metric, TIME, in ns; a run for each value of each session."""
    runs = [
        replace(run(f"{name}{session}{place}", {TIME: value}), session=Session(session))
        for session, values in sessions
        for place, value in enumerate(values)
    ]
    return Side(name, tuple(runs))


def judged(side: Side, base: Side, policy: Policy = POLICY) -> GateResult:
    return judge(side, base, policy, [])


# What `gate --self-check` predicts of simulated runs, and how often new ones really pass.
#
# Shared by the test of the suite and by tools/validate_gate.py.

Kind = Noise | Machine


def predicted(noise: Kind, size: int | Layout, baselines: int) -> tuple[float, float]:
    """Mean and s.d. over baselines."""
    random = np.random.default_rng(11)
    told = []
    for _ in range(baselines):
        found = pass_rate(_sides(noise, size, random)[1], POLICY, [])
        assert found is not None
        told.append(found.passed / found.trials)
    return float(np.mean(told)), float(np.std(told))


def real(noise: Kind, size: int | Layout, trials: int) -> float:
    """The share of new sides that pass against a new base."""
    random = np.random.default_rng(12)
    sides = (_sides(noise, size, random) for _ in range(trials))
    return sum(judge(a, b, POLICY, []).status == "PASS" for a, b in sides) / trials


def _sides(noise: Kind, size: int | Layout, random: np.random.Generator) -> tuple[Side, Side]:
    if isinstance(noise, Machine):
        assert isinstance(size, Layout)
        return size.sides(random, noise, 0.0)
    assert isinstance(size, int)
    a, b = (side(name, {TIME: list(noise.runs(random, size, 0.0))}) for name in "AB")
    return a, b
