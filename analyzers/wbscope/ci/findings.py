# SPDX-License-Identifier: Apache-2.0
"""What a gate has to tell, line by line: the same for every format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wbscope.compare.comparison import sample_of
from wbscope.compare.gate import GateResult, Verdict
from wbscope.compare.policy import Policy, matches
from wbscope.render.printable import printable
from wbscope.render.units import format_value
from wbscope.stats.shift import Shift

__all__ = ["Finding", "Grade", "change_text", "findings", "headline"]

# What it means for the CI job: stop it, look at it, or nothing.
Grade = Literal["error", "warning", "none"]


@dataclass(frozen=True)
class Finding:
    """One declared metric, or one reason why nothing was judged.

    name     the metric, or the slug of the refusal
    status   the verdict, as `gate` prints it
    grade    what it means for the job, with `inconclusive` of the policy
    why      one sentence without numbers of its own
    details  numbers, a line each
    line     where the policy declares it; None when the policy is not a file
    before   median of the base in the metric's unit, None where nothing is compared
    now      median of what is judged
    verdict  None for a refusal
    """

    name: str
    status: str
    grade: Grade
    why: str
    details: tuple[str, ...]
    line: int | None
    verdict: Verdict | None
    before: float | None = None
    now: float | None = None


def findings(result: GateResult, policy_file: Path | None = None) -> list[Finding]:
    """In the order of the policy; refusals first."""
    lines = _lines(policy_file)
    refused = [
        Finding(
            name=refusal.slug,
            status="REFUSED",
            grade="error",
            why=printable(refusal.message),
            details=(printable(f"fix: {refusal.fix}"),),
            line=None if policy_file is None else 1,
            verdict=None,
        )
        for refusal in result.refusals
    ]
    return [*refused, *(_judged(verdict, result, lines) for verdict in result.verdicts)]


def headline(result: GateResult) -> str:
    """The whole verdict in one line."""
    told = [f"{result.count(status)} {status}" for status in ("FAIL", "INCONCLUSIVE", "PASS")]
    runs = f"{len(result.side.runs)} runs of {result.side.name}"
    if result.base is not None:
        runs += f" against {len(result.base.runs)} of {result.base.name}"
    if result.refusals:
        return printable(f"{result.status}: {runs}: nothing was judged")
    return printable(f"{result.status}: {', '.join(told)}; {runs}")


def change_text(shift: Shift | None, unit: str) -> str:
    """+12.3 % (95 % interval +4.5 % to +20.1 %), or a difference in the metric's unit."""
    if shift is None:
        return "-"
    text = _step(shift, shift.estimate, unit)
    if shift.low is None or shift.high is None:
        return text
    return f"{text} ({_step(shift, shift.low, unit)} to {_step(shift, shift.high, unit)})"


def _step(shift: Shift, value: float, unit: str) -> str:
    if shift.scale == "ratio":
        return f"{(value - 1) * 100:+.1f} %"
    return _signed(value, unit)


def _signed(value: float, unit: str) -> str:
    text = format_value("", unit or None, value)
    return text if text.startswith("-") else f"+{text}"


def _judged(verdict: Verdict, result: GateResult, lines: dict[str, int]) -> Finding:
    row = verdict.row
    now = sample_of(verdict.metric.name, result.side) if row is None else row.sample
    return Finding(
        name=verdict.metric.name,
        status=verdict.status,
        grade=_grade(verdict, result.policy),
        why=printable("; ".join(verdict.reasons)),
        details=tuple(printable(line) for line in _details(verdict, result)),
        line=_line_of(verdict.metric.name, result.policy, lines),
        verdict=verdict,
        before=None if row is None else row.base_sample.description.median,
        now=now.description.median,
    )


def _grade(verdict: Verdict, policy: Policy) -> Grade:
    if verdict.status == "INCONCLUSIVE":
        mapped: dict[str, Grade] = {"pass": "none", "fail": "error"}
        return mapped.get(policy.inconclusive, "warning")
    return "none" if verdict.status == "PASS" else "error"


def _details(verdict: Verdict, result: GateResult) -> Iterator[str]:
    metric = verdict.metric
    if (row := verdict.row) is not None:
        for sample, side in ((row.base_sample, row.base), (row.sample, row.side)):
            median = format_value("", metric.unit or None, sample.description.median)
            yield f"{side}: median {median} of {len(sample.values)} runs"
    else:
        sample = sample_of(metric.name, result.side)
        median = format_value("", metric.unit or None, sample.description.median)
        yield f"{result.side.name}: median {median} of {len(sample.values)} runs"
    if verdict.shift is not None:
        confidence = f"{1 - result.policy.alpha:.0%}"
        yield f"change: {change_text(verdict.shift, metric.unit)}, {confidence} interval"
        yield f"margin: {verdict.margin}; better is {metric.better}"
    if verdict.p_adjusted is not None:
        yield f"p: {verdict.p_adjusted:.4f}, Holm over {result.compared}"
    if verdict.detectable is not None:
        ratio = verdict.shift is not None and verdict.shift.scale == "ratio"
        least = f"{verdict.detectable:.1%}" if ratio else _signed(verdict.detectable, metric.unit)
        yield f"smallest worsening that these runs would find 4 times in 5: {least}"
    if verdict.status == "INCONCLUSIVE" and verdict.runs_needed is not None:
        yield f"runs a side to tell: about {verdict.runs_needed}"
    for budget in verdict.budgets:
        yield f"budget: {budget}"
    if metric.meaning:
        yield f"meaning: {metric.meaning}"


def _lines(policy_file: Path | None) -> dict[str, int]:
    """Each [metrics."..."] of the policy and the line it stands on."""
    if policy_file is None:
        return {}
    table = re.compile(
        r"""\s*\[\s*metrics\s*\.\s*(?:"(?P<a>[^"]*)"|'(?P<b>[^']*)'|(?P<c>[\w-]+))"""
    )
    found: dict[str, int] = {}
    text = policy_file.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        if match := table.match(line):
            found.setdefault(match["a"] or match["b"] or match["c"] or "", number)
    return {"": 1} | found


def _line_of(name: str, policy: Policy, lines: dict[str, int]) -> int | None:
    for rule in policy.rules:
        if rule.pattern == name or matches(rule.pattern, [name]):
            return lines.get(rule.pattern, lines.get(""))
    return lines.get("")
