# SPDX-License-Identifier: Apache-2.0
"""The policy file: every key, and every mistake in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from wbscope.base.errors import InputError, UsageError
from wbscope.compare.policy import Margin, Policy, budget_rule, matches, read_policy

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
