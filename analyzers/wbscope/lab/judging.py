# SPDX-License-Identifier: Apache-2.0
"""Is a point good or bad?  Decided by runs of it against those of a good and of a bad end.

Pure: whoever makes the runs is a Runner, and tests simulate one.

A point is looked at after 6 and, where that does not decide, after 12 and 24 runs.  It is bad when
it is surely worse than the good end, good when the bad end is surely worse than it, both by more
than the margin.  Surely is the exact Mann-Whitney test at alpha / (looks * planned tests): with
twice the planned tests, a wrong verdict is still made in at most alpha of all searches, as each
test can err in one direction only.  Neither, or both (half of the change), is skip: no point is
called bad because nobody knows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

from wbscope.stats.shift import Shift, shift

__all__ = [
    "LOOKS",
    "Confirmed",
    "Judge",
    "Plan",
    "Point",
    "Runner",
    "Spent",
    "Test",
    "Verdict",
    "worse_by",
]

Point = TypeVar("Point", bound=Hashable)
Verdict = Literal["good", "bad", "skip"]

LOOKS = (6, 12, 24)


class Runner(Protocol[Point]):
    """Makes runs; its points are whatever names them."""

    def runs(self, points: Sequence[Point], count: int) -> Mapping[Point, Sequence[float] | str]:
        """The values of `count` more runs of each, made in turns.

        A text is why there are none of one; the others may have fewer then.
        """

    def higher_is_worse(self) -> bool | None:
        """Asked after runs; None = neither way, so the ends tell."""


class Spent(Exception):
    """The next runs would be more than were allowed."""

    def __str__(self) -> str:
        return "the runs that were allowed are made"


@dataclass(frozen=True)
class Plan:
    """How sure, how much, how many.

    margin  the share by which something must be worse to count
    tests   planned: the ends, the points, the border again; up to twice as many are made
    """

    margin: float
    tests: int
    alpha: float = 0.05
    looks: tuple[int, ...] = LOOKS
    most_runs: int | None = None

    @property
    def level(self) -> float:
        """Of a single comparison."""
        return self.alpha / (len(self.looks) * self.tests)

    @property
    def least_runs(self) -> int:
        """Of a search in which the first look at each decides; the ends and the border are two."""
        return self.looks[0] * (self.tests + 2)


@dataclass(frozen=True)
class Test(Generic[Point]):
    """One point that was looked at, and why the verdict is so."""

    __test__ = False  # not one of pytest's

    point: Point
    verdict: Verdict
    why: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Confirmed:
    """Two sides with runs of their own: surely worse or not."""

    is_worse: bool
    why: str
    shift: Shift | None
    runs: int


@dataclass
class Judge(Generic[Point]):
    """Knows the ends; asks for runs as long as they are allowed.

    asked, counted  runs; those of a point whose runs fail do not count
    """

    good: Point
    bad: Point
    runner: Runner[Point]
    plan: Plan
    asked: int = 0
    counted: int = 0
    tests: int = 0
    values: dict[Point, list[float]] = field(default_factory=dict)
    _worse_is_higher: bool = True

    @property
    def may_test(self) -> bool:
        """The border, too, has to be tested in the end."""
        return self.tests + 1 < 2 * self.plan.tests

    def ends(self) -> Confirmed:
        """Whether there is anything to look for; asked first."""
        broken = self._until(self.plan.looks[0], (self.good, self.bad))
        if broken is None:
            known = self.runner.higher_is_worse()
            if known is None:
                moved = shift(self.values[self.bad], self.values[self.good])
                known = moved.estimate > (1 if moved.scale == "ratio" else 0)
            self._worse_is_higher = known
        return self._compared(self.good, self.bad, "the good end", "the bad end", broken)

    def test(self, point: Point) -> Test[Point]:
        """Raises: Spent."""
        self.tests += 1
        for runs in self.plan.looks:
            # The ends go on with it, so that they are compared at the same size.
            wanted = (point,) if runs == self.plan.looks[0] else (point, self.good, self.bad)
            if (broken := self._until(runs, wanted)) is not None:
                return Test(point, "skip", broken, tuple(self.values.get(point, ())))
            mine = self.values[point]
            is_bad = self._is_worse(mine, self.values[self.good])
            is_good = self._is_worse(self.values[self.bad], mine)
            if is_bad or is_good:
                break
        if is_bad and is_good:
            return Test(point, "skip", "between the good and the bad end", tuple(mine))
        if is_bad:
            return Test(point, "bad", "worse than the good end", tuple(mine))
        if is_good:
            return Test(point, "good", "better than the bad end", tuple(mine))
        return Test(point, "skip", f"not decided after {len(mine)} runs", tuple(mine))

    def confirm(self, good: Point, bad: Point) -> Confirmed:
        """Neighbours against each other, with fresh runs only.  Raises: Spent."""
        for point in (good, bad):
            self.values[point] = []
        return self._compared(good, bad, "the last good one", "the first bad one", None)

    def _compared(
        self, good: Point, bad: Point, good_name: str, bad_name: str, broken: str | None
    ) -> Confirmed:
        self.tests += 1
        found = None
        for runs in self.plan.looks:
            broken = broken or self._until(runs, (good, bad))
            if broken is not None:
                return Confirmed(False, broken, None, 0)
            mine, base = self.values[bad], self.values[good]
            found = shift(mine, base, 1 - self.plan.alpha)
            if self._is_worse(mine, base):
                return Confirmed(True, "", found, runs)
        why = f"{bad_name} is not surely worse than {good_name} after {runs} runs of each"
        return Confirmed(False, why, found, runs)

    def _is_worse(self, side: Sequence[float], base: Sequence[float]) -> bool:
        found = shift(side, base)
        return found.p <= self.plan.level and (
            worse_by(found, base, self._worse_is_higher) > self.plan.margin
        )

    def _until(self, count: int, points: Sequence[Point]) -> str | None:
        """So many values of each, or why there are not."""
        missing = {point: count - len(self.values.get(point, ())) for point in points}
        for many in sorted({many for many in missing.values() if many > 0}):
            wanted = [point for point in points if missing[point] == many]
            runs = many * len(wanted)
            if self.plan.most_runs is not None and self.asked + runs > self.plan.most_runs:
                raise Spent
            self.asked += runs
            broken = None
            for point, found in self.runner.runs(wanted, many).items():
                if isinstance(found, str):
                    broken = broken or found
                    continue
                self.counted += len(found)
                self.values.setdefault(point, []).extend(found)
            if broken is not None:
                return broken
        return None


def worse_by(found: Shift, base: Sequence[float], higher_is_worse: bool) -> float:
    """The share of the base; below 0 = better."""
    if found.scale == "ratio":
        return found.estimate - 1 if higher_is_worse else 1 - found.estimate
    moved = found.estimate if higher_is_worse else -found.estimate
    size = abs(sorted(base)[len(base) // 2])
    return moved / size if size else math.copysign(math.inf, moved) if moved else 0.0
