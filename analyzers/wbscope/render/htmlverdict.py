# SPDX-License-Identifier: Apache-2.0
"""The verdict of a run for a page: sentences, how sure they are, commands, what to change."""

from __future__ import annotations

import re
from typing import Any

from wbscope.base.units import format_value
from wbscope.explain.remedy import trial_of, undo_of
from wbscope.explain.verdict import Verdict
from wbscope.library.finding import Advice, Finding
from wbscope.render.htmltable import open_command
from wbscope.render.messages import warning_text
from wbscope.render.printable import printable
from wbscope.render.runpage import RunPage
from wbscope.render.verdicttext import commands_of, head_line

__all__ = ["verdict_of_page"]

# Severity is told by a word and a shape; colour comes on top.
_SHAPES = {
    "severe": "M5 0h6l5 5v6l-5 5H5l-5-5V5z",
    "warning": "M8 1l8 14H0z",
    "note": "M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1z",
    "ok": "M1 9l3-3 3 3 6-7 3 2.5L7 15z",
}
_SURE = {
    "measured": "measured",
    "inferred": "inferred: the events do not show the cause itself",
    "cannot tell": "cannot tell: what would show the cause was not recorded",
}
# A page has room for more than a terminal; nobody reads hundreds.
_MOST = 30


def verdict_of_page(page: RunPage) -> dict[str, Any]:
    """Texts for the template."""
    verdict = page.report.verdict
    told = (*verdict.findings[:_MOST], *verdict.facts)
    left_out = len(verdict.findings) + len(verdict.facts) - len(told)
    return {
        "name": printable(page.name),
        "path": printable(verdict.run),
        "title": printable(verdict.title),
        # No line ends between a number and its unit.
        "facts": re.sub(r"(?<=\d) (?=\w)", "\N{NO-BREAK SPACE}", printable(head_line(verdict))),
        "part": _part(verdict),
        "doubts": [warning_text(notice) for notice in verdict.warnings],
        "findings": [_finding(one, verdict, one is verdict.first) for one in told],
        "left_out": f"{left_out} more findings:" if left_out else "",
        "all": printable(verdict.command("query", "findings")),
    }


def _part(verdict: Verdict) -> str:
    if verdict.part_ns is None:
        return ""
    start, end = (format_value("ts", "ns", ns) for ns in verdict.part_ns)
    return f"Only from {start} to {end} of the run."


def _finding(one: Finding, verdict: Verdict, is_first: bool) -> dict[str, Any]:
    is_fact = one.severity == "fact"
    span = None
    if one.first_ts is not None and one.last_ts is not None:
        span = (one.first_ts - verdict.start_ns, one.last_ts - verdict.start_ns)
    about = "" if is_fact else _SURE.get(one.confidence, one.confidence)
    if one.cost_task_ns:
        about += f" | {format_value('dur', 'ns', one.cost_task_ns)} of tasks' time"
    if not is_fact:
        about += f" | rule {one.id}"
    return {
        "severity": one.severity,
        "shape": _SHAPES.get(one.severity, ""),
        "text": printable(one.text),
        "about": printable(about),
        "is_first": is_first,
        "span": span,
        "when": "" if span is None else _when(span),
        "open": "" if span is None else printable(open_command(verdict.run, *span)),
        "commands": [printable(text) for text in commands_of(one, verdict)],
        "advice": None if one.advice is None else _advice(one, one.advice, verdict),
    }


def _when(span: tuple[int, int]) -> str:
    start, end = (format_value("dur", "ns", ns) for ns in span)
    return f"{start} to {end}"


def _advice(one: Finding, advice: Advice, verdict: Verdict) -> dict[str, Any]:
    return {
        "text": printable(advice.text),
        "settings": [printable(f"{knob} = {value}") for knob, value in advice.settings],
        "now": [printable(text) for text in advice.now],
        "costs": printable(advice.costs),
        "expect": printable(advice.expect or "not predicted"),
        "trial": [printable(text) for text in trial_of(one, verdict.run)],
        "undo": [printable(text) for text in undo_of(one)],
    }
