# SPDX-License-Identifier: Apache-2.0
"""wbscope report: all answers of a run on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wbscope.base.outputs import check_output, write_whole
from wbscope.base.span import parse_span
from wbscope.cli.options import (
    ClockOption,
    ForceOption,
    FromOption,
    JsonOption,
    NoPagerOption,
    QuietOption,
    RunArgument,
    TimeRangeOption,
    ToOption,
)
from wbscope.cli.output import note, page_width, progress_bar
from wbscope.cli.pager import page
from wbscope.explain.report import build_report
from wbscope.render.reportpage import report_json, report_text
from wbscope.render.table import PAGE_WIDTH
from wbscope.run.run import open_run

__all__ = ["report"]


def report(
    run: RunArgument,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="'-' is stdout.")
    ] = "-",
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

    \b
    Examples:
      wbscope report trace.dat
      wbscope report RUN --full -o report.txt
      wbscope report RUN --section fairness --section throttle_windows
      wbscope report RUN --from 10s --to 20s
      wbscope report RUN --json
    """
    span = parse_span(start, end, time_range)
    to_stdout = output == "-"
    if not to_stdout:
        check_output(Path(output), force, [Path(run)], "report.txt")
    with (
        progress_bar(run, hidden=quiet or as_json) as bar,
        open_run(run, observer=bar) as opened,
    ):
        built = build_report(opened, span, section or (), full=full or as_json)
    if as_json:
        text = report_json(built)
    else:
        text = report_text(built, page_width() if to_stdout else PAGE_WIDTH, clock=clock)
    if to_stdout:
        page(text, pager=not no_pager and not as_json)
        return
    write_whole(Path(output), text)
    note(f"wrote {output}")
