# SPDX-License-Identifier: Apache-2.0
"""wbscope sql: SELECTs of the user's own, or a prompt for them."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from wbscope.base.errors import InputError, UsageError
from wbscope.base.smallfile import read_small
from wbscope.base.units import parse_duration
from wbscope.base.watch import hold, time_limit
from wbscope.cli.choice import parse_choice, parse_width
from wbscope.cli.formats import Format, write_result
from wbscope.cli.given import no_statement, statements_of_stdin
from wbscope.cli.options import (
    ColumnsOption,
    CsvOption,
    CsvRawOption,
    ForceOption,
    JsonOption,
    LimitOption,
    MarkdownOption,
    NoPagerOption,
    OutputOption,
    ParquetOption,
    QuietOption,
    RunArgument,
    SortOption,
    WidthOption,
)
from wbscope.cli.output import progress_bar
from wbscope.cli.script import answer_of, run_script
from wbscope.library.guard import check_one_select
from wbscope.library.statements import Statement, split_statements
from wbscope.run.run import open_run

__all__ = ["SqlCommand", "sql"]

_STDIN = "-"
_EXAMPLE = 'wbscope sql RUN "SELECT event, count FROM event_counts"'

# No option has white space before its value: this is SQL that starts with a comment.
_COMMENT = re.compile(r"--[^\s=]*\s")


class SqlCommand(TyperCommand):
    """Takes a statement that starts with a comment for what it is."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        guarded = [f" {word}" if _COMMENT.match(word) else word for word in args[:end]]
        return super().parse_args(ctx, guarded + args[end:])


def sql(
    run: RunArgument,
    statement: Annotated[
        str | None,
        typer.Argument(
            metavar="STATEMENT", help="One SELECT; '-' reads stdin.", show_default=False
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("-f", "--file", metavar="FILE", help="SELECTs, each with ';' at its end."),
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Stop a statement after this time.")
    ] = None,
    columns: ColumnsOption = None,
    sort: SortOption = None,
    limit: LimitOption = None,
    width: WidthOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    csv_raw: CsvRawOption = False,
    as_markdown: MarkdownOption = False,
    parquet: ParquetOption = None,
    output: OutputOption = "-",
    force: ForceOption = False,
    no_pager: NoPagerOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run SELECTs on the tables of a run and all views.

    Canned queries are views, too: SELECT * FROM fairness.
    Without a statement it asks for them, or reads them from stdin where that is
    no terminal. The run is open read-only: nothing can be written or attached.
    .help lists what else can be asked, at the prompt, as STATEMENT or on stdin: .tables,
    .schema NAME, .query NAME.

    \b
    Examples:
      wbscope sql RUN
      wbscope sql RUN "SELECT * FROM fairness"
      wbscope sql RUN "SELECT event, count FROM event_counts ORDER BY count DESC"
      wbscope sql RUN ".schema wb_throttle"
      wbscope sql RUN --csv --timeout 30s < question.sql
      wbscope sql RUN -f questions.sql --markdown
    """
    choice = parse_choice(columns, sort, limit)
    # What is read in a pager takes its time.
    pager = not no_pager and timeout is None
    form = Format(
        as_json,
        as_csv or csv_raw,
        as_markdown,
        parquet,
        output,
        force,
        choice,
        parse_width(width),
        pager,
        csv_raw,
    )
    form.check([run] if file in (None, _STDIN) else [run, str(file)])
    limit_ns = None if timeout is None else parse_duration("timeout", timeout, positive=True)
    if statement is None and file is None and _is_terminal():
        _interactive(run, limit_ns, form, quiet, pager=not no_pager)
        return
    source, statements = _statements(statement, file)
    if len(statements) == 1 and not statements[0].is_command:
        check_one_select(statements[0].text)
    else:
        with progress_bar(run, hidden=quiet or as_json) as bar, time_limit(limit_ns):
            opened = open_run(run, observer=bar)
        with opened:
            run_script(opened, source, statements, limit_ns, form)
        return
    text = statements[0].text
    with time_limit(limit_ns):  # of all of it, printing too
        with (
            progress_bar(run, hidden=quiet or as_json) as bar,
            open_run(run, observer=bar) as opened,
        ):
            command = shlex.join(["wbscope", "sql", run, text])
            result = answer_of(opened, text, limit_ns, choice, command)
        write_result("sql", {"sql": text, "run": run}, result, form)


def _statements(statement: str | None, file: str | None) -> tuple[str, list[Statement]]:
    """Where they are from, and the statements; an argument is one, a file has many."""
    if statement not in (None, _STDIN) and file is not None:
        raise UsageError(
            "two-sources",
            f"-f {file}",
            "and a statement exclude each other",
            fix=f"wbscope sql RUN -f {shlex.quote(file)}",
        )
    if file in (None, _STDIN) and statement in (None, _STDIN):
        source, text = "stdin", statements_of_stdin("wbscope sql", _EXAMPLE)
    elif file is not None:
        source, text = file, _file(file)
    else:
        # As it was given: SQLite says what is wrong with more than one.
        return "sql", [Statement(re.sub(r"^ (?=--)", "", str(statement)), 1)]
    return source, split_statements(text) or [Statement(text, 1)]


def _interactive(run: str, limit_ns: int | None, form: Format, quiet: bool, *, pager: bool) -> None:
    if replace(form, pager=True) != Format():
        raise UsageError(
            "no-statement",
            "wbscope sql",
            "the prompt prints whole tables; another format, a choice or a file needs a statement",
            fix=f"{_EXAMPLE} --json",
        )
    if not sys.stdout.isatty():
        raise _no_statement("stdout is no terminal, which the prompt needs")
    # Imported here: only the prompt needs prompt_toolkit.
    from wbscope.cli.shell import Shell

    with (
        progress_bar(run, hidden=quiet) as bar,
        time_limit(limit_ns),
    ):
        opened = open_run(run, observer=bar)
    with opened, hold():
        Shell(opened, limit_ns, pager).run()


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _file(name: str) -> str:
    try:
        return read_small(Path(name)).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise InputError(
            "cannot-read",
            name,
            f"cannot be read: {error.strerror or error}",
            fix="wbscope sql RUN -f FILE.sql",
        ) from error


def _no_statement(why: str) -> UsageError:
    return no_statement("wbscope sql", why, _EXAMPLE)
