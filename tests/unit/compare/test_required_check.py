# SPDX-License-Identifier: Apache-2.0
"""A policy that requires the check: runs that fail it, or were never asked, are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.rundata import TIME, run
from support.runs import example
from wbscope.base.errors import InputError, UsageError
from wbscope.compare.baseline import baseline_text, read_baseline
from wbscope.compare.comparison import Side
from wbscope.compare.gate import GateResult, judge
from wbscope.compare.policy import Policy, budget_rule, read_policy

Cli = Callable[..., Any]
_TEXT = """require = ["check"]

[metrics."throttle_summary.pause_total_ns"]
budget = "<= 1h"
"""


def _judged(checked: tuple[str, ...] | None, **more: Any) -> GateResult:
    one = replace(run("r", {TIME: 1.0}), checked=checked)
    policy = Policy((budget_rule("elapsed_ns <= 1h"),), **more)
    return judge(Side("A", (one,)), None, policy, [])


@pytest.mark.parametrize(
    ("checked", "slug"),
    [((), None), (None, "not-checked"), (("vmstat nr_dirtied: why", "b"), "check-failed")],
)
def test_what_is_refused(checked: tuple[str, ...] | None, slug: str | None) -> None:
    asked = _judged(checked, require=("check",))
    assert [refusal.slug for refusal in asked.refusals] == ([slug] if slug else [])
    assert asked.exit_code() == (4 if slug else 0)
    assert _judged(checked).refusals == ()
    if checked:
        assert asked.refusals[0].message == "A r: vmstat nr_dirtied: why (and 1 more)"


def test_a_baseline_keeps_what_was_found(tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    found = [(), ("vmstat nr_dirtied: why",), None]
    runs = [
        replace(run(f"r{number}", {TIME: 1.0}), source_id=f"{number}", checked=checked)
        for number, checked in enumerate(found)
    ]
    path.write_text(baseline_text(runs))
    assert [one.checked for one in read_baseline(path)] == found
    path.write_text(path.read_text().replace('"checked": []', '"checked": 5'))
    with pytest.raises(InputError) as told:
        read_baseline(path)
    assert told.value.slug == "damaged-baseline"


@pytest.mark.parametrize("value", ['"check"', '["checks"]', "1", '["check", 2]'])
def test_a_policy_that_requires_something_else(tmp_path: Path, value: str) -> None:
    path = tmp_path / "gate.toml"
    path.write_text(f'require = {value}\n[metrics."x.y"]\nbudget = ">= 5"\n')
    with pytest.raises(UsageError) as told:
        read_policy(path)
    assert told.value.slug == "bad-policy"
    path.write_text(_TEXT)
    assert read_policy(path).require == ("check",)


def test_a_gate_on_runs(cli: Cli, tmp_path: Path) -> None:
    """The run agrees with its files; with those of another run it does not."""
    policy = tmp_path / "gate.toml"
    policy.write_text(_TEXT)
    good = example("four-equal-writers").folder
    ran = cli("gate", "--policy", policy, good)
    assert ran.code == 0, ran.err
    bad = tmp_path / "bad"
    shutil.copytree(good, bad)
    shutil.copy(example("reclaim-writes").folder / "vmstat.after", bad)
    ran = cli("gate", "--policy", policy, bad)
    assert ran.code == 4
    assert "refused[check-failed]" in ran.out
    document = json.loads(cli("gate", "--policy", policy, bad, "--json").out)
    assert [refusal["slug"] for refusal in document["refusals"]] == ["check-failed"]
    kept = tmp_path / "base.json"
    assert cli("baseline", "save", bad, "--policy", policy, "-o", kept).code == 0
    assert cli("gate", "--policy", policy, kept).code == 4
    kept.unlink()
    assert cli("baseline", "save", good, "-o", kept).code == 0
    ran = cli("gate", "--policy", policy, kept)
    assert (ran.code, "refused[not-checked]" in ran.out) == (4, True)
