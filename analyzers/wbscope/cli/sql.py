# SPDX-License-Identifier: Apache-2.0
"""wbscope sql: SELECTs of the user's own, or a prompt for them."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from wbscope.base.errors import InputError, UsageError, WbscopeError
from wbscope.base.result import Result
from wbscope.base.system import read_bounded, read_small
from wbscope.base.units import counted, parse_duration
from wbscope.base.watch import hold, time_limit
from wbscope.cli.formats import write_document, write_result
from wbscope.cli.options import Choice, Output, Rows, RunArgument, bound
from wbscope.cli.output import note, page_width, progress_bar, show_warnings, write_stdout
from wbscope.library.guard import check_one_select
from wbscope.library.statements import Statement, split_statements
from wbscope.render.blocks import MARKDOWN, TEXT, Block, Commands, Document, Heading, Table, doubts
from wbscope.render.json import document, result_body, rows_body
from wbscope.render.text import markdown_text, table_text
from wbscope.run.run import Run, open_run

_CUT_SHORT = "cut-short"
_COMMAND = "wbscope sql RUN -f FILE"


def answer_of(run: Run, text: str, limit_ns: int | None, choice: Choice, command: str) -> Result:
    """What a SELECT says; --limit ends it where nothing sorts its rows, and a note says so.

    Raises: UsageError for a choice of what it has not, with the command that asks for it.
    """
    result = run.select(text, limit_ns, choice.most_rows)
    choice.check("the answer", result.columns, command)
    warnings = tuple(one for one in result.warnings if one.slug != _CUT_SHORT)
    if len(warnings) < len(result.warnings):
        note(f"the first {counted(len(result), 'row')}: --limit left out the others")
    return replace(result, warnings=warnings)


def run_script(
    run: Run,
    source: str,
    statements: Sequence[Statement],
    limit_ns: int | None,
    out: Output,
    rows: Rows,
) -> None:
    """Answer all of them; on stdout, tables appear as they are ready."""
    if out.one_table is not None:
        option, noun = out.one_table
        raise UsageError(
            "two-tables",
            f"{option}, {source}",
            f"is {len(statements)} statements, and {noun} holds one table",
            fix=f'wbscope sql RUN "SELECT ..." {option}',
        )
    # One that only reads is run; nothing is printed when another cannot be.
    for number, statement in enumerate(statements, 1):
        with _named(source, number, statement):
            if not statement.is_command:
                check_one_select(statement.text)
    choice, width = rows.choice(), rows.page_width(out)
    as_they_come = out.file is None and out.form in (TEXT, MARKDOWN)
    if as_they_come and out.form == TEXT:
        show_warnings(run.warnings())
    results = []
    for number, statement in enumerate(statements, 1):
        if statement.is_command:
            with _named(source, number, statement), time_limit(limit_ns):
                write_stdout(_command(run, statement, out, rows))
            continue
        with _named(source, number, statement), time_limit(limit_ns):
            answer = answer_of(run, statement.text, limit_ns, choice, _COMMAND)
            result = _chosen(answer, choice)
            if as_they_come:
                text = _text(result, out, width, number)
                write_stdout(("\n" if number > 1 else "") + text)
        results.append(result)
    if as_they_come:
        return

    def blocks() -> Iterator[Block]:
        yield Heading(f"{run.name}: {source}", 1)
        yield from doubts(run.warnings())
        for statement, result in zip(statements, results, strict=True):
            yield Commands(tuple(statement.text.strip().splitlines()))
            yield Table(result)

    def text_of(_width: int) -> str:
        return "\n".join(_text(r, out, width, number) for number, r in enumerate(results, 1))

    made = Document(
        blocks,
        lambda: _document(run, source, statements, results),
        text=text_of,
        warnings=run.warnings(),
    )
    told = f": {counted(len(results), 'table')}"
    write_document(made, out, told=told, is_bare=True)


def _is_plain(out: Output, rows: Rows) -> bool:
    """Whether no option asks for a format, a choice or a file."""
    return rows == Rows() and replace(out, no_pager=False, quiet=False) == Output()


def _command(run: Run, statement: Statement, out: Output, rows: Rows) -> str:
    """What a line such as .schema wb_throttle shows; it is text and nothing else."""
    if not _is_plain(out, rows):
        raise UsageError(
            "text-only",
            statement.text.split()[0],
            "prints text; another format or a file is for statements",
            fix=f'wbscope sql RUN "{statement.text}"',
        )
    # Imported here: the prompt's other half is slow to import.
    from wbscope.cli.shell_commands import Objects, answer

    return answer(statement.text, Objects(run), page_width())


def _chosen(result: Result, choice: Choice) -> Result:
    shown = choice.of(result)
    if cut := len(result) - len(shown):
        note(f"{len(shown)} of {len(result)} rows: --limit left out {cut}")
    return shown


def _text(result: Result, out: Output, width: int | None, number: int) -> str:
    if out.form == TEXT:
        return table_text(result, out.table_width(width))
    # The warnings are the same each time: once is enough.
    return markdown_text(result if number == 1 else replace(result, warnings=()))


def _document(
    run: Run, source: str, statements: Sequence[Statement], results: Sequence[Result]
) -> str:
    rows = []
    for statement, result in zip(statements, results, strict=True):
        body = result_body(result)
        rows.append(
            {
                "line": statement.line,
                "sql": statement.text,
                "units": body["units"],
                "rows": body["rows"],
            }
        )
    head = {"source": source, "run": run.name}
    return document("sql-script", head, rows_body(rows, run.warnings()))


@contextmanager
def _named(source: str, number: int, statement: Statement) -> Iterator[None]:
    """An error within is of this statement."""
    try:
        yield
    except WbscopeError as error:
        error.subject = source
        error.at = f"statement {number}, line {statement.line}"
        raise


def statements_of_stdin(command: str, example: str) -> str:
    """What is there, whatever its bytes: those that are no text are refused with their statement.

    Raises: UsageError when stdin is closed, with an example of the command; InputError when it
    cannot be read, or has no end.
    """
    if sys.stdin is None:
        raise no_statement(command, "stdin is closed", example)
    try:
        return read_bounded(sys.stdin.buffer).decode("utf-8", "surrogateescape")
    except OSError as error:
        told = f"cannot be read: {error.strerror or error}"
        raise InputError("cannot-read", "stdin", told, fix=example) from error


def no_statement(command: str, why: str, example: str) -> UsageError:
    """Nothing was asked."""
    return UsageError("no-statement", command, f"got no statement, and {why}", fix=example)


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


@bound
def sql(
    run: RunArgument,
    *,
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
    rows: Rows,
    out: Output,
) -> None:
    """Run SELECTs on the tables of a run and all views.

    Canned queries are also views: SELECT * FROM fairness.
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
    choice = rows.choice()
    out.check([run] if file in (None, _STDIN) else [run, str(file)])
    rows.page_width(out)
    # What is read in a pager takes its time.
    out = replace(out, no_pager=out.no_pager or timeout is not None)
    limit_ns = None if timeout is None else parse_duration("timeout", timeout, positive=True)
    if statement is None and file is None and _is_terminal():
        _interactive(run, limit_ns, out, rows)
        return
    source, statements = _statements(statement, file)
    if len(statements) == 1 and not statements[0].is_command:
        check_one_select(statements[0].text)
    else:
        with progress_bar(run, hidden=out.hidden) as bar, time_limit(limit_ns):
            opened = open_run(run, observer=bar)
        with opened:
            run_script(opened, source, statements, limit_ns, out, rows)
        return
    text = statements[0].text
    with time_limit(limit_ns):  # of all of it, printing too
        with (
            progress_bar(run, hidden=out.hidden) as bar,
            open_run(run, observer=bar) as opened,
        ):
            command = shlex.join(["wbscope", "sql", run, text])
            result = answer_of(opened, text, limit_ns, choice, command)
        write_result("sql", {"sql": text, "run": run}, result, out, rows)


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


def _interactive(run: str, limit_ns: int | None, out: Output, rows: Rows) -> None:
    if not _is_plain(out, rows):
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
        progress_bar(run, hidden=out.hidden) as bar,
        time_limit(limit_ns),
    ):
        opened = open_run(run, observer=bar)
    with opened, hold():
        Shell(opened, limit_ns, not out.no_pager).run()


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
