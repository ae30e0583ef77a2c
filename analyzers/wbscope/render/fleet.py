# SPDX-License-Identifier: Apache-2.0
"""The report over a dataset, and what adding runs has come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wbscope.base.errors import WbscopeError
from wbscope.base.result import Notice, Result
from wbscope.base.units import counted, format_value
from wbscope.render.blocks import Block, Document, Heading, Table, Text, doubts
from wbscope.render.json import document, notices, result_body, rows_body

# What the first screen tells; the table has all.
_TOLD = 3
# As the host of a run that does not tell its machine is called: fleet/layout.py.
_UNKNOWN = "unknown"
_HEAD, _PROBLEMS = "overview", "problems"
_INDENT = 9  # below a sentence whose severity hangs in front of it
Sections = Mapping[str, Result]


def fleet_title(head: Mapping[str, Any]) -> str:
    """One line: how many runs have something wrong."""
    runs, severe, warned = head["runs_count"], head["severe_count"], head["warning_count"]
    if severe:
        more = f", {warned} more a warning" if warned else ""
        return f"{_share(severe, runs)} have a severe finding{more}"
    if warned:
        return f"{_share(warned, runs)} have a warning, none a severe finding"
    clear = head["clear_count"]
    if clear == runs:
        return f"nothing is wrong in {counted(runs, 'run')}"
    return f"no finding is severe or a warning; {_share(clear, runs)} have an all-clear"


def head_text(head: Mapping[str, Any]) -> str:
    """One line: what the dataset holds."""
    hosts, kernels = head["hosts_count"], head["kernels_count"]
    days = "" if head["first_date"] is None else f", {head['first_date']} to {head['last_date']}"
    time = format_value("duration_ns", "ns", head["duration_ns"])
    return (
        f"{counted(head['runs_count'], 'run')} of {counted(hosts, 'machine')} and"
        f" {counted(kernels, 'kernel')}{days}: {time} of traces, {head['events_count']} events"
    )


def problem_texts(sections: Sections) -> Iterator[tuple[str, str, str | None]]:
    """Of the worst problems: what and where, what it is in its worst run, what to change there."""
    problems = sections[_PROBLEMS]
    for row in problems.records()[:_TOLD]:
        cost = format_value("cost_task_ns", "ns", row["cost_task_ns"])
        lost = f", tasks lost {cost}" if row["cost_task_ns"] else ""
        where = f"{counted(row['runs_count'], 'run')} of {counted(row['hosts_count'], 'machine')}"
        told = f"{row['severity']}: {row['id']} in {where}{lost}"
        yield told, f"worst in {_worst(problems, row)}: {row['text']}", row["advice"]


def _worst(problems: Result, row: Mapping[str, Any]) -> str:
    """What the run is called, and its machine where somebody told it."""
    name = problems.label("run", row["run"])
    if row["host"] == _UNKNOWN and name is not None:
        return name
    return f"{name or row['run']} of {row['host']}"


def fleet_document(
    dataset: str,
    sections: Sections,
    titles: Mapping[str, str],
    warnings: Sequence[Notice],
) -> Document:
    """What is wrong, then the tables."""
    return Document(
        lambda: _blocks(dataset, sections, titles, warnings),
        lambda: fleet_json(dataset, sections, titles, warnings),
    )


def _blocks(
    dataset: str, sections: Sections, titles: Mapping[str, str], warnings: Sequence[Notice]
) -> Iterator[Block]:
    head = sections[_HEAD].records()[0]
    yield Heading(f"{dataset}: {fleet_title(head)}", 1)
    yield Text(head_text(head))
    yield from doubts(warnings)
    for told, worst, advice in problem_texts(sections):
        severity, _, rest = told.partition(": ")
        yield Text(rest, f"{severity:8} ", apart=True)
        yield Text(worst, indent=_INDENT)
        if advice:
            yield Text(advice, "to do: ", indent=_INDENT)
    for name, result in sections.items():
        if name != _HEAD and result.rows:
            yield Heading(titles[name], 3)
            yield Table(_short(name, result), titles[name], apart=False)


def fleet_json(
    dataset: str, sections: Sections, titles: Mapping[str, str], warnings: Sequence[Notice]
) -> str:
    """The overview as rows; each other section has units and rows of its own."""
    head = sections[_HEAD]
    body = result_body(head)
    body["warnings"] = notices(warnings)
    body["sections"] = [
        {
            "name": name,
            "title": titles[name],
            "units": result_body(result)["units"],
            "rows": result_body(result)["rows"],
        }
        for name, result in sections.items()
        if name != _HEAD
    ]
    title = fleet_title(head.records()[0])
    return document("fleet-report", {"dataset": dataset, "title": title}, body)


def _short(name: str, result: Result) -> Result:
    """Sentences stand above, or in the JSON: a table of text has the numbers."""
    if name != _PROBLEMS:
        return result
    return result.only([c for c in result.columns if c not in ("text", "advice", "run", "host")])


def _share(count: int, of: int) -> str:
    return f"{count} of {of} runs ({format_value('x_ratio', 'ratio', count / of)})"


# Source, what came of it (added, known, failed), its run, why it could not be read, what it lost.
Row = tuple[str, str, str | None, WbscopeError | None, Sequence[Notice]]


def added_json(dataset: str, rows: Sequence[Row]) -> str:
    """One row a source; a warning for each that could not be read, or not as a whole."""
    listed = [
        {
            "source": source,
            "outcome": outcome,
            "run": run,
            "error": None if error is None else error.slug,
        }
        for source, outcome, run, error, _ in rows
    ]
    warnings = [
        replace(notice, run=source)
        for source, _, _, error, losses in rows
        for notice in (losses if error is None else [Notice(error.slug, error.message)])
    ]
    counts = {f"{outcome}_count": _count(rows, outcome) for outcome in ("added", "known", "failed")}
    return document("fleet-ingest", {"dataset": dataset, **counts}, rows_body(listed, warnings))


def added_text(dataset: str, rows: Sequence[Row]) -> str:
    """One line."""
    told = f"wrote {dataset}: {counted(_count(rows, 'added'), 'run')} added"
    if known := _count(rows, "known"):
        told += f", {known} there already"
    if failed := _count(rows, "failed"):
        told += f", {failed} refused (table ingest_errors)"
    return told


def _count(rows: Sequence[Row], outcome: str) -> int:
    return sum(row[1] == outcome for row in rows)
