# SPDX-License-Identifier: Apache-2.0
"""Policies that can never fail are mistakes, and told with their place and a remedy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import check_error
from support.opsruns import ops_runs
from support.rundata import RATE, TIME, metric, side
from wbscope.base.errors import UsageError
from wbscope.compare.gate import GateResult, judge
from wbscope.compare.policy import Budget, Margin, Policy, Rule, read_policy
from wbscope.measure.metric import Metric

Cli = Callable[..., Any]
FAST = [103.5 + number / 10 for number in range(6)]
STUCK = [0.35 + number / 1000 for number in range(6)]


@pytest.mark.parametrize("margin", ["100%", "150%", "1e3%", "100.0 %"])
def test_a_rate_cannot_fall_by_more_than_all_of_it(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, margin: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ops_runs(tmp_path / "old", FAST, name="rate", unit="ops/s")
    ops_runs(tmp_path / "new", STUCK, name="rate", unit="ops/s", later=100)
    (tmp_path / "p.toml").write_text(f'[metrics."ops.rate"]\nmargin = "{margin}"\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ran = cli("gate", "--policy", "p.toml", "new", "--against", "old")
    assert (ran.code, ran.out) == (2, "")
    named = ("p.toml", "ops.rate", margin, 'at: [metrics."ops.rate"]')
    check_error(ran.err, "bad-policy", *named, fix='margin = "5%"')
    (tmp_path / "p.toml").write_text('[metrics."ops.rate"]\nmargin = "99%"\n')
    assert cli("gate", "--policy", "p.toml", "new", "--against", "old").code == 1


@pytest.mark.parametrize(
    "line",
    [
        'margin = "1e999s"',
        "margin = inf",
        "margin = nan",
        'margin = "inf%"',
        'margin = "1e999%"',
        f'margin = "{"9" * 400}%"',
        'budget = "<= 1e999s"',
        'budget = "<= inf"',
        'each_run = ">= NaN"',
        'each_run = "< +Infinity s"',
    ],
)
def test_no_infinite_borders(tmp_path: Path, line: str) -> None:
    (tmp_path / "p.toml").write_text(f'[metrics."ops.stall_ns"]\n{line}\n')
    with pytest.raises(UsageError) as caught:
        read_policy(tmp_path / "p.toml")
    assert (caught.value.slug, caught.value.at) == ("bad-policy", '[metrics."ops.stall_ns"]')
    assert "wanted a finite" in caught.value.message
    assert caught.value.fix


@pytest.mark.parametrize("border", ["inf", "nan", "1e999s", "1e300h"])
def test_no_infinite_budget_on_the_command_line(cli: Cli, tmp_path: Path, border: str) -> None:
    runs = ops_runs(tmp_path / "old", FAST)
    ran = cli("gate", runs, "--budget", f"ops.stall_ns <= {border}")
    assert ran.code == 2
    assert "error[bad-" in ran.err


def _gate(one: Metric, rule: Rule, now: list[float], then: list[float], **more: Any) -> GateResult:
    policy = Policy((rule,), source="p.toml", **more)
    return judge(side("A", {one: now}), side("B", {one: then}), policy, [])


def test_a_policy_made_in_python_is_looked_at_too() -> None:
    with pytest.raises(UsageError, match="nothing falls by more than all of it"):
        _gate(RATE, Rule(RATE.name, Margin("150%", 1.5)), FAST, FAST)
    with pytest.raises(UsageError, match="wanted a number"):
        _gate(TIME, Rule(TIME.name, budget=Budget("<=", "1e999s")), FAST, FAST)


def test_a_time_may_double() -> None:
    slow = [value * 2.2 for value in FAST]
    assert _gate(TIME, Rule(TIME.name, Margin("150%", 1.5)), slow, FAST).status == "PASS"
    assert _gate(TIME, Rule(TIME.name, Margin("110%", 1.1)), slow, FAST).status == "FAIL"
    turned = Rule(TIME.name, Margin("150%", 1.5))
    assert _gate(TIME, turned, [value * 3 for value in FAST], FAST).status == "FAIL"


def test_an_amount_that_the_base_does_not_have_cannot_be_lost() -> None:
    rate = metric("ops.rate", "higher", "ops/s")
    for margin in ("104 ops/s", "500 ops/s"):
        with pytest.raises(UsageError, match="less than the base's median, 103") as caught:
            _gate(rate, Rule(rate.name, Margin(margin, None)), STUCK, FAST)
        assert (caught.value.slug, caught.value.at) == ("bad-policy", '[metrics."ops.rate"]')
    assert _gate(rate, Rule(rate.name, Margin("90 ops/s", None)), STUCK, FAST).status == "FAIL"
    assert _gate(TIME, Rule(TIME.name, Margin("500ns", None)), FAST, FAST).status == "PASS"


@pytest.mark.parametrize(("border", "bad"), [(">= 0", True), ("> -1ns", True), ("> 0", False)])
def test_a_budget_that_every_number_keeps(border: str, bad: bool) -> None:
    sign, _, quantity = border.partition(" ")
    rule = Rule(TIME.name, each_run=Budget(sign, quantity))
    if not bad:
        assert _gate(TIME, rule, FAST, FAST).status == "PASS"
        return
    with pytest.raises(UsageError, match="which every number keeps: none is below 0"):
        _gate(TIME, rule, FAST, FAST)


def test_a_share_may_be_below_zero() -> None:
    error = metric("ratelimit.error_ratio", "higher", "ratio")
    rule = Rule(error.name, budget=Budget(">=", "0"))
    assert _gate(error, rule, [-0.1, -0.2], [0.1]).status == "FAIL"


def test_too_few_runs_and_not_knowing_is_a_pass() -> None:
    rule = Rule(TIME.name, Margin("5%", 0.05))
    few = _gate(TIME, rule, FAST[:3], FAST[:3], inconclusive="pass")
    assert (few.exit_code(), [notice.slug for notice in few.warnings]) == (0, ["cannot-fail"])
    assert "3 + 3 runs cannot fail 1 metrics at alpha 0.05" in few.warnings[0].message
    more = _gate(TIME, rule, FAST, FAST, inconclusive="pass", min_runs=7)
    assert [notice.slug for notice in more.warnings] == ["cannot-fail"]
    assert not _gate(TIME, rule, FAST, FAST, inconclusive="pass").warnings
    assert not _gate(TIME, rule, FAST[:3], FAST[:3]).warnings


@pytest.mark.parametrize(
    "more", [{"expect_runs": 3}, {"expect_runs": 6, "drop_first": 3}, {"min_runs": 7}]
)
def test_expected_runs_that_cannot_fail(more: dict[str, int]) -> None:
    rule = Rule(TIME.name, Margin("5%", 0.05))
    with pytest.raises(UsageError, match="runs a side are expected, so that no margin") as caught:
        _gate(TIME, rule, FAST, FAST, **({"expect_runs": 6} | more))
    assert (caught.value.slug, caught.value.at) == ("bad-policy", "expect_runs")
    budget = Rule(TIME.name, budget=Budget("<=", "1s"))
    assert _gate(TIME, budget, FAST, FAST, expect_runs=6, min_runs=7).status == "PASS"
