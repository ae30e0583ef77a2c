# SPDX-License-Identifier: Apache-2.0
"""What a gate has to tell, line by line: the same for every format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wbscope.base.units import counted
from wbscope.compare.comparison import Sample, sample_of
from wbscope.compare.gate import GateResult, Verdict
from wbscope.compare.policy import Policy, matches
from wbscope.render.changes import better_text, value_text
from wbscope.render.gatepage import evidence_text
from wbscope.render.printable import printable

__all__ = ["Finding", "Grade", "findings"]

# What it means for the CI job: stop it, look at it, or nothing.
Grade = Literal["error", "warning", "none"]


@dataclass(frozen=True)
class Finding:
    """One declared metric, or one reason why nothing was judged.

    name     the metric, or the slug of the refusal
    status   the verdict, as `gate` prints it
    grade    what it means for the job, with `inconclusive` and `worse` of the policy
    why      one sentence without numbers of its own
    details  numbers, a line each
    line     where the policy declares it; None when the policy is not a file
    before   median of the base in the metric's unit, None where nothing is compared
    now      median of what is judged, of so many runs
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
    runs: int = 0


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


def _judged(verdict: Verdict, result: GateResult, lines: dict[str, int]) -> Finding:
    row = verdict.row
    now = sample_of(verdict.metric.name, result.side) if row is None else row.sample
    return Finding(
        name=verdict.metric.name,
        status=verdict.status,
        grade=_grade(verdict, result.policy),
        why=printable("; ".join(verdict.reasons)),
        details=tuple(printable(line) for line in _details(verdict, now, result)),
        line=_line_of(verdict.metric.name, result.policy, lines),
        verdict=verdict,
        before=None if row is None else row.base_sample.description.median,
        now=now.description.median,
        runs=len(now.values),
    )


def _grade(verdict: Verdict, policy: Policy) -> Grade:
    grades: dict[str, Grade] = {
        "pass": "none",
        "fail": "error",
        "PASS": "none",
        "INCONCLUSIVE": "warning",
        "WORSE": "warning",
    }
    return grades.get(policy.counted(verdict.status), "error")


def _details(verdict: Verdict, now: Sample, result: GateResult) -> Iterator[str]:
    metric = verdict.metric
    if verdict.row is None:
        median = value_text(metric, now.description.median)
        yield f"{result.side.name} {median} (median of {counted(len(now.values), 'run')})"
    yield from evidence_text(verdict)
    if verdict.p_adjusted is not None:
        yield f"adjusted for {counted(result.compared, 'metric')} (Holm)"
    yield from (f"budget: {budget}" for budget in verdict.budgets)
    yield f"{metric.meaning} ({better_text(metric)})"


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
