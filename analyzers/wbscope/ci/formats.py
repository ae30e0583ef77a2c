# SPDX-License-Identifier: Apache-2.0
"""A gate's findings for CI: GitHub, JUnit, SARIF, and how often a job ends without a verdict."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote
from xml.etree import ElementTree

from wbscope.base.system import absolute
from wbscope.base.units import counted
from wbscope.base.version import __version__
from wbscope.compare.comparison import Sample, sample_of
from wbscope.compare.gate import GateResult, Verdict
from wbscope.compare.load import expand
from wbscope.compare.pass_rate import pass_rate
from wbscope.compare.policy import Policy, matches
from wbscope.measure.files import NAMES
from wbscope.measure.metric import Metric
from wbscope.render.blocks import blocks_markdown
from wbscope.render.changes import better_text, value_text
from wbscope.render.gate import evidence_text, gate_blocks, summary_text
from wbscope.render.text import plain, printable

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


def checkout_name(path: Path) -> str:
    """Relative to $GITHUB_WORKSPACE, $CI_PROJECT_DIR or the current folder; else as it is."""
    full = absolute(path)
    for top in (os.environ.get("GITHUB_WORKSPACE"), os.environ.get("CI_PROJECT_DIR"), "."):
        if top and full.is_relative_to(folder := absolute(Path(top))):
            return full.relative_to(folder).as_posix()
    return full.as_posix()


def checkout_uri(path: Path) -> str:
    """The same as a URI reference."""
    name = quote(os.fsencode(checkout_name(path)))
    return f"file://{name}" if name.startswith("/") else name


# Verdicts that leave open what the margin asks.
_OPEN = ("INCONCLUSIVE", "WORSE")


def expected_text(result: GateResult) -> str | None:
    """One line for an open verdict, from the spread of the base; None for any other.

    It takes a second: gates of runs that are drawn from the base are judged.
    """
    if result.base is None or result.status not in _OPEN:
        return None
    # The first runs are dropped already.
    policy = replace(result.policy, drop_first=0)
    left = [one for one in result.verdicts if one.status in _OPEN and one.delta]
    methods = {one.shift.method for one in result.verdicts if one.shift is not None}
    in_turns = any(method.startswith("blocks") for method in methods)
    names = [one.metric.name for one in result.verdicts]
    rate = pass_rate(result.base, policy, names, in_turns=in_turns)
    if rate is None:
        return None
    needed = [one.runs_needed for one in left]
    told = f"expected: {rate.told()}"
    if any(one.shift is not None and one.shift.method == "sessions" for one in left):
        return f"{told}; more sessions decide, not more runs: or record both sides in turns"
    if not needed:
        return told
    if None in needed:
        return f"{told}; more than 200 runs a side would decide: make them steadier or longer"
    most = max(one for one in needed if one is not None)
    return f"{told}; with {most} runs a side each metric would pass 8 of 10 times"


# GitHub shows so many annotations of a kind for each step, and drops the others.
_MOST = 10
# So many runs are named in one of them.
_NAMED = 3
# ... and refuses a larger summary.
_MOST_BYTES = 1 << 20


def annotation_lines(result: GateResult, policy_file: Path | None = None) -> list[str]:
    """::error for what stops the job, ::warning for what is not known, ::notice in the end.

    Source: docs.github.com, "Workflow commands for GitHub Actions".
    """
    told = findings(result, policy_file)
    lines = []
    for kind in ("error", "warning"):
        found = [_annotation(kind, one, policy_file) for one in told if one.grade == kind]
        if kind == "warning":
            found += _notices(result)
        if len(found) > _MOST:
            rest = f"and {len(found) - _MOST + 1} more: see the summary of this step"
            found = [*found[: _MOST - 1], _command(kind, {"title": "wbscope gate"}, rest)]
        lines += found
    return [*lines, _command("notice", {"title": "wbscope gate"}, summary_text(result))]


def step_summary(result: GateResult, expected: str | None = None) -> str:
    """The verdict as Markdown; without the table where GitHub would refuse it for its size."""
    text = f"#{blocks_markdown(gate_blocks(result))}"  # a section of the summary
    if expected is not None:
        text += f"\n{plain(expected)}\n"
    if len(text.encode()) <= _MOST_BYTES:
        return text
    return f"## wbscope gate: {plain(summary_text(result))}\n\nThe table is too large for here.\n"


def _notices(result: GateResult) -> list[str]:
    """What holds for many runs is one line, that ten lines are not all of one kind."""
    runs: dict[tuple[str, str], list[str]] = {}
    for notice in result.warnings:
        runs.setdefault((notice.slug, notice.message), []).append(notice.run or "")
    lines = []
    for (slug, message), names in runs.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        told = f"{', '.join(names[:_NAMED])}{more}: {message}"
        lines.append(_command("warning", {"title": slug}, told))
    return lines


def _annotation(kind: str, finding: Finding, policy_file: Path | None) -> str:
    where = {}
    if policy_file is not None and finding.line is not None:
        where = {"file": checkout_name(policy_file), "line": str(finding.line)}
    title = f"{finding.status}: {finding.name}"
    return _command(kind, {**where, "title": title}, "\n".join([finding.why, *finding.details]))


def _command(kind: str, properties: dict[str, str], message: str) -> str:
    """One line: what would end it or begin another one is escaped."""
    told = ",".join(f"{key}={_escaped(value, True)}" for key, value in properties.items())
    return f"::{kind} {told}::{_escaped(message, False)}"


def _escaped(text: str, is_property: bool) -> str:
    text = "\n".join(printable(line) for line in text.split("\n"))
    signs = {"%": "%25", "\r": "%0D", "\n": "%0A"}
    if is_property:
        signs |= {":": "%3A", ",": "%2C"}
    return "".join(signs.get(char, char) for char in text)


# What XML 1.0 cannot hold, not even as &#...;
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(result: GateResult, policy_file: Path | None = None) -> str:
    """FAIL and WORSE are failures, INCONCLUSIVE is skipped, a refusal is an error.

    `inconclusive` and `worse` of the policy make these a failure or a pass.

    Source: junit-10.xsd of Jenkins' xUnit plugin.
    """
    told = findings(result, policy_file)
    seen = Counter[str]()
    cases = []
    for finding in told:
        seen[finding.name] += 1
        cases.append(_case(finding, seen[finding.name]))
    counts = {
        "tests": str(len(cases)),
        "failures": str(_count(cases, "failure")),
        "errors": str(_count(cases, "error")),
    }
    top = ElementTree.Element("testsuites", {"name": "wbscope", **counts})
    skipped = {"skipped": str(_count(cases, "skipped"))}
    suite = ElementTree.SubElement(top, "testsuite", {"name": "wbscope gate", **counts, **skipped})
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(result):
        ElementTree.SubElement(properties, "property", {"name": name, "value": _xml(value)})
    suite.extend(cases)
    warnings = [f"{notice.run}: {notice.message}" for notice in result.warnings]
    ElementTree.SubElement(suite, "system-out").text = _xml(summary_text(result))
    if warnings:
        ElementTree.SubElement(suite, "system-err").text = _xml("\n".join(warnings))
    ElementTree.indent(top)
    text = ElementTree.tostring(top, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _case(finding: Finding, number: int) -> ElementTree.Element:
    """Names are told apart: one reason may hold for many runs."""
    kind = "refused" if finding.verdict is None else finding.name.partition(".")[0]
    name = finding.name if number == 1 else f"{finding.name} ({number})"
    case = ElementTree.Element(
        "testcase", {"classname": _xml(f"wbscope.gate.{kind}"), "name": _xml(name)}
    )
    text = "\n".join([finding.why, *finding.details])
    tag = _tag(finding)
    if tag is None:
        ElementTree.SubElement(case, "system-out").text = _xml(text)
        return case
    attributes = {"type": _type(finding), "message": _xml(finding.why)}
    ElementTree.SubElement(case, tag, attributes).text = _xml(text)
    return case


def _tag(finding: Finding) -> str | None:
    if finding.status == "REFUSED":
        return "error"
    if finding.status == "WORSE" and finding.grade == "warning":
        return "failure"  # it is worse, and nobody looks at what was skipped
    return {"error": "failure", "warning": "skipped", "none": None}[finding.grade]


def _type(finding: Finding) -> str:
    if finding.verdict is None:
        return finding.name
    return "regression" if finding.status == "FAIL" else finding.status.lower()


def _properties(result: GateResult) -> Sequence[tuple[str, str]]:
    told: list[tuple[str, str]] = [("verdict", result.status), ("counted", result.counted)]
    told.append(("exit_code", str(result.exit_code())))
    told.append((result.side.name, ", ".join(run.name for run in result.side.runs)))
    if result.base is not None:
        told.append((result.base.name, ", ".join(run.name for run in result.base.runs)))
    return told


def _count(cases: Sequence[ElementTree.Element], tag: str) -> int:
    return sum(case.find(tag) is not None for case in cases)


def _xml(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)


_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
# Of a run folder, what says where and when it was recorded; else what there is.
_FILES = ("meta.json", "trace.dat", "trace.txt")
_TEXT = (".json", ".txt")


def sarif_json(
    result: GateResult, policy_file: Path | None = None, runs: Sequence[str] = ()
) -> str:
    """One result for each metric that does not pass; what passes is a rule without a result.

    A result is where the policy declares the metric; without a policy, where the first
    of `runs`, what was judged, was recorded.  FAIL and a refused metric have level
    error, WORSE has warning; INCONCLUSIVE has kind "open", which the standard keeps for
    "not enough to decide".  Refused runs and warnings are notifications of the tool.

    Source: OASIS SARIF 2.1.0, 3.27 result, 3.20 invocation, 3.58 notification.
    """
    told = findings(result, policy_file)
    judged = [(finding, finding.verdict) for finding in told if finding.verdict is not None]
    rules = [_rule(verdict.metric) for _, verdict in judged]
    recorded = _recorded(runs) if policy_file is None else {}
    results = [
        {
            **_result(finding, index),
            **(recorded if policy_file is None else _location(policy_file, finding.line or 1)),
            "properties": _numbers(finding, verdict),
        }
        for index, (finding, verdict) in enumerate(judged)
        if finding.status != "PASS"
    ]
    driver = {
        "name": "wbscope",
        "version": __version__,
        "rules": rules,
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "wbscope/gate/"},
        "columnKind": "utf16CodeUnits",
        "invocations": [_invocation(result, told)],
        "results": results,
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _rule(metric: Metric) -> dict[str, Any]:
    return {
        "id": metric.name,
        "shortDescription": {"text": metric.meaning or metric.name},
        "help": {"text": f"{metric.name} ({metric.unit or 'number'}): better is {metric.better}."},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["performance"], "unit": metric.unit, "better": metric.better},
    }


def _result(finding: Finding, index: int) -> dict[str, Any]:
    text = "\n".join([f"{finding.name}: {finding.why}", *finding.details])
    # A level other than none is for kind fail only (3.27.10).
    level = "error" if finding.grade == "error" else "none"
    if finding.status == "WORSE" and level == "none":
        level = "warning"
    return {
        "ruleId": finding.name,
        "ruleIndex": index,
        "kind": "open" if level == "none" else "fail",
        "level": level,
        "message": {"text": text},
        "partialFingerprints": {
            "wbscopeMetric/v1": hashlib.sha256(finding.name.encode()).hexdigest()[:16]
        },
    }


def _recorded(runs: Sequence[str]) -> dict[str, Any]:
    """A file of the first run that will be there tomorrow: text, if there is one."""
    given = next((run for one in runs for run in expand(one)), None)
    if given is None:
        return {}
    inside = (Path(given) / name for name in (*_FILES, *NAMES))
    file = next((file for file in inside if file.is_file()), Path(given))
    # A trace or a database has no lines (3.30.4).
    return _location(file, 1 if file.suffix in _TEXT else None)


def _location(file: Path, line: int | None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": checkout_uri(file)}}
    if line is not None:
        place["region"] = {"startLine": line}
    return {"locations": [{"physicalLocation": place}]}


def _numbers(finding: Finding, verdict: Verdict) -> dict[str, Any]:
    told: dict[str, Any] = {"verdict": verdict.status, "unit": verdict.metric.unit}
    told |= {"medianBefore": finding.before, "medianNow": finding.now, "runsNow": finding.runs}
    if verdict.budgets:
        told["budgets"] = list(verdict.budgets)
    if (row := verdict.row) is not None:
        told["runsBefore"] = len(row.base_sample.values)
    if (shift := verdict.shift) is not None:
        told |= {"scale": shift.scale, "shift": shift.estimate}
        told |= {"shiftLow": shift.low, "shiftHigh": shift.high}
    if verdict.p_adjusted is not None:
        told["pAdjusted"] = verdict.p_adjusted
    return told


def _invocation(result: GateResult, told: list[Finding]) -> dict[str, Any]:
    notifications = [
        {
            "level": "error",
            "descriptor": {"id": finding.name},
            "message": {"text": "\n".join([finding.why, *finding.details])},
        }
        for finding in told
        if finding.verdict is None
    ]
    notifications += [
        {
            "level": "warning",
            "descriptor": {"id": notice.slug},
            "message": {"text": f"{notice.run}: {notice.message}"},
        }
        for notice in result.warnings
    ]
    return {
        "executionSuccessful": not result.refusals,
        "exitCode": result.exit_code(),
        "exitCodeDescription": summary_text(result),
        "toolExecutionNotifications": notifications,
    }
