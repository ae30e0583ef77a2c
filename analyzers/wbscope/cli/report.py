# SPDX-License-Identifier: Apache-2.0
"""wbscope report: all answers of a run on one page, or those of several runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from wbscope.base.errors import UsageError
from wbscope.base.outputs import check_output, write_whole
from wbscope.base.result import Result
from wbscope.base.span import parse_span
from wbscope.cli.formats import ALL, Choice, parse_choice, parse_width
from wbscope.cli.options import (
    ClockOption,
    ColumnsOption,
    ForceOption,
    FromOption,
    JsonOption,
    LimitOption,
    NoPagerOption,
    QuietOption,
    RunsArgument,
    SortOption,
    TimeRangeOption,
    ToOption,
    WidthOption,
)
from wbscope.cli.output import note, option, page, page_width, progress_bar
from wbscope.explain.verdict import Report, build_report
from wbscope.library.library import load_library
from wbscope.render.figures import RunPage
from wbscope.render.report import report_json, report_markdown, report_text, reports_json
from wbscope.render.report_html import page_of
from wbscope.render.text import PAGE_WIDTH, SIDE, main_rows
from wbscope.run.labels import short_names
from wbscope.run.run import open_run
from wbscope.source.source import find_source

_STDOUT = "-"
_TEXT, _HTML, _MARKDOWN, _JSON = "text", "html", "markdown", "json"
# Names that promise what no report is.
_OTHERS = frozenset((
    ".csv", ".db", ".docx", ".gz", ".parquet", ".pdf", ".pftrace", ".png", ".svg", ".xlsx", ".zip",
))  # fmt: skip
# What a file is, by the end of its name; any other is text.
_FORMATS = {
    ".txt": _TEXT,
    ".html": _HTML,
    ".htm": _HTML,
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".json": _JSON,
}


def report(
    runs: RunsArgument,
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help=".html is a page with figures; .md, .json, .txt; '-' is stdout.",
        ),
    ] = _STDOUT,
    columns: ColumnsOption = None,
    sort: SortOption = None,
    limit: LimitOption = None,
    width: WidthOption = None,
    full: Annotated[bool, typer.Option("--full", help="All tables, with their meaning.")] = False,
    section: Annotated[
        list[str] | None,
        typer.Option("--section", metavar="QUERY", help="The table of a query; may be repeated."),
    ] = None,
    start: FromOption = None,
    end: ToOption = None,
    time_range: TimeRangeOption = None,
    clock: ClockOption = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    no_pager: NoPagerOption = False,
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
    form = _format(output, as_json)
    choice = parse_choice(columns, sort, limit)
    page_columns = _parse_width(width, form)
    _check_choice(choice, [] if full else section or [])
    span = parse_span(start, end, time_range)
    to_stdout = output == _STDOUT
    if not to_stdout:
        example = f"report{next(end for end, one in _FORMATS.items() if one == form)}"
        check_output(output, force, [Path(run) for run in runs], example)
    names = short_names(runs)
    sources = [find_source(run) for run in runs]  # one that is not there: before an ingest
    pages: list[RunPage] = []
    reports: list[Report] = []
    for source, name in zip(sources, names, strict=True):
        with (
            progress_bar(str(source.path), hidden=quiet or as_json) as bar,
            open_run(source, observer=bar) as opened,
        ):
            try:
                if form == _HTML:
                    shown = page_of(opened, name, span, section or (), option)
                    pages.append(replace(shown, report=_chosen(shown.report, choice, form)))
                else:
                    whole = full or (form == _JSON and not section)
                    made = build_report(opened, span, section or (), full=whole)
                    reports.append(_chosen(made.spoken(option), choice, form))
            except UsageError as error:  # such as --from after its end: other runs may be longer
                error.at = f"run {name}" if len(runs) > 1 else error.at
                raise
    if form == _HTML:
        from wbscope.render.report_html import report_html

        text = report_html(pages, clock=clock)
    elif form == _JSON:
        text = report_json(reports[0]) if len(reports) == 1 else reports_json(reports)
        _note_left_out(reports)
    elif form == _MARKDOWN:
        text = "\n".join(report_markdown(one, clock=clock) for one in reports)
    else:
        wide = page_columns or (page_width() if to_stdout else PAGE_WIDTH)
        text = "\n".join(report_text(one, wide, clock=clock, say=option) for one in reports)
    if to_stdout:
        page(text, pager=not no_pager and not as_json)
        return
    write_whole(Path(output), text, force=force)
    if not as_json:
        note(f"wrote {output}")


def _parse_width(width: str | None, form: str) -> int | None:
    if width is not None and form != _TEXT:
        told = f"is the width of a page of text, which {form} is not"
        raise UsageError("two-formats", f"--width {width}", told, fix="--width 120 -o report.txt")
    return parse_width(width)


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
        whole = form == _JSON or choice.names(SIDE)
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


def _format(output: str, as_json: bool) -> str:
    """By the end of the file's name, so that no file holds what its name does not say."""
    end = Path(output).suffix.lower()
    if end in _OTHERS:
        raise UsageError(
            "unknown-format",
            f"-o {output}",
            f"is no format of a report: {end}",
            have=", ".join(_FORMATS),
            fix=f"-o {shlex.quote(str(Path(output).with_suffix('.html')))}",
        )
    named = _FORMATS.get(end, _TEXT) if output != _STDOUT else _TEXT
    if not as_json:
        return named
    if named in (_HTML, _MARKDOWN):
        raise UsageError(
            "two-formats",
            f"--json -o {output}",
            f"is JSON in a file whose name says {Path(output).suffix}",
            fix=f"-o {output}",
        )
    return _JSON
