# SPDX-License-Identifier: Apache-2.0
"""Who is the first bad one: how often a search errs, and what is never called bad."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from scipy import stats
from wbscope.lab.bisect import Found, planned_tests, search
from wbscope.lab.judging import LOOKS, Judge, Plan, Test

_SEARCHES = 400
# More wrong ones than this would come of 5 % in one of 10,000 tries only.
_MOST_WRONG = int(stats.binom.ppf(0.9999, _SEARCHES, 0.05))


class _Runner:
    """Runs of points 0, 1, 2, ...: their medians, and a noise that is log-normal.

    broken  points whose runs fail, from so many runs on
    """

    def __init__(
        self,
        medians: Sequence[float],
        noise: float,
        seed: int,
        broken: Mapping[int, int] | None = None,
        higher_is_worse: bool | None = True,
    ) -> None:
        self.given: dict[int, list[float]] = {point: [] for point in range(len(medians))}
        self.calls: list[tuple[tuple[int, ...], int]] = []
        self._medians, self._noise = medians, noise
        self._chance = random.Random(seed)
        self._broken = broken or {}
        self._higher_is_worse = higher_is_worse

    def runs(self, points: Sequence[int], count: int) -> dict[int, Sequence[float] | str]:
        self.calls.append((tuple(points), count))
        return {point: self._of(point, count) for point in points}

    def _of(self, point: int, count: int) -> Sequence[float] | str:
        if len(self.given[point]) + count > self._broken.get(point, 10**6):
            return f"{point}: the workload exited with 3"
        made = [
            self._medians[point] * self._chance.lognormvariate(0, self._noise) for _ in range(count)
        ]
        self.given[point] += made
        return made

    def higher_is_worse(self) -> bool | None:
        return self._higher_is_worse


def _step(points: int, at: int, factor: float) -> list[float]:
    return [factor if place >= at else 1.0 for place in range(points)]


def _search(runner: _Runner, points: int, margin: float = 0.1, **plan: int) -> Found[int]:
    planned = Plan(margin, planned_tests(points), **plan)  # type: ignore[arg-type]
    told: list[Test[int]] = []
    found = search(range(points), Judge(0, points - 1, runner, planned), told.append)
    assert told == list(found.tests)
    return found


def _searches(
    points: int, factor: float, noise: float, margin: float
) -> tuple[Counter[str], int, int]:
    """How they ended; how many have a wrong verdict, how many name a wrong point."""
    ended: Counter[str] = Counter()
    wrong = named = 0
    for seed in range(_SEARCHES):
        at = random.Random(seed).randrange(1, points)
        found = _search(_Runner(_step(points, at, factor), noise, seed), points, margin)
        ended[found.status] += 1
        verdicts = [(test.point >= at, test.verdict) for test in found.tests]
        wrong += (False, "bad") in verdicts or (True, "good") in verdicts
        named += found.status == "found" and found.first_bad != at
    return ended, wrong, named


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_without_a_change_nothing_is_bad(margin: float) -> None:
    """With no margin at all, nothing but the tests stands between noise and a verdict."""
    wrong = 0
    for seed in range(_SEARCHES):
        found = _search(_Runner([1.0] * 8, 0.3, seed), 8, margin)
        is_bad = found.status != "nothing" or any(test.verdict == "bad" for test in found.tests)
        wrong += is_bad
    assert wrong <= _MOST_WRONG


@pytest.mark.parametrize("neutral", [False, True])
def test_a_known_step_is_found(neutral: bool) -> None:
    """At each place of it, with the least number of runs; which way is worse the ends tell."""
    points = 9
    for at in range(1, points):
        for factor in (1.5, 0.6) if neutral else (1.5,):
            runner = _Runner(
                _step(points, at, factor), 0.03, at, higher_is_worse=None if neutral else True
            )
            found = _search(runner, points)
            assert (found.status, found.last_good, found.first_bad) == ("found", at - 1, at)
            assert found.runs == sum(map(len, runner.given.values()))
            assert found.runs <= Plan(0.1, planned_tests(points)).least_runs == 42
            assert len(found.tests) <= 4  # log2(8) halvings, one more where they are uneven
            assert found.border is not None
            assert found.border.shift is not None
            assert found.border.shift.estimate == pytest.approx(factor, rel=0.1)


@pytest.mark.parametrize(("factor", "noise", "margin"), [(1.15, 0.1, 0.05), (1.3, 0.3, 0.0)])
def test_wrong_ones_are_few_where_the_step_is_hard_to_see(
    factor: float, noise: float, margin: float
) -> None:
    ended, wrong, named = _searches(16, factor, noise, margin)
    assert wrong <= _MOST_WRONG
    assert named <= _MOST_WRONG
    # It is hard: some end without an answer, and that is told.
    assert ended["found"] < _SEARCHES
    assert set(ended) <= {"found", "nothing", "range", "unconfirmed"}


def test_a_change_that_is_an_improvement_is_not_bad() -> None:
    found = _search(_Runner(_step(8, 4, 0.5), 0.03, 1), 8)
    assert (found.status, found.tests) == ("nothing", ())
    assert (
        found.why
        == "the bad end is not significantly worse than the good end after 24 runs of each"
    )
    assert found.ends is not None
    assert found.ends.shift is not None
    assert found.ends.shift.estimate == pytest.approx(0.5, rel=0.1)


def test_a_change_within_the_margin_is_none() -> None:
    assert _search(_Runner(_step(8, 4, 1.05), 0.005, 1), 8, margin=0.1).status == "nothing"
    assert _search(_Runner(_step(8, 4, 1.05), 0.005, 1), 8, margin=0.02).status == "found"


def test_what_is_between_the_ends_is_skipped() -> None:
    """Half of the change at the middle: neither good nor bad, and walked around."""
    medians = [1.0, 1.0, 1.0, 1.4, 2.0, 2.0, 2.0]
    found = _search(_Runner(medians, 0.02, 3), 7)
    verdicts = {test.point: (test.verdict, test.why) for test in found.tests}
    assert verdicts[3] == ("skip", "between the good and the bad end")
    assert (found.status, found.last_good, found.first_bad) == ("range", 2, 4)
    assert found.why == "1 between them could not be judged"
    assert found.border is None


class _Wild(_Runner):
    """The point in the middle is far below all, and far above, in turns."""

    def _of(self, point: int, count: int) -> Sequence[float] | str:
        made = super()._of(point, count)
        if isinstance(made, str) or point != len(self._medians) // 2:
            return made
        return [(0.2, 5.0)[number % 2] for number in range(count)]


def test_what_is_undecided_is_skipped() -> None:
    """Runs of the middle are all over the place, after 24 of them, too."""
    found = _search(_Wild(_step(7, 4, 2.0), 0.02, 3), 7)
    (middle,) = (test for test in found.tests if test.point == 3)
    assert (middle.verdict, middle.why) == ("skip", f"not decided after {LOOKS[-1]} runs")
    assert len(middle.values) == LOOKS[-1]
    assert (found.last_good, found.first_bad) == (2, 4)


def test_a_broken_point_is_skipped() -> None:
    found = _search(_Runner(_step(9, 6, 2.0), 0.02, 3, broken={4: 0}), 9)
    assert (found.status, found.last_good, found.first_bad) == ("found", 5, 6)
    assert found.tests[0].point == 4
    assert found.tests[0].verdict == "skip"
    assert found.tests[0].why == "4: the workload exited with 3"
    assert found.tests[0].values == ()


def test_a_broken_end_is_no_answer() -> None:
    for end in (0, 4):
        found = _search(_Runner(_step(5, 2, 2.0), 0.02, 3, broken={end: 0}), 5)
        assert (found.status, found.why) == ("unmeasured", f"{end}: the workload exited with 3")
        assert found.tests == ()


def test_an_end_that_breaks_later_calls_nothing_bad() -> None:
    """Its first 6 runs told the ends apart; the 12 that the middle wants are not to be had."""
    runner = _Wild([1.0, 1.0, 2.0], 0.02, 3, broken={0: 6})
    found = _search(runner, 3)
    (test,) = found.tests
    assert (test.verdict, test.why) == ("skip", "0: the workload exited with 3")
    assert (found.status, found.last_good, found.first_bad) == ("range", 0, 2)
    # Runs of the others that were made in the same turns are kept.
    assert found.runs == sum(map(len, runner.given.values())) == 6 + 12 + 12


def test_most_broken_is_a_range() -> None:
    broken = dict.fromkeys(range(1, 60), 0)
    found = _search(_Runner(_step(61, 30, 2.0), 0.02, 3, broken=broken), 61)
    assert found.status == "range"
    assert found.why == "too many points could not be judged"
    assert (found.last_good, found.first_bad) == (0, 60)


@pytest.mark.parametrize(
    ("most", "has_ends", "tests"), [(11, False, 0), (12, True, 0), (18, True, 1), (30, True, 3)]
)
def test_no_more_runs_than_allowed(most: int, has_ends: bool, tests: int) -> None:
    runner = _Runner(_step(9, 4, 2.0), 0.02, 3)
    found = _search(runner, 9, most_runs=most)
    assert (found.status, found.why) == ("spent", "the runs that were allowed are made")
    assert sum(map(len, runner.given.values())) == found.runs <= most
    assert (found.ends is not None) == has_ends
    assert len(found.tests) == tests
    assert found.last_good < 4 <= found.first_bad
    assert found.border is None


def test_the_border_is_tested_with_fresh_runs() -> None:
    """A machine that was slow while the points were looked at names no wrong one."""

    class Drifting(_Runner):
        def _of(self, point: int, count: int) -> Sequence[float] | str:
            made = list(super()._of(point, count))
            slow = 0 < point < 8 and len(self.calls) <= 4
            return [value * 2 for value in made] if slow else made  # type: ignore[operator]

    runner = Drifting(_step(9, 8, 2.0), 0.02, 3)
    found = _search(runner, 9)
    assert [test.verdict for test in found.tests] == ["bad"] * 3
    assert (found.status, found.last_good, found.first_bad) == ("unconfirmed", 0, 1)
    assert runner.calls[-1][0] == (0, 1)  # in turns
    assert found.border is not None
    assert found.border.runs == LOOKS[-1]


@pytest.mark.parametrize(("points", "tests"), [(2, 2), (3, 3), (5, 4), (9, 5), (17, 6), (1001, 12)])
def test_planned_tests_are_what_a_search_takes(points: int, tests: int) -> None:
    assert planned_tests(points) == tests
    most = max(
        len(_search(_Runner(_step(points, at, 3.0), 0.01, at), points).tests) + 2
        for at in {1, points // 2, points - 1} - {0}
    )
    assert most <= tests


def test_the_level_is_shared_by_all_looks() -> None:
    plan = Plan(0.1, 4)
    assert plan.level * len(plan.looks) * plan.tests == pytest.approx(plan.alpha)
    # 6 runs of each, all apart, are enough for 5 tests.
    least = stats.mannwhitneyu(range(6), range(6, 12), method="exact").pvalue
    assert least <= Plan(0.1, 5).level
