# SPDX-License-Identifier: Apache-2.0
"""GitHub Actions: annotations as workflow commands, and the summary of the step."""

from __future__ import annotations

from pathlib import Path

from wbscope.ci.findings import Finding, findings
from wbscope.ci.place import checkout_name
from wbscope.compare.gate import GateResult
from wbscope.render.gatepage import gate_markdown, summary_text
from wbscope.render.markdown import plain
from wbscope.render.printable import printable

__all__ = ["annotation_lines", "step_summary"]

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
    text = gate_markdown(result)
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
