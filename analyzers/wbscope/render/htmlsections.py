# SPDX-License-Identifier: Apache-2.0
"""The tables of a page: each question once, with the rows of all runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wbscope.base.result import Notice, Result
from wbscope.explain.report import Section
from wbscope.library.sqlfile import SqlFile
from wbscope.render.arrange import main_rows
from wbscope.render.htmltable import MOST_ROWS, meanings_of, open_commands, table_html
from wbscope.render.messages import warning_text
from wbscope.render.printable import printable
from wbscope.render.querypage import metric_text
from wbscope.render.runpage import RunPage
from wbscope.render.table import side_text
from wbscope.run.joined import joined

__all__ = ["longest_of_page", "tables_of_page"]

_AT = "The first column copies a command that opens the timeline there: a page cannot start it."


def tables_of_page(pages: Sequence[RunPage], *, clock: bool = False) -> dict[str, dict[str, Any]]:
    """By query, in the order of the report; clock: times of the trace clock."""
    queries: dict[str, SqlFile] = {}
    answers: dict[str, list[tuple[RunPage, Section]]] = {}
    for page in pages:
        for section in page.report.sections:
            queries.setdefault(section.query.name, section.query)
            answers.setdefault(section.query.name, []).append((page, section))
    return {name: _table(queries[name], answers[name], pages, clock) for name in queries}


def longest_of_page(pages: Sequence[RunPage], *, clock: bool = False) -> dict[str, Any] | None:
    """The longest waits of the runs; None where no event of any run tells of waits."""
    answers = [(page, page.longest) for page in pages if page.longest is not None]
    if not answers or all(not found.rows for _, (found, _) in answers):
        return None
    result = _joined([(page.name, found) for page, (found, _) in answers], pages)
    shown, count = len(result.rows), sum(total for _, (_, total) in answers)
    made = _body(result, "Longest waits", pages, clock, most=len(result.rows))
    made["id"] = "table-longest"
    if count > shown:
        made["below"] = [f"The longest {shown} of {count}. All of them, in the order of time:"]
        reports = [page.report for page, _ in answers]
        made["commands"] = [printable(one.verdict.command("query", "stalls")) for one in reports]
    return made


def _table(
    query: SqlFile,
    answers: Sequence[tuple[RunPage, Section]],
    pages: Sequence[RunPage],
    clock: bool,
) -> dict[str, Any]:
    title = query.title or query.name
    given = []
    left_out = not_chosen = 0
    doubts: list[Notice] = []
    for page, section in answers:
        if section.result is None:
            continue
        result, side = main_rows(section.result)
        left_out += side
        not_chosen += section.left_out
        doubts += [n for n in result.warnings if n not in page.report.warnings and n not in doubts]
        given.append((page.name, result))
    made = _body(_joined(given, pages), title, pages, clock) if given else _nothing(title)
    made["id"] = f"table-{query.name}"
    if given:
        read = [f"How to read it: {query.read}"] if query.read else []
        made["told"] = [*read, *map(metric_text, query.metrics), *made["told"]]
    made["doubts"] = [warning_text(notice) for notice in doubts]
    for page, section in answers:
        if section.skipped is not None:
            of = f"{page.name}: " if len(pages) > 1 else ""
            made["below"].append(printable(f"{of}not answered: {section.skipped.message}"))
    rows = sum(len(result.rows) for _, result in given)
    if left_out:
        made["below"].append(side_text(left_out).strip() + ".")
    if rows > MOST_ROWS or not_chosen:
        shown = min(rows, MOST_ROWS)
        made["below"].append(f"{shown} of {rows + not_chosen} rows. All of them:")
        made["commands"] = [printable(page.report.command(query)) for page, _ in answers]
    return made


def _nothing(title: str) -> dict[str, Any]:
    return {
        "title": printable(title), "html": "", "meanings": [], "below": [], "told": [],
        "doubts": [], "commands": [],
    }  # fmt: skip


def _body(
    result: Result, title: str, pages: Sequence[RunPage], clock: bool, most: int = MOST_ROWS
) -> dict[str, Any]:
    made = _nothing(title)
    if not result.rows:
        made["below"] = ["No rows."]
        return made
    paths = {page.name: page.report.run for page in pages}
    if len(pages) == 1:
        paths = {"": pages[0].report.run}
    # Several runs have no clock in common: their times count from their first events already.
    counted = result.from_start()
    commands = open_commands(counted, paths)
    made["html"] = table_html(result if clock else counted, title, commands, most)
    made["meanings"] = [(printable(name), text) for name, text in meanings_of(result)]
    made["told"] = [_AT] if any(commands) else []
    return made


def _joined(given: Sequence[tuple[str, Result]], pages: Sequence[RunPage]) -> Result:
    if len(pages) == 1:
        return given[0][1]
    return joined([(name, result.from_start()) for name, result in given])
