# SPDX-License-Identifier: Apache-2.0
"""Where a history changed, and the tool that libraries are compared by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from support.rundata import LEVEL, RATE, TIME, WRITES, lost, metric, run
from wbscope.base.errors import EvidenceError, UsageError
from wbscope.compare.changepoints import LEAST_VALUES, change_points, earliest_told
from wbscope.compare.history import Entry, Place
from wbscope.compare.trend import FDR, Trends, trends
from wbscope.measure.metric import Metric
from wbscope.stats.tests import rank_test

# Where a history changed: points, how sure they are, and what is one series at all.

START = datetime(2026, 10, 1, tzinfo=UTC)


def noisy(count: int, seed: int, share: float = 0.02, level: float = 100.0) -> list[float]:
    random = Random(seed)
    return [level * random.gauss(1, share) for _ in range(count)]


def history(values: dict[Metric, Sequence[float]], **more: Any) -> list[Entry]:
    """One run for each commit, a commit a day."""
    return [
        entry(number, {one: column[number] for one, column in values.items()}, **more)
        for number in range(len(next(iter(values.values()))))
    ]


def entry(number: int, values: dict[Metric, float], branch: str = "", **more: Any) -> Entry:
    place = Place(f"c{number}", START + timedelta(days=number), branch)
    return Entry(run(f"run-{number}-{more.pop('copy', 0)}", values, **more), place)


def told(found: Trends) -> list[tuple[str, str, str]]:
    return [(one.metric.name, one.commit.name, one.outcome) for one in found.changes()]


# Points.


@pytest.mark.parametrize("at", [10, 15, 26])
def test_a_step_is_found_where_it_is(at: int) -> None:
    values = noisy(30, 1)
    stepped = [v * 1.1 if number >= at else v for number, v in enumerate(values)]
    (point,) = change_points(stepped)
    assert point.index == at
    assert point.p <= 0.001


def test_up_and_back_down_are_two() -> None:
    values = [v * 1.1 if 10 <= n < 20 else v for n, v in enumerate(noisy(30, 2))]
    assert [point.index for point in change_points(values)] == [10, 20]


def test_single_far_values_are_no_level() -> None:
    values = noisy(30, 3)
    values[7] *= 10
    values[22] *= 10
    assert change_points(values) == []
    stepped = [v * 1.1 if n >= 15 else v for n, v in enumerate(values)]
    assert [point.index for point in change_points(stepped)] == [15]


def test_nothing_in_too_few_or_in_equal_values() -> None:
    step = [1.0] * 5 + [2.0] * 5
    assert LEAST_VALUES == 10
    assert change_points(step[:-1]) == []
    assert change_points([5.0] * 30) == []
    assert change_points([]) == []


def test_p_of_a_clean_step_is_that_of_all_orders() -> None:
    """Of the 252 orders of five and five, two are cut as well."""
    (point,) = change_points([1.0] * 5 + [2.0] * 5)
    assert point.p == pytest.approx(2 / math.comb(10, 5), abs=0.004)


def test_p_is_the_share_of_orders_that_are_cut_as_well() -> None:
    """Against sums by hand, over other orders."""
    values = [v * 1.04 if n >= 9 else v for n, v in enumerate(noisy(18, 6))]
    (point,) = change_points(values)
    apart = [(a - b) ** 2 for a in values for b in values if a != b]
    alike = [[math.exp(-((a - b) ** 2) / median(apart)) for b in values] for a in values]

    def gain(order: Sequence[int]) -> float:
        def within(part: Sequence[int]) -> float:
            return sum(alike[a][b] for a in part for b in part) / len(part)

        return max(within(order[:cut]) + within(order[cut:]) for cut in range(3, len(order) - 2))

    random, numbers = Random(5), range(len(values))
    best = gain(numbers) - 1e-9
    as_good = sum(gain(random.sample(numbers, len(numbers))) >= best for _ in range(2000))
    assert point.p == pytest.approx(as_good / 2000, abs=0.006)


def test_another_spread_is_no_other_level() -> None:
    """The kernel alone sees a change in all 40."""
    alarms = sum(
        bool(change_points(noisy(20, 2000 + seed, 0.04) + noisy(20, 3000 + seed, 0.004)))
        for seed in range(40)
    )
    assert alarms <= 4


def test_p_is_no_smaller_than_that_of_the_ranks() -> None:
    for seed in range(10):
        values = noisy(15, seed, 0.04) + noisy(15, 100 + seed, 0.004, 103)
        for point in change_points(values)[:1]:
            parts = values[: point.index], values[point.index :]
            assert point.p >= rank_test(*parts).p


def test_false_alarms_are_few() -> None:
    alarms = sum(bool(change_points(noisy(30, 1000 + seed))) for seed in range(200))
    assert alarms <= 8  # 1 to 2 % expected; more than 8 of 200 by chance once in 10,000 times


# Trends.


def test_what_changed_the_most_evident_first() -> None:
    clear = [v * 1.5 if n >= 12 else v for n, v in enumerate(noisy(30, 1))]
    small = [v * 0.9 if n >= 20 else v for n, v in enumerate(noisy(30, 2))]
    still = metric("other.thing")
    found = trends(history({RATE: small, TIME: clear, still: noisy(30, 3)}))
    assert told(found) == [(TIME.name, "c12", "worse"), (RATE.name, "c20", "worse")]
    first = found.changes()[0]
    assert (first.before.name, first.moved.scale) == ("c11", "ratio")
    assert first.moved.estimate == pytest.approx(median(clear[12:]) / median(clear[:12]))
    # Benjamini and Hochberg: the least of three p, two of which are as small as can be.
    assert first.p_adjusted == pytest.approx(0.0002 * 3 / 2)


@pytest.mark.parametrize(
    ("one", "factor", "outcome"),
    [(TIME, 0.8, "better"), (RATE, 1.2, "better"), (RATE, 0.8, "worse"), (LEVEL, 1.2, "changed")],
)
def test_which_way_is_good(one: Metric, factor: float, outcome: str) -> None:
    values = [v * factor if n >= 15 else v for n, v in enumerate(noisy(30, 4))]
    assert told(trends(history({one: values}))) == [(one.name, "c15", outcome)]


def test_from_nothing_has_no_per_cent() -> None:
    (change,) = trends(history({TIME: [0.0] * 15 + noisy(15, 1)})).changes()
    assert (change.moved.scale, change.outcome) == ("difference", "worse")


def test_more_metrics_want_more_evidence() -> None:
    weak = [v * 1.04 if n >= 9 else v for n, v in enumerate(noisy(18, 6))]
    alone = trends(history({TIME: weak}))
    (change,) = alone.changes()
    assert 0.001 < change.p < FDR
    many = {metric(f"other.thing{n}"): noisy(18, 100 + n) for n in range(100)}
    among = trends(history({TIME: weak, **many}))
    assert among.changes() == []
    (unsure,) = [one for one in among.changes(sure=False) if one.metric == TIME]
    assert unsure.outcome == "undecided"
    assert unsure.p_adjusted > 10 * change.p


def test_metrics_that_cannot_change_count_for_nothing() -> None:
    """Constant ones, those of too few commits, and one that another says in other units."""
    weak = [v * 1.04 if n >= 9 else v for n, v in enumerate(noisy(18, 6))]
    (alone,) = trends(history({TIME: weak})).changes()
    still = {metric(f"other.thing{n}"): [1.0] * 18 for n in range(100)}
    again = {metric(f"other.again{n}"): [v * (n + 2) for v in weak] for n in range(5)}
    entries = history({TIME: weak, **still, **again})
    short = [metric(f"other.short{n}") for n in range(50)]
    entries += [entry(n, dict.fromkeys(short, float(n)), copy=1) for n in range(9)]
    found = trends(sorted(entries, key=lambda one: one.place.date))
    assert found.tested_count == 1
    told = {one.metric: one for one in found.changes()}
    assert set(told) == {TIME, *again}
    assert told[TIME].p_adjusted == pytest.approx(alone.p)


def test_one_of_many_metrics_is_told() -> None:
    """4999 permutations have no p that is small enough."""
    stepped = [v * 1.5 if n >= 10 else v for n, v in enumerate(noisy(20, 1))]
    drawn = {metric(f"other.thing{n}"): noisy(20, 100 + n, 1e-3) for n in range(300)}
    found = trends(history({TIME: stepped, **drawn}))
    assert found.tested_count == 301
    (change,) = [one for one in found.changes() if one.metric == TIME]
    assert change.outcome == "worse"
    assert change.p <= FDR / 301
    again = trends(history({TIME: stepped, **drawn}))
    assert [one.p for one in again.changes()] == [one.p for one in found.changes()]


def test_it_says_when_nothing_can_be_told() -> None:
    """12 commits have two of 924 orders that are cut as well; among 41, none is sure."""
    stepped = [v * 9 if n >= 6 else v for n, v in enumerate(noisy(12, 1))]
    drawn = {metric(f"other.thing{n}"): noisy(12, 100 + n) for n in range(40)}
    found = trends(history({TIME: stepped, **drawn}))
    assert (found.changes(), found.earliest) == ([], None)
    (notice,) = found.warnings
    assert notice.slug == "too-many-metrics"
    assert "12 commits cannot tell" in notice.message
    assert "one metric of 41 changed" in notice.message
    assert "it takes 13 commits" in notice.message
    few = trends(history({TIME: stepped, **dict(list(drawn.items())[:9])}))
    assert told(few) == [(TIME.name, "c6", "worse")]
    assert few.warnings == ()


@pytest.mark.parametrize(("count", "p", "new"), [(30, 0.05, 3), (30, 0.00025, 4), (10, 0.008, 5)])
def test_how_late_a_level_may_begin(count: int, p: float, new: int) -> None:
    """A clean step at the end, or at the start, is one of all choices of its values."""
    assert earliest_told(count, p) == new
    assert 2 / math.comb(count, new) <= p
    assert new == 3 or p < 2 / math.comb(count, new - 1)  # two are outliers, not a level
    assert earliest_told(10, 0.007) is None
    assert earliest_told(9, 1.0) is None


def test_runs_of_a_commit_are_one_value() -> None:
    """Ten runs of one commit in a bad hour are no level."""
    entries = history({TIME: noisy(20, 5)})
    entries += [entry(10, {TIME: 150.0 + n}, copy=n + 1) for n in range(10)]
    entries.sort(key=lambda one: one.place.date)
    found = trends(entries)
    assert (len(found.commits), found.runs_count, told(found)) == (20, 30, [])


def test_more_runs_a_commit_are_no_change() -> None:
    """Medians of ten runs lie closer together, on the same level."""
    alarms = 0
    for seed in range(10):
        values = noisy(220, 4000 + seed, 0.04)
        entries = [entry(n, {TIME: v}) for n, v in enumerate(values[:20])]
        entries += [entry(20 + n // 10, {TIME: v}, copy=n % 10) for n, v in enumerate(values[20:])]
        alarms += bool(told(trends(entries)))
    assert alarms <= 1


def test_what_differs_where_it_changed() -> None:
    values = [v * 1.2 if n >= 15 else v for n, v in enumerate(noisy(30, 6))]
    entries = [
        entry(n, {TIME: v}, facts={"kernel": f"6.{n}", "sysctl.vm.dirty_bytes": int(n >= 15)})
        for n, v in enumerate(values)
    ]
    (change,) = trends(entries).changes()
    assert change.differing == ("sysctl.vm.dirty_bytes",)  # a kernel a commit explains nothing


def test_another_machine_is_another_series() -> None:
    values = noisy(30, 7)
    entries = [
        entry(n, {TIME: v * (1.5 if n % 2 else 1)}, facts={"cpus_count": 2 + 2 * (n % 2)})
        for n, v in enumerate(values)
    ]
    found = trends(entries)
    assert {commit.name for commit in found.commits} == {f"c{n}" for n in range(1, 30, 2)}
    assert [notice.slug for notice in found.warnings] == ["other-machines"]
    assert "15 runs" in found.warnings[0].message
    assert "cpus_count" in found.warnings[0].message


def test_the_branch_of_the_newest_run_or_another() -> None:
    entries = [entry(n, {TIME: 1.0}, "main") for n in range(12)] + [entry(12, {TIME: 1.0}, "next")]
    newest = trends(entries)
    assert (newest.branch, len(newest.commits)) == ("next", 1)
    assert [notice.slug for notice in newest.warnings] == ["other-branches", "too-few-commits"]
    asked = trends(entries, branch="main")
    assert (asked.branch, len(asked.commits), asked.warnings) == ("main", 12, ())
    with pytest.raises(UsageError, match="no branch"):
        trends(entries, branch="mian")


def test_numbers_that_count_another_thing_are_left_out() -> None:
    old = replace(TIME, unit="count")
    entries = [entry(n, {old if n < 5 else TIME: 1.0}) for n in range(20)]
    (trend,) = trends(entries).trends
    assert (trend.metric.unit, len(trend.points), trend.left_out) == ("ns", 15, 5)
    # Which way is good may be turned round, too.
    turned = replace(TIME, better="higher")
    entries = [entry(n, {turned if n < 5 else TIME: 1.0}) for n in range(20)]
    (trend,) = trends(entries).trends
    assert (trend.metric.better, len(trend.points), trend.left_out) == ("lower", 15, 5)
    query = [
        replace(one, run=replace(one.run, definitions={TIME.source: "new" if n > 3 else "old"}))
        for n, one in enumerate(history({TIME: [1.0] * 20}))
    ]
    assert trends(query).trends[0].left_out == 4


def test_kernels_on_one_side_of_a_border() -> None:
    """nr_vmscan_write means another thing from 6.16 on."""
    entries = [
        entry(n, {WRITES: 9.0 if n < 15 else 0.0}, facts={"kernel": "6.15" if n < 15 else "6.16"})
        for n in range(30)
    ]
    found = trends(entries)
    assert (found.changes(), found.trends[0].left_out) == ([], 15)


def test_since_and_patterns() -> None:
    entries = history({TIME: [1.0] * 20, RATE: [1.0] * 20})
    found = trends(entries, ["fio.*"], START + timedelta(days=8))
    assert [trend.metric for trend in found.trends] == [RATE]
    assert len(found.commits) == 12
    with pytest.raises(UsageError, match="no metric"):
        trends(entries, ["tiem.elapsed_ns"])
    with pytest.raises(EvidenceError, match="no run since"):
        trends(entries, since=START + timedelta(days=99))
    with pytest.raises(EvidenceError, match="no run"):
        trends([])


def test_runs_that_lost_events_are_told_once() -> None:
    entries = [
        *history({TIME: [1.0] * 12}),
        *[entry(n, {TIME: 1.0}, **lost()) for n in range(12, 17)],
    ]
    (notice,) = trends(entries).warnings
    assert notice.slug == "doubtful-runs"
    assert "run-12-0 of c12, run-13-0 of c13, run-14-0 of c14 and 2 more" in notice.message


# tools/changepoints.py: the series that libraries are compared by, and the page's real runs.

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = spec_from_file_location("changepoints_tool", ROOT / "tools" / "changepoints.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_same_series_at_each_run(tool: ModuleType) -> None:
    for noise, steps in tool.STEPS.values():
        (one, places), (again, _), (other, _) = (
            tool.drawn(noise, steps, seed) for seed in (3, 3, 4)
        )
        assert np.array_equal(one, again)
        assert not np.array_equal(one, other)
        assert all(5 <= place <= 26 for place in places)


def test_steps_are_where_they_are_said_to_be(tool: ModuleType) -> None:
    noise, steps = tool.STEPS["10 %, and back"]
    drawn = [tool.drawn(noise, steps, seed)[0] for seed in range(200)]
    levels = np.mean(drawn, axis=0) / 100
    wanted = [1.0] * 10 + [1.1] * 10 + [1.0] * 10
    assert levels == pytest.approx(wanted, abs=0.006)  # 2 % / sqrt(200), four times


def test_judged_by_points_that_are_known(tool: ModuleType) -> None:
    told: dict[str, Any] = tool.judged(lambda _values: [26, 3])
    assert set(told["alarms"].values()) == {100}
    assert told["found"]["10 %, last 4"] == (100, 0.0, 100)
    assert tool.judged(lambda _values: [])["found"]["10 %"] == (0, None, 0)


def test_the_page_says_of_the_real_runs_what_is_found(tool: ModuleType) -> None:
    (points,) = tool.methods("wbscope").values()
    found = [", ".join(map(str, points(values))) for _, values in tool.real()]
    page = (ROOT / "tests/unit/stats/simulated.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| **wbscope")]
    row = rows[-1]  # of the last table
    assert [cell.strip() for cell in row.split("|")[2:5]] == found
