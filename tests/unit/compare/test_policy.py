# SPDX-License-Identifier: Apache-2.0
"""The policy file: keys, mistakes, policies that cannot fail, the check that one requires."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.cli import check_error
from support.opsruns import ops_runs
from support.rundata import RATE, TIME, metric, run, side
from support.runs import example
from wbscope.base.errors import InputError, UsageError
from wbscope.compare.baseline import baseline_text, read_baseline
from wbscope.compare.comparison import Side
from wbscope.compare.gate import GateResult, judge
from wbscope.compare.policy import Budget, Margin, Policy, Rule, budget_rule, matches, read_policy
from wbscope.measure.metric import Metric

# The policy file: every key, and every mistake in it.

WHOLE = """
alpha = 0.01
min_runs = 6
drop_first = 1
differs = ["kernel", "sysctl.vm.dirty_bytes"]
lost_events = "allow"
damaged = "allow"
failed = "allow"
unknown = "refuse"
inconclusive = "fail"
expect_runs = 10

[metrics."throttle_summary.pause_p99_ns"]
margin = "10%"
budget = "<= 100ms"
each_run = "< 1s"

[metrics."fairness_tasks.dirtied_bytes_per_s[comm=dd]"]
margin = "1MiB/s"
better = "higher"
"""


@pytest.mark.parametrize("key", ["expect_runs", "min_runs", "drop_first"])
@pytest.mark.parametrize(
    ("number", "told"),
    [
        ("2147483647", "is 2147483647, wanted a number from"),
        ("10001", "is 10001, wanted a number from"),
        ("9223372036854775808", "is a whole number of more than 64 bits"),
        ("0x" + "f" * 5000, "is a whole number of more than 64 bits"),
        ("9" * 5000, "a number has thousands of digits"),
        ("-1", "is -1, wanted a number from"),
        ("1e3", "is 1000.0, wanted a number from"),
    ],
)  # fmt: skip
def test_numbers_that_nobody_means(tmp_path: Path, key: str, number: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        _policy(tmp_path, f'{key} = {number}\n[metrics."a.b_ns"]\nmargin = "5%"\n')
    assert told in caught.value.message
    assert caught.value.at in (key, None)
    assert caught.value.fix
    assert _policy(tmp_path, f'{key} = 10000\n[metrics."a.b_ns"]\nmargin = "5%"\n')


def _policy(path: Path, text: str) -> Policy:
    path = path / "gate.toml"
    path.write_text(text)
    return read_policy(path)


def test_every_key(tmp_path: Path) -> None:
    policy = _policy(tmp_path, WHOLE)
    assert (policy.alpha, policy.min_runs, policy.drop_first) == (0.01, 6, 1)
    assert policy.differs == ("kernel", "sysctl.vm.dirty_bytes")
    assert (policy.lost_events, policy.damaged, policy.failed) == ("allow", "allow", "allow")
    assert (policy.unknown, policy.inconclusive) == ("refuse", "fail")
    assert policy.expect_runs == 10
    first, second = policy.rules
    assert first.margin == Margin("10%", 0.1)
    assert (str(first.budget), str(first.each_run)) == ("<= 100ms", "< 1s")
    assert (second.margin, second.better) == (Margin("1MiB/s", None), "higher")
    assert second.margin is not None
    assert second.margin.quantity("x", "bytes/s") == 1 << 20
    assert policy.compares
    assert policy.wants("throttle_summary.pause_p99_ns")
    assert policy.wants("fairness_tasks.dirtied_bytes_per_s")
    assert not policy.wants("throughput.written_bytes_per_s")


def test_defaults(tmp_path: Path) -> None:
    policy = _policy(tmp_path, '[metrics."x.y"]\nbudget = ">= 5"')
    assert (policy.alpha, policy.min_runs, policy.differs) == (0.05, 4, ())
    assert (policy.lost_events, policy.damaged, policy.failed) == ("refuse", "refuse", "refuse")
    assert (policy.unknown, policy.inconclusive) == ("tell", "inconclusive")
    assert policy.expect_runs is None
    assert not policy.compares


@pytest.mark.parametrize(
    ("text", "slug", "told"),
    [
        ("", "bad-policy", "declares no metric"),
        ("x = = 1", "bad-policy", "is no TOML"),
        (f"x = {'[' * 5000}", "bad-policy", "is no TOML"),
        ('[metrics."x.y"]', "bad-policy", "asks for nothing"),
        ('[metrics."x.y"]\nmargn = "5%"', "bad-policy", "'margn'"),
        ('alpa = 0.05\n[metrics."x.y"]\nmargin = "5%"', "bad-policy", "'alpa'"),
        ('alpha = 5\n[metrics."x.y"]\nmargin = "5%"', "bad-policy", "alpha is 5"),
        ('alpha = 0.9\n[metrics."x.y"]\nmargin = "5%"', "bad-policy", "alpha is 0.9"),
        ('min_runs = 0\n[metrics."x.y"]\nmargin = "5%"', "bad-policy", "min_runs is 0"),
        ('min_runs = true\n[metrics."x.y"]\nmargin = "5%"', "bad-policy", "min_runs is True"),
        ('drop_first = -1\n[metrics."x.y"]\nmargin = "5%"', "bad-policy", "drop_first is -1"),
        ('expect_runs = 0\n[metrics."x.y"]\nmargin = "5%"', "bad-policy", "expect_runs is 0"),
        ('expect_runs = "10"\n[metrics."x.y"]\nmargin = "5%"', "bad-policy", "expect_runs is '10'"),
        ('differs = ["kernl"]\n[metrics."x.y"]\nmargin = "5%"', "bad-policy", "'kernl'"),
        ('differs = "kernel"\n[metrics."x.y"]\nmargin = "5%"', "bad-policy", "a list"),
        ('lost_events = "no"\n[metrics."x.y"]\nmargin = "5%"', "bad-policy", "lost_events is 'no'"),
        ('[metrics."x.y"]\nmargin = "-5%"', "bad-policy", "is negative"),
        ('[metrics."x.y"]\nmargin = true', "bad-policy", "margin is True"),
        ('[metrics."x.y"]\nmargin = "5%"\nbetter = "less"', "bad-direction", "'less'"),
        ('[metrics."x.y"]\nbudget = "100ms"', "bad-budget", "'100ms'"),
        ('[metrics."x.y["]\nmargin = "5%"', "bad-policy", "no name of a metric"),
        ("[metrics]\nx = 5", "bad-policy", "wanted a table"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, slug: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        _policy(tmp_path, text)
    assert (caught.value.slug, told in caught.value.message) == (slug, True), caught.value.message
    assert caught.value.fix


def test_no_policy(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_policy(tmp_path / "none.toml")
    assert caught.value.slug == "no-policy"


@pytest.mark.parametrize(
    ("text", "name", "budget"),
    [
        ("pause_p99_ns <= 100ms", "pause_p99_ns", "<= 100ms"),
        ("x.y[comm=dd]<5", "x.y[comm=dd]", "< 5"),
        (" fairness.jain_ratio >= 90 % ", "fairness.jain_ratio", ">= 90 %"),
    ],
)
def test_budgets_of_the_command_line(text: str, name: str, budget: str) -> None:
    rule = budget_rule(text)
    assert (rule.pattern, str(rule.budget)) == (name, budget)


@pytest.mark.parametrize("text", ["", "x", "x = 5", "<= 5", "x <="])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        budget_rule(text)
    assert caught.value.slug == "bad-budget"


def test_patterns() -> None:
    names = ["q.a_ns[comm=dd]", "q.a_ns[comm=fio]", "q.b_ns", "r.b_ns", "q.axb"]
    assert matches("q.a_ns*", names) == names[:2]
    assert matches("q.a_ns[comm=dd]", names) == names[:1]
    assert matches("a_ns[comm=dd]", names) == names[:1]
    assert matches("b_ns", names) == ["q.b_ns", "r.b_ns"]
    assert matches("q.b", names) == []
    assert matches("q.a.b", names) == []
    assert matches("*", names) == names


_UNITS = {
    "throttle_summary.pause_p99_ns": "ns",
    "throttle_summary.pauses_count": "count",
    "throughput.written_bytes_per_s": "bytes/s",
}


@pytest.mark.parametrize(
    "line",
    ['margin = "5MB"', 'budget = "<= 200"', 'budget = "<= 5%"', 'each_run = "< 3 apples"'],
)
@pytest.mark.parametrize("name", ["throttle_summary.pause_p99_ns", "pause_p99_ns", "*pause_p99*"])
def test_a_unit_is_told_before_any_run_is_read(tmp_path: Path, line: str, name: str) -> None:
    policy = _policy(tmp_path, f'[metrics."{name}"]\n{line}\n')
    units = _UNITS if "*" not in name else {"throttle_summary.pause_p99_ns": "ns"}
    with pytest.raises(UsageError) as caught:
        policy.check_units(units)
    assert (caught.value.slug, caught.value.subject) == ("bad-quantity", name)


@pytest.mark.parametrize(
    "text",
    [
        '[metrics."throttle_summary.pause_p99_ns"]\nmargin = "5ms"\nbudget = "<= 100ms"\n',
        '[metrics."throttle_summary.pause_p99_ns"]\nmargin = "5%"\n',
        '[metrics."throughput.written_bytes_per_s"]\nbudget = ">= 5MB/s"\n',
        '[metrics."*"]\nmargin = "5MB"\n',  # each metric says whether that is one of it
        '[metrics."ops.requests"]\nbudget = ">= 5 requests"\n',  # nobody knows it yet
    ],
)
def test_units_that_fit_or_are_not_known(tmp_path: Path, text: str) -> None:
    _policy(tmp_path, text).check_units(_UNITS)


# Policies that can never fail are mistakes, and told with their place and a remedy.

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


# A policy that requires the check: runs that fail it, or were never asked, are refused.

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
