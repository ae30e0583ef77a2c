# SPDX-License-Identifier: Apache-2.0
"""The test of two sides and the shift between them, against SciPy, R and hand counts."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats
from support.properties import for_all
from wbscope.stats.estimates import critical_rank, shift
from wbscope.stats.tests import rank_test, smallest_p, tail

# The test of two sides against SciPy's own answers, published tables and hand counts.

# Hollander, Wolfe and Chicken, example 4.1 (permeability of the human chorioamnion);
# R's help of wilcox.test has the same data: p = 0.2544 two-sided.
TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
EARLY = [1.15, 0.88, 0.90, 0.74, 1.21]


@pytest.fixture
def random() -> np.random.Generator:
    """Of each test its own: they run in any order."""
    return np.random.default_rng(4711)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (4, 4), (6, 6), (10, 10), (3, 50)])
def test_without_ties_it_is_scipy_exact(n: int, m: int, random: np.random.Generator) -> None:
    for _ in range(5):
        a, b = random.normal(size=n), random.normal(0.5, size=m)
        found = rank_test(a, b)
        assert found.method == "exact"
        expected = stats.mannwhitneyu(a, b, method="exact").pvalue
        assert found.p == pytest.approx(expected, rel=1e-12)


def test_a_published_example() -> None:
    assert rank_test(TERM, EARLY).p == pytest.approx(0.2544, abs=5e-5)


@pytest.mark.parametrize(
    ("n", "least"), [(3, 0.1), (4, 2 / 70), (5, 2 / 252), (6, 2 / 924), (10, 2 / 184756)]
)
def test_the_least_p_of_n_runs(n: int, least: float) -> None:
    assert smallest_p(n, n) == pytest.approx(least)
    apart = rank_test(np.arange(n), np.arange(n) + 100.0)
    assert apart.p == pytest.approx(least)


def _by_hand(a: list[float], b: list[float]) -> float:
    """Every way to deal the values out, counted: twice the smaller tail."""
    ranks = stats.rankdata([*a, *b])
    seen = ranks[: len(a)].sum()
    sums = [sum(ranks[list(chosen)]) for chosen in combinations(range(len(ranks)), len(a))]
    low = sum(value <= seen for value in sums) / len(sums)
    high = sum(value >= seen for value in sums) / len(sums)
    return min(1.0, 2 * min(low, high))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1, 1, 2], [1, 2, 2]),
        ([0, 0, 0, 0], [0, 5, 7, 9]),
        ([0, 0, 0, 0, 0, 0], [667839, 700000, 650000, 700000, 1, 2]),
        ([-3, -3, 5, 5, 5], [-3, 5, 9, 9, 9]),
        ([1, 2], [2, 3]),
        ([7], [7, 8]),
    ],
)
def test_ties_are_counted_out(a: list[float], b: list[float]) -> None:
    found = rank_test(a, b)
    assert found.method == "exact-ties"
    assert found.p == pytest.approx(_by_hand(a, b), abs=1e-12)
    assert rank_test(b, a).p == pytest.approx(found.p, abs=1e-12)


def test_ties_as_scipy_permutes_them(random: np.random.Generator) -> None:
    a, b = random.integers(0, 6, 7).astype(float), random.integers(1, 7, 7).astype(float)
    expected = stats.mannwhitneyu(a, b, method=stats.PermutationMethod(n_resamples=np.inf))
    assert rank_test(a, b).p == pytest.approx(expected.pvalue, abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(3, 3), (4, 6), (8, 5), (7, 7)])
def test_ties_as_permutation_test_counts_them(n: int, m: int, random: np.random.Generator) -> None:
    """Rank sums under every partition, by SciPy's own count of them."""
    for _ in range(3):
        a, b = random.integers(0, 6, n), random.integers(1, 7, m)
        ranks = stats.rankdata([*a, *b])
        expected = stats.permutation_test(
            (ranks[:n], ranks[n:]),
            lambda chosen, _others, axis: chosen.sum(axis=axis),
            vectorized=True,
            permutation_type="independent",
            n_resamples=np.inf,
        )
        assert rank_test(a, b).p == pytest.approx(expected.pvalue, abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (12, 12), (20, 7), (50, 50)])
def test_the_tail_of_u_is_scipy_exact(n: int, m: int, random: np.random.Generator) -> None:
    """Of values in all orders: U is what SciPy says, and so is its tail."""
    for overlap in (-3.0, 0.0, 0.5, 3.0):
        a, b = random.normal(size=n), random.normal(overlap, size=m)
        found = stats.mannwhitneyu(a, b, alternative="less", method="exact")
        assert tail(n, m, int(found.statistic)) == pytest.approx(found.pvalue, rel=1e-12)
    assert tail(n, m, n * m) == pytest.approx(1, rel=1e-12)


def test_many_runs_with_ties_are_counted_out_too(random: np.random.Generator) -> None:
    """Apart, with ties inside both sides: of C(24, 12) ways two are so extreme."""
    a = np.repeat([1.0, 2.0], 6)
    found = rank_test(a, a + 10)
    assert found.method == "exact-ties"
    assert found.p == pytest.approx(2 / comb(24, 12), rel=1e-12)
    assert found.p == pytest.approx(7.4e-7, rel=0.01)
    a, b = random.integers(0, 40, 50), random.integers(1, 41, 50)
    # Near the middle the normal distribution is close.
    close = stats.mannwhitneyu(a, b, method="asymptotic").pvalue
    assert rank_test(a, b).p == pytest.approx(close, rel=0.1)
    assert rank_test(a, b).method == "exact-ties"


def test_more_runs_than_anybody_makes(random: np.random.Generator) -> None:
    free = random.normal(size=80), random.normal(1.0, size=80)
    ties = random.integers(0, 20, 90), random.integers(2, 22, 81)
    alike = np.arange(80) * 2.0, np.arange(80) * 2.0 + 1
    for a, b in (free, ties, ties[::-1], alike):
        found = rank_test(a, b)
        assert found.method == "asymptotic"
        expected = stats.mannwhitneyu(a, b, method="asymptotic").pvalue
        assert found.p == pytest.approx(expected, rel=1e-12)
    less = stats.mannwhitneyu(*free, alternative="less", method="asymptotic")
    assert tail(80, 80, int(less.statistic)) == pytest.approx(less.pvalue, rel=1e-12)


@pytest.mark.parametrize(("n", "m"), [(4, 60), (60, 4), (5, 200), (3, 1000), (50, 51), (60, 60)])
@pytest.mark.parametrize("swapped", [False, True])
def test_two_values_are_drawn_as_from_an_urn(n: int, m: int, swapped: bool) -> None:
    """A counter that is 0 in most runs: Fisher's exact test, however many runs a side has."""
    for mine, theirs in ((1, 0), (min(n, 4), m // 2), (2, 1)):
        a, b = [5] * mine + [0] * (n - mine), [5] * theirs + [0] * (m - theirs)
        if swapped:
            a, b = [-value for value in a], [-value for value in b]
        urn = stats.hypergeom(n + m, mine + theirs, n)
        expected = min(1.0, 2 * min(urn.cdf(mine), urn.sf(mine - 1)))
        found = rank_test(a, b)
        assert found.method == "exact-ties"
        assert found.p == pytest.approx(expected, rel=1e-9)


def test_one_more_run_on_a_side_is_no_other_test() -> None:
    """It was: from 51 runs on, the p of these four was 0.00014."""
    assert rank_test([0, 0, 0, 5], [0] * 60).p == pytest.approx(2 * 4 / 64)
    before, after = (rank_test([1] * 4, [0] * 25 + [1] * more).p for more in (25, 26))
    assert after == pytest.approx(before, rel=0.1)


@pytest.mark.parametrize(("n", "m"), [(4, 60), (70, 5), (60, 55)])
def test_one_side_with_many_runs_is_exact(n: int, m: int, random: np.random.Generator) -> None:
    for overlap in (0.0, 1.0):
        a, b = random.normal(size=n), random.normal(overlap, size=m)
        found = stats.mannwhitneyu(a, b, method="exact")
        assert rank_test(a, b).p == pytest.approx(found.pvalue, rel=1e-9)
        less = stats.mannwhitneyu(a, b, alternative="less", method="exact")
        assert tail(n, m, int(less.statistic)) == pytest.approx(less.pvalue, rel=1e-9)


def test_the_interval_ends_where_the_test_does(random: np.random.Generator) -> None:
    """A shift outside of the interval is refused, one inside is not, whatever n and m are."""
    for n, m in ((4, 60), (70, 5), (60, 60), (80, 80)):
        a, b = random.normal(0.3, size=n), random.normal(size=m)
        found = shift(a, b, 0.95, "difference")
        assert found.low is not None
        assert found.high is not None
        for end, inwards in ((found.low, 1e-9), (found.high, -1e-9)):
            assert rank_test(a - end - inwards, b).p > 0.05
            assert rank_test(a - end + inwards, b).p <= 0.05


def test_coarse_sums_have_a_wide_correction(random: np.random.Generator) -> None:
    """Sums that are 40 apart: half of that is added, as half of 1 is where they are 1 apart."""
    values = np.repeat(np.arange(12.0), 40)
    for _ in range(5):
        random.shuffle(values)
        a, b = values[:240], values[240:]
        found = rank_test(a, b)
        assert found.method == "asymptotic"
        ranks = stats.rankdata(values)
        away = abs(ranks[:240].sum() - 240 * 481 / 2) - 20
        error = np.sqrt(240 * 240 / 480 * ranks.var(ddof=1))
        assert found.p == pytest.approx(min(1.0, 2 * stats.norm.sf(away / error)), rel=1e-9)


def test_equal_values_say_nothing() -> None:
    assert rank_test([5, 5, 5], [5, 5]) == rank_test([5], [5])
    assert rank_test([0, 0], [0, 0]).p == 1


def test_a_side_without_values() -> None:
    with pytest.raises(ValueError, match="no values"):
        rank_test([], [1.0])


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 4), (3, 3), (4, 6), (7, 5)])
def test_the_distribution_of_u_by_counting(n: int, m: int) -> None:
    """P(U <= u): the share of choices of n of n + m places with at most u inversions."""
    counts = [
        sum(place - index for index, place in enumerate(chosen))
        for chosen in combinations(range(n + m), n)
    ]
    for u in range(n * m + 1):
        expected = sum(count <= u for count in counts) / len(counts)
        assert tail(n, m, u) == pytest.approx(expected, abs=1e-12)


def test_published_critical_values_of_u() -> None:
    """Mann and Whitney's table, two-sided 5 %: the largest U that is significant."""
    table = {(4, 4): 0, (5, 5): 2, (6, 6): 5, (7, 7): 8, (8, 8): 13, (10, 10): 23, (5, 8): 6}
    for (n, m), critical in table.items():
        assert tail(n, m, critical) <= 0.025 < tail(n, m, critical + 1)


# The Hodges-Lehmann shift and its interval against R, hand counts and the test itself.


def test_a_published_example_of_a_shift() -> None:
    """R: wilcox.test(x, y, conf.int = TRUE): 0.305, 95 % from -0.15 to 0.76."""
    found = shift(TERM, EARLY, scale="difference")
    assert found.estimate == pytest.approx(0.305)
    assert (found.low, found.high) == pytest.approx((-0.15, 0.76))


def test_by_hand() -> None:
    """Differences 9 10 11 19 20 21 29 30 31 and so on: the middle ones."""
    found = shift([11, 21, 31, 41], [0, 1, 2, 3], scale="difference")
    steps = sorted(x - y for x in (11, 21, 31, 41) for y in (0, 1, 2, 3))
    assert found.estimate == (steps[7] + steps[8]) / 2
    assert (found.low, found.high) == (steps[0], steps[-1])  # 4 + 4: the whole range


def test_a_ratio_of_positive_values() -> None:
    found = shift([20, 22, 24, 26], [10, 11, 12, 13])
    assert found.scale == "ratio"
    ratios = sorted(x / y for x in (20, 22, 24, 26) for y in (10, 11, 12, 13))
    assert found.estimate == pytest.approx((ratios[7] * ratios[8]) ** 0.5)
    assert found.relative == pytest.approx(found.estimate - 1)
    back = shift([10, 11, 12, 13], [20, 22, 24, 26])
    assert back.estimate == pytest.approx(1 / found.estimate)


@pytest.mark.parametrize("a", [[0, 0, 0, 0], [-1, 2, 3, 4]])
def test_zero_or_less_is_a_difference(a: list[float]) -> None:
    found = shift(a, [667839, 667840, 667841, 667842])
    assert found.scale == "difference"
    assert found.relative is None
    assert found.estimate < -660000
    with pytest.raises(ValueError, match="above 0"):
        shift(a, [1, 2, 3, 4], scale="ratio")


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 2), (3, 3), (1, 30), (2, 7)])
def test_so_few_runs_have_no_interval(n: int, m: int) -> None:
    found = shift(np.arange(1, n + 1), np.arange(101, 101 + m))
    assert (found.low, found.high) == (None, None)
    assert found.estimate < 1


def test_published_ranks_of_the_interval() -> None:
    """k = critical U + 1: D(k) and D(nm + 1 - k)."""
    ranks = {(4, 4): 1, (5, 5): 3, (6, 6): 6, (8, 8): 14, (10, 10): 24}
    for (n, m), rank in ranks.items():
        assert critical_rank(n, m, 0.05) == rank
    assert critical_rank(3, 3, 0.05) is None
    assert critical_rank(3, 3, 0.1) == 1


# Of differences that are some distance apart, so that a tiny step is between two of them.
_PLACES = st.lists(st.integers(-50, 50), min_size=13, max_size=13)


@for_all(60, places=_PLACES)
def test_the_interval_has_the_shifts_that_the_test_does_not_refuse(places: list[int]) -> None:
    values = np.array([place + number / 1000 for number, place in enumerate(places)])
    a, b = values[:6], values[6:]
    found = shift(a, b, scale="difference")
    assert found.low is not None
    assert found.high is not None
    tiny = 1e-9
    assert rank_test(a - (found.low + tiny), b).p > 0.05
    assert rank_test(a - (found.high - tiny), b).p > 0.05
    assert rank_test(a - (found.low - tiny), b).p <= 0.05
    assert rank_test(a - (found.high + tiny), b).p <= 0.05


def test_the_interval_covers_what_is_true_as_often_as_it_says() -> None:
    random = np.random.default_rng(99)
    hits = 0
    for _ in range(400):
        found = shift(random.normal(3, 1, 6), random.normal(0, 1, 6), scale="difference")
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 3 <= found.high
    assert hits / 400 > 0.93


def test_ties_and_equal_sides() -> None:
    found = shift([5, 5, 5, 5], [5, 5, 5, 5])
    assert (found.estimate, found.low, found.high, found.p) == (1, 1, 1, 1)
    found = shift([0, 0, 0, 0], [0, 0, 0, 0])
    assert (found.scale, found.estimate, found.low, found.high) == ("difference", 0, 0, 0)
