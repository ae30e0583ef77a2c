# SPDX-License-Identifier: Apache-2.0
"""The gate: PASS, WORSE, FAIL or INCONCLUSIVE for each declared metric, and for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from wbscope.base.errors import UsageError
from wbscope.base.result import Notice
from wbscope.base.units import format_beside
from wbscope.compare.comparison import (
    Row,
    Side,
    contrast,
    copied_folder,
    is_published,
    metrics_of,
    published_notice,
    published_shift,
    runs_behind,
    sample_of,
)
from wbscope.compare.gate_checks import (
    Plan,
    Refusal,
    check_amount,
    check_policy,
    never_fails,
    refusals,
    tail_rule,
)
from wbscope.compare.metrics import RuleMetric, declared_by
from wbscope.compare.policy import Budget, Margin, Policy, Rule
from wbscope.compare.sessions import Design, design_of
from wbscope.measure.metric import Metric
from wbscope.stats.estimates import Scale, Shift, is_beyond, rounding_of, shift
from wbscope.stats.tests import holm

Status = Literal["PASS", "FAIL", "WORSE", "INCONCLUSIVE", "REFUSED"]
EXIT_CODES: dict[Status, int] = {
    "PASS": 0,
    "FAIL": 1,
    "WORSE": 4,
    "INCONCLUSIVE": 4,
    "REFUSED": 4,
}
# What an open verdict counts as, by the word that the policy has for it.
_COUNTS_AS: dict[str, Status] = {"pass": "PASS", "fail": "FAIL"}


@dataclass(frozen=True)
class Verdict:
    """One declared metric.

    status       WORSE = significantly worse, by less or by more than the margin is not
                 known; REFUSED = its numbers are not there for all runs, or are not
                 the same thing on both sides: no policy makes that a PASS
    reasons      why, as sentences
    row          the two sides, as `compare` has them; None without a base
    shift        on the scale of the margin
    margin       of the policy, as written; delta: the same on the scale of shift
    p_adjusted   p after Holm over all metrics that are compared
    detectable   the smallest regression that these runs can detect 4 times in 5, on
                 the scale of shift; None = none, sessions decide, or nothing is compared
    far_runs     runs far outside of what the base has; p_far: of so many by chance
    runs_needed  runs a side with which an unchanged kernel would pass 4 times in
                 5; None = more than 200, unknown, as above
    """

    metric: Metric
    status: Status
    reasons: tuple[str, ...]
    row: Row | None = None
    shift: Shift | None = None
    margin: str = ""
    delta: float | None = None
    p_adjusted: float | None = None
    detectable: float | None = None
    runs_needed: int | None = None
    budgets: tuple[str, ...] = ()
    far_runs: tuple[str, ...] = ()
    p_far: float | None = None


@dataclass(frozen=True)
class GateResult:
    """The verdict over all of them; a run that is refused decides nothing."""

    status: Status
    verdicts: tuple[Verdict, ...]
    refusals: tuple[Refusal, ...]
    side: Side
    base: Side | None
    policy: Policy
    compared: int
    unknown: tuple[str, ...]
    warnings: tuple[Notice, ...]

    def exit_code(self) -> int:
        """0 passed, 1 failed, 4 not enough evidence, unless the policy maps that."""
        return EXIT_CODES[self.counted]

    @property
    def counted(self) -> Status:
        """The worst of what the policy takes the verdicts for: what the exit code says."""
        counts = self.policy.counted
        counted = [_COUNTS_AS.get(counts(one.status), one.status) for one in self.verdicts]
        return _overall(counted, bool(self.refusals))

    def count(self, status: Status) -> int:
        """How many metrics have this verdict."""
        return sum(verdict.status == status for verdict in self.verdicts)


def judge(
    side: Side,
    base: Side | None,
    policy: Policy,
    families: Iterable[str],
    *,
    itself: bool = False,
) -> GateResult:
    """Judge a side, against a base where the policy compares.

    `families` are the metrics that queries can give: a name that is none of them,
    and that no run has, is a mistake in the policy. `itself`: the base is meant to
    be the side again.

    Raises: UsageError for such a name, and when a base is needed and there is none.
    """
    if policy.compares and base is None:
        raise UsageError(
            "no-base",
            "gate",
            "the policy has margins, so there must be runs to compare with",
            fix="wbscope gate --policy POLICY.toml RUN... --against RUN...",
        )
    side, base = _warmed(side, policy), None if base is None else _warmed(base, policy)
    refused, unknown = refusals(side, base, policy, itself=itself)
    runs = [*side.runs, *(base.runs if base else ())]
    declared, told = declared_by(policy, metrics_of(runs), families)
    verdicts: tuple[Verdict, ...] = ()
    compared = sum(one.rule.margin is not None for one in declared)
    check_policy(declared, policy)
    designs = {} if base is None else _designs(declared, side, base, policy, itself)
    if not refused:
        verdicts = _verdicts(declared, side, base, policy, compared, designs)
    return GateResult(
        status=_overall([verdict.status for verdict in verdicts], bool(refused)),
        verdicts=verdicts,
        refusals=tuple(refused),
        side=side,
        base=base,
        policy=policy,
        compared=compared,
        unknown=tuple(unknown),
        warnings=(
            *(notice for run in runs for notice in run.named_warnings),
            *told,
            *([] if base is None or itself else copied_folder(side, base)),
            *_doubts(list(designs.values()), compared, policy),
            *published_notice(side.name, base.name if base else "", [v.shift for v in verdicts]),
        ),
    )


def _warmed(side: Side, policy: Policy) -> Side:
    """Without the first runs, by a rule that was written down before."""
    if policy.drop_first == 0:
        return side
    if policy.drop_first >= len(side.runs):
        raise UsageError(
            "nothing-left",
            f"drop_first = {policy.drop_first}",
            f"leaves none of the {len(side.runs)} runs of {side.name}",
            fix="make more runs",
        )
    return Side(side.name, side.runs[policy.drop_first :])


def _overall(statuses: Sequence[Status], is_refused: bool) -> Status:
    if is_refused:
        return "REFUSED"
    worst: tuple[Status, ...] = ("FAIL", "REFUSED", "WORSE", "INCONCLUSIVE")
    return next((status for status in worst if status in statuses), "PASS")


def _designs(
    declared: Sequence[RuleMetric], side: Side, base: Side, policy: Policy, itself: bool
) -> dict[str, Design]:
    """Of each metric that is compared: samples of a file do not all have the same ones."""
    runs = [*side.runs, *base.runs]
    of_all = design_of(side, base, policy, itself=itself)
    found = {one.metric.name: of_all for one in declared if one.rule.margin is not None}
    for name in found:
        having = sum(run.value(name) is not None for run in runs)
        if 0 < having < len(runs):
            found[name] = design_of(side, base, policy, name, itself=itself)
    return found


def _doubts(designs: Sequence[Design], compared: int, policy: Policy) -> list[Notice]:
    """What is wrong with the most that these runs could tell, and with all of them."""
    if not designs:
        return []
    best = min(designs, key=lambda one: one.smallest_p())
    notices = (notice for one in designs for notice in one.warnings)
    return list(dict.fromkeys([*never_fails(best, compared, policy), *notices]))


def _verdicts(
    declared: Sequence[RuleMetric],
    side: Side,
    base: Side | None,
    policy: Policy,
    compared: int,
    designs: Mapping[str, Design],
) -> tuple[Verdict, ...]:
    rows = [_row(one, side, base, policy) for one in declared]
    shifts = [
        None
        if row is None
        else _shift(one.rule.margin, row, policy.alpha, designs[one.metric.name])
        for one, row in zip(declared, rows, strict=True)
    ]
    # What cannot be tested counts in Holm's number all the same: it was declared.
    tested = [index for index, one in enumerate(declared) if one.rule.margin is not None]
    p_values = [1.0 if (s := shifts[index]) is None else s.p for index in tested]
    adjusted = dict(zip(tested, holm(p_values), strict=True))
    return tuple(
        _verdict(
            one,
            side,
            rows[index],
            shifts[index],
            adjusted.get(index),
            policy,
            compared,
            designs.get(one.metric.name),
        )
        for index, one in enumerate(declared)
    )


def _row(one: RuleMetric, side: Side, base: Side | None, policy: Policy) -> Row | None:
    if one.rule.margin is None or base is None or not one.is_there:
        return None
    metric = one.metric if one.rule.better is None else replace(one.metric, better=one.rule.better)
    return contrast(metric, side, base, policy.alpha, 0.0)


def _shift(margin: Margin | None, row: Row, alpha: float, design: Design) -> Shift | None:
    """On the scale of the margin: a share needs values above 0, else it is a difference."""
    if row.shift is None or margin is None:
        return None
    if is_published(row.shift):
        return published_shift(row.sample, row.base_sample, 1 - alpha)
    scale: Scale = "difference" if margin.relative is None else row.shift.scale
    sides = row.sample.values, row.base_sample.values
    tested = design.tested(*sides, scale, 1 - alpha)
    return shift(*sides, 1 - alpha, scale) if tested is None else tested


def _verdict(
    one: RuleMetric,
    side: Side,
    row: Row | None,
    found: Shift | None,
    p_adjusted: float | None,
    policy: Policy,
    compared: int,
    design: Design | None,
) -> Verdict:
    metric = one.metric if row is None else row.metric
    if not one.is_there:
        told = _why_absent(one.rule, side)
        return Verdict(metric, "REFUSED", (told,), margin=_margin_text(one.rule))
    statuses, reasons, budgets = _budgets((one.rule, *one.budgets), metric, side)
    verdict = Verdict(metric, "PASS", (), row=row, margin=_margin_text(one.rule), budgets=budgets)
    if one.rule.margin is not None and row is not None and design is not None:
        if metric.better == "neutral":
            raise UsageError(
                "no-direction",
                metric.name,
                "is better neither when lower nor when higher, so a margin says nothing",
                fix='better = "lower"    # or "higher", if you know that it is so here',
            )
        judged = _compared(
            metric, one.rule.margin, row, found, p_adjusted, policy, compared, design
        )
        if judged.delta is not None:
            check_amount(one, row, judged.delta, policy)
        judged = _with_tail(judged, row, side, policy, compared, design)
        statuses.append(judged.status)
        reasons = [*judged.reasons, *reasons]
        verdict = replace(judged, budgets=budgets)
    return replace(verdict, status=_overall(statuses, False), reasons=tuple(reasons))


def _margin_text(rule: Rule) -> str:
    return "" if rule.margin is None else rule.margin.text


def _why_absent(rule: Rule, side: Side) -> str:
    query = rule.pattern.partition(".")[0]
    why = next((run.lacking[query] for run in side.runs if query in run.lacking), None)
    return f"no run has it: {why}" if why else "no run has it"


def _budgets(
    rules: Sequence[Rule], metric: Metric, side: Side
) -> tuple[list[Status], list[str], tuple[str, ...]]:
    """Absolute borders: these need no base, and one run is enough."""
    statuses: list[Status] = []
    reasons: list[str] = []
    sample = sample_of(metric.name, side)
    asked: list[tuple[Budget, str, Sequence[float]]] = []
    median = sample.description.median
    for rule in rules:
        if rule.budget is not None:
            asked.append((rule.budget, "median", () if median is None else (median,)))
        if rule.each_run is not None:
            asked.append((rule.each_run, "each run", sample.values))
    for budget, what, values in asked:
        allowed = [budget.allows(value, metric.name, metric.unit) for value in values]
        broken = [value for value, kept in zip(values, allowed, strict=True) if not kept]
        judged = broken or values
        high = budget.sign in ("<=", "<")
        worst = max(judged, default=None) if high else min(judged, default=None)
        shown = "-" if worst is None else _beside(budget, metric, worst)
        if broken:
            many = f", and {len(broken) - 1} more runs" if len(broken) > 1 else ""
            statuses.append("FAIL")
            reasons.append(f"{what} is {shown}{many}, the budget is {budget}")
        elif sample.missing or not values:
            statuses.append("REFUSED")
            # A sample of a file lacks nothing by itself: nobody asked it.
            told = f"not known of {', '.join(sample.missing)}" if sample.missing else ""
            reasons.append(told or f"no run of {side.name} has it")
        else:
            statuses.append("PASS")
            told = f"median {shown}" if what == "median" else f"each run, at worst {shown},"
            reasons.append(f"{told} keeps {budget}")
    return statuses, reasons, tuple(f"{what} {budget}" for budget, what, _ in asked)


def _beside(budget: Budget, metric: Metric, value: float) -> str:
    """121.5 s is not shown as 122 s that keeps <= 121.8s."""
    return format_beside(
        metric.unit, value, budget.text, lambda one: budget.allows(one, metric.name, metric.unit)
    )


def _compared(
    metric: Metric,
    margin: Margin,
    row: Row,
    found: Shift | None,
    p_adjusted: float | None,
    policy: Policy,
    compared: int,
    design: Design,
) -> Verdict:
    known = Verdict(metric, "INCONCLUSIVE", (), row, found, margin.text, p_adjusted=p_adjusted)
    if found is None:
        return replace(known, status="REFUSED", reasons=(row.reason or "not known",))
    delta = _delta(metric, margin, row, found.scale)
    n, m = design.runs
    if is_published(found):
        n, m = runs_behind(row.sample), runs_behind(row.base_sample)
    plan = Plan(metric, row, found.scale, delta, policy.alpha, compared, policy.min_runs, design)
    known = replace(
        known, delta=delta, detectable=plan.detectable(n, m), runs_needed=plan.runs_needed()
    )
    # "Surely by more" is said of any of so many metrics, so each has its share of alpha; a
    # verdict of PASS is of its own metric.
    strict = found if compared == 1 else _shift(margin, row, policy.alpha / compared, design)
    least = _worsening(metric, strict or found)[0]
    _, worse, bound = _worsening(metric, found)
    if min(n, m) < policy.min_runs:
        told = f"{n} + {m} runs, wanted {policy.min_runs} a side: only budgets can decide"
        return replace(known, reasons=(told,))
    is_sure = p_adjusted is not None and p_adjusted <= policy.alpha
    rounding = rounding_of(found.scale, (*row.sample.values, *row.base_sample.values))
    status, told = _word(is_sure, least, worse, bound, delta, rounding, policy)
    if status == "INCONCLUSIVE":
        told = _why_undecided(found, bound, compared, policy, design)
    return replace(known, status=status, reasons=(told,))


def _word(
    is_sure: bool,
    least: float | None,
    worse: float,
    bound: float | None,
    delta: float,
    rounding: float,
    policy: Policy,
) -> tuple[Status, str]:
    """The test says whether it changed, the interval by how much; the margin decides."""
    if is_sure and least is not None and is_beyond(least, delta, rounding):
        return "FAIL", "significantly worse by more than the margin"
    if is_sure and is_beyond(worse, delta, rounding) and policy.fail_when == "estimate":
        return "FAIL", "significantly worse, and the estimate is worse by more than the margin"
    if bound is not None and not is_beyond(bound, delta, rounding):
        if is_sure and worse < 0:
            return "PASS", "better"
        return "PASS", "worse, by less than the margin" if is_sure and worse > 0 else (
            "not worse by more than the margin"
        )
    if is_sure and worse > 0:
        return "WORSE", "significantly worse, perhaps by less than the margin"
    return "INCONCLUSIVE", ""


def _with_tail(
    judged: Verdict, row: Row, side: Side, policy: Policy, compared: int, design: Design
) -> Verdict:
    """PASS is also a word on single runs: none is far outside of what the base has."""
    if is_published(judged.shift):
        return judged
    if judged.shift is None or judged.delta is None or min(design.runs) < policy.min_runs:
        return judged
    # Where no shift could fail, so few runs are no ground for another FAIL either, and runs of
    # a session that is off as a whole are no evidence each.
    level = policy.alpha / compared
    if design.smallest_p() > level or design.kind == "sessions" or design.is_apart:
        level = 0.0
    found = tail_rule(row, judged.shift.scale, judged.delta, side, level, design)
    if judged.status == "FAIL" or found is None:
        return judged
    leads = found.is_worse or judged.status == "PASS"
    return replace(
        judged,
        status="FAIL" if found.is_worse else "INCONCLUSIVE",
        reasons=(found.told, *judged.reasons) if leads else (*judged.reasons, found.told),
        far_runs=found.runs,
        p_far=found.p,
    )


def _delta(metric: Metric, margin: Margin, row: Row, scale: Scale) -> float:
    """The margin on the scale of the shift; a share of the base's median for a difference."""
    if scale == "ratio" and margin.relative is not None:
        return margin.relative
    if margin.relative is not None:
        return margin.relative * abs(row.base_sample.description.median or 0.0)
    return margin.quantity(metric.name, metric.unit)


def _worsening(metric: Metric, found: Shift) -> tuple[float | None, float, float | None]:
    """By how much it is worse: at least, as estimated, and at worst; below 0 = better."""
    none = 1.0 if found.scale == "ratio" else 0.0
    low = None if found.low is None else found.low - none
    high = None if found.high is None else found.high - none
    if metric.better == "lower":
        return low, found.estimate - none, high
    return (
        None if high is None else -high,
        none - found.estimate,
        None if low is None else -low,
    )


def _why_undecided(
    found: Shift, bound: float | None, compared: int, policy: Policy, design: Design
) -> str:
    if bound is None:
        return f"so few runs cannot bound the change with {100 - 100 * policy.alpha:g} % confidence"
    if design.smallest_p() > policy.alpha / compared and not is_published(found):
        many = f" for {compared} metrics" if compared > 1 else ""
        return f"so few runs can show no change{many}, however large"
    return "these runs do not tell whether it is worse by more than the margin"
