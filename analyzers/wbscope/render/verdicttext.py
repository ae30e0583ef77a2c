# SPDX-License-Identifier: Apache-2.0
"""The verdict of a run as text: the first screen of the report, and all of `explain`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from wbscope.base.result import unit_of
from wbscope.base.units import format_value
from wbscope.explain.remedy import trial_of, undo_of
from wbscope.explain.story import Story
from wbscope.explain.verdict import Verdict
from wbscope.library.finding import Finding
from wbscope.render.messages import warning_text
from wbscope.render.printable import printable

__all__ = ["FIRST_SCREEN", "commands_of", "explain_text", "head_line", "story_text", "verdict_text"]

# Lines that a verdict takes at most: a terminal shows as many.
FIRST_SCREEN = 24
_INDENT = " " * 9
_KEPT = "\N{NO-BREAK SPACE}"
_UNIT = re.compile(r"(\d) (%|[mun]?s|(?:[KMGTPE]i)?B(?:/s)?)(?=\W|$)")
_SHOWN = ("kernel", "cpus", "memory_bytes", "duration_ns", "events_count")


def verdict_text(verdict: Verdict, width: int, most: int = FIRST_SCREEN) -> str:
    """What is wrong, how sure that is, what to do; in `most` lines, the last one says what follows.

    Sentences that do not fit are told of as a number; the first one and its advice always stand.
    """
    head = [*_head(verdict, width), ""]
    if verdict.first is None:
        return "\n".join(head)
    first, *others = verdict.sentences()
    told = [_sentence(first, width)]
    advice = _short_advice(first, verdict, width)
    all_of_it = verdict.command("explain")
    # With any number in front of it.
    longest = _fill("99 more, evidence and advice:", width, command=all_of_it)
    room = most - len(head) - len(told[0]) - len(advice) - len(longest) - 1
    left_out = verdict.left_out_count
    for one in others:
        lines = _sentence(one, width)
        if len(lines) > room:
            left_out += 1
            continue
        told.append(lines)
        room -= len(lines)
    more = f"{left_out} more, " if left_out else ""
    body = [line for lines in told for line in lines]
    last = _fill(f"{more}evidence and advice:", width, command=all_of_it)
    return "\n".join([*head, *body, *advice, *last]) + "\n"


def explain_text(verdict: Verdict, width: int) -> str:
    """Every sentence with how sure it is, the commands that show its numbers, and its advice."""
    lines = [*_head(verdict, width)]
    sentences = verdict.sentences()
    for one in sentences:
        lines += ["", *_sentence(one, width)]
        lines += [f"{_INDENT}{line}" for line in _details(one, verdict, width)]
    if verdict.left_out_count:
        command = verdict.command("query", "findings")
        lines += ["", *_fill(f"{verdict.left_out_count} more:", width, command=command)]
    return "\n".join(lines) + "\n"


def story_text(story: Story, width: int) -> str:
    """One line, or more, for each thing that happened, in the order of time."""
    dur = story.facts.get("dur")
    took = "" if dur is None else f", {format_value('dur', 'ns', dur)}"
    lines = [printable(f"{story.run}: wait {story.stall}{took}")]
    for at, text in sorted(story.lines, key=lambda line: line[0]):
        when = f"{format_value('ts', 'ns', at):>13}  "
        lines += _fill(text, width, when)
    if story.finding:
        lines.append(f"{'':15}told of by the finding {story.finding}")
    return "\n".join(lines) + "\n"


def head_line(verdict: Verdict) -> str:
    """Kernel, machine and length of the run, as far as they are known."""
    known = dict(verdict.summary)
    facts = []
    for key in _SHOWN:
        if key in known and known[key] != "unknown":
            unit = unit_of(key)
            value = format_value(key, unit, int(known[key])) if unit else known[key]
            words = {
                "cpus": f"{value} CPU{'' if value == '1' else 's'}",
                "events_count": f"{value} event{'' if value == '1' else 's'}",
            }
            facts.append(words.get(key, value))
    return printable(" | ".join(facts))


def _head(verdict: Verdict, width: int) -> list[str]:
    lines = [printable(f"{verdict.run}: {verdict.title}")]
    if len(lines[0]) > width:
        lines = [printable(f"{verdict.run}:"), *_fill(verdict.title, width, "")]
    if verdict.part_ns is not None:
        start, end = (format_value("ts", "ns", ns) for ns in verdict.part_ns)
        lines.append(f"only from {start} to {end} of the run")
    lines += [line for notice in verdict.warnings for line in _fill(warning_text(notice), width)]
    facts = head_line(verdict)
    return [*lines, *(_fill(facts, width, "") if facts else [])]


def _sentence(one: Finding, width: int) -> list[str]:
    doubt = "" if one.confidence == "measured" else f" ({one.confidence})"
    label = "" if one.severity == "fact" else one.severity
    return _fill(f"{one.text}{doubt}", width, f"{label:8} ")


def _short_advice(one: Finding, verdict: Verdict, width: int) -> list[str]:
    """What to do about the first, in a few lines."""
    if one.advice is None:
        return []
    lines = ["", *_fill(one.advice.text, width, "To do:   ")]
    lines += [f"{_INDENT}{printable(f'{knob} = {value}')}" for knob, value in one.advice.settings]
    trial = (text.partition(" -o ")[0] for text in trial_of(one, verdict.run))
    tries = (f"{_INDENT}try: {printable(text)} ..." for text in trial if "--sysctl" in text)
    return lines + [line for line in tries if len(line) <= width]


def _details(one: Finding, verdict: Verdict, width: int) -> list[str]:
    room = width - len(_INDENT)
    lines = [] if one.severity == "fact" else [f"{one.confidence}; rule {one.id}"]
    lines += _listed("see", commands_of(one, verdict), room)
    if one.advice is None:
        return lines
    advice = one.advice
    lines += _fill(advice.text, room, "to do: ")
    lines += _listed("set", (f"{knob} = {value}" for knob, value in advice.settings), room)
    lines += _listed("now", advice.now, room)
    lines += _fill(advice.costs, room, "costs: ") if advice.costs else []
    lines += _listed("try", trial_of(one, verdict.run), room)
    expected = advice.expect or ("not predicted" if advice.settings else "")
    lines += _fill(expected, room, "expect: ") if expected else []
    lines += _listed("undo", undo_of(one), room)
    return lines


def commands_of(one: Finding, verdict: Verdict) -> list[str]:
    """What shows the numbers of a finding, each command once."""
    return list(dict.fromkeys(proof.command(verdict.run) for proof in one.evidence))


def _listed(label: str, texts: Iterable[str], width: int) -> list[str]:
    """The label in front of the first; commands are never broken."""
    lead = f"{label}: "
    shown: Sequence[str] = [printable(text) for text in texts]
    return [f"{lead if i == 0 else ' ' * len(lead)}{text}" for i, text in enumerate(shown)]


def _fill(text: str, width: int, lead: str = "", command: str = "") -> list[str]:
    """Lines of this width; a number stays with its unit, and a command behind the text whole."""
    told = _UNIT.sub(rf"\1{_KEPT}\2", printable(text))
    if command:
        told += f" {printable(command).replace(' ', _KEPT)}"
    lines = textwrap.wrap(
        told,
        max(width, len(lead) + 20),
        initial_indent=lead,
        subsequent_indent=" " * len(lead) if lead else "  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line.replace(_KEPT, " ") for line in lines] or [lead.rstrip()]
