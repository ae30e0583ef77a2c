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
    QuietOption,
    RunArgument,
    TimeRangeOption,
    ToOption,
)
from wbscope.cli.output import note, page_width, progress_bar, write_stdout
from wbscope.render.reportpage import report_json, report_text
from wbscope.render.table import PAGE_WIDTH
from wbscope.run.report import build_report
from wbscope.run.run import open_run

__all__ = ["report"]


def report(
    run: RunArgument,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="'-' is stdout.")
    ] = "-",
    start: FromOption = None,
    end: ToOption = None,
    time_range: TimeRangeOption = None,
    clock: ClockOption = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """All answers on one page: throttling, fairness, reclaim.

    A question whose events were not recorded says so in its section. Times
    count from the first event; --json has those of the trace clock, in ns.

    \b
    Examples:
      wbscope report trace.dat
      wbscope report RUN -o report.txt
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
        built = build_report(opened, span)
    if as_json:
        text = report_json(built)
    else:
        text = report_text(built, page_width() if to_stdout else PAGE_WIDTH, clock=clock)
    if to_stdout:
        write_stdout(text)
        return
    write_whole(Path(output), text)
    note(f"wrote {output}")
