# SPDX-License-Identifier: Apache-2.0
"""Tests of several sessions, against enumeration, SciPy and simple cases."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats
from support.properties import for_all
from wbscope.stats.estimates import shift
from wbscope.stats.repeated import Block, between_sd, blocked_shift, session_shift


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
