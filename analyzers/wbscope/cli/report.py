# SPDX-License-Identifier: Apache-2.0
"""wbscope report: all answers of a run on one page, or those of several runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from wbscope.base.errors import UsageError
from wbscope.base.result import Result
from wbscope.cli.formats import PageOutput, write_document
from wbscope.cli.options import ALL, Choice, ClockOption, Part, Rows, RunsArgument, bound
from wbscope.cli.output import note, option, progress_bar
from wbscope.explain.verdict import Report, build_report
from wbscope.library.library import load_library
from wbscope.render.blocks import DOCUMENT, HTML, JSON
from wbscope.render.figures import RunPage
from wbscope.render.report import report_document
from wbscope.render.report_html import page_of
from wbscope.render.text import SIDE, main_rows
from wbscope.run.labels import short_names
from wbscope.run.run import open_run
from wbscope.source.source import find_source


@bound
def report(
    runs: RunsArgument,
    *,
    rows: Rows,
    full: Annotated[bool, typer.Option("--full", help="All tables, with their meaning.")] = False,
    section: Annotated[
        list[str] | None,
        typer.Option("--section", metavar="QUERY", help="The table of a query; may be repeated."),
    ] = None,
    part: Part,
    clock: ClockOption = False,
    out: PageOutput,
) -> None:
    """What is wrong and what to do, then the tables that show it.

    The verdict first (wbscope explain has its evidence), then the three tables
    of the first finding. A question whose events were not recorded says so.
    Times count from the first event; --json has those of the trace clock, in ns.

    With -o report.html, one file with figures and all tables, to read in any
    browser, to keep and to send. Several runs stand side by side on it.

    \b
    Examples:
      wbscope report trace.dat
      wbscope report RUN -o report.html
      wbscope report before after -o both.html
      wbscope report RUN --full -o report.txt
      wbscope report RUN --section fairness --section throttle_windows
      wbscope report RUN --section stalls --sort=-dur --limit 10
      wbscope report RUN --from 10s --to 20s
      wbscope report RUN --json
    """
    choice = rows.choice()
    out.check(runs, DOCUMENT, "report")
    width = rows.page_width(out)
    _check_choice(choice, [] if full else section or [])
    span = part.span()
    names = short_names(runs)
    sources = [find_source(run) for run in runs]  # one that is not there: before an ingest
    pages: list[RunPage] = []
    reports: list[Report] = []
    for source, name in zip(sources, names, strict=True):
        with (
            progress_bar(str(source.path), hidden=out.hidden) as bar,
            open_run(source, observer=bar) as opened,
        ):
            try:
                if out.form == HTML:
                    shown = page_of(opened, name, span, section or (), option)
                    pages.append(replace(shown, report=_chosen(shown.report, choice, out.form)))
                else:
                    whole = full or (out.form == JSON and not section)
                    made = build_report(opened, span, section or (), full=whole)
                    reports.append(_chosen(made.spoken(option), choice, out.form))
            except UsageError as error:  # such as --from after its end: other runs may be longer
                error.at = f"run {name}" if len(runs) > 1 else error.at
                raise
    if out.form == JSON:
        _note_left_out(reports)

    def page() -> str:
        from wbscope.render.report_html import report_html

        return report_html(pages, clock=clock)

    whole_page = report_document(reports, clock=clock, say=option, html=page)
    write_document(whole_page, out, width=width)


def _check_choice(choice: Choice, sections: Sequence[str]) -> None:
    """Refuse, before any work, columns that a table has not, and a choice of no table."""
    if choice == ALL:
        return
    if not sections:
        raise UsageError(
            "no-section",
            "--columns, --sort and --limit",
            "choose from the tables that --section names, and none is named",
            fix="wbscope report RUN --section throttle_by_task --limit 10",
        )
    library = load_library()
    for name in sections:
        if columns := [column.name for column in library.query(name).columns]:
            choice.check(name, columns, f"wbscope report RUN --section {name}")


def _chosen(report: Report, choice: Choice, form: str) -> Report:
    """With what was chosen of its tables; those for people leave some rows out by themselves."""

    def choose(result: Result) -> Result:
        whole = form == JSON or choice.names(SIDE)
        choice.check(result.name, result.columns, f"wbscope report RUN --section {result.name}")
        return choice.of(result if whole else main_rows(result)[0])

    return report if choice == ALL else report.choosing(choose)


def _note_left_out(reports: Sequence[Report]) -> None:
    """As `query` does: a document has no place for it."""
    for report in reports:
        for section in report.sections:
            if section.left_out and section.result is not None:
                count = len(section.result)
                told = f"{count} of {count + section.left_out} rows: --limit left out the others"
                note(f"{section.query.name}: {told}")
