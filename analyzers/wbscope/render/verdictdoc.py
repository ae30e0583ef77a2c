# SPDX-License-Identifier: Apache-2.0
"""The verdict of a run as JSON and as Markdown."""

from __future__ import annotations

from typing import Any

from wbscope.explain.remedy import trial_of, undo_of
from wbscope.explain.story import Story
from wbscope.explain.verdict import Verdict
from wbscope.library.finding import Finding
from wbscope.render.jsondoc import document, notices
from wbscope.render.printable import printable
from wbscope.render.verdicttext import commands_of, head_line

__all__ = ["explain_json", "explain_markdown", "finding_record", "story_json"]

_UNITS = {"cost_task_ns": "ns", "first_ns": "ns", "last_ns": "ns"}


def explain_json(verdict: Verdict) -> str:
    """wbscope.explain/1: a row a finding, its facts as numbers, its evidence with ids."""
    head: dict[str, Any] = {"run": verdict.run, "is_whole": verdict.is_whole}
    if verdict.part_ns is not None:
        head["part_ns"] = list(verdict.part_ns)
    rows = [finding_record(one, verdict) for one in (*verdict.findings, *verdict.facts)]
    body = {"units": _UNITS, "rows": rows, "warnings": notices(verdict.warnings)}
    return document("explain", head, body)


def finding_record(one: Finding, verdict: Verdict) -> dict[str, Any]:
    """One finding; times count from the run's first event."""
    record: dict[str, Any] = {
        "id": one.id,
        "title": one.title,
        "severity": one.severity,
        "confidence": one.confidence,
        "cost_task_ns": one.cost_task_ns,
        "text": one.text,
        "first_ns": None if one.first_ts is None else one.first_ts - verdict.start_ns,
        "last_ns": None if one.last_ts is None else one.last_ts - verdict.start_ns,
        "facts": dict(one.facts),
        "told": list(one.told),
        "evidence": [
            {
                "id": f"{one.id}/{number}",
                "query": proof.query,
                "command": proof.command(verdict.run),
                "facts": [check.fact for check in proof.checks],
            }
            for number, proof in enumerate(one.evidence, 1)
        ],
        "advice": None,
    }
    if one.advice is not None:
        record["advice"] = {
            "text": one.advice.text,
            "settings": [{"knob": k, "value": v} for k, v in one.advice.settings],
            "now": list(one.advice.now),
            "costs": one.advice.costs or None,
            "expect": one.advice.expect or None,
            "try": list(trial_of(one, verdict.run)),
            "undo": list(undo_of(one)),
        }
    return record


def explain_markdown(verdict: Verdict) -> str:
    """For a bug report: headings, sentences, commands in blocks."""
    lines = [f"# {_plain(verdict.title)}", "", f"`{printable(verdict.run)}`"]
    facts = head_line(verdict)
    lines += [facts, ""] if facts else [""]
    lines += [f"> **{notice.slug}** {_plain(notice.message)}" for notice in verdict.warnings]
    for one in verdict.sentences():
        label = "" if one.severity == "fact" else f"**{one.severity}** "
        doubt = "" if one.confidence == "measured" else f" *({one.confidence})*"
        lines += ["", f"{label}{_plain(one.text)}{doubt}"]
        lines += _block(commands_of(one, verdict))
        if one.advice is not None:
            lines += ["", f"To do: {_plain(one.advice.text)}"]
            settings = [f"{knob} = {value}" for knob, value in one.advice.settings]
            lines += _block([*settings, *(f"# {text}" for text in trial_of(one, verdict.run))])
            lines += ["", f"Costs: {_plain(one.advice.costs)}"] if one.advice.costs else []
            expected = one.advice.expect or "not predicted"
            lines += ["", f"Expect: {_plain(expected)}"] if settings else []
    return "\n".join(lines) + "\n"


def story_json(story: Story) -> str:
    """wbscope.stall/1: the steps in words, and the facts behind them."""
    rows = [
        {"at_ns": at, "text": text} for at, text in sorted(story.lines, key=lambda line: line[0])
    ]
    head = {"run": story.run, "stall_id": story.stall, "finding": story.finding}
    facts = {name: value for name, value in story.facts.items() if value is not None}
    body = {"units": {"at_ns": "ns"}, "facts": facts, "rows": rows, "warnings": []}
    return document("stall", head, body)


def _block(lines: Any) -> list[str]:
    texts = [printable(line) for line in lines]
    return ["", "```sh", *texts, "```"] if texts else []


def _plain(text: str) -> str:
    """Text that Markdown takes for nothing else."""
    out = printable(text)
    for char in "\\`*_<>[]|#":
        out = out.replace(char, f"\\{char}")
    return out
