# SPDX-License-Identifier: Apache-2.0
"""Several sessions, looks and metrics at once: their tests and levels."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations, product
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats
from support.properties import for_all
from wbscope.stats.estimates import shift
from wbscope.stats.repeated import Block, between_sd, blocked_shift, session_shift
from wbscope.stats.tests import Spending, holm, look_levels

# Tests of several sessions, against enumeration, SciPy and simple cases.


def _enumerated(blocks: list[Block]) -> float:
    """Twice the smaller tail of the sum of U over all ways to deal the values out in each block."""

    def u(a: list[float], b: list[float]) -> float:
        return sum((x > y) + (x == y) / 2 for x in a for y in b)

    each = []
    for a, b in blocks:
        values = [*a, *b]  # type: ignore[misc]
        places = range(len(values))
        each.append(
            [
                u([values[i] for i in chosen], [values[i] for i in places if i not in chosen])
                for chosen in combinations(places, len(a))  # type: ignore[arg-type]
            ]
        )
    sums = [sum(ways) for ways in product(*each)]
    seen = sum(u(list(a), list(b)) for a, b in blocks)  # type: ignore[arg-type]
    low, high = sum(s <= seen for s in sums), sum(s >= seen for s in sums)
    return min(1.0, 2 * min(low, high) / len(sums))


@pytest.mark.parametrize(
    "blocks",
    [
        [([1.0, 5.0, 7.0], [2.0, 3.0, 4.0])],
        [([11.0, 12.0, 15.0], [9.0, 10.0]), ([3.0, 4.0], [1.0, 2.0, 5.0])],
        [([1.0, 1.0, 2.0], [0.0, 1.0]), ([3.0, 3.0], [1.0, 3.0, 3.0])],
        [([2.0], [1.0]), ([4.0], [3.0]), ([9.0], [8.0])],
    ],
)
def test_p_is_that_of_all_ways(blocks: list[Block]) -> None:
    found = blocked_shift(blocks, 0.95, "difference")
    assert found.p == pytest.approx(_enumerated(blocks), abs=1e-12)


_near = partial(pytest.approx, rel=1e-12, abs=1e-12)  # the last digit may be rounded
_SIDE = st.integers(2, 20) | st.sampled_from((55, 60, 80, 90))
_VALUES = _SIDE.flatmap(lambda n: st.lists(st.floats(0.5, 2), min_size=n, max_size=n))


@for_all(60, a=_VALUES, b=_VALUES, scale=st.sampled_from(("ratio", "difference")))
def test_one_block_is_the_usual_shift(a: list[float], b: list[float], scale: str) -> None:
    one = blocked_shift([(a, b)], 0.95, scale)  # type: ignore[arg-type]
    plain = shift(a, b, 0.95, scale)  # type: ignore[arg-type]
    assert (one.low is None) == (plain.low is None)
    if plain.low is not None:
        assert (one.low, one.high) == _near((plain.low, plain.high))
    assert one.estimate == _near(plain.estimate)
    assert one.p == pytest.approx(plain.p, rel=1e-9)


def test_many_runs_in_one_block_are_counted_out() -> None:
    """A counter that is 0 in most runs; p was 0.0004 from 51 runs on."""
    rare = ([0.0, 0, 0, 5], [0.0] * 60)
    found = blocked_shift([rare, ([1.0, 2.0], [1.0, 2.0])], 0.95, "difference")
    assert found.method == "blocks"
    # The one run is here in 4 of 64 ways, and the other block is as high or higher in 5 of 6.
    assert found.p == pytest.approx(2 * 4 / 64 * 5 / 6)


def test_intervals_hold_the_shift_whatever_the_blocks_are_at() -> None:
    chance = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        levels = chance.normal(0, 5, 3)
        blocks: list[Block] = [
            (level + 1 + chance.normal(size=4), level + chance.normal(size=5)) for level in levels
        ]
        found = blocked_shift(blocks, 0.95, "difference")
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 1 <= found.high
    assert held >= 368  # of 380 expected: less once in 100 times


def test_a_ratio_needs_values_above_0() -> None:
    with pytest.raises(ValueError, match="above 0"):
        blocked_shift([([1.0], [0.0])], 0.95, "ratio")
    assert blocked_shift([([1.0, 1.0], [1.0])], 0.95, "ratio").method == "equal"


def test_sessions_are_the_values_of_a_t_test() -> None:
    """Runs of a session are alike here, so their pseudomedian is each of them."""
    a, b = (10.0, 12.0, 11.0), (20.0, 23.0, 21.5, 22.0)
    found = session_shift([[x] * 5 for x in a], [[x] * 5 for x in b], 0.95, "difference")
    theirs = stats.ttest_ind(a, b)
    interval = theirs.confidence_interval(0.95)
    assert found.p == pytest.approx(theirs.pvalue)
    assert found.low is not None
    assert found.high is not None
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    ratio = session_shift(
        [[math.exp(x / 10)] * 5 for x in a], [[math.exp(x / 10)] * 5 for x in b], 0.95, "ratio"
    )
    assert math.log(ratio.estimate) * 10 == pytest.approx(found.estimate)


def test_equal_sessions_differ_by_what_rounding_hides() -> None:
    """Whole seconds: the spread of 12, 12, 12 is not 0, or any other number is another one."""
    seconds = [[12e9] * 6] * 3
    found = session_shift([[13e9] * 6], seconds, 0.95, "difference")
    error = 1e9 / math.sqrt(12) * math.sqrt(1 + 1 / 3)
    assert found.p == pytest.approx(2 * stats.t.sf(1e9 / error, 2))
    assert found.p > 0.05
    assert found.low == pytest.approx(1e9 - error * stats.t.isf(0.025, 2))
    ratio = session_shift([[13e9] * 6], seconds, 0.95, "ratio")
    assert ratio.p == pytest.approx(found.p, rel=0.2)
    assert ratio.low is not None
    assert ratio.low < 1
    # Much more is much more, digits tell, and nothing is nothing.
    assert session_shift([[16e9] * 6], seconds, 0.95, "ratio").p < 0.02
    fine = [[12.3456e9] * 6] * 3
    assert session_shift([[12.4567e9] * 6], fine, 0.95, "ratio").p < 0.001
    same = session_shift(seconds[:1], seconds, 0.95, "ratio")
    assert (same.p, same.low, same.high) == (1, 1, 1)


def test_two_sessions_tell_nothing() -> None:
    with pytest.raises(ValueError, match="two sessions"):
        session_shift([[1.0, 2.0]], [[3.0, 4.0]], 0.95, "difference")


def test_runs_that_do_not_differ_are_no_change() -> None:
    """By chance two sessions are as one: the runs' own spread counts all the same."""
    found = session_shift(
        [[9.0, 11.5, 10.0, 12.0]], [[7.0, 12.0, 10.0, 9.5], [9.0, 10.0, 10.5, 8.5]], 0.95,
        "difference",
    )  # fmt: skip
    plain = shift([9.0, 11.5, 10.0, 12.0], [7.0, 12.0, 10.0, 9.5, 9.0, 10.0, 10.5, 8.5], 0.95,
                  "difference")  # fmt: skip
    assert found.p >= plain.p
    assert found.low is not None
    assert plain.low is not None
    assert found.low <= plain.low


def test_spread_between_sessions() -> None:
    """By the method of moments, which is right on average."""
    assert between_sd([[1.0, 2.0, 3.0]]) == 0
    assert between_sd([[1.0, 3.0], [1.0, 3.0]]) == 0
    # Means 1 and 5, no noise: variance 8.
    assert between_sd([[1.0, 1.0], [5.0, 5.0]]) == pytest.approx(math.sqrt(8))
    chance = np.random.default_rng(3)
    squares = [
        between_sd([level + chance.normal(size=4) for level in chance.normal(0, 3, 6)]) ** 2
        for _ in range(400)
    ]
    assert np.mean(squares) == pytest.approx(9, rel=0.15)


# Holm's adjustment by hand and against its definition.


def test_by_hand() -> None:
    """0.005 x 4, 0.01 x 3, then 0.03 x 2, and 0.04 is no smaller than that."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_one_is_itself_and_none_is_none() -> None:
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


@for_all(60, p=st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_never_above_one_and_never_below_its_p(p: list[float]) -> None:
    adjusted = holm(p)
    assert all(one <= new for one, new in zip(p, adjusted, strict=True))
    assert max(adjusted) <= 1


# Around what decides, and of whole millionths, so that no rounding does.
_P = st.integers(1, 100_000) | st.integers(1, 999_999)


@for_all(100, parts=st.lists(_P, min_size=1, max_size=8))
def test_it_refuses_what_holm_refuses(parts: list[int]) -> None:
    """Step down: refuse the smallest while p(i) <= alpha / (m - i + 1)."""
    p = [(part + 0.5) / 1_000_000 for part in parts]
    refused = set()
    for step, index in enumerate(np.argsort(p)):
        if p[index] > 0.05 / (len(p) - step):
            break
        refused.add(int(index))
    assert {i for i, value in enumerate(holm(p)) if value <= 0.05} == refused


def test_runs_that_six_metrics_need() -> None:
    """With 6 + 6 runs (p 0.00216) 23 metrics can fail and 24 cannot."""
    least = 2 / 924
    assert max(holm([least] * 23)) <= 0.05 < max(holm([least] * 24))


# Levels of several looks: published borders, and that they add up to alpha.

# Reboussin, DeMets, Kim, Lan: Computations for group sequential boundaries using the Lan-DeMets
# spending function method, 2000: five equal looks, two-sided 0.05.
_PUBLISHED: dict[Spending, list[float]] = {
    "obrien-fleming": [4.8769, 3.3569, 2.6803, 2.2898, 2.0310],
    "pocock": [2.4380, 2.4268, 2.4101, 2.3966, 2.3859],
}


@pytest.mark.parametrize("spending", list(_PUBLISHED))
def test_published_borders(spending: Spending) -> None:
    borders = [
        NormalDist().inv_cdf(1 - level / 2)
        for level in look_levels(0.05, [1, 2, 3, 4, 5], spending)
    ]
    assert borders == pytest.approx(_PUBLISHED[spending], abs=2e-4)


def test_one_look_has_all() -> None:
    assert look_levels(0.05, [10]) == pytest.approx([0.05])


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_paths_cross_in_alpha_of_cases(alpha: float) -> None:
    """200,000 simulated paths of uneven looks."""
    looks = [6, 9, 14, 24]
    chance = np.random.default_rng(2)
    steps = chance.standard_normal((200_000, looks[-1])).cumsum(axis=1)
    crossed = np.zeros(len(steps), dtype=bool)
    for look, level in zip(looks, look_levels(alpha, looks), strict=True):
        crossed |= np.abs(steps[:, look - 1]) > look**0.5 * NormalDist().inv_cdf(1 - level / 2)
    assert crossed.mean() == pytest.approx(alpha, rel=0.05)


def test_looks_rise() -> None:
    with pytest.raises(ValueError, match="do not rise"):
        look_levels(0.05, [6, 6])
