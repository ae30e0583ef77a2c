# SPDX-License-Identifier: Apache-2.0
"""How often unchanged code passes, whether a policy can pass, and looks until it decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wbscope.base.result import Notice
from wbscope.compare.comparison import Side, metrics_of
from wbscope.compare.gate import GateResult, Status, judge
from wbscope.compare.metrics import declared_by
from wbscope.compare.policy import Policy
from wbscope.compare.rundata import RunData, Session
from wbscope.compare.sessions import session_labels
from wbscope.measure.metric import Metric, Scalars
from wbscope.stats.repeated import between_sd
from wbscope.stats.tests import Spending, look_levels

_SEED = 19630601
_TRIALS = 200
_LEAST_TRIALS = 100
# A drawn run is a run and this share of another one: of n runs there are n * n then, and few ties.
_MIXED = 0.5
_LEAST_RUNS = 4

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PassRate:
    """Of `trials` pairs of sides, so many passed with all metrics.

    sessions  of the runs: the new side is one more of them; 1 = what sessions differ by is not in
              it, as nobody knows it
    in_turns  both sides have runs in each of the sessions
    """

    passed: int
    trials: int
    metrics: int
    runs: tuple[int, int]
    sessions: int
    in_turns: bool = False

    def told(self) -> str:
        """For people."""
        tenths = round(10 * self.passed / self.trials)
        what = f"all {self.metrics} metrics" if self.metrics > 1 else "its metric"
        told = f"unchanged code would pass {tenths} of 10 times with {what}"
        if self.in_turns:
            more = f"two sides of {self.runs[0]} runs, in turns in {self.sessions} sessions"
        elif self.sessions > 1:
            more = f"a new session of {self.runs[0]} runs against {self.sessions} of {self.runs[1]}"
        else:
            more = f"two sides of {self.runs[0]} runs; drift between sessions is not in it"
        return f"{told} ({more})"


def pass_rate(
    side: Side, policy: Policy, families: Iterable[str], *, in_turns: bool = False
) -> PassRate | None:
    """None where nothing is compared, or there are too few runs or numbers to draw from.

    Whole runs are drawn, so that metrics go together as they did; what they are off the middle by
    is made as wide as the spread that they are a sample of.  A new session is as far off as the
    variance between sessions says; of sides that are run in turns, both are of the same ones.
    """
    rules = tuple(replace(one, budget=None, each_run=None) for one in policy.rules if one.margin)
    asked = replace(policy, rules=rules, drop_first=0, expect_runs=None)
    runs = side.runs[policy.drop_first :]
    declared, _ = declared_by(asked, metrics_of(runs), families)
    metrics = [one.metric for one in declared if one.is_there and one.rule.margin is not None]
    columns = [[run.value(metric.name) for run in runs] for metric in metrics]
    if not metrics or len(runs) < max(_LEAST_RUNS, policy.min_runs):
        return None
    if any(value is None for column in columns for value in column):
        return None
    labels = (session_labels(runs) if policy.sessions != "ignore" else None) or ["" for _ in runs]
    in_turns = in_turns and len(set(labels)) > 1
    if in_turns and len(set(labels)) == len(runs):
        return None  # nothing tells what runs of a session differ by
    drawn = _Drawn(metrics, np.array(columns, dtype=float).T, labels, in_turns)
    trials = max(_LEAST_TRIALS, _TRIALS // len(metrics))
    random = np.random.default_rng(_SEED)
    listed = [metric.name for metric in metrics]
    passed = sum(judge(*drawn.sides(random), asked, listed).status == "PASS" for _ in range(trials))
    sizes = drawn.new_runs, len(runs)
    return PassRate(passed, trials, len(metrics), sizes, len(set(labels)), in_turns)


class _Drawn:
    """Sides like the given one."""

    def __init__(
        self, metrics: Sequence[Metric], values: Array, labels: Sequence[str], in_turns: bool
    ) -> None:
        """values: (runs, metrics)."""
        self._metrics = metrics
        self._is_ratio = (values > 0).all(axis=0)
        scaled = np.where(self._is_ratio, np.log(np.where(values > 0, values, 1.0)), values)
        names = list(dict.fromkeys(labels))
        groups = [scaled[[at for at, one in enumerate(labels) if one == name]] for name in names]
        n, k = len(labels), len(names)
        means = np.array([group.mean(axis=0) for group in groups])
        self._middle = means.mean(axis=0)
        within = np.concatenate([group - mean for group, mean in zip(groups, means, strict=True)])
        self._within = within * (math.sqrt(n / (n - k)) if n > k else 0.0)
        self._sizes = [len(group) for group in groups]
        self._in_turns = in_turns
        # What both sides have in common falls out.
        self._between = means * 0.0 if in_turns else self._sessions(groups, means)
        self.new_runs = n if in_turns else round(n / k)

    def _sessions(self, groups: Sequence[Array], means: Array) -> Array:
        """What each session is off by, so that a normal mixture has the spread between them."""
        off: Array = means - self._middle
        if len(groups) < 2:
            return off
        spread = off.std(axis=0, ddof=1)
        wanted = [between_sd([group[:, at] for group in groups]) for at in range(off.shape[1])]
        ratio = np.divide(wanted, spread, out=np.zeros_like(spread), where=spread > 0)
        scaled: Array = off * ratio / math.sqrt(len(groups) - 1)
        return scaled

    def sides(self, random: np.random.Generator) -> tuple[Side, Side]:
        """One more session, or the same ones; and as many sessions as there are."""
        # So few runs do not tell their spread exactly: it may be wider, or narrower.
        runs, sessions = len(self._within), len(self._sizes)
        width = _width(runs - sessions, random), _width(sessions - 1, random)
        new = self._side("A", self._sizes if self._in_turns else [self.new_runs], width, random)
        return new, self._side("B", self._sizes, width, random)

    def _side(
        self,
        name: str,
        sizes: Sequence[int],
        width: tuple[float, float],
        random: np.random.Generator,
    ) -> Side:
        runs: list[RunData] = []
        for number, size in enumerate(sizes):
            off = random.standard_normal(len(self._between)) @ self._between
            level = self._middle + width[1] * off
            first, second = (self._within[random.integers(len(self._within), size=size)] for _ in
                             range(2))  # fmt: skip
            values = level + width[0] * (first + _MIXED * second) / math.hypot(1, _MIXED)
            for row in np.where(self._is_ratio, np.exp(values), values):
                scalars = Scalars()
                for metric, value in zip(self._metrics, row.tolist(), strict=True):
                    scalars.add(metric, value)
                where = f"{'' if self._in_turns else name}{number}"
                session = Session(where) if len(self._sizes) > 1 else None
                told = f"{name}{len(runs)}"
                runs.append(RunData(told, told, scalars, session=session))
        return Side(name, tuple(runs))


def _width(degrees: int, random: np.random.Generator) -> float:
    """What the spread may be, as a share of that of a sample with so many degrees of freedom."""
    return math.sqrt(degrees / random.chisquare(degrees)) if degrees > 0 else 1.0


@dataclass(frozen=True)
class SelfCheck:
    """Three questions about runs of one thing.

    same    the runs against themselves: nothing differs, so what is not PASS is a
            margin that runs of such a spread can never keep
    halves  the second half of the runs against the first; where it got better by
            more than the margin, the first against the second: FAIL is a machine
            that drifted, whichever way; None when there are too few runs
    predicted  how often two new sides of such runs would pass; None when there are too few,
            or no margin
    """

    same: GateResult
    halves: GateResult | None
    predicted: PassRate | None = None

    @property
    def status(self) -> Status:
        """FAIL when the halves differ; else what the runs say against themselves."""
        if self.halves is not None and self.halves.status == "FAIL":
            return "FAIL"
        return self.same.status

    @property
    def decisive(self) -> GateResult:
        """The one that the status is from."""
        if self.halves is not None and self.halves.status == "FAIL":
            return self.halves
        return self.same

    def told(self) -> str:
        """All answers in one line."""
        runs = len(self.same.side.runs)
        text = f"self-check: {runs} runs against themselves: {self.same.status}"
        if self.predicted is not None:
            text = f"self-check: {self.predicted.told()}; {text.removeprefix('self-check: ')}"
        if self.halves is None:
            return f"{text}; too few for a first and a second half, or no margin"
        later, earlier = (s.name.partition(", ")[2] for s in (self.halves.side, _base(self.halves)))
        return f"{text}; {later} against {earlier}: {self.halves.status}"

    def exit_code(self) -> int:
        """As of a gate."""
        return self.decisive.exit_code()


def self_check(
    side: Side, policy: Policy, families: Iterable[str], *, predict: bool = True
) -> SelfCheck:
    """Judge the runs against themselves, and their first half against their second.

    The halves are in the order given, which should be that of recording.  What is predicted
    takes a second or more.

    Raises: UsageError as judge().
    """
    listed = list(families)
    same = judge(side, Side(f"{side.name} again", side.runs), policy, listed, itself=True)
    predicted = pass_rate(side, policy, listed) if predict and not same.refusals else None
    # The first runs warm up once, not once for each half.
    runs = side.runs[policy.drop_first :]
    half = len(runs) // 2
    if not policy.compares or half < policy.min_runs:
        return SelfCheck(same, None, predicted)
    first = Side(f"{side.name}, first half", runs[:half])
    second = Side(f"{side.name}, second half", runs[half:])
    # Budgets are kept by all runs or not, whichever half they are in.
    margins = tuple(
        replace(rule, budget=None, each_run=None) for rule in policy.rules if rule.margin
    )
    asked = replace(policy, rules=margins, drop_first=0, expect_runs=None)
    halves = judge(second, first, asked, listed)
    if halves.status != "FAIL" and (back := judge(first, second, asked, listed)).status == "FAIL":
        halves = back
    return SelfCheck(same, halves, predicted)


def _base(result: GateResult) -> Side:
    assert result.base is not None
    return result.base


# With fewer no more than one or a few metrics can fail; docs/compare.md has the table.
LEAST_RUNS = 6
# From look to look so many times as many: a look after each run would cost power for little.
_GROWTH = 1.5
_LAST_GROWTH = 1.2


@dataclass(frozen=True)
class Look:
    """One look: runs of each side, the level of the test (of all metrics), what it said."""

    runs: int
    level: float
    status: Status


def look_sizes(most: int, least: int = LEAST_RUNS) -> list[int]:
    """Runs of each side at each look, planned before the first run: 6, 9, 14, 21, 30.

    Of fewer than `least` there is one look.
    """
    sizes = []
    size = min(least, most)
    while size * _LAST_GROWTH < most:
        sizes.append(size)
        size = round(size * _GROWTH + 1e-9)
    return [*sizes, most]


def until_decided(
    make: Callable[[int], tuple[Side, Side]],
    policy: Policy,
    families: Iterable[str],
    most: int,
    told: Callable[[Look], None] = lambda _: None,
    spending: Spending = "pocock",
) -> GateResult:
    """Judge after each look until it is FAIL, PASS or REFUSED, or `most` runs of each are made.

    `make` gives the side and the base with so many runs of each, those of the look before first.
    Intervals are those of the look's level, so what they exclude at any look is excluded by
    alpha.

    Raises: as judge(), and what `make` raises.
    """
    families = list(families)
    asked = replace(policy, expect_runs=None)
    if families:  # a name that nothing can have is told before the first run
        declared_by(asked, (), families)
    sizes = look_sizes(most, max(LEAST_RUNS, policy.min_runs) + policy.drop_first)
    looks: list[Look] = []
    for place, runs in enumerate(sizes):
        sides = make(runs)
        result = judge(*sides, asked, families)
        level = policy.alpha
        if result.compared and not result.refusals:
            counted = [max(size - policy.drop_first, 1) for size in sizes]
            level = _level(policy.alpha, result.compared, counted, place, spending)
            result = judge(*sides, replace(asked, alpha=level), families)
        looks.append(Look(runs, level, result.status))
        told(looks[-1])
        if result.status in ("PASS", "FAIL", "REFUSED"):
            break
    notices = (*result.warnings, *_told(looks, sizes, policy)) if result.compared else ()
    return replace(result, policy=policy, warnings=notices or result.warnings)


def _level(
    alpha: float, compared: int, sizes: Sequence[int], place: int, spending: Spending
) -> float:
    """Of all metrics at a look: Holm gives the first one its share, which has to be spent so."""
    one = look_levels(alpha, sizes, spending=spending)[place]
    shared = look_levels(alpha / compared, sizes, spending=spending)[place]
    return min(one, compared * shared)


def _told(looks: Sequence[Look], sizes: Sequence[int], policy: Policy) -> list[Notice]:
    made = ", ".join(str(look.runs) for look in looks)
    levels = ", ".join(f"{look.level:.2g}" for look in looks)
    told = f"{len(looks)} of {len(sizes)} planned looks were made, with {made} runs of each side,"
    told += f" at the level {levels} (and intervals of it): together alpha {policy.alpha:g}"
    return [Notice("sequential", told)]
