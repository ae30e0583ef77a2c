# SPDX-License-Identifier: Apache-2.0
"""The report of a run as Markdown: the verdict, then the tables behind it."""

from __future__ import annotations

from dataclasses import replace

from wbscope.explain.report import Report, Section
from wbscope.render.arrange import main_rows
from wbscope.render.markdown import markdown_text, plain
from wbscope.render.printable import printable
from wbscope.render.table import side_text
from wbscope.render.verdictdoc import explain_markdown

__all__ = ["report_markdown"]

# Of a table that is to be read in an issue.
_ROWS = 20


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
        shown = main if whole else replace(main, rows=main.rows[:_ROWS])
        lines.append(markdown_text(shown).rstrip("\n"))
        told = [side_text(side).strip()] if side else []
        if cut := section.left_out or len(main.rows) - len(shown.rows):
            told.append(f"{cut} more rows: `{printable(report.command(section.query))}`")
        lines += [line for text in told for line in ("", text)]
    return "\n".join(lines) + "\n"
