# SPDX-License-Identifier: Apache-2.0
"""SARIF 2.1.0: what GitHub code scanning and other viewers of findings read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wbscope.base.version import __version__
from wbscope.ci.findings import Finding, findings
from wbscope.ci.place import checkout_uri
from wbscope.compare.gate import GateResult, Verdict
from wbscope.compare.load import expand
from wbscope.measure.files import NAMES
from wbscope.measure.metric import Metric
from wbscope.render.gatepage import summary_text

__all__ = ["sarif_json"]

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
