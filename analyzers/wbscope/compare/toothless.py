# SPDX-License-Identifier: Apache-2.0
"""Policies that can never fail, whatever the runs say: a mistake, and a green one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from wbscope.base.errors import UsageError
from wbscope.base.result import Notice
from wbscope.base.units import parse_quantity
from wbscope.compare.comparison import Row
from wbscope.compare.declared import Declared
from wbscope.compare.policy import Budget, Policy, Rule
from wbscope.compare.sessions import Design
from wbscope.measure.metric import Metric
from wbscope.stats.ranktest import smallest_p

__all__ = ["check_amount", "check_policy", "never_fails"]

# What is never below 0; a share and what other tools count may be.
_NEVER_NEGATIVE = ("ns", "bytes", "bytes/s", "count", "pages/s")


def check_policy(declared: Sequence[Declared], policy: Policy) -> None:
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


def check_amount(one: Declared, row: Row, delta: float, policy: Policy) -> None:
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
    policy: Policy, one: Declared, message: str, fix: str, rule: Rule | None = None
) -> UsageError:
    where = f'[metrics."{(rule or one.rule).pattern}"]'
    return UsageError(
        "bad-policy",
        policy.source or "policy",
        f"{one.metric.name}: {message}",
        at=where if policy.source else None,
        fix=fix,
    )
