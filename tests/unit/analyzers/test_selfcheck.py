# SPDX-License-Identifier: Apache-2.0
"""A against A: noise, drift, too few runs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.judged import runs
from wbscope.base.result import Notice
from wbscope.compare.comparison import Side
from wbscope.compare.policy import Budget, Margin, Policy, Rule
from wbscope.compare.selfcheck import SelfCheck, self_check

NAME = "made.worse_ns"
POLICY = Policy((Rule(NAME, Margin("5%", 0.05)),))


def checked(values: Sequence[float], policy: Policy = POLICY, **facts: object) -> SelfCheck:
    return self_check(Side("A", runs({NAME: values}, **facts)), policy, [NAME])  # type: ignore[arg-type]


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


def test_false_alarms_are_rare() -> None:
    """Of 200 sets of ten equal runs with a spread of 4 %, at most 5 % fail."""
    import numpy as np

    chance = np.random.default_rng(7)
    alarms = sum(
        checked([float(value) for value in chance.normal(100, 4, 10)]).status == "FAIL"
        for _ in range(200)
    )
    assert alarms <= 10
