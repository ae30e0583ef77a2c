# SPDX-License-Identifier: Apache-2.0
"""Verdicts: what passes, fails, stays open, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.rundata import LEVEL, RATE, TIME, WRITES, damaged, failed, lost, metric, run, side
from wbscope.base.errors import UsageError
from wbscope.compare.comparison import Side
from wbscope.compare.gate import GateResult, Verdict, judge
from wbscope.compare.policy import Budget, Margin, Policy, Rule, budget_rule
from wbscope.measure.metric import Metric
from wbscope.render.gate import evidence_text
from wbscope.stats.tests import holm

STEADY = [100.0, 100.1, 100.2, 100.3, 100.4, 100.5]
WORSE = [value * 1.2 for value in STEADY]
BETTER = [value * 0.8 for value in STEADY]
NOISY = [80.0, 90.0, 100.0, 110.0, 120.0, 130.0]
FIVE = Margin("5%", 0.05)


def rule(one: Metric, margin: Margin | None = FIVE, **more: Any) -> Rule:
    return Rule(one.name, margin, **more)


def gate(
    values: dict[Metric, tuple[list[Any], list[Any]]], rules: list[Rule], **more: Any
) -> GateResult:
    """Values are those of A and of B."""
    a = side("a", {one: pair[0] for one, pair in values.items()})
    b = side("b", {one: pair[1] for one, pair in values.items()})
    return judge(a, b, Policy(tuple(rules), **more), [])


def verdict(one: Metric, a: list[Any], b: list[Any], **more: Any) -> Verdict:
    (found,) = gate({one: (a, b)}, [rule(one, **more)]).verdicts
    return found


@pytest.mark.parametrize(
    ("a", "status", "reason"),
    [
        (STEADY, "PASS", "not worse by more than the margin"),
        (BETTER, "PASS", "better"),
        (WORSE, "FAIL", "significantly worse by more than the margin"),
        ([value * 1.02 for value in STEADY], "PASS", "worse, by less than the margin"),
        (
            NOISY,
            "INCONCLUSIVE",
            "these runs do not tell whether it is worse by more than the margin",
        ),
    ],
)
def test_lower_is_better(a: list[float], status: str, reason: str) -> None:
    found = verdict(TIME, a, STEADY)
    assert (found.status, found.reasons[0]) == (status, reason)
    assert len(found.reasons) == (2 if a is NOISY else 1)  # some are far outside of STEADY


def test_higher_is_better() -> None:
    assert verdict(RATE, WORSE, STEADY).reasons == ("better",)
    assert verdict(RATE, BETTER, STEADY).status == "FAIL"
    assert verdict(RATE, [value * 0.96 for value in STEADY], STEADY).status == "PASS"


def test_exit_codes() -> None:
    assert gate({TIME: (STEADY, STEADY)}, [rule(TIME)]).exit_code() == 0
    assert gate({TIME: (WORSE, STEADY)}, [rule(TIME)]).exit_code() == 1
    for inconclusive, code in (("inconclusive", 4), ("pass", 0), ("fail", 1)):
        found = gate({TIME: (NOISY, STEADY)}, [rule(TIME)], inconclusive=inconclusive)
        assert (found.status, found.exit_code()) == ("INCONCLUSIVE", code)
    both = gate({TIME: (NOISY, STEADY), RATE: (BETTER, STEADY)}, [rule(TIME), rule(RATE)])
    assert (both.status, both.exit_code()) == ("FAIL", 1)
    mapped = replace(both.policy, inconclusive="pass")
    assert replace(both, policy=mapped).exit_code() == 1


def test_an_open_verdict_says_what_would_do() -> None:
    some = [95.0, 98.0, 100.0, 103.0, 106.0, 109.0]  # s.d. 5 %
    found = verdict(TIME, some, [value + 1 for value in some])
    assert found.status == "INCONCLUSIVE"
    assert found.detectable is not None
    assert 0.08 < found.detectable < 0.13
    assert found.runs_needed is not None
    assert 15 < found.runs_needed < 25
    assert verdict(TIME, NOISY, NOISY[::-1]).runs_needed is None  # more than 200
    higher = verdict(RATE, some, [value + 1 for value in some])
    assert higher.detectable is not None
    assert 0 < higher.detectable < found.detectable  # a fall cannot be 100 %


def _plan(found: GateResult) -> tuple[int | None, str]:
    (verdict,) = found.verdicts
    return verdict.runs_needed, evidence_text(verdict)[-1]


def test_the_runs_needed_are_never_fewer_than_the_policy_wants() -> None:
    runs, told = _plan(gate({TIME: (STEADY, STEADY)}, [rule(TIME)], min_runs=10))
    assert (runs, "with 10 runs a side" in told) == (10, True)


def test_the_smaller_side_says_whether_runs_lack() -> None:
    """6 of A are enough, 3 of B are not."""
    some = [97.0, 98.0, 99.0, 101.0, 102.0, 103.0]
    runs = [side("a", {TIME: some}), side("b", {TIME: [some[0], some[2], some[5]]})]
    found = judge(runs[0], runs[1], Policy((rule(TIME, Margin("20%", 0.2)),)), [])
    needed, told = _plan(found)
    assert needed == 4
    assert "with 4 runs a side" in told


def test_one_run_a_side_does_not_know_its_spread() -> None:
    needed, told = _plan(gate({TIME: ([100.0], [90.0])}, [rule(TIME)]))
    assert needed is None
    assert "does not tell how much runs spread" in told
    assert "200" not in told


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_runs_leave_only_budgets(n: int) -> None:
    a, b = WORSE[:n], STEADY[:n]
    found = verdict(TIME, a, b)
    assert found.status == "INCONCLUSIVE"
    assert "only budgets can decide" in found.reasons[0]
    assert found.detectable is None
    with_budget = verdict(TIME, a, b, budget=Budget("<=", "100ns"))
    assert with_budget.status == "FAIL"


def test_budgets_alone_need_no_base_and_one_run() -> None:
    one = Side("A", (run("a", {TIME: 99e6}),))
    for border, status in (("100ms", "PASS"), ("50ms", "FAIL")):
        policy = Policy((rule(TIME, None, budget=Budget("<=", border)),))
        found = judge(one, None, policy, [])
        assert (found.status, found.verdicts[0].row) == (status, None)
    with pytest.raises(UsageError) as caught:
        judge(one, None, Policy((rule(TIME),)), [])
    assert caught.value.slug == "no-base"


def test_a_budget_of_the_median_and_of_each_run() -> None:
    many = side("a", {TIME: [10, 10, 10, 500]})
    median = Policy((rule(TIME, None, budget=Budget("<=", "100ns")),))
    each = Policy((rule(TIME, None, each_run=Budget("<=", "100ns")),))
    assert judge(many, None, median, []).status == "PASS"
    failed = judge(many, None, each, [])
    assert failed.status == "FAIL"
    assert failed.verdicts[0].reasons == ("each run is 500 ns, the budget is <= 100ns",)


def test_a_budget_on_what_is_not_known() -> None:
    half = side("a", {TIME: [10, None]})
    policy = Policy((rule(TIME, None, budget=Budget("<=", "100ns")),))
    found = judge(half, None, policy, [])
    assert (found.status, found.verdicts[0].reasons) == ("REFUSED", ("not known of a1",))


def test_holm_over_the_declared_ones_only() -> None:
    """Five metrics of which one changed: its p of 2 / 924 is adjusted by 5, not by 7."""
    metrics = [metric(f"x.m{index}_ns") for index in range(7)]
    values: dict[Metric, tuple[list[Any], list[Any]]] = dict.fromkeys(metrics, (STEADY, STEADY))
    values[metrics[0]] = (WORSE, STEADY)
    found = gate(values, [rule(one) for one in metrics[:5]])
    p = 2 / 924
    assert found.compared == 5
    assert [v.p_adjusted for v in found.verdicts] == pytest.approx(holm([p, 1, 1, 1, 1]))
    assert [v.status for v in found.verdicts] == ["FAIL", "PASS", "PASS", "PASS", "PASS"]


def test_too_many_metrics_for_so_few_runs() -> None:
    """With 4 runs the least p is 2 / 70: two metrics cannot both be tested at 5 %."""
    other = metric("x.other_ns")
    found = gate(
        {TIME: (WORSE[:4], STEADY[:4]), other: (STEADY[:4], STEADY[:4])}, [rule(TIME), rule(other)]
    )
    first = found.verdicts[0]
    assert first.status == "INCONCLUSIVE"
    assert first.reasons[0] == "so few runs can show no change for 2 metrics, however large"
    assert first.runs_needed == 5


def test_zeros() -> None:
    """A margin in per cent of 0 is 0; one in pages can be confirmed."""
    zeros: list[float] = [0] * 6
    assert verdict(WRITES, zeros, zeros).status == "PASS"
    assert verdict(WRITES, zeros, [667839.0 + i for i in range(6)]).reasons == ("better",)
    back = verdict(WRITES, [667839.0 + i for i in range(6)], zeros)
    assert (back.status, back.delta) == ("FAIL", 0)
    few = [0, 0, 0, 3, 0, 5]
    assert verdict(WRITES, few, zeros).status == "INCONCLUSIVE"
    assert verdict(WRITES, few, zeros, margin=Margin("100", None)).status == "PASS"


def test_a_margin_in_the_metrics_unit() -> None:
    later = [value + 3e6 for value in STEADY]
    assert verdict(TIME, later, STEADY, margin=Margin("5ms", None)).status == "PASS"
    assert verdict(TIME, later, STEADY, margin=Margin("1ms", None)).status == "FAIL"
    with pytest.raises(UsageError) as caught:
        verdict(TIME, later, STEADY, margin=Margin("5MiB", None))
    assert caught.value.slug == "bad-quantity"


def test_negative_values() -> None:
    """Ratios of them say nothing: the margin is a share of the base's median."""
    lower, higher = [-110.0 - i / 10 for i in range(6)], [-100.0 - i / 10 for i in range(6)]
    assert verdict(TIME, higher, lower).status == "FAIL"
    assert verdict(TIME, lower, higher).reasons == ("better",)


def test_a_metric_without_a_direction() -> None:
    with pytest.raises(UsageError) as caught:
        verdict(LEVEL, STEADY, STEADY)
    assert caught.value.slug == "no-direction"
    assert verdict(LEVEL, WORSE, STEADY, better="lower").status == "FAIL"
    assert verdict(LEVEL, WORSE, STEADY, better="higher").status == "PASS"


def test_a_run_without_the_number() -> None:
    found = verdict(TIME, [*STEADY[:5], None], STEADY)
    assert (found.status, found.reasons) == ("REFUSED", ("known in 11 of 12 runs",))
    assert found.p_adjusted == 1


def test_across_6_16() -> None:
    a, b = side("a", {WRITES: WORSE}, facts={"kernel": "7.2"}), side("b", {WRITES: STEADY})
    for mapped in ("inconclusive", "pass", "fail"):
        policy = Policy((rule(WRITES),), differs=("kernel",), inconclusive=mapped)
        found = judge(a, b, policy, [])
        assert (found.status, found.exit_code()) == ("REFUSED", 4)
        assert "6.16" in found.verdicts[0].reasons[0]


def test_a_refused_metric_does_not_hide_one_that_fails() -> None:
    values: Any = {TIME: (WORSE, STEADY), RATE: ([*STEADY[:5], None], STEADY)}
    found = gate(values, [rule(TIME), rule(RATE)])
    assert [v.status for v in found.verdicts] == ["FAIL", "REFUSED"]
    assert (found.status, found.exit_code()) == ("FAIL", 1)


def test_numbers_that_are_not_the_same_thing() -> None:
    """One name, two units, or two directions: nobody knows what a change of it would be."""
    for other in (replace(TIME, unit="bytes"), replace(TIME, better="higher")):
        a, b = side("a", {other: WORSE}), side("b", {TIME: STEADY})
        found = judge(a, b, Policy((rule(TIME),)), [])
        assert found.status == "REFUSED"
        assert "in " in found.verdicts[0].reasons[0]


# Names of metrics.


def test_names_with_stars_and_without_their_query() -> None:
    first, second = metric("x.t_ns[comm=a]"), metric("x.t_ns[comm=b]")
    values: Any = {first: (STEADY, STEADY), second: (WORSE, STEADY), TIME: (STEADY, STEADY)}
    found = gate(values, [Rule("x.t_ns[comm=*]", FIVE), Rule("elapsed_ns", FIVE)])
    assert [(v.metric.name, v.status) for v in found.verdicts] == [
        ("x.t_ns[comm=a]", "PASS"),
        ("x.t_ns[comm=b]", "FAIL"),
        ("time.elapsed_ns", "PASS"),
    ]
    assert found.compared == 3
    with pytest.raises(UsageError) as caught:
        gate(values, [Rule("x.*", FIVE), Rule("x.t_ns[comm=*]", FIVE)])
    assert caught.value.slug == "declared-twice"
    ambiguous: Any = {metric("y.t_ns"): (STEADY, STEADY), metric("z.t_ns"): (STEADY, STEADY)}
    with pytest.raises(UsageError) as caught:
        gate(ambiguous, [Rule("t_ns", FIVE)])
    assert caught.value.slug == "ambiguous-metric"


def test_a_whole_name_goes_before_a_pattern() -> None:
    first, second = metric("x.t_ns[comm=a]"), metric("x.t_ns[comm=b]")
    values: Any = {first: (WORSE, STEADY), second: (WORSE, STEADY)}
    found = gate(values, [Rule("x.*", FIVE), Rule("x.t_ns[comm=a]", Margin("50%", 0.5))])
    assert [(v.metric.name, v.margin, v.status) for v in found.verdicts] == [
        ("x.t_ns[comm=b]", "5%", "FAIL"),
        ("x.t_ns[comm=a]", "50%", "PASS"),
    ]


def test_a_lower_and_an_upper_bound() -> None:
    one = Side("A", (run("a", {TIME: 50}),))
    lower, upper = (
        rule(TIME, None, budget=Budget(">=", "10ns")),
        rule(TIME, None, budget=Budget("<=", "40ns")),
    )
    (found,) = judge(one, None, Policy((lower, upper)), []).verdicts
    assert found.status == "FAIL"
    assert found.budgets == ("median >= 10ns", "median <= 40ns")
    with_margin = gate({TIME: (STEADY, STEADY)}, [rule(TIME), lower])
    assert [v.status for v in with_margin.verdicts] == ["PASS"]
    assert with_margin.verdicts[0].budgets == ("median >= 10ns",)
    with pytest.raises(UsageError) as caught:
        gate({TIME: (STEADY, STEADY)}, [rule(TIME), rule(TIME, Margin("9%", 0.09))])
    assert caught.value.slug == "declared-twice"


def test_a_pattern_leaves_out_what_has_no_direction() -> None:
    timed, level = metric("x.t_ns"), metric("x.level_ratio", "neutral", "ratio")
    values: Any = {timed: (STEADY, STEADY), level: (WORSE, STEADY)}
    found = gate(values, [Rule("x.*", FIVE)])
    assert [v.metric.name for v in found.verdicts] == ["x.t_ns"]
    (told,) = found.warnings
    assert (told.slug, "x.level_ratio" in told.message) == ("no-direction", True)
    for pattern, more in (("x.level*", {}), ("x.*", {"better": "higher"})):
        with pytest.raises(UsageError):
            gate(values, [Rule(pattern, FIVE, **more)])


def test_a_direction_that_the_policy_turns_is_told() -> None:
    found = gate({TIME: (BETTER, STEADY)}, [rule(TIME, better="higher")])
    assert found.status == "FAIL"
    assert [notice.slug for notice in found.warnings] == ["direction-turned"]


def test_a_policy_that_can_never_fail_is_told() -> None:
    """6 + 6 runs: the least p is 2 / 924, a 23rd of 5 %."""
    metrics = [metric(f"x.m{index}_ns") for index in range(24)]
    values: dict[Metric, tuple[list[Any], list[Any]]] = dict.fromkeys(metrics, (STEADY, STEADY))
    found = gate(values, [rule(one) for one in metrics])
    (told,) = found.warnings
    assert "at most 23 metrics, and the policy compares 24" in told.message
    assert gate(values, [rule(one) for one in metrics[:23]]).warnings == ()


def test_a_metric_that_no_run_has() -> None:
    a, b = side("a", {TIME: STEADY}), side("b", {TIME: STEADY})
    policy = Policy((Rule("fairness.jain_ratio", FIVE), Rule("fio.iops", FIVE)))
    found = judge(a, b, policy, ["fairness.jain_ratio", "throughput.x_bytes"])
    assert [v.status for v in found.verdicts] == ["REFUSED", "REFUSED"]
    assert found.compared == 2
    with pytest.raises(UsageError) as caught:
        judge(a, b, Policy((Rule("fairness.jane_ratio", FIVE),)), ["fairness.jain_ratio"])
    assert (caught.value.slug, caught.value.have) == ("unknown-metric", "fairness.jain_ratio")
    for misspelt in ("throttle_sumary.pause_ns", "fo.write.iops", "tme.*"):
        with pytest.raises(UsageError) as caught:
            judge(a, b, Policy((Rule(misspelt, FIVE),)), ["fairness.jain_ratio"])
        assert caught.value.slug == "unknown-metric"


def test_why_no_run_has_it() -> None:
    a = side("a", {TIME: STEADY}, lacking={"fairness": "needs writeback:balance_dirty_pages"})
    policy = Policy((Rule("fairness.jain_ratio", budget=Budget(">=", "0.9")),))
    (found,) = judge(a, None, policy, ["fairness.jain_ratio"]).verdicts
    assert found.reasons == ("no run has it: needs writeback:balance_dirty_pages",)


# Guards.


def _refused(a: Side, b: Side | None, **policy: Any) -> list[str]:
    found = judge(a, b, Policy((rule(TIME),), **policy), [])
    assert (found.status == "REFUSED") == bool(found.refusals)
    if found.refusals:
        assert (found.verdicts, found.exit_code()) == ((), 4)
    return [refusal.slug for refusal in found.refusals]


@pytest.mark.parametrize("fact", ["kernel", "hz", "filesystem", "sysctl.vm.dirty_ratio", "events"])
def test_only_what_is_declared_may_differ(fact: str) -> None:
    a = side("a", {TIME: STEADY}, facts={fact: "one"})
    b = side("b", {TIME: STEADY}, facts={fact: "other"})
    assert _refused(a, b) == ["not-comparable"]
    assert _refused(a, b, differs=(fact,)) == []


def test_runs_of_one_side_are_alike_even_where_sides_may_differ() -> None:
    mixed = Side("A", (run("a", {TIME: 1}), run("b", {TIME: 1}, facts={"hz": 100})))
    assert _refused(mixed, side("b", {TIME: STEADY}), differs=("hz",)) == ["mixed-side"]


def test_lost_events_and_damage() -> None:
    good = side("b", {TIME: STEADY})
    assert _refused(side("a", {TIME: STEADY}, **lost()), good) == ["lost-events"] * 6
    assert _refused(good, side("a", {TIME: STEADY}, **lost()), lost_events="allow") == []
    assert _refused(side("a", {TIME: STEADY}, **damaged()), good) == ["damaged-run"] * 6
    assert _refused(side("a", {TIME: STEADY}, **damaged()), good, damaged="allow") == []


def test_recordings_cut_short_and_failed_commands() -> None:
    good = side("b", {TIME: STEADY})
    cut = side("a", {TIME: STEADY}, **damaged("recorder killed", "recording-cut-short"))
    assert _refused(cut, good) == ["damaged-run"] * 6
    assert _refused(cut, good, damaged="allow") == []
    assert _refused(side("a", {TIME: STEADY}, **failed()), good) == ["command-failed"] * 6
    assert _refused(side("a", {TIME: STEADY}, **failed()), good, failed="allow") == []


def test_copies_of_a_run_are_one_run() -> None:
    copies = side("a", {TIME: STEADY}, source_id="same")
    assert _refused(copies, side("b", {TIME: STEADY})) == ["same-recording"]


def test_a_run_against_itself() -> None:
    """A wrong path that nobody sees, unless it is asked for."""
    runs = side("a", {TIME: STEADY})
    assert _refused(runs, runs) == ["same-recording"]
    assert _refused(side("c", {TIME: STEADY}), runs) == []
    found = judge(runs, runs, Policy((rule(TIME),)), [], itself=True)
    assert (found.status, found.refusals) == ("PASS", ())


def test_unknown_facts_are_told_or_refused() -> None:
    a, b = side("a", {TIME: STEADY}, facts={"device": None}), side("b", {TIME: STEADY})
    found = judge(a, b, Policy((rule(TIME),)), [])
    assert (found.status, found.unknown) == ("PASS", ("device", "sysctl"))
    assert _refused(a, b, unknown="refuse") == ["unknown-facts"]


def test_the_first_runs_are_left_out_by_a_rule() -> None:
    cold = [500.0, *STEADY]
    policy = Policy((rule(TIME),), drop_first=1)
    found = judge(side("a", {TIME: cold}), side("b", {TIME: cold}), policy, [])
    assert found.verdicts[0].row is not None
    assert found.verdicts[0].row.sample.values == tuple(STEADY)
    with pytest.raises(UsageError) as caught:
        judge(side("a", {TIME: [1]}), side("b", {TIME: [1]}), policy, [])
    assert caught.value.slug == "nothing-left"


@pytest.mark.parametrize(
    ("value", "budget", "status", "shown"),
    [
        (3600.5e9, "<= 1h", "FAIL", "1.0001h"),
        (121.5e9, "<= 121.5s", "PASS", "121.5s"),
        (121.4e9, "<= 121.5s", "PASS", "121 s"),
        (104.9e6, "<= 100ms", "FAIL", "105 ms"),
        (0.3, "<= 0", "FAIL", "0 ns"),
    ],
)
def test_the_number_shown_is_on_the_side_of_the_budget_that_it_is_on(
    value: float, budget: str, status: str, shown: str
) -> None:
    policy = Policy((budget_rule(f"elapsed_ns {budget}"),))
    found = judge(side("A", {TIME: [value]}), None, policy, [])
    (verdict,) = found.verdicts
    assert verdict.status == status
    assert shown in verdict.reasons[0]


@pytest.mark.parametrize("line", ['margin = "5MB"', 'budget = "<= 200"'])
def test_a_wrong_unit_is_told_though_no_run_can_be_read(
    cli: Callable[..., Any], tmp_path: Path, line: str
) -> None:
    policy = tmp_path / "gate.toml"
    policy.write_text(f'[metrics."throttle_summary.pause_p99_ns"]\n{line}\n')
    ran = cli("gate", "--policy", policy, tmp_path / "none", "--against", tmp_path / "none")
    assert (ran.code, ran.err.split(":")[0]) == (2, "error[bad-quantity]")
