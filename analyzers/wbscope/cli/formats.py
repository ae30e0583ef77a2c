# SPDX-License-Identifier: Apache-2.0
"""Writing a document, or a table of rows, in the format and to the place that options say."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from wbscope.base.errors import SetupError
from wbscope.base.outputs import private_output, write_whole
from wbscope.base.result import Result
from wbscope.base.units import counted
from wbscope.cli.options import Output, Rows
from wbscope.cli.output import answer_in_options, cannot_write_stdout, note, page, show_warnings
from wbscope.render.blocks import (
    CSV,
    HTML,
    PARQUET,
    TEXT,
    Block,
    Document,
    Heading,
    Table,
    Text,
    doubts,
    written,
)
from wbscope.render.json import document, result_body
from wbscope.render.text import SIDE, csv_text, main_rows, side_text, table_text

# Of a table that was asked for by name.
_MOST_HTML_ROWS = 10_000


@dataclass(frozen=True)
class PageOutput(Output):
    """Output of a page, which is more than one table: formats of one are refused, not offered."""

    as_csv: Annotated[bool, typer.Option("--csv", hidden=True)] = False
    csv_raw: Annotated[bool, typer.Option("--csv-raw", hidden=True)] = False
    parquet: Annotated[str | None, typer.Option("--parquet", metavar="FILE", hidden=True)] = None
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The format by its ending: .txt, .md, .html, .json; '-' is stdout.",
        ),
    ] = "-"


def write_document(
    made: Document,
    out: Output,
    *,
    width: int | None = None,
    told: str = "",
    pager: bool = True,
    is_bare: bool = False,
) -> None:
    """A document in the format that was asked for.

    width    of a page of text, if it was asked for
    told     what is said of it where it was written to a file
    pager    whether long text on a terminal may go through one
    is_bare  its text has no place for warnings either
    """
    # Blocks and JSON have them in their place.
    is_bare = is_bare and out.form == TEXT
    warnings = made.warnings if is_bare or out.form in (CSV, PARQUET) else ()
    if out.form == PARQUET:
        assert made.table is not None
        show_warnings(warnings)
        _write_parquet(made.table(), out)
    else:
        if out.form == CSV:
            assert made.table is not None
            text = csv_text(made.table(), is_raw=out.csv_raw)
        else:
            text = written(made, out.form, out.page_width(width))
        if out.file is None:
            pager = pager and not out.no_pager and not out.is_raw
            page(text, warnings=warnings, pager=pager, colours=out.form == TEXT)
        else:
            show_warnings(warnings)
            write_whole(out.file, text, force=out.force)
    if out.file is not None and not out.as_json:
        note(f"wrote {out.file}{told}")


@dataclass(frozen=True)
class Explained:
    """A second result that is told below the first, and its title."""

    title: str
    result: Result


def write_result(
    kind: str,
    head: dict[str, Any],
    result: Result,
    out: Output,
    rows: Rows,
    explained: Explained | None = None,
) -> None:
    """What was chosen of the result, in the format that was asked for."""
    result, choice = answer_in_options(result), rows.choice()
    # A page leaves some rows out by itself, unless they are asked for.
    whole = out.form not in (TEXT, HTML) or choice.names(SIDE)
    result, beside = (result, 0) if whole else main_rows(result)
    chosen = choice.rows_of(result)
    cut = len(result) - len(chosen)
    if cut and explained is not None:
        explained = replace(explained, result=_about(chosen, explained.result))
    result = choice.columns_of(chosen)
    width = rows.page_width(out)

    def blocks() -> Iterator[Block]:
        if out.form == HTML:
            yield Heading(" ".join([kind, *map(str, head.values())]), 1)
        yield from doubts(result.warnings)
        yield Table(result, most=_MOST_HTML_ROWS)
        if beside:
            yield Text(side_text(beside).strip(), is_aside=True)
        if explained is not None:
            yield Heading(explained.title)
            yield Table(explained.result, most=_MOST_HTML_ROWS)

    def text(_width: int) -> str:
        wide = out.table_width(width)
        shown = table_text(result, wide, whole=True) + side_text(beside)
        if explained is None:
            return shown
        title = explained.title
        return f"{shown}\n{title}\n{'=' * len(title)}\n{table_text(explained.result, wide)}"

    def json() -> str:
        body = result_body(result)
        if explained is not None:
            second = explained.result
            body["explain"] = {"query": second.name, **result_body(second)}
        return document(kind, head, body)

    made = Document(blocks, json, lambda: result, text, warnings=result.warnings)
    write_document(made, out, told=f": {counted(len(result), 'row')}", is_bare=True)
    if cut:
        note(f"{len(chosen)} of {cut + len(chosen)} rows: --limit left out {cut}")


def _about(shown: Result, evidence: Result) -> Result:
    """Evidence of the rows that are shown: it has their keys, as ts or as stall_ts."""
    pairs = [
        (place, shown.columns.index(key))
        for key in shown.keys
        for place, name in enumerate(evidence.columns)
        if name == key or name.endswith(f"_{key}")
    ]
    known = {tuple(row[key] for _, key in pairs) for row in shown.rows}
    rows = [row for row in evidence.rows if tuple(row[place] for place, _ in pairs) in known]
    return replace(evidence, rows=rows)


def _write_parquet(result: Result, out: Output) -> None:
    from wbscope.render.frames import write_parquet

    if out.file is not None:
        # Opened here: Arrow takes no name that is no UTF-8.
        with private_output(out.file, force=out.force) as private, private.open("wb") as file:
            write_parquet(result, file)
        return
    if sys.stdout is None:
        raise SetupError("no-stdout", "stdout", "is closed, so there is nowhere to write")
    whole = io.BytesIO()
    write_parquet(result, whole)
    try:
        sys.stdout.buffer.write(whole.getvalue())
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise cannot_write_stdout(error) from error
