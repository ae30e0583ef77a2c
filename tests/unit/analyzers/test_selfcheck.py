# SPDX-License-Identifier: Apache-2.0
"""A against A: noise, drift, too few runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.judged import runs
from support.noise import Noise, predicted, real
from wbscope.base.result import Notice
from wbscope.compare.comparison import Side
from wbscope.compare.pass_rate import SelfCheck, self_check
from wbscope.compare.policy import Budget, Margin, Policy, Rule
from wbscope.compare.rundata import Session

NAME = "made.worse_ns"
POLICY = Policy((Rule(NAME, Margin("5%", 0.05)),))


def checked(
    values: Sequence[float], policy: Policy = POLICY, predict: bool = True, **facts: object
) -> SelfCheck:
    side = Side("A", runs({NAME: values}, **facts))  # type: ignore[arg-type]
    return self_check(side, policy, [NAME], predict=predict)


def test_steady_runs_pass() -> None:
    found = checked((100, 101, 100, 102, 101, 100, 102, 101))
    assert (found.status, found.exit_code()) == ("PASS", 0)
    assert found.halves is not None


def test_runs_too_noisy_for_the_margin_are_inconclusive() -> None:
    found = checked((100, 150, 80, 200, 60, 120, 190, 90))
    assert (found.status, found.exit_code()) == ("INCONCLUSIVE", 4)
    assert found.decisive is found.same


def test_a_machine_that_drifts_fails() -> None:
    found = checked((100, 101, 102, 103, 104, 130, 131, 132, 133, 134))
    assert (found.status, found.exit_code()) == ("FAIL", 1)
    assert found.decisive is found.halves
    assert "second half against first half: FAIL" in found.told()


def test_a_machine_that_warms_up_drifts_too() -> None:
    """A gate would compare its cold runs with warm ones."""
    found = checked((130, 131, 132, 133, 134, 100, 101, 102, 103, 104))
    assert (found.status, found.exit_code()) == ("FAIL", 1)
    assert "first half against second half: FAIL" in found.told()


def test_budgets_say_nothing_of_drift() -> None:
    policy = Policy((Rule(NAME, Margin("5%", 0.05), budget=Budget("<=", "90ns")),))
    found = checked((100, 101, 100, 102, 101, 100, 102, 101), policy)
    assert found.halves is not None
    assert (found.status, found.same.status, found.halves.status) == ("FAIL", "FAIL", "PASS")


@pytest.mark.parametrize("count", [4, 6, 7])
def test_too_few_runs_for_halves(count: int) -> None:
    found = checked((100, 101, 100, 102, 101, 100, 102)[:count])
    assert found.halves is None


def test_too_few_runs_for_anything() -> None:
    assert checked((100, 101, 100)).status == "INCONCLUSIVE"


def test_runs_that_a_gate_refuses_are_refused() -> None:
    lost = Notice("lost-events", "CPU 1 lost 7 events")
    found = checked((100, 101, 100, 102, 101, 100, 102, 101), warnings=(lost,))
    assert (found.status, found.exit_code()) == ("REFUSED", 4)


def test_a_policy_of_budgets_only() -> None:
    policy = Policy((Rule(NAME, budget=Budget("<=", "200ns")),))
    found = checked((100, 101, 100, 102, 101, 100, 102, 101), policy)
    assert (found.status, found.halves) == ("PASS", None)


def test_how_often_unchanged_code_would_pass() -> None:
    """Not whether these runs pass against themselves, which they always do more often."""
    steady = checked((100, 101, 100, 102, 101, 100, 102, 101))
    assert steady.predicted is not None
    assert steady.predicted.passed > 0.9 * steady.predicted.trials
    assert (
        "unchanged code would pass 10 of 10 times with its metric"
        " (two sides of 8 runs; drift between sessions is not in it)"
    ) in steady.told()
    wide = checked((100, 150, 80, 200, 60, 120, 190, 90))
    assert wide.predicted is not None
    assert wide.predicted.passed < 0.1 * wide.predicted.trials
    assert checked((100, 101, 100)).predicted is None
    assert checked((100, 101, 100, 102, 101, 100, 102, 101)).predicted == steady.predicted


@pytest.mark.parametrize(("size", "within"), [(6, 0.2), (10, 0.15)])
def test_the_prediction_is_near_what_happens(size: int, within: float) -> None:
    """On average over baselines, at a spread where about half of all gates pass."""
    told, _ = predicted(Noise("normal", 0.04), size, 8)
    assert told == pytest.approx(real(Noise("normal", 0.04), size, 200), abs=within)


def test_sessions_that_differ_are_predicted_to() -> None:
    """A new session is as far off as the others are: with one session, nobody would know."""
    steps = (0, 0.5, 1, 1.5, 2, 2.5)
    levels = {"mo": 100.0, "tu": 106.0, "we": 95.0, "th": 103.0}
    made = runs({NAME: [at + step for at in levels.values() for step in steps]})
    told = tuple(
        replace(run, session=Session(name))
        for run, name in zip(made, [name for name in levels for _ in steps], strict=True)
    )
    found = self_check(Side("A", told), POLICY, [NAME]).predicted
    assert found is not None
    assert (found.runs, found.sessions) == ((6, 24), 4)
    assert found.passed < 0.4 * found.trials
    assert "a new session of 6 runs against 4 of 24" in found.told()


def test_false_alarms_are_rare() -> None:
    """Of 200 sets of ten equal runs with a spread of 4 %, at most 5 % fail."""
    import numpy as np

    chance = np.random.default_rng(7)
    alarms = sum(
        checked([float(value) for value in chance.normal(100, 4, 10)], predict=False).status
        == "FAIL"
        for _ in range(200)
    )
    assert alarms <= 10
