# SPDX-License-Identifier: Apache-2.0
"""GitHub Actions: annotations as workflow commands, and Markdown for the step's summary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from wbscope.ci.findings import Finding, change_text, findings, headline
from wbscope.ci.place import checkout_name
from wbscope.compare.gate import GateResult
from wbscope.render.printable import printable
from wbscope.render.units import format_value

__all__ = ["annotation_lines", "summary_markdown"]

# GitHub shows so many annotations of a kind for each step, and drops the others.
_MOST = 10
# GitHub refuses a summary of more than 1 MiB.
_MOST_ROWS = 500
_SIGNS = {"FAIL": "❌", "PASS": "✅", "INCONCLUSIVE": "❔", "REFUSED": "⛔"}
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#&~@])")


def annotation_lines(result: GateResult, policy_file: Path | None = None) -> list[str]:
    """::error for what stops the job, ::warning for what is not known, ::notice in the end.

    Source: docs.github.com, "Workflow commands for GitHub Actions".
    """
    told = findings(result, policy_file)
    lines = []
    for kind in ("error", "warning"):
        found = [_annotation(kind, one, policy_file) for one in told if one.grade == kind]
        if kind == "warning":
            found += [
                _command(kind, {"title": notice.slug}, f"{notice.run}: {notice.message}")
                for notice in result.warnings
            ]
        if len(found) > _MOST:
            rest = f"and {len(found) - _MOST + 1} more: see the summary of this step"
            found = [*found[: _MOST - 1], _command(kind, {"title": "wbscope gate"}, rest)]
        lines += found
    return [*lines, _command("notice", {"title": "wbscope gate"}, headline(result))]


def summary_markdown(result: GateResult, policy_file: Path | None = None) -> str:
    """For $GITHUB_STEP_SUMMARY, a comment or a wiki: the verdict, then each metric."""
    told = findings(result, policy_file)
    lines = [f"## {_SIGNS[result.status]} wbscope gate: {_plain(headline(result))}", ""]
    if result.refusals:
        lines += ["Nothing was judged:", ""]
        lines += [
            f"- **{_plain(one.name)}**: {_plain(one.why)} ({_plain(one.details[0])})"
            for one in told
            if one.verdict is None
        ]
        lines.append("")
    rows = [one for one in told if one.verdict is not None]
    if rows:
        lines += _table(rows[:_MOST_ROWS])
        if len(rows) > _MOST_ROWS:
            lines += ["", f"and {len(rows) - _MOST_ROWS} more metrics"]
        lines += ["", *_explained(rows[:_MOST_ROWS])]
    if result.warnings:
        lines.append("")
    for notice in result.warnings[:_MOST_ROWS]:
        lines.append(f"> **{_plain(notice.slug)}** {_plain(f'{notice.run}: {notice.message}')}  ")
    if result.unknown:
        lines += ["", f"Not known of these runs: {_plain(', '.join(result.unknown))}."]
    return "\n".join(lines).rstrip("\n") + "\n"


def _table(rows: list[Finding]) -> Iterator[str]:
    yield "| | metric | before | now | change | margin | p | why |"
    yield "|---|---|---:|---:|---:|---:|---:|---|"
    # What needs a look comes first; else the order of the policy.
    order = {"FAIL": 0, "INCONCLUSIVE": 1, "PASS": 2}
    for one in sorted(rows, key=lambda row: order.get(row.status, 0)):
        if (verdict := one.verdict) is None:
            continue
        unit = verdict.metric.unit
        cells = [format_value("", unit or None, median) for median in (one.before, one.now)]
        cells.append(change_text(verdict.shift, unit))
        p = "-" if verdict.p_adjusted is None else f"{verdict.p_adjusted:.4f}"
        told = [one.name, *cells, verdict.margin or "-", p, one.why]
        yield f"| {_SIGNS[one.status]} | {' | '.join(_plain(cell) for cell in told)} |"


def _explained(rows: list[Finding]) -> Iterator[str]:
    """Folded away: what each metric means, with all numbers."""
    yield "<details><summary>What these metrics mean, and all numbers</summary>"
    yield ""
    for one in rows:
        yield f"- **{_plain(one.name)}** {one.status}: {_plain('; '.join(one.details))}"
    yield ""
    yield "</details>"


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


def _plain(text: str) -> str:
    """What Markdown would read as markup, and a name that GitHub would call, is text."""
    return _MARKUP.sub(r"\\\1", printable(text))
