# SPDX-License-Identifier: Apache-2.0
"""Means, medians, margins and tails of one or two sides."""

from __future__ import annotations

import statistics
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats
from support.properties import for_all
from wbscope.stats.estimates import (
    WELCH,
    Description,
    Means,
    describe,
    is_beyond,
    median_interval,
    rounding_of,
    shift,
    welch,
)
from wbscope.stats.repeated import (
    SPREADS,
    Counts,
    fisher,
    fisher_within,
    resolution,
    spread,
    tail_of,
)

# Means and standard deviations, with and without the extremes.

VALUES = [4.0, 1.0, 9.0, 5.0, 100.0]


def test_against_pythons_own() -> None:
    found = describe(VALUES)
    assert found.median == statistics.median(VALUES)
    assert found.mean == pytest.approx(statistics.mean(VALUES))
    assert found.sd == pytest.approx(statistics.stdev(VALUES))
    assert (found.least, found.most, found.n) == (1, 100, 5)


def test_dropping_the_fastest_and_the_slowest() -> None:
    found = describe(VALUES)
    assert found.trimmed_mean == pytest.approx(6)
    assert found.trimmed_mean == pytest.approx(stats.trim_mean(VALUES, 1 / 5))
    assert found.trimmed_sd == pytest.approx(statistics.stdev([4, 5, 9]))


def test_trimming_makes_the_sd_too_small() -> None:
    """By the factors that docs/statistics.md names."""
    random = np.random.default_rng(3)
    for runs, factor in ((6, 0.58), (10, 0.70)):
        sds = [describe(random.normal(size=runs)).trimmed_sd for _ in range(4000)]
        assert np.mean([sd for sd in sds if sd is not None]) == pytest.approx(factor, abs=0.03)


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 4.0], [3.0, 4.0, 5.0]])
def test_few_values_have_no_trimmed_ones(values: list[float]) -> None:
    found = describe(values)
    assert (found.trimmed_mean, found.trimmed_sd) == (None, None)
    assert (found.sd is None) == (len(values) < 2)
    assert (found.median is None) == (not values)


def test_nothing() -> None:
    assert describe([]) == Description(0)


# The interval of a median against SciPy's, and against what it promises.

_VALUES = st.integers(1, 60).flatmap(
    lambda n: st.lists(st.floats(-1e9, 1e9), min_size=n, max_size=n)
)


@for_all(200, values=_VALUES, confidence=st.sampled_from([0.8, 0.95, 0.99]))
def test_as_scipy_has_it(values: list[float], confidence: float) -> None:
    found = stats.quantile_test(values).confidence_interval(confidence)
    told = median_interval(values, confidence)
    if told is None:
        assert np.isnan(found.low) or np.isnan(found.high)
    else:
        assert told == (found.low, found.high)


def test_five_runs_have_none_and_six_have_all_of_them() -> None:
    assert median_interval([]) is None
    assert median_interval([1, 2, 3, 4, 5]) is None
    assert median_interval([6, 1, 2, 3, 4, 5]) == (1, 6)


@pytest.mark.parametrize("n", [6, 9, 20])
def test_it_holds_the_median_as_often_as_it_says(n: int) -> None:
    random = np.random.default_rng(n)
    trials = random.exponential(size=(4000, n))
    held = [low <= np.log(2) <= high for low, high in map(median_interval, trials)]  # type: ignore[misc]
    assert np.mean(held) >= 0.94


# Welch's t from mean, s.d. and n is that of the values behind them.


def means(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Means:
    return Means(float(values.mean()), float(values.std(ddof=1)), values.size)


# With a spread that is no rounding: the variance of sums has fewer digits than the values.
_FEW_VALUES = (
    st.lists(st.integers(-1000, 1000), min_size=2, max_size=20)
    .filter(lambda values: len(set(values)) > 1)
    .map(lambda values: np.array(values) / 8 + 200)
)


@for_all(60, a=_FEW_VALUES, b=_FEW_VALUES)
def test_it_is_the_test_of_the_values(
    a: np.ndarray[tuple[int], np.dtype[np.float64]], b: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> None:
    found = welch(means(a), means(b), 0.9)
    told = stats.ttest_ind(a, b, equal_var=False)
    low, high = told.confidence_interval(0.9)
    assert found is not None
    assert found.p == pytest.approx(told.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9)
    assert found.estimate == pytest.approx(a.mean() - b.mean())
    assert (found.scale, found.method) == ("difference", WELCH)


def test_no_spread_is_no_test() -> None:
    assert welch(Means(5, 0, 3), Means(6, 0, 3)) is None
    one = welch(Means(5, 0, 3), Means(6, 1, 3))
    assert one is not None
    assert 0 < one.p < 1


def test_false_alarms_are_alpha() -> None:
    """4,000 pairs of the same, with other spreads on each side: at most 5 % look changed."""
    draw = np.random.default_rng(1)
    hits = 0
    for _ in range(4000):
        found = welch(means(draw.normal(0, 1, 6)), means(draw.normal(0, 3, 10)))
        hits += found is not None and found.p <= 0.05
    assert 0.03 <= hits / 4000 <= 0.055


# Runs far outside of the base: where the border is, and the test of their share.

BASE = [10.0, 10.1, 9.9, 10.2, 9.8, 10.0]


@pytest.mark.parametrize("counts", [(3, 20, 0, 20), (5, 20, 1, 20), (6, 6, 0, 6), (0, 5, 2, 9)])
def test_fisher_counts_the_ways(counts: tuple[int, int, int, int]) -> None:
    x, n, y, m = counts
    drawn = x + y
    ways = sum(comb(n, k) * comb(m, drawn - k) for k in range(x, min(n, drawn) + 1))
    expected = ways / comb(n + m, drawn)
    assert fisher(x, n, y, m) == pytest.approx(expected, rel=1e-12)


def test_the_spread_is_robust() -> None:
    values = np.random.default_rng(1).standard_normal(10_000)
    assert spread(values) == pytest.approx(1, rel=0.03)
    assert spread([*BASE, 1000.0]) < 0.3
    assert spread([0, 0, 0, 0, 4]) == pytest.approx(1.2533 * 0.8)  # most are equal
    assert spread([5.0] * 4) == 0


def test_the_border() -> None:
    border = 10.0 + 0.5 + SPREADS * spread(BASE)
    assert tail_of([border - 1e-9, 10.0], BASE, 0.5).beyond == ()
    found = tail_of([border + 1e-9, 10.0], BASE, 0.5)
    assert (found.beyond, found.far, found.there) == ((0,), (0,), 0)


def test_what_the_base_has_is_not_far() -> None:
    base = [*BASE, 100.0]
    found = tail_of([10.0, 99.0, 100.4, 101.0], base, 0.5)
    assert (found.beyond, found.far, found.there) == ((1, 2, 3), (3,), 1)
    assert found.p == pytest.approx(fisher(3, 4, 1, 7))


def test_equal_runs_have_no_spread() -> None:
    assert tail_of([5.0, 5.4, 5.6], [5.0] * 6, 0.5).far == (2,)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([12e9, 13e9], 1e9),  # whole seconds
        ([12e9, 24e9], 1e9),  # no two ticks of 12 s
        ([40.0, 44.0, 52.0], 4.0),  # a clock of 250 ticks a second, in ms
        ([40.0, 40.0], 10.0),
        ([12.25, 12.5, 0.0], 0.25),
        ([-3.0, 5.0], 1.0),
        ([0.1 + 0.2, 0.4], 0.1),
        ([0.0, 0.0], 0.0),
        ([], 0.0),
    ],
)
def test_what_a_clock_can_tell(values: list[float], expected: float) -> None:
    assert resolution(values) == pytest.approx(expected, rel=1e-12)


def test_one_tick_is_not_far() -> None:
    base = [12.0] * 10
    assert tail_of([13.0, 14.0], base, 0.5, tick=1.0).far == (1,)
    assert tail_of([13.0, 14.0], base, 0.5).far == (0, 1)


def test_exactly_the_margin_is_not_far() -> None:
    a, b = np.log([1.1, 1.1, 1.1]), np.log([1.0] * 6)
    assert a[0] > np.log1p(0.1) - 1e-15
    for level in (0.0, 25.0):
        assert tail_of(a + level, b + level, np.log1p(0.1)).beyond == ()


def test_fisher_within_blocks_counts_the_ways_of_each() -> None:
    """All ways to deal the marked runs of each block out to its two sides."""
    blocks: list[Counts] = [(2, 4, 0, 3), (1, 2, 1, 4), (0, 3, 0, 3)]
    each = []
    for x, n, y, m in blocks:
        dealt = combinations(range(n + m), n)
        each.append([sum(place < x + y for place in mine) for mine in dealt])
    sums = [sum(one) for one in product(*each)]
    expected = sum(one >= 3 for one in sums) / len(sums)
    assert fisher_within(blocks) == pytest.approx(expected, rel=1e-12)
    assert fisher_within(blocks[:1]) == fisher(*blocks[0])
    assert fisher_within(blocks[2:]) == fisher_within([]) == 1.0


def test_blocks_are_seen_against_their_own_middle() -> None:
    """The second block is 20 higher, and the third has nobody on the other side."""
    a = [*BASE[:5], 30.1, 29.9, 30.0, 33.0, 90.0]
    b = [*BASE, *(value + 20 for value in BASE)]
    names = (["x"] * 5 + ["y"] * 4 + [""], ["x"] * 6 + ["y"] * 6)
    assert tail_of(a, b, 0.5).far == ()
    found = tail_of(a, b, 0.5, names)
    assert (found.beyond, found.far, found.there) == ((8,), (8,), 0)
    assert found.p == pytest.approx(fisher(1, 4, 0, 6))


# A change of exactly the margin is not beyond it, however it was computed.


@pytest.mark.parametrize(
    ("old", "new", "margin"),
    [(10, 11, 0.1), (100, 105, 0.05), (20, 21, 0.05), (1e18, 1.3e18, 0.3), (3e-7, 3.09e-7, 0.03)],
)
@pytest.mark.parametrize("scale", ["ratio", "difference"])
def test_exactly_the_margin(old: float, new: float, margin: float, scale: str) -> None:
    a, b = [new] * 6, [old] * 6
    found = shift(a, b, 0.95, scale)  # type: ignore[arg-type]
    change, allowed = (
        (found.estimate - 1, margin) if scale == "ratio" else (found.estimate, margin * old)
    )
    rounding = rounding_of(found.scale, [*a, *b])
    assert not is_beyond(change, allowed, rounding)
    assert is_beyond(change, allowed * (1 - 1e-6), rounding)


def test_what_rounding_is_relative_to() -> None:
    assert rounding_of("ratio", [1e12]) == rounding_of("ratio", [])
    assert rounding_of("difference", []) == 0
    assert rounding_of("difference", [-2e9, 1.0]) == pytest.approx(2e-3)
    assert is_beyond(float("inf"), 1e9, 1.0)
