# SPDX-License-Identifier: Apache-2.0
"""What the names in a policy mean: each rule with the metrics of these runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import UsageError
from wbscope.base.result import Notice
from wbscope.compare.nearmetrics import near_metrics
from wbscope.compare.policy import Policy, Rule, matches, wanted_by
from wbscope.measure import TOOLS
from wbscope.measure.metric import Metric, split_name

__all__ = ["Declared", "declared_by"]


@dataclass(frozen=True)
class Declared:
    """A rule and one metric that it is about, which no run may have."""

    rule: Rule
    metric: Metric
    is_there: bool
    budgets: tuple[Rule, ...] = ()  # of further rules for the same metric


def declared_by(
    policy: Policy, metrics: Sequence[Metric], families: Iterable[str]
) -> tuple[list[Declared], list[Notice]]:
    """Each metric once, and what to know about the choice.

    Of several rules for a metric, one with its whole name goes before a pattern;
    bounds of rules that are as exact as each other all hold.

    Raises: UsageError for a name that nothing can have, and for two margins.
    """
    by_name = {metric.name: metric for metric in metrics}
    found: dict[str, Declared] = {}
    told: list[Notice] = []
    possible = list(families)
    for rule in sorted(policy.rules, key=lambda rule: "*" in rule.pattern):
        if "*" in rule.pattern:
            declared = _by_pattern(rule, by_name, possible, told)
            declared = [one for one in declared if not _is_exact(found.get(one.metric.name))]
        else:
            declared = [_by_name(rule, by_name, possible, told)]
        for one in declared:
            earlier = found.get(one.metric.name)
            found[one.metric.name] = one if earlier is None else _both(earlier, one)
    rules = list(policy.rules)
    return sorted(found.values(), key=lambda one: rules.index(one.rule)), told


def _is_exact(one: Declared | None) -> bool:
    return one is not None and "*" not in one.rule.pattern


def _both(first: Declared, second: Declared) -> Declared:
    """A margin and budgets, or budgets; two margins contradict each other."""
    if first.rule.margin is not None and second.rule.margin is not None:
        raise UsageError(
            "declared-twice",
            first.metric.name,
            f"has a margin from {first.rule.pattern} and one from {second.rule.pattern}",
            fix="leave one of the two out",
        )
    if second.rule.margin is not None:
        first, second = second, first
    return replace(first, budgets=(*first.budgets, second.rule, *second.budgets))


def _by_name(
    rule: Rule, by_name: dict[str, Metric], possible: list[str], told: list[Notice]
) -> Declared:
    names = matches(rule.pattern, by_name)
    if len(names) > 1:
        raise UsageError(
            "ambiguous-metric",
            rule.pattern,
            f"is {len(names)} metrics",
            have=", ".join(names),
            fix=f'[metrics."{names[0]}"]',
        )
    if not names:
        return _absent(rule, possible, list(by_name))
    metric = by_name[names[0]]
    if rule.better is not None and metric.better not in ("neutral", rule.better):
        turned = f"{metric.name} is better when {metric.better}; the policy says {rule.better}"
        told.append(Notice("direction-turned", turned))
    return Declared(rule, metric, True)


def _by_pattern(
    rule: Rule, by_name: dict[str, Metric], possible: list[str], told: list[Notice]
) -> list[Declared]:
    """Those with a direction, where a margin needs one."""
    metrics = [by_name[name] for name in matches(rule.pattern, by_name)]
    if not metrics:
        return [_absent(rule, possible, list(by_name))]
    if rule.better is not None:
        for metric in metrics:
            if metric.better not in ("neutral", rule.better):
                raise UsageError(
                    "direction-turned",
                    rule.pattern,
                    f"means {metric.name} too, which is better when {metric.better}",
                    fix=f'[metrics."NAME"] with better = "{rule.better}", for each that is meant',
                )
        return [Declared(rule, metric, True) for metric in metrics]
    neutral = [metric.name for metric in metrics if metric.better == "neutral"]
    if rule.margin is None or not neutral:
        return [Declared(rule, metric, True) for metric in metrics]
    if len(neutral) == len(metrics):
        raise UsageError(
            "no-direction",
            rule.pattern,
            "means only metrics that are better neither when lower nor when higher",
            have=", ".join(neutral),
            fix='better = "lower"    # or "higher", if you know that it is so here',
        )
    text = f"{rule.pattern} leaves out what has no direction: {', '.join(neutral)}"
    told.append(Notice("no-direction", text))
    return [Declared(rule, metric, True) for metric in metrics if metric.better != "neutral"]


def _absent(rule: Rule, possible: list[str], there: list[str]) -> Declared:
    """No run has it: told as refused, unless nothing ever could have it."""
    if not _could_be(rule, possible, there):
        close = near_metrics(rule.pattern, [*there, *possible])
        fix: str = "wbscope queries --verbose"
        if close and rule.is_alone:
            fix = Phrase(Argument("budget", f"{close[0]} {rule.budget}"))
        elif close:
            fix = f'[metrics."{close[0]}"]'
        raise UsageError(
            "unknown-metric",
            rule.pattern,
            "is no metric",
            have=", ".join(close) or None,
            fix=fix,
        )
    meaning = "a number that none of these runs has"
    return Declared(rule, Metric(rule.pattern, "", "neutral", meaning, "the policy"), False)


def _could_be(rule: Rule, possible: list[str], there: list[str]) -> bool:
    """A query's number, or one of another tool: what these print is theirs to name."""
    tool, dot, _ = split_name(rule.pattern)[0].partition(".")
    if dot and tool in {*TOOLS, *(name.partition(".")[0] for name in _of_tools(there, possible))}:
        return True
    return any(map(wanted_by([rule]), possible))


def _of_tools(there: list[str], possible: list[str]) -> Iterator[str]:
    """Metrics of these runs that no query gives."""
    queries = {family.partition(".")[0] for family in possible}
    return (name for name in there if name.partition(".")[0] not in queries)
