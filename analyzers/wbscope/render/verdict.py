# SPDX-License-Identifier: Apache-2.0
"""The verdict of a run as text, JSON and Markdown, its proof, and what the trace agrees with."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from wbscope.base.result import unit_of
from wbscope.base.span import Span
from wbscope.base.units import format_value
from wbscope.explain.remedy import prove, trial_of, undo_of
from wbscope.explain.story import Story
from wbscope.explain.verdict import Verdict, verdict_of
from wbscope.library.finding import Finding
from wbscope.render.json import document, notices, result_body
from wbscope.render.text import PAGE_WIDTH, folded, printable, warning_text
from wbscope.run.agreement import DIFFERS, NOT_RECORDED, Agreement
from wbscope.run.filters import Filters
from wbscope.run.run import Run

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


def proof_text(run: Run, span: Span, width: int) -> str:
    """A line for each number; the last one says how many agree."""
    verdict = verdict_of(run, span)
    lines, count, wrong = [], 0, 0
    for one in (*verdict.findings, *verdict.facts):
        for proven in prove(run, one, Filters(span=span)):
            if proven.told is None:
                continue
            count += 1
            wrong += not proven.holds
            told = format_value(proven.fact, unit_of(proven.fact), proven.told)
            verb = "agrees" if proven.holds else f"differs: {proven.found}"
            line = f"{one.id:22} {proven.fact:26} {told:>12}  {proven.query:18} {verb}"
            lines.append(line if len(line) <= width else line.replace("  ", " "))
    lines.append(
        f"{count - wrong} of {count} numbers agree with the queries that are named for them"
    )
    return "\n".join(lines) + "\n"


Row = dict[str, Any]

_HEADINGS = ("verdict", "source", "what", "trace", "other", "residual")
_WORDS = 3  # of these columns, which stand on the left
_LAW = "control law"
_DIGITS = 3  # of a share: tenths of a per cent


def check_text(agreement: Agreement, width: int = PAGE_WIDTH) -> str:
    """The verdict first, then a line for each comparison, then the reasons."""
    lines = [f"wbscope check: {printable(agreement.run)}", ""]
    lines += [folded(warning_text(notice), width) for notice in agreement.result.warnings]
    lines += [folded(f"{agreement.told()}.", width), ""]
    rows = agreement.result.records()
    lines += _table([_cells(row) for row in rows if row["verdict"] != NOT_RECORDED])
    lines.append("")
    lines += [folded(text, width) for text in _reasons(rows)]
    return "\n".join(lines) + "\n"


def check_json(agreement: Agreement) -> str:
    """The verdict and the rows of the query."""
    head = {
        "run": agreement.run,
        "verdict": agreement.told(),
        "passed": not agreement.faults,
    }
    return document("check", head, result_body(agreement.result))


def _cells(row: Row) -> list[str]:
    words = [printable(str(row[name])) for name in ("verdict", "source", "what")]
    values = [_amount(row["unit"], row[name]) for name in ("trace_value", "other_value")]
    return [*words, *values, _share(row["residual_ratio"])]


def _amount(unit: str, value: Any) -> str:
    """Sizes and times with a prefix; pages, calls and events as the kernel counts them."""
    known = unit if unit in ("bytes", "ns") else None
    text = format_value("value", known, value)
    return text if known is not None or value is None else f"{text} {unit}"


def _share(value: float | None) -> str:
    """No -0.0 %."""
    known = None if value is None else round(value, _DIGITS) + 0.0
    return format_value("residual_ratio", "ratio", known)


def _table(cells: list[list[str]]) -> list[str]:
    rows = [list(_HEADINGS), *cells]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADINGS))]
    rows.insert(1, ["-" * width for width in widths])
    return ["  ".join(_padded(row, widths)).rstrip() for row in rows]


def _padded(row: list[str], widths: list[int]) -> list[str]:
    pairs = zip(row, widths, strict=True)
    return [
        text.ljust(width) if place < _WORDS else text.rjust(width)
        for place, (text, width) in enumerate(pairs)
    ]


def _reasons(rows: list[Row]) -> list[str]:
    """Why what differs may do so, what the law says, and what is not there."""
    texts = []
    missing: dict[str, list[str]] = {}
    for row in rows:
        name = f"{row['source']} {row['what']}"
        if row["verdict"] == NOT_RECORDED:
            missing.setdefault(row["why"], []).append(name)
        elif row["verdict"] == DIFFERS:
            must = "" if row["is_binding"] else " (a workload can explain it)"
            texts.append(f"differs: {name}: {row['why']}{must}")
        elif row["what"] == _LAW:
            texts.append(f"{_LAW}: {row['why']}")
    texts += [f"not recorded: {', '.join(names)}: {why}" for why, names in missing.items()]
    return [printable(text) for text in texts]
