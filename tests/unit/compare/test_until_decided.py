# SPDX-License-Identifier: Apache-2.0
"""Looks at more and more runs: when they end, and that they err in alpha together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.gatenoise import POLICY, TIME, WIDE, Noise
from support.rundata import lost, side
from support.sequentialnoise import sequential
from wbscope.base.errors import UsageError
from wbscope.compare.comparison import Side
from wbscope.compare.gate import GateResult
from wbscope.compare.pass_rate import Look, look_sizes, until_decided
from wbscope.compare.policy import Budget, Policy, Rule
from wbscope.stats.tests import look_levels


def _decided(
    a: Sequence[float], b: Sequence[float], most: int, policy: Policy = POLICY, **more: object
) -> tuple[GateResult, list[Look]]:
    asked: list[int] = []
    looks: list[Look] = []

    def make(runs: int) -> tuple[Side, Side]:
        asked.append(runs)
        return side("A", {TIME: a[:runs]}, **more), side("B", {TIME: b[:runs]})

    found = until_decided(make, policy, [], most, looks.append)
    assert asked == [look.runs for look in looks]
    return found, looks


def test_sizes_of_looks() -> None:
    assert look_sizes(24) == [6, 9, 14, 24]
    assert look_sizes(30) == [6, 9, 14, 21, 30]
    assert look_sizes(6) == [6]
    assert look_sizes(7) == [7]
    assert look_sizes(3) == [3]


def test_a_clear_case_ends_at_the_first_look() -> None:
    near = [100 + step / 10 for step in range(30)]
    found, looks = _decided([value * 1.5 for value in near], near, 24)
    assert (found.status, [look.runs for look in looks]) == ("FAIL", [6])
    found, looks = _decided([value + 0.05 for value in near], near, 24)
    assert (found.status, [look.runs for look in looks]) == ("PASS", [6])
    assert looks[0].level == pytest.approx(look_levels(0.05, [6, 9, 14, 24])[0])
    assert found.policy == POLICY
    (told,) = [one.message for one in found.warnings if one.slug == "sequential"]
    assert told.startswith("1 of 4 planned looks were made, with 6 runs of each side, at the level")
    assert told.endswith("together alpha 0.05")


def test_what_nobody_knows_goes_on_to_the_end() -> None:
    wild = [100.0, 180, 60, 140, 90, 200, 70, 110] * 3
    found, looks = _decided(wild, wild[::-1], 24)
    assert (found.status, [look.runs for look in looks]) == ("INCONCLUSIVE", [6, 9, 14, 24])


def test_a_wrong_name_is_told_before_the_first_run() -> None:
    def make(runs: int) -> tuple[Side, Side]:
        raise AssertionError(runs)

    wrong = Policy((Rule("throughput.no_such_ns", budget=Budget("<=", "1s")),))
    with pytest.raises(UsageError, match=r"throughput\.no_such_ns: is no metric"):
        until_decided(make, wrong, [TIME.name, "throughput.written_bytes_per_s"], 24)


def test_what_is_refused_and_budgets_need_no_second_look() -> None:
    near = [100.0 + step for step in range(24)]
    found, looks = _decided(near, near, 24, **lost())
    assert (found.status, len(looks)) == ("REFUSED", 1)
    found, looks = _decided(near, near, 24, Policy((Rule(TIME.name, budget=Budget("<=", "1s")),)))
    assert (found.status, len(looks), found.warnings) == ("PASS", 1, ())
    # So many runs are what the looks are for, not what the policy expects of a baseline.
    found, looks = _decided([1.01 * one for one in near], near, 6, replace(POLICY, expect_runs=10))
    assert found.status != "REFUSED"


def test_alpha_is_kept() -> None:
    """Of 300 unchanged pairs more than 26 fail once in 1,000 times at 5 %."""
    found, _ = sequential(WIDE, 0.0, 24, 300)
    assert found["FAIL"] <= 26


def test_a_change_takes_fewer_runs_than_all() -> None:
    found, runs = sequential(Noise("normal", 0.04), 0.12, 24, 100)
    assert found["FAIL"] >= 95
    assert runs < 12
