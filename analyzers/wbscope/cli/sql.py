# SPDX-License-Identifier: Apache-2.0
"""wbscope sql: one SELECT of the user's own."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from wbscope.cli.options import CsvOption, JsonOption, QuietOption, RunArgument
from wbscope.cli.output import check_formats, progress_bar, write_result
from wbscope.engine.guard import check_one_select
from wbscope.errors import UsageError
from wbscope.render.units import parse_duration
from wbscope.run import open_run

__all__ = ["sql"]


def sql(
    run: RunArgument,
    statement: Annotated[
        str,
        typer.Argument(
            metavar="[STATEMENT]",
            help="One SELECT; '-' or nothing reads it from stdin.",
            show_default=False,
        ),
    ] = "-",
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Stop after this time.")
    ] = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run one SELECT on the tables of a run and all views.

    The run is open read-only: nothing can be written or attached.

    \b
    Examples:
      wbscope sql RUN "SELECT event, count FROM event_counts ORDER BY count DESC"
      wbscope sql RUN "SELECT name FROM sqlite_temp_schema"
      wbscope sql RUN --csv --timeout 30s < question.sql
    """
    check_formats(as_json, as_csv)
    text = _stdin() if statement == "-" else statement
    check_one_select(text)
    if timeout is not None:
        parse_duration("--timeout", timeout)
    with (
        progress_bar(run, hidden=quiet or as_json) as bar,
        open_run(run, observer=bar) as opened,
    ):
        result = opened.sql(text, timeout)
    write_result("sql", {"sql": text, "run": run}, result, as_json, as_csv)


def _stdin() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            "no-statement",
            "wbscope sql",
            "got no statement, and stdin is a terminal",
            fix='wbscope sql RUN "SELECT event, count FROM event_counts"',
        )
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
