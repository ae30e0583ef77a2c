# SPDX-License-Identifier: Apache-2.0
"""The report of a run as text, JSON and Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from wbscope.base.errors import Argument, Phrase, UsageError
from wbscope.base.result import Result, unit_of
from wbscope.base.span import Span
from wbscope.base.units import format_value, short_name
from wbscope.explain.verdict import Report, Section
from wbscope.library.sqlfile import SqlFile
from wbscope.render.catalogue import metric_records, metric_text
from wbscope.render.json import document, notices, result_body, rows_body
from wbscope.render.text import (
    PAGE_WIDTH,
    folded,
    main_rows,
    markdown_text,
    plain,
    printable,
    side_text,
    table_text,
    warning_text,
)
from wbscope.render.verdict import explain_markdown, finding_record, verdict_text
from wbscope.run.labels import short_names
from wbscope.run.run import Run, reporter

_FULL, _OTHER = Argument("full", True), Argument("section", "NAME")
# Of a table in the short report.
_ROWS = 8
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


def report_text(
    report: Report,
    width: int = PAGE_WIDTH,
    *,
    clock: bool = False,
    say: Callable[[Argument], str] = str,
) -> str:
    """The verdict before any table; definitions once, and only where all tables are there.

    Times count from the run's first event, or (clock) are those of the trace clock. `say` has
    the words for arguments.
    """
    lines = [verdict_text(report.verdict, width)]
    if report.is_full:
        lines += [*_summary_lines(report.summary), ""]
    # Nobody asked for them: a line will do for those that have nothing to show.
    empty = []
    for section in report.sections:
        if _is_silent(section, report):
            empty.append(section.query.title or section.query.name)
        else:
            lines.append(_section_text(section, report, width, clock))
    if empty:
        told = f"No rows: {'; '.join(empty)}"
        lines.append(f"{_fill(told, width)}\n")
    if report.is_full:
        lines.append(_words_text(width))
    else:
        told = f"All tables and columns: {say(_FULL)}; other tables: {say(_OTHER)}"
        lines.append(f"{_fill(told, width)}\n")
    return "\n".join(lines)


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


def _summary_lines(summary: Result) -> list[str]:
    """One fact a line; its name states the unit as a column's name does."""
    facts = []
    for key, value in summary.rows:
        unit = None if isinstance(value, str) else unit_of(key)
        facts.append((short_name(key, unit), format_value(key, unit, value)))
    width = max((len(name) for name, _ in facts), default=0)
    return [printable(f"{name:{width}}  {value}") for name, value in facts]


def _is_silent(section: Section, report: Report) -> bool:
    """Nobody asked for it by name, and it has neither rows nor a warning of its own."""
    if report.is_full or report.is_named or section.result is None:
        return False
    result = section.result
    return not result.rows and all(one in report.warnings for one in result.warnings)


def _section_text(section: Section, report: Report, width: int, clock: bool) -> str:
    title = section.query.title or section.query.name
    lines = [title, "=" * len(title)]
    if section.skipped is not None:
        lines.append(_fill(f"not answered: {section.skipped.message}", width))
    if section.result is not None:
        own = [n for n in section.result.warnings if n not in report.warnings]
        lines += [_fill(warning_text(notice), width) for notice in own]
        result = section.result if clock else section.result.from_start()
        if report.is_chosen:
            lines.append(table_text(result, width, whole=True).rstrip("\n"))
            lines += _more(section.left_out, section.query, report)
        elif report.is_full:
            lines.append(table_text(result, width).rstrip("\n"))
            lines += _meaning(section.query, width)
        else:
            lines += _short_table(result, section.query, report, width)
    return "\n".join(lines) + "\n"


def _meaning(query: SqlFile, width: int) -> list[str]:
    lines = [_fill(f"How to read it: {query.read}", width)] if query.read else []
    return lines + [_fill(f"* {metric_text(metric)}", width) for metric in query.metrics]


def _short_table(result: Result, query: SqlFile, report: Report, width: int) -> list[str]:
    """The rows that say something: who lost nothing is one line, and long tables end."""
    main, side = main_rows(result)
    lost = [row for row in main.rows if _has_lost(main, row)]
    idle = len(main.rows) - len(lost)
    shown = replace(main, rows=lost[:_ROWS])
    lines = [table_text(shown, width, blocks=1).rstrip("\n")]
    if idle:
        lines.append(f"{idle} more lost nothing")
    if side:
        lines.append(f"{side} more wrote a few KiB on the side")
    return lines + _more(len(lost) - _ROWS, query, report)


def _more(count: int, query: SqlFile, report: Report) -> list[str]:
    """Where the rows are that are not shown."""
    return [f"{_rows(count)}: {report.command(query)}"] if count > 0 else []


def _rows(count: int) -> str:
    return "1 more row" if count == 1 else f"{count} more rows"


def _has_lost(result: Result, row: tuple[Any, ...]) -> bool:
    """Whether the task of a row stood still; a row that is of no task always counts."""
    places = [result.columns.index(name) for name in _LOST if name in result.columns]
    return "tid" not in result.columns or not places or any(row[place] for place in places)


def _words_text(width: int) -> str:
    indent = max(len(word) for word in _WORDS) + 2
    lines = [
        textwrap.fill(
            meaning, width, initial_indent=word.ljust(indent), subsequent_indent=" " * indent
        )
        for word, meaning in _WORDS.items()
    ]
    return "\n".join(["Words", "=====", *lines]) + "\n"


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


def _fill(text: str, width: int) -> str:
    return folded(text, width, whole_words=False)


# Of a table that is to be read in an issue.
_MARKDOWN_ROWS = 20


def report_markdown(report: Report, *, clock: bool = False) -> str:
    """Times count from the first event, or (clock) are those of the trace clock."""
    tables = (_section(section, report, clock) for section in report.sections)
    return "\n".join([explain_markdown(report.verdict), *tables])


def _section(section: Section, report: Report, clock: bool) -> str:
    lines = [f"## {plain(section.query.title or section.query.name)}", ""]
    if section.skipped is not None:
        lines.append(f"Not answered: {plain(printable(section.skipped.message))}")
    if section.result is not None:
        result = section.result if clock else section.result.from_start()
        own = tuple(n for n in result.warnings if n not in report.warnings)
        result = replace(result, warnings=own)
        main, side = (result, 0) if report.is_chosen else main_rows(result)
        whole = report.is_full or report.is_chosen
        shown = main if whole else replace(main, rows=main.rows[:_MARKDOWN_ROWS])
        lines.append(markdown_text(shown).rstrip("\n"))
        told = [side_text(side).strip()] if side else []
        if cut := section.left_out or len(main.rows) - len(shown.rows):
            told.append(f"{cut} more rows: `{printable(report.command(section.query))}`")
        lines += [line for text in told for line in ("", text)]
    return "\n".join(lines) + "\n"


_FORMATS = ("text", "markdown", "html", "json")


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

    if form not in _FORMATS:
        raise UsageError(
            "unknown-format",
            Phrase(Argument("format", form)),
            "is no format of a report",
            have=", ".join(_FORMATS),
            fix=Phrase(Argument("format", _FORMATS[0])),
        )
    if form == "html":
        (name,) = short_names([run.name])
        return report_html([page_of(run, name, span, sections)], clock=clock)
    report = build_report(run, span, sections, full=full or (form == "json" and not sections))
    if form == "json":
        return report_json(report)
    if form == "markdown":
        return report_markdown(report, clock=clock)
    return report_text(report, width, clock=clock)
