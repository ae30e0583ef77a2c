# SPDX-License-Identifier: Apache-2.0
"""What runs can show, and how often compare and gate err: by simulation."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from support.noise import (
    NORMAL,
    OUTLIERS,
    TAILS,
    WIDE,
    Noise,
    face,
    family_fails,
    moved,
    pairs,
    share,
    status,
    tail_counts,
    trimmed_welch,
)
from wbscope.stats.estimates import shift
from wbscope.stats.planning import (
    blocks_to_confirm,
    detectable,
    detectable_within,
    fewest_blocks,
    fewest_runs,
    pooled_sd,
    runs_to_confirm,
    within_sd,
)
from wbscope.stats.repeated import Block, blocked_shift

# What runs can show, checked by simulating the gate's own rule.

TRIALS = 300


def test_the_spread_within_sides() -> None:
    """Sums of squares 2 and 8 over 2 + 2 degrees of freedom."""
    assert pooled_sd([1, 2, 3], [10, 12, 14]) == pytest.approx((10 / 4) ** 0.5)
    assert pooled_sd([5], [1, 3]) == pytest.approx(2**0.5)
    assert pooled_sd([5, 5], [7]) == 0


def test_a_spread_that_nobody_knows_plans_nothing() -> None:
    assert pooled_sd([5], [7]) is None
    assert detectable(6, 6, None, 0.05, 0.05) is None
    assert runs_to_confirm(None, 0.05, 0.05) is None


def test_runs_for_a_level() -> None:
    """Exact Mann-Whitney: 2 / 70 with 4, 2 / 252 with 5, 2 / 924 with 6 runs a side."""
    assert fewest_runs(0.05) == 4
    assert fewest_runs(0.05 / 6) == 5
    assert fewest_runs(0.05 / 23) == 6
    assert fewest_runs(0.05 / 24) == 7


def test_three_runs_detect_nothing() -> None:
    assert detectable(3, 3, 0.04, 0.05, 0.05) is None
    assert detectable(6, 6, 0.04, 0.05, 0.05 / 24) is None


def test_without_noise_the_margin_is_detected() -> None:
    assert detectable(6, 6, 0.0, 0.05, 0.05) == pytest.approx(0.05)
    assert runs_to_confirm(0.0, 0.05, 0.05) == 4


@pytest.mark.parametrize(("n", "sd"), [(6, 0.04), (10, 0.04), (6, 0.1), (40, 0.04), (40, 0.2)])
def test_what_is_detectable_is_found_four_times_in_five(n: int, sd: float) -> None:
    least = detectable(n, n, sd, 0.05, 0.05)
    assert least is not None
    random = np.random.default_rng(11)
    found = 0
    for _ in range(TRIALS):
        seen = shift(random.normal(least, sd, n), random.normal(0, sd, n), scale="difference")
        found += seen.p <= 0.05 and seen.estimate > 0.05
    assert found / TRIALS == pytest.approx(0.8, abs=0.07)


@pytest.mark.parametrize(("sd", "margin"), [(0.04, 0.05), (0.04, 0.1), (0.02, 0.1)])
def test_so_many_runs_pass_what_did_not_change(sd: float, margin: float) -> None:
    runs = runs_to_confirm(sd, margin, 0.05)
    assert runs is not None
    passed = {}
    for n in (runs, max(4, runs - 3)):
        random = np.random.default_rng(12)
        passed[n] = 0
        for _ in range(TRIALS):
            seen = shift(random.normal(0, sd, n), random.normal(0, sd, n), scale="difference")
            passed[n] += seen.high is not None and seen.high <= margin
    assert passed[runs] / TRIALS > 0.73
    if runs > 7:
        assert passed[runs - 3] < passed[runs]


def test_many_runs_by_the_normal_approximation() -> None:
    """sd 10 %, margin 5 %: near 2 pi/3 (1.96 + 0.84)^2 (0.1 / 0.05)^2 = 65.7."""
    assert runs_to_confirm(0.1, 0.05, 0.05) == 66
    assert runs_to_confirm(1.0, 0.05, 0.05) is None


def test_a_margin_of_nothing_is_never_confirmed() -> None:
    assert runs_to_confirm(0.04, 0.0, 0.05) is None


def test_the_spread_within_blocks_is_what_a_fit_leaves() -> None:
    """A column for each block and one for the side, by least squares."""
    random = np.random.default_rng(5)
    sizes = [(3, 2), (1, 1), (4, 6), (1, 2)]
    blocks: list[Block] = [(random.normal(size=n), random.normal(9, size=m)) for n, m in sizes]
    values = np.concatenate([np.concatenate(block) for block in blocks])
    columns = np.zeros((values.size, len(sizes) + 1))
    row = 0
    for place, (n, m) in enumerate(sizes):
        columns[row : row + n + m, place] = 1
        columns[row : row + n, -1] = 1
        row += n + m
    left = np.linalg.lstsq(columns, values, rcond=None)[1][0]
    expected = (left / (values.size - len(sizes) - 1)) ** 0.5
    assert within_sd(blocks) == pytest.approx(expected)
    assert within_sd(blocks[1:2]) is None
    pairs: list[Block] = [([5.0], [1.0]), ([16.0], [10.0]), ([2.0], [1.0])]
    expected = np.std([4.0, 6.0, 1.0], ddof=1) / 2**0.5
    assert within_sd(pairs) == pytest.approx(expected)


def _blocks(random: np.random.Generator, sizes: list[tuple[int, int]], by: float) -> list[Block]:
    """Blocks are far apart, runs of a block vary by 4 %."""
    levels = random.normal(0, 5, len(sizes))
    return [
        (level + random.normal(by, 0.04, n), level + random.normal(0, 0.04, m))
        for level, (n, m) in zip(levels, sizes, strict=True)
    ]


@pytest.mark.parametrize(
    "sizes", [[(1, 1)] * 8, [(5, 5)] * 2, [(4, 8), (8, 3)], [(1, 1)] * 36, [(20, 20)] * 2], ids=str
)
def test_within_blocks_it_is_found_four_times_in_five(sizes: list[tuple[int, int]]) -> None:
    least = detectable_within(tuple(sizes), 0.04, 0.05, 0.05)
    assert least is not None
    random = np.random.default_rng(13)
    found = 0
    for _ in range(TRIALS):
        seen = blocked_shift(_blocks(random, sizes, least), 0.95, "difference")
        found += seen.p <= 0.05 and seen.estimate > 0.05
    assert found / TRIALS == pytest.approx(0.8, abs=0.07)


@pytest.mark.parametrize(("n", "margin"), [(1, 0.08), (1, 0.03), (2, 0.05), (5, 0.05), (5, 0.025)])
def test_so_many_blocks_pass_what_did_not_change(n: int, margin: float) -> None:
    blocks = blocks_to_confirm(n, 0.04, margin, 0.05)
    assert blocks is not None
    random = np.random.default_rng(14)
    passed = 0
    for _ in range(TRIALS):
        seen = blocked_shift(_blocks(random, [(n, n)] * blocks, 0.0), 0.95, "difference")
        passed += seen.high is not None and seen.high <= margin
    assert 0.7 < passed / TRIALS < 0.93


def test_blocks_for_a_level() -> None:
    """Pairs: 2 / 2^k; 2 + 2 runs: 2 / 6^k; one block of 4 + 4 has 2 / 70."""
    assert [fewest_blocks(n, 0.05) for n in (1, 2, 4)] == [6, 3, 1]
    assert fewest_blocks(1, 0.025) == 7
    assert detectable_within(((1, 1),) * 5, 0.04, 0.05, 0.05) is None
    assert blocks_to_confirm(1, 0.0, 0.05, 0.05) == 6
    assert blocks_to_confirm(1, None, 0.05, 0.05) is None
    assert blocks_to_confirm(1, 9.0, 0.05, 0.05) is None
    assert blocks_to_confirm(40, 0.04, 0.05, 0.05) == 1


# The statistical self-test: false alarms and detection of compare and gate, seeded.
#
# `make validate-gate` does the same with more trials, for the tables of simulated.md.

# Three standard errors of a share of 5 % in so many trials.
SLACK = 3 * (0.05 * 0.95 / TRIALS) ** 0.5


@pytest.mark.dealt
@pytest.mark.parametrize("noise", [NORMAL, OUTLIERS, WIDE], ids=lambda noise: noise.name)
@pytest.mark.parametrize("n", [6, 10])
def test_false_alarms_stay_under_five_per_cent(noise: Noise, n: int) -> None:
    assert share(face, noise, n, 0.0, TRIALS) <= 0.05 + SLACK
    verdicts = Counter(status(a, b) for a, b in pairs(noise, n, 0.0, TRIALS))
    assert verdicts["FAIL"] / TRIALS <= 0.05


@pytest.mark.dealt
@pytest.mark.parametrize(
    ("noise", "n", "least"),
    [(NORMAL, 6, 0.88), (NORMAL, 10, 0.97), (OUTLIERS, 6, 0.55), (OUTLIERS, 10, 0.85)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_ten_per_cent_slower_is_found(noise: Noise, n: int, least: float) -> None:
    assert share(face, noise, n, 0.10, TRIALS) >= least
    verdicts = Counter(status(a, b) for a, b in pairs(noise, n, 0.10, TRIALS))
    assert verdicts["FAIL"] / TRIALS >= least


def test_what_got_worse_hardly_ever_passes() -> None:
    for noise in (NORMAL, OUTLIERS, WIDE):
        verdicts = Counter(status(a, b) for a, b in pairs(noise, 6, 0.10, TRIALS))
        assert verdicts["PASS"] / TRIALS <= 0.025 + SLACK


def test_noise_is_inconclusive_and_not_passed() -> None:
    """With 10 % of noise 6 runs cannot tell: most verdicts have to say so."""
    verdicts = Counter(status(a, b) for a, b in pairs(WIDE, 6, 0.10, TRIALS))
    assert verdicts["INCONCLUSIVE"] / TRIALS > 0.6


def test_five_metrics_together_keep_the_level() -> None:
    random = np.random.default_rng(5)
    failed = sum(family_fails(random, OUTLIERS, 6) for _ in range(TRIALS))
    assert failed / TRIALS <= 0.05


@pytest.mark.dealt
@pytest.mark.parametrize("noise", TAILS, ids=lambda noise: noise.name)
@pytest.mark.parametrize("n", [6, 10, 20])
def test_the_rule_about_single_runs_costs_little(noise: Noise, n: int) -> None:
    """At most 5 points of the PASS rate of what did not change, whatever its tails."""
    found = tail_counts(noise, n, 0.0, TRIALS)
    assert found["lost"] / TRIALS <= 0.05 + SLACK
    assert found["FAIL"] / TRIALS <= 0.05 + SLACK


def test_runs_that_stall_do_not_pass() -> None:
    for stalled, most in ((0.1, 0.2), (0.2, 0.05), (0.3, 0.02)):
        found = tail_counts(TAILS[0], 20, stalled, TRIALS)
        assert found["PASS"] / TRIALS <= most
    assert found["FAIL"] / TRIALS >= 0.6


def test_the_simulation_sees_what_bad_rules_do() -> None:
    """Else it would prove nothing: these are known to raise false alarms."""
    assert share(trimmed_welch, NORMAL, 6, 0.0, TRIALS) > 0.06
    assert share(moved, OUTLIERS, 6, 0.0, TRIALS) > 0.15
