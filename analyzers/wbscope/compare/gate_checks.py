# SPDX-License-Identifier: Apache-2.0
"""What a gate refuses, what it could have shown, and single runs far outside of the base."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wbscope.base.errors import UsageError
from wbscope.base.result import Notice
from wbscope.base.units import counted, format_value, parse_quantity
from wbscope.compare.comparison import Comparison, Row, Side, told_apart
from wbscope.compare.metrics import RuleMetric
from wbscope.compare.policy import Budget, Policy, Rule
from wbscope.compare.rundata import RunData
from wbscope.compare.sameness import (
    copies_on_both,
    copies_within,
    differences,
    facts_text,
    unknown_facts,
)
from wbscope.compare.sessions import Design
from wbscope.measure.metric import Metric
from wbscope.stats.estimates import Scale
from wbscope.stats.planning import (
    blocks_to_confirm,
    detectable,
    detectable_within,
    fewest_blocks,
    fewest_runs,
    pooled_sd,
    runs_to_confirm,
    within_sd,
)
from wbscope.stats.repeated import resolution, tail_of
from wbscope.stats.tests import smallest_p

# What may differ among the runs of a base, if the policy lets it differ between sides.
_OF_BASE = ("kernel",)


@dataclass(frozen=True)
class Refusal:
    """Why nothing is judged, and what allows it, if anything does."""

    slug: str
    message: str
    fix: str


def refusals(
    side: Side, base: Side | None, policy: Policy, *, itself: bool = False
) -> tuple[list[Refusal], list[str]]:
    """What is wrong with these runs, and the facts about them that nobody knows.

    The first runs are dropped already. `itself`: the base is meant to be the side itself.
    """
    sides = [side] if base is None else [side, base]
    # Runs of several kernels are one base where the policy lets kernels differ.
    mixed = [fact for fact in _OF_BASE if fact in policy.differs]
    allowed = [(one, mixed if one is base or itself else []) for one in sides]
    runs = [run for one in sides for run in one.runs]
    found = [refusal for one, facts in allowed for refusal in _of_side(one, policy, facts, runs)]
    if base is not None and not itself:
        found += _on_both(side, base)
    within = {d.fact for one, facts in allowed for d in differences(one.runs, facts)}
    if base is not None:
        for difference in differences(told_apart(sides), policy.differs):
            if difference.fact not in within:
                fix = f'differs = ["{difference.fact}"]    # in the policy, if it is meant to'
                found.append(Refusal("not-comparable", difference.text(), fix))
    unknown = unknown_facts(runs) if base is not None else []
    if unknown and policy.unknown == "refuse":
        told = f"nothing tells whether the runs have in common: {facts_text(unknown)}"
        found.append(Refusal("unknown-facts", told, "record with wbscope record"))
    return found, unknown


def _on_both(side: Side, base: Side) -> Iterator[Refusal]:
    """One wrong path, and a gate would be green for ever."""
    both = [f"{run} ({other})" for run, other in copies_on_both(side.runs, base.runs)]
    if both:
        told = f"{', '.join(both)} of {side.name} are among the runs of {base.name}"
        fix = "name other runs; wbscope gate --self-check judges runs against themselves"
        yield Refusal("same-recording", f"{told}: nothing can differ", fix)


def _of_side(
    side: Side, policy: Policy, allowed: Sequence[str], runs: Sequence[RunData]
) -> Iterator[Refusal]:
    """runs: of both sides."""
    if not side.runs:
        yield Refusal("no-runs", f"{side.name} has no runs", "name at least one run")
    given = len(side.runs) + policy.drop_first
    if policy.expect_runs not in (None, given):
        told = f"{side.name} has {counted(given, 'run')}, the policy expects {policy.expect_runs}"
        fix = f"find out what became of the others, or expect_runs = {given}"
        if given > (policy.expect_runs or 0):
            fix = f"leave out what is not of this test, or expect_runs = {given}"
        yield Refusal("number-of-runs", told, fix)
    for difference in differences(side.runs, allowed):
        told = f"runs of {side.name} differ among themselves: {difference.text()}"
        yield Refusal("mixed-side", told, "give only repetitions of one thing to a side")
    for group in copies_within(side.runs, runs):
        names = ", ".join(run.name for run in group)
        told = f"{names} of {side.name} are one recording: it counts as one run"
        yield Refusal("same-recording", told, "leave the copies out")
    for run in side.runs:
        if policy.damaged == "refuse" and run.damaged:
            told = f"{side.name} {run.name}: {run.damaged[0].message}"
            yield Refusal("damaged-run", told, 'record it again, or damaged = "allow"')
        if policy.failed == "refuse" and run.failed:
            told = f"{side.name} {run.name}: {run.failed[0].message}"
            yield Refusal("command-failed", told, 'record it again, or failed = "allow"')
        if policy.checks and run.checked is None:
            told = f"{side.name} {run.name}: it is unknown whether its trace passes the check"
            yield Refusal("not-checked", told, "save the baseline with this policy, from the runs")
        elif policy.checks and run.checked:
            told = f"{side.name} {run.name}: {run.checked[0]}"
            more = f" (and {len(run.checked) - 1} more)" if len(run.checked) > 1 else ""
            yield Refusal(
                "check-failed", f"{told}{more}", "record it again; wbscope check RUN has all of it"
            )
        if policy.lost_events == "refuse" and run.lost:
            told = f"{side.name} {run.name}: {run.lost[0].message}"
            yield Refusal(
                "lost-events", told, 'record with larger buffers, or lost_events = "allow"'
            )


# What is never below 0; a share and what other tools count may be.
_NEVER_NEGATIVE = ("ns", "bytes", "bytes/s", "count", "pages/s")


def check_policy(declared: Sequence[RuleMetric], policy: Policy) -> None:
    """Too few runs, a share of all of it, borders below 0: once direction and unit are known.

    Raises: UsageError.
    """
    compared = sum(one.rule.margin is not None for one in declared)
    if compared and policy.expect_runs is not None:
        n = max(policy.expect_runs - policy.drop_first, 1)
        if not _can_fail(n, smallest_p(n, n), compared, policy):
            least = f"min_runs {policy.min_runs}, {compared} metrics, alpha {policy.alpha:g}"
            raise UsageError(
                "bad-policy",
                policy.source or "policy",
                f"{n} runs a side are expected, so that no margin can fail: {least}",
                at="expect_runs",
                fix="expect_runs = 10",
            )
    for one in declared:
        if not one.is_there:
            continue
        margin, better = one.rule.margin, one.rule.better or one.metric.better
        share = None if margin is None else margin.relative
        if margin is not None and share is not None and share >= 1 and better == "higher":
            found = f"margin is {margin.text}, wanted less than 100 %"
            why = "it is better when higher, and nothing falls by more than all of it"
            raise _bad(policy, one, f"{found}: {why}", 'margin = "5%"')
        for rule in (one.rule, *one.budgets):
            for key, budget in (("budget", rule.budget), ("each_run", rule.each_run)):
                if budget is not None and _always_kept(budget, one.metric):
                    found = f"{key} is {str(budget)!r}, which every number keeps: none is below 0"
                    raise _bad(policy, one, found, f'{key} = "<= 100ms"', rule)


def check_amount(one: RuleMetric, row: Row, delta: float, policy: Policy) -> None:
    """An amount that the base does not have cannot be lost.

    Raises: UsageError.
    """
    margin, median = one.rule.margin, row.base_sample.description.median
    values = (*row.base_sample.values, *row.sample.values)
    if margin is None or margin.relative is not None or row.metric.better != "higher":
        return
    if median is not None and 0 < median <= delta and min(values, default=0.0) >= 0:
        found = f"margin is {margin.text}, wanted less than the base's median, {median:g}"
        why = f"in the unit of the metric ({row.metric.unit}): it cannot fall by more"
        raise _bad(policy, one, f"{found} {why}", 'margin = "5%"')


def never_fails(design: Design, compared: int, policy: Policy) -> Iterator[Notice]:
    """More metrics than so few runs can tell apart: one that is worse would not be found."""
    n, m = design.runs
    is_enough = min(n, m) >= policy.min_runs
    most = math.floor(policy.alpha / design.smallest_p()) if is_enough else 0
    runs = f"{n} + {m} runs"
    if design.kind == "blocks":
        runs += f", compared within {len(design.sizes)} sessions,"
    if 0 < most < compared:
        told = f"{runs} can fail at most {most} metrics, and the policy compares {compared}"
        yield Notice("too-many-metrics", f"{told}: no margin can fail")
    # A green gate where not knowing is a pass.
    least = design.smallest_p()
    if policy.inconclusive == "pass" and not _can_fail(min(n, m), least, compared, policy):
        told = f"{runs} cannot fail {compared} metrics at alpha {policy.alpha:g}, and what"
        told += " is not known counts as a pass: the margins pass whatever these runs say"
        yield Notice("cannot-fail", told)


def _can_fail(fewest: int, least: float, compared: int, policy: Policy) -> bool:
    """True when the largest change there is would fail one of so many metrics."""
    return fewest >= policy.min_runs and least * compared <= policy.alpha


def _always_kept(budget: Budget, metric: Metric) -> bool:
    if metric.unit not in _NEVER_NEGATIVE or budget.sign not in (">=", ">"):
        return False
    border = parse_quantity(metric.name, budget.text, metric.unit)
    return border < 0 or (border == 0 and budget.sign == ">=")


def _bad(
    policy: Policy, one: RuleMetric, message: str, fix: str, rule: Rule | None = None
) -> UsageError:
    where = f'[metrics."{(rule or one.rule).pattern}"]'
    return UsageError(
        "bad-policy",
        policy.source or "policy",
        f"{one.metric.name}: {message}",
        at=where if policy.source else None,
        fix=fix,
    )


_MOST_NAMED = 10
# A side of fewer tells no spread.
LEAST_RUNS = 4


@dataclass(frozen=True)
class FarRuns:
    """What stalls now and then.

    runs      their paths
    p         of so many on this side, by chance
    is_worse  so many are no chance, at the level asked for
    told      which, with their values, and against what
    """

    runs: tuple[str, ...]
    p: float
    is_worse: bool
    told: str


def runs_far_out(comparison: Comparison, name: str) -> dict[str, list[Row]]:
    """The runs of a side that are far outside of what the base has, each with the metrics.

    Of metrics whose middle did not surely move: a stall now and then moves none.
    The one with most of them first; of sides of LEAST_RUNS and more, as fewer have no spread.
    """
    side = next(one for one in comparison.sides if one.name == name)
    found: dict[str, list[Row]] = {}
    for row in comparison.of_side(name):
        fewest = min(len(row.sample.values), len(row.base_sample.values))
        if row.shift is None or row.is_sure or row.metric.better == "neutral":
            continue
        if fewest < LEAST_RUNS:
            continue
        margin = comparison.margin
        if row.shift.scale == "difference":
            margin *= abs(row.base_sample.description.median or 0.0)
        far = tail_rule(row, row.shift.scale, margin, side, level=0.0)
        for run in far.runs if far is not None else ():
            found.setdefault(run, []).append(row)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def tail_rule(
    row: Row, scale: Scale, delta: float, side: Side, level: float, design: Design | None = None
) -> FarRuns | None:
    """Look at each run, on the scale of the shift, by the margin on that scale.

    None when no run is far out. Where their number is no chance, all beyond the border
    are told, else those that are also worse than any run of the base.  Where the design
    compares runs of the same sessions, each is seen against its own one.
    """
    lower = row.metric.better == "lower"
    margin = delta
    if scale == "ratio":
        margin = math.log1p(delta) if lower else -math.log1p(-delta)
    mine, base = row.sample.values, row.base_sample.values
    blocks = (design.side, design.base) if design and design.kind == "blocks" else None
    worse = _worse(mine, scale, lower), _worse(base, scale, lower)
    tick = resolution([*mine, *base])
    if row.metric.unit == "count":
        tick = min(tick, 1.0)  # what is counted is not rounded
    found = tail_of(*worse, margin, blocks, _one_more(tick, base, scale, lower))
    is_worse = found.p <= level
    places = found.beyond if is_worse else found.far
    if not places:
        return None
    n, m = design.runs if design and blocks else (len(mine), len(base))
    unit = row.metric.unit or None
    known = [run for run in side.runs if run.value(row.metric.name) is not None]
    runs = tuple(known[place].path or known[place].name for place in places)
    values = [format_value("", unit, mine[place]) for place in places]
    named = [f"{run} ({value})" for run, value in zip(runs, values, strict=True)]
    worst = format_value("", unit, max(base) if lower else min(base))
    told = f"{len(places)} of {n} runs are outliers against {row.base}"
    told += " in their sessions" if blocks else f" (at worst {worst})"
    if is_worse:
        where, within = (" in their sessions", " within them") if blocks else ("", "")
        told = f"{len(places)} of {n} runs are outliers against most of {row.base}{where}, of which"
        told += f" {found.there} of {m} are (Fisher's exact test{within}, p {found.p:.2g})"
    more = [f"and {len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
    return FarRuns(runs, found.p, is_worse, f"{told}: {', '.join([*named[:_MOST_NAMED], *more])}")


def _one_more(tick: float, base: tuple[float, ...], scale: Scale, lower: bool) -> float:
    """A tick on the scale of the shift, from the worst of the base on."""
    if scale == "difference":
        return tick
    if lower:
        return math.log1p(tick / max(base))
    return -math.log1p(-tick / min(base)) if tick < min(base) else math.inf


def _worse(values: tuple[float, ...], scale: Scale, lower: bool) -> list[float]:
    """Larger is worse."""
    sign = 1 if lower else -1
    return [sign * (math.log(value) if scale == "ratio" else value) for value in values]


@dataclass(frozen=True)
class Plan:
    """What these runs could show; a share is planned for on the scale of logarithms.

    Of sessions that are apart it is nothing: more of them decide, not more runs.
    """

    metric: Metric
    row: Row
    scale: Scale
    delta: float
    alpha: float
    compared: int
    min_runs: int
    design: Design

    @property
    def _is_ratio(self) -> bool:
        return self.scale == "ratio"

    @property
    def _sd(self) -> float | None:
        sides = [np.array(s.values) for s in (self.row.sample, self.row.base_sample)]
        mine, theirs = (np.log(side) if self._is_ratio else side for side in sides)
        if self.design.kind == "blocks":
            return within_sd(self.design.blocks(mine.tolist(), theirs.tolist()))
        return pooled_sd(mine, theirs)

    @property
    def _margin(self) -> float:
        if not self._is_ratio:
            return self.delta
        if self.metric.better == "lower":
            return math.log1p(self.delta)
        return -math.log1p(-self.delta) if self.delta < 1 else math.inf

    def detectable(self, n: int, m: int) -> float | None:
        """With the level that Holm leaves to a single change."""
        level = self.alpha / self.compared
        if self.design.kind == "sessions":
            return None
        if self.design.kind == "blocks":
            found = detectable_within(self.design.sizes, self._sd, self._margin, level)
        else:
            found = detectable(n, m, self._sd, self._margin, level)
        if found is None or not self._is_ratio:
            return found
        return math.expm1(found) if self.metric.better == "lower" else -math.expm1(-found)

    def runs_needed(self) -> int | None:
        """For a PASS of what did not change, and for a FAIL to be possible at all."""
        level = self.alpha / self.compared
        if self.design.kind == "sessions":
            return None
        if self.design.kind == "blocks":
            # More sessions with as many runs in each.
            each = max(1, min(self.design.runs) // len(self.design.sizes))
            blocks = blocks_to_confirm(each, self._sd, self._margin, self.alpha)
            if blocks is None:
                return None
            least = max(blocks, fewest_blocks(each, level), math.ceil(self.min_runs / each))
            return least * each
        runs = runs_to_confirm(self._sd, self._margin, self.alpha)
        if runs is None:
            return None
        return max(runs, fewest_runs(level), self.min_runs)
