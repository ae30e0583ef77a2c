# SPDX-License-Identifier: Apache-2.0
"""The report of a run, or of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from wbscope.base.errors import Argument, Phrase, UsageError
from wbscope.base.result import Result, unit_of
from wbscope.base.span import Span
from wbscope.base.units import format_value, short_name
from wbscope.explain.verdict import Report, Section
from wbscope.library.sqlfile import SqlFile
from wbscope.render.blocks import (
    DOCUMENT,
    HTML,
    JSON,
    TEXT,
    Block,
    Document,
    Heading,
    Items,
    Table,
    Text,
    blocks_text,
    doubts,
    written,
)
from wbscope.render.catalogue import metric_records, metric_text
from wbscope.render.json import document, notices, result_body, rows_body
from wbscope.render.text import main_rows, side_text
from wbscope.render.verdict import explain_blocks, finding_record, verdict_text
from wbscope.run.labels import short_names
from wbscope.run.run import Run, reporter

_FULL, _OTHER = Argument("full", True), Argument("section", "NAME")
# Of a table in the short report; of one that is to be read in an issue.
_ROWS, _MARKDOWN_ROWS = 8, 20
# Columns that say how long a task stood still.
_LOST = ("slept_total_ns", "total_ns", "throttled_ns")
# For a reader who does not know the kernel's words; the sections use them as they are.
_WORDS = {
    "bdi": "a disk, or another device or server that pages are written to",
    "cgroup ino": "number of the control group that writes; 1 is all that is in none",
    "dirty": "of memory: written by a program, and not on the disk yet",
    "flusher": "thread of the kernel that writes dirty pages to the disk",
    "freerun": "with fewer dirty pages than this, nobody is throttled",
    "setpoint": "number of dirty pages that throttling aims at",
    "limit": "number of dirty pages at which every writer has to stop",
    "throttle": "the kernel lets a program sleep, because too many pages are dirty",
    "reclaim": "the kernel takes pages away to get free memory",
    "kswapd": "thread of the kernel that reclaims in the background",
    "direct": "of reclaim: done by the program that needs memory, which waits for it",
    "window": "a piece of the run; all pieces have the same length",
    "%": "columns with names in _ratio are shares, written in %; - is not recorded",
}


def report_document(
    reports: Sequence[Report],
    *,
    clock: bool = False,
    say: Callable[[Argument], str] = str,
    html: Callable[[], str] | None = None,
) -> Document:
    """The verdict before any table, of one run or of several.

    Times count from the run's first event, or (clock) are those of the trace clock. `say` has
    the words for arguments, `html` the page with figures.
    """

    def blocks() -> Iterator[Block]:
        for report in reports:
            yield from explain_blocks(report.verdict)
            yield from _tables(report, clock, _MARKDOWN_ROWS)

    def text(width: int) -> str:
        more = f"All tables and columns: {say(_FULL)}; other tables: {say(_OTHER)}"
        told = []
        for one in reports:
            tables = _tables(one, clock, _ROWS, "" if one.is_full else more)
            told.append(f"{verdict_text(one.verdict, width)}\n{blocks_text(tables, width)}")
        return "\n".join(told)

    def json() -> str:
        return report_json(reports[0]) if len(reports) == 1 else reports_json(reports)

    return Document(blocks, json, text=text, html=html)


def _tables(report: Report, clock: bool, most: int, more: str = "") -> Iterator[Block]:
    """The tables, and where others are; definitions once, and only where all tables are there."""
    if report.is_full:
        yield from _summary(report.summary)
    # Nobody asked for them: a line will do for those that have nothing to show.
    empty = []
    for section in report.sections:
        if _is_silent(section, report):
            empty.append(section.query.title or section.query.name)
        else:
            yield from _section(section, report, clock, most)
    if empty:
        yield Text(f"No rows: {'; '.join(empty)}", apart=True)
    if report.is_full:
        yield Heading("Words")
        indent = max(len(word) for word in _WORDS) + 2
        yield from (Text(meaning, word.ljust(indent)) for word, meaning in _WORDS.items())
    if more:
        yield Text(more, apart=True)


def report_json(report: Report) -> str:
    """One object a section; a skipped one has `skipped` instead of rows."""
    return document("report", *_content(report))


def reports_json(reports: Sequence[Report]) -> str:
    """wbscope.reports/1: `runs` has what report_json() says of each, `rows` the tables of all."""
    runs = [{**head, **body} for head, body in map(_content, reports)]
    rows = [{"run": one["run"], **section} for one in runs for section in one["rows"]]
    warnings = [replace(notice, run=one.run) for one in reports for notice in one.warnings]
    return document("reports", {"runs": runs}, rows_body(rows, warnings))


def _content(report: Report) -> tuple[dict[str, Any], dict[str, Any]]:
    body = {
        "units": {},
        "summary": result_body(report.summary)["rows"],
        "rows": [_section_record(section) for section in report.sections],
        "warnings": notices(report.warnings),
    }
    verdict = report.verdict
    head: dict[str, Any] = {"run": report.run}
    if verdict.part_ns is not None:
        head["part_ns"] = list(verdict.part_ns)
    findings = (*verdict.findings, *verdict.facts)
    head["verdict"] = [finding_record(one, verdict) for one in findings]
    return head, body


def _summary(summary: Result) -> Iterator[Block]:
    """One fact a line; its name states the unit as a column's name does."""
    facts = []
    for key, value in summary.rows:
        unit = None if isinstance(value, str) else unit_of(key)
        facts.append((short_name(key, unit), format_value(key, unit, value)))
    width = max((len(name) for name, _ in facts), default=0)
    yield from (Text(value, f"{name:{width}}  ") for name, value in facts)


def _is_silent(section: Section, report: Report) -> bool:
    """Nobody asked for it by name, and it has neither rows nor a warning of its own."""
    if report.is_full or report.is_named or section.result is None:
        return False
    result = section.result
    return not result.rows and all(one in report.warnings for one in result.warnings)


def _section(section: Section, report: Report, clock: bool, most: int) -> Iterator[Block]:
    query = section.query
    yield Heading(query.title or query.name)
    if section.skipped is not None:
        yield Text(f"not answered: {section.skipped.message}")
    if section.result is None:
        return
    yield from doubts(n for n in section.result.warnings if n not in report.warnings)
    result = section.result if clock else section.result.from_start()
    if report.is_chosen:
        yield Table(result, apart=False)
        yield from _more(section.left_out, query, report)
        return
    main, side = main_rows(result)
    if report.is_full:
        yield Table(main, apart=False)
        if side:
            yield Text(side_text(side).strip())
        if query.read:
            yield Text(f"How to read it: {query.read}")
        if query.metrics:
            yield Items(tuple(map(metric_text, query.metrics)))
        return
    # The rows that say something: who lost nothing is one line, and long tables end.
    lost = [row for row in main.rows if _has_lost(main, row)]
    yield Table(replace(main, rows=lost[:most]), pieces=1, apart=False)
    if idle := len(main.rows) - len(lost):
        yield Text(f"{idle} more lost nothing")
    if side:
        yield Text(f"{side} more wrote a few KiB on the side")
    yield from _more(len(lost) - most, query, report)


def _more(count: int, query: SqlFile, report: Report) -> Iterator[Block]:
    """Where the rows are that are not shown."""
    if count > 0:
        yield Text(f"{_rows(count)}:", command=report.command(query))


def _rows(count: int) -> str:
    return "1 more row" if count == 1 else f"{count} more rows"


def _has_lost(result: Result, row: tuple[Any, ...]) -> bool:
    """Whether the task of a row stood still; a row that is of no task always counts."""
    places = [result.columns.index(name) for name in _LOST if name in result.columns]
    return "tid" not in result.columns or not places or any(row[place] for place in places)


def _section_record(section: Section) -> dict[str, Any]:
    query = section.query
    record: dict[str, Any] = {
        "query": query.name,
        "title": query.title,
        "read": query.read,
        "metrics": metric_records(query),
    }
    if section.result is not None:
        record.update(result_body(section.result))
    if section.skipped is not None:
        error = section.skipped
        record["skipped"] = {"slug": error.slug, "message": error.message}
    return record


@reporter
def run_report(
    run: Run,
    span: Span,
    sections: tuple[str, ...],
    form: str,
    *,
    full: bool,
    clock: bool,
    width: int,
) -> str:
    """In one of the formats. JSON and HTML have all tables, unless sections are named."""
    # Only here: who opens a run to ask a query waits for none of it.
    from wbscope.explain.verdict import build_report
    from wbscope.render.report_html import page_of, report_html

    if form not in DOCUMENT:
        raise UsageError(
            "unknown-format",
            Phrase(Argument("format", form)),
            "is no format of a report",
            have=", ".join(DOCUMENT),
            fix=Phrase(Argument("format", TEXT)),
        )
    if form == HTML:
        (name,) = short_names([run.name])
        return report_html([page_of(run, name, span, sections)], clock=clock)
    report = build_report(run, span, sections, full=full or (form == JSON and not sections))
    return written(report_document([report], clock=clock), form, width)
