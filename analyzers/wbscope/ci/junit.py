# SPDX-License-Identifier: Apache-2.0
"""JUnit XML: a test case for each metric; Jenkins, GitLab and many others show it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from wbscope.ci.findings import Finding, findings
from wbscope.compare.gate import GateResult
from wbscope.render.gatepage import summary_text

__all__ = ["junit_xml"]

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
