# SPDX-License-Identifier: Apache-2.0
"""What a CI job tells besides the verdict: a warning of many runs, what was to be expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.judged import judged, policy_file
from support.rundata import TIME, side
from wbscope.base.result import Notice
from wbscope.ci.formats import annotation_lines, expected_text, step_summary
from wbscope.compare.gate import GateResult, judge
from wbscope.compare.policy import Budget, Margin, Policy, Rule


def test_many_runs_with_one_warning_are_one_annotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    policy = policy_file(tmp_path)
    same = Notice("half-a-pair", "has vmstat.before without vmstat.after")
    lines = annotation_lines(judged(policy, warnings=(same,)), policy)
    (told,) = (line for line in lines if "half-a-pair" in line)
    names = told.partition("::")[2].partition("::")[2].partition(": has vmstat")[0]
    assert len(names.partition(" and ")[0].split(", ")) == 3
    assert names.endswith(" more")


def spread_out(margin: float) -> GateResult:
    """Six runs a side of a time that spreads by 5 %: nothing changed."""
    values = [9.5, 10.6, 9.7, 10.4, 10.2, 9.4]
    rule = Rule(TIME.name, Margin(f"{margin:.0%}", margin))
    sides = side("A", {TIME: values[::-1]}), side("B", {TIME: values})
    return judge(*sides, Policy((rule,)), [])


def test_an_open_verdict_tells_how_often_it_is_to_be_expected() -> None:
    result = spread_out(0.05)
    assert result.status == "INCONCLUSIVE"
    told = expected_text(result) or ""
    assert told.startswith("expected: unchanged code would pass ")
    (needed,) = (verdict.runs_needed for verdict in result.verdicts)
    assert told.endswith(f"with {needed} runs a side each metric would pass 8 of 10 times")
    assert told in step_summary(result, told).replace("\\", "")
    assert "more than 200 runs" in (expected_text(spread_out(0.001)) or "")


def test_a_verdict_tells_nothing_more() -> None:
    result = spread_out(0.5)
    assert (result.status, expected_text(result)) == ("PASS", None)
    budget = Rule(TIME.name, budget=Budget("<=", "1ns"))
    alone = judge(side("A", {TIME: [10.0]}), None, Policy((budget,)), [])
    assert (alone.status, expected_text(alone)) == ("FAIL", None)
