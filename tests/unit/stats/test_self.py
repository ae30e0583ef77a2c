# SPDX-License-Identifier: Apache-2.0
"""The statistical self-test: false alarms and detection of compare and gate, seeded.

`make validate-gate` does the same with more trials, for the tables of docs/statistics.md.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from support.gatenoise import (
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

TRIALS = 300
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
