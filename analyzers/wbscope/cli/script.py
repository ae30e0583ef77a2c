# SPDX-License-Identifier: Apache-2.0
"""Several statements from one file: each is answered, an error says which one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from wbscope.base.errors import UsageError, WbscopeError
from wbscope.base.outputs import write_whole
from wbscope.base.result import Result
from wbscope.base.units import counted
from wbscope.base.watch import time_limit
from wbscope.cli.choice import Choice
from wbscope.cli.formats import Format
from wbscope.cli.output import note, page_width, show_warnings, write_stdout
from wbscope.library.guard import check_one_select
from wbscope.library.statements import Statement
from wbscope.render.jsondoc import document, result_body, rows_body
from wbscope.render.markdown import markdown_text
from wbscope.render.table import table_text
from wbscope.run.run import Run

__all__ = ["answer_of", "run_script"]

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
    form: Format,
) -> None:
    """Answer all of them; on stdout, tables appear as they are ready."""
    if form.one_table is not None:
        option, noun = form.one_table
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
    as_they_come = form.file is None and not form.as_json
    if as_they_come and not form.as_markdown:
        show_warnings(run.warnings())
    results = []
    for number, statement in enumerate(statements, 1):
        if statement.is_command:
            with _named(source, number, statement), time_limit(limit_ns):
                write_stdout(_command(run, statement, form))
            continue
        with _named(source, number, statement), time_limit(limit_ns):
            answer = answer_of(run, statement.text, limit_ns, form.choice, _COMMAND)
            result = _chosen(answer, form)
            if as_they_come:
                text = _text(result, form, number)
                write_stdout(("\n" if number > 1 else "") + text)
        results.append(result)
    if as_they_come:
        return
    if form.as_json:
        text = _document(run, source, statements, results)
    else:
        parts = (_text(r, form, number) for number, r in enumerate(results, 1))
        text = "\n".join(parts)
        show_warnings(run.warnings())
    if form.file is None:
        write_stdout(text)
        return
    write_whole(form.file, text, force=form.force)
    if not form.as_json:
        note(f"wrote {form.file}: {counted(len(results), 'table')}")


def _command(run: Run, statement: Statement, form: Format) -> str:
    """What a line such as .schema wb_throttle shows; it is text and nothing else."""
    if replace(form, pager=True) != Format():
        raise UsageError(
            "text-only",
            statement.text.split()[0],
            "prints text; another format or a file is for statements",
            fix=f'wbscope sql RUN "{statement.text}"',
        )
    # Imported here: the prompt's other half is slow to import.
    from wbscope.cli.shell.commands import answer
    from wbscope.cli.shell.objects import Objects

    return answer(statement.text, Objects(run), page_width())


def _chosen(result: Result, form: Format) -> Result:
    shown = form.choice.of(result)
    if cut := len(result) - len(shown):
        note(f"{len(shown)} of {len(result)} rows: --limit left out {cut}")
    return shown


def _text(result: Result, form: Format, number: int) -> str:
    if not form.as_markdown:
        return table_text(result, form.page_width)
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
