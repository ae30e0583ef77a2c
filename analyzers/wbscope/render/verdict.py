# SPDX-License-Identifier: Apache-2.0
"""The verdict of a run, its proof, one wait in words, and what the trace agrees with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from wbscope.base.result import Amount, Result, unit_of
from wbscope.base.span import Span
from wbscope.base.units import format_value
from wbscope.explain.remedy import prove, trial_of, undo_of
from wbscope.explain.story import Story
from wbscope.explain.verdict import Verdict, verdict_of
from wbscope.library.finding import Finding
from wbscope.render.blocks import (
    Block,
    Commands,
    Document,
    Heading,
    Table,
    Text,
    block_lines,
    blocks_text,
    doubts,
    table_of,
)
from wbscope.render.json import document, notices, result_body
from wbscope.render.text import fill, printable
from wbscope.run.agreement import COMPARED, DIFFERS, Agreement
from wbscope.run.filters import Filters
from wbscope.run.run import Run

# Lines that a verdict takes at most: a terminal shows as many.
FIRST_SCREEN = 24
_INDENT = 9
_SHOWN = ("kernel", "cpus", "memory_bytes", "duration_ns", "events_count")


def verdict_text(verdict: Verdict, width: int, most: int = FIRST_SCREEN) -> str:
    """What is wrong, how sure that is, what to do; in `most` lines, the last one says what follows.

    Sentences that do not fit are told of as a number; the first one and its advice always stand.
    """
    head = [*blocks_text(_head(verdict), width).splitlines(), ""]
    if verdict.first is None:
        return "\n".join(head)
    first, *others = verdict.sentences()
    told = [block_lines(_sentence(first), width)]
    advice = _short_advice(first, verdict, width)
    all_of_it = verdict.command("explain")
    # With any number in front of it.
    longest = fill("99 more, evidence and advice:", width, command=all_of_it)
    room = most - len(head) - len(told[0]) - len(advice) - len(longest) - 1
    left_out = verdict.left_out_count
    for one in others:
        lines = block_lines(_sentence(one), width)
        if len(lines) > room:
            left_out += 1
            continue
        told.append(lines)
        room -= len(lines)
    more = f"{left_out} more, " if left_out else ""
    body = [line for lines in told for line in lines]
    last = fill(f"{more}evidence and advice:", width, command=all_of_it)
    return "\n".join([*head, *body, *advice, *last]) + "\n"


def explain_document(verdict: Verdict) -> Document:
    """Every sentence with how sure it is, the commands that show its numbers, and its advice."""
    return Document(
        lambda: explain_blocks(verdict),
        lambda: explain_json(verdict),
        lambda: table_of("explain", [_row(finding_record(one, verdict)) for one in _all(verdict)]),
    )


def explain_blocks(verdict: Verdict) -> Iterator[Block]:
    """The same, block by block."""
    yield from _head(verdict)
    for one in verdict.sentences():
        yield _sentence(one, apart=True)
        yield from _details(one, verdict)
    if verdict.left_out_count:
        command = verdict.command("query", "findings")
        yield Text(f"{verdict.left_out_count} more:", command=command, apart=True)


def _row(record: dict[str, Any]) -> dict[str, Any]:
    """Facts are columns of the queries; of the advice, what a table has room for."""
    advice = record["advice"]
    return {**record, "facts": [], "advice": None if advice is None else advice["text"]}


def _all(verdict: Verdict) -> tuple[Finding, ...]:
    return (*verdict.findings, *verdict.facts)


def story_document(story: Story) -> Document:
    """One line, or more, for each thing that happened, in the order of time."""
    return Document(lambda: _story_blocks(story), lambda: story_json(story))


def _story_blocks(story: Story) -> Iterator[Block]:
    dur = story.facts.get("dur")
    took = "" if dur is None else f", {format_value('dur', 'ns', dur)}"
    yield Heading(f"{story.run}: wait {story.stall}{took}", 1, is_line=True)
    for at, text in sorted(story.lines, key=lambda line: line[0]):
        yield Text(text, f"{format_value('ts', 'ns', at):>13}  ")
    if story.finding:
        yield Text(f"told of by the finding {story.finding}", indent=15)


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


def _head(verdict: Verdict) -> Iterator[Block]:
    yield Heading(verdict.title, 1, verdict.run)
    if verdict.part_ns is not None:
        start, end = (format_value("ts", "ns", ns) for ns in verdict.part_ns)
        yield Text(f"only from {start} to {end} of the run")
    yield from doubts(verdict.warnings)
    if facts := head_line(verdict):
        yield Text(facts)


def _sentence(one: Finding, *, apart: bool = False) -> Text:
    doubt = "" if one.confidence == "measured" else f" ({one.confidence})"
    label = "" if one.severity == "fact" else one.severity
    return Text(f"{one.text}{doubt}", f"{label:8} ", apart=apart)


def _short_advice(one: Finding, verdict: Verdict, width: int) -> list[str]:
    """What to do about the first, in a few lines."""
    if one.advice is None:
        return []
    lines = ["", *fill(one.advice.text, width, "To do:   ")]
    pad = " " * _INDENT
    lines += [f"{pad}{printable(f'{knob} = {value}')}" for knob, value in one.advice.settings]
    trial = (text.partition(" -o ")[0] for text in trial_of(one, verdict.run))
    tries = (f"{pad}try: {printable(text)} ..." for text in trial if "--sysctl" in text)
    return lines + [line for line in tries if len(line) <= width]


def _details(one: Finding, verdict: Verdict) -> Iterator[Block]:
    if one.severity != "fact":
        yield Text(f"{one.confidence}; rule {one.id}", indent=_INDENT)
    yield from _commands("see", commands_of(one, verdict))
    if (advice := one.advice) is None:
        return
    yield Text(advice.text, "to do: ", indent=_INDENT)
    yield from _commands("set", (f"{knob} = {value}" for knob, value in advice.settings))
    yield from _commands("now", advice.now)
    if advice.costs:
        yield Text(advice.costs, "costs: ", indent=_INDENT)
    yield from _commands("try", trial_of(one, verdict.run))
    if expected := advice.expect or ("not predicted" if advice.settings else ""):
        yield Text(expected, "expect: ", indent=_INDENT)
    yield from _commands("undo", undo_of(one))


def _commands(label: str, lines: Iterable[str]) -> Iterator[Commands]:
    if typed := tuple(lines):
        yield Commands(typed, f"{label}: ", indent=_INDENT)


def commands_of(one: Finding, verdict: Verdict) -> list[str]:
    """What shows the numbers of a finding, each command once."""
    return list(dict.fromkeys(proof.command(verdict.run) for proof in one.evidence))


_UNITS = {"cost_task_ns": "ns", "first_ns": "ns", "last_ns": "ns"}


def explain_json(verdict: Verdict) -> str:
    """wbscope.explain/1: a row a finding, its facts as numbers, its evidence with ids."""
    head: dict[str, Any] = {"run": verdict.run, "is_whole": verdict.is_whole}
    if verdict.part_ns is not None:
        head["part_ns"] = list(verdict.part_ns)
    rows = [finding_record(one, verdict) for one in _all(verdict)]
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


def story_json(story: Story) -> str:
    """wbscope.stall/1: the steps in words, and the facts behind them."""
    rows = [
        {"at_ns": at, "text": text} for at, text in sorted(story.lines, key=lambda line: line[0])
    ]
    head = {"run": story.run, "stall_id": story.stall, "finding": story.finding}
    facts = {name: value for name, value in story.facts.items() if value is not None}
    body = {"units": {"at_ns": "ns"}, "facts": facts, "rows": rows, "warnings": []}
    return document("stall", head, body)


def proof_document(run: Run, span: Span) -> Document:
    """Each number of the findings beside that of the query named for it; how many agree."""
    verdict = verdict_of(run, span)
    rows = [
        (
            one.id,
            proven.fact,
            Amount(format_value(proven.fact, unit_of(proven.fact), proven.told)),
            proven.query,
            "agrees" if proven.holds else f"differs: {proven.found}",
        )
        for one in _all(verdict)
        for proven in prove(run, one, Filters(span=span))
        if proven.told is not None
    ]
    agree = sum(row[-1] == "agrees" for row in rows)
    table = Result("proof", ("finding", "fact", "told", "query", "verdict"), {}, rows)
    told = f"{agree} of {len(rows)} numbers agree with the queries that are named for them"

    def blocks() -> Iterator[Block]:
        yield Text(told)
        yield Table(table)

    return Document(blocks, table=lambda: table)


Row = dict[str, Any]

_LAW = "control law"
_DIGITS = 3  # of a share: tenths of a per cent


def check_document(agreement: Agreement) -> Document:
    """The verdict first, then a row for each comparison, then the reasons."""
    return Document(
        lambda: _check_blocks(agreement), lambda: check_json(agreement), lambda: agreement.result
    )


def _check_blocks(agreement: Agreement) -> Iterator[Block]:
    yield Heading(f"wbscope check: {agreement.run}", 1, is_line=True)
    first, *others = [*doubts(agreement.result.warnings), Text(f"{agreement.told()}.")]
    yield from (replace(first, apart=True), *others)
    rows = agreement.result.records()
    compared = [_cells(row) for row in rows if row["verdict"] in COMPARED]
    columns = ("verdict", "source", "what", "trace", "other", "residual")
    yield Table(Result("check", columns, {}, compared), "Comparisons")
    yield from (Text(text, apart=place == 0) for place, text in enumerate(_reasons(rows)))


def check_json(agreement: Agreement) -> str:
    """The verdict and the rows of the query."""
    passed = not agreement.faults
    head = {"run": agreement.run, "verdict": agreement.told(), "passed": passed}
    return document("check", head, result_body(agreement.result))


def _cells(row: Row) -> tuple[str, ...]:
    words = (str(row[name]) for name in ("verdict", "source", "what"))
    values = (_amount(row["unit"], row[name]) for name in ("trace_value", "other_value"))
    return (*words, *values, _share(row["residual_ratio"]))


def _amount(unit: str, value: Any) -> Amount:
    """Sizes and times with a prefix; pages, calls and events as the kernel counts them."""
    if unit in ("bytes", "ns") or value is None:
        return Amount(format_value("value", unit, value))
    return Amount(f"{format_value('value', None, value)} {unit}")


def _share(value: float | None) -> Amount:
    """No -0.0 %."""
    return Amount(format_value("ratio", "ratio", value and round(value, _DIGITS) + 0.0))


def _reasons(rows: list[Row]) -> list[str]:
    """Why what differs may do so, the bounds of what agrees, what the law says and what lacks."""
    texts = []
    agreed: dict[str, dict[str, float]] = {}
    missing: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        name = f"{row['source']} {row['what']}"
        if row["verdict"] not in COMPARED:
            missing.setdefault((row["verdict"], row["why"]), []).append(name)
        elif row["verdict"] == DIFFERS:
            must = "" if row["is_binding"] else " (a workload can explain it)"
            texts.append(f"differs: {name}: {row['why']}{must}")
        elif row["what"] == _LAW:
            texts.append(f"{_LAW}: {row['why']}")
        elif row["bound_ratio"] and row["trace_value"] != row["other_value"]:
            agreed.setdefault(row["why"], {})[name] = row["bound_ratio"]
    for why, bounds in agreed.items():
        texts.append(f"bound {_share(max(bounds.values()))}: {', '.join(bounds)}: {why}")
    texts += [f"{told}: {', '.join(names)}: {why}" for (told, why), names in missing.items()]
    return texts
