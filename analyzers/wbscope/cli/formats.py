# SPDX-License-Identifier: Apache-2.0
"""The formats of a result: which one was asked for, and writing it where it belongs."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wbscope.base.errors import SetupError, UsageError
from wbscope.base.outputs import check_output, private_output, write_whole
from wbscope.base.result import Notice, Result
from wbscope.base.units import counted
from wbscope.cli.choice import ALL, Choice
from wbscope.cli.output import cannot_write_stdout, note, show_warnings, table_width
from wbscope.cli.pager import page
from wbscope.cli.wording import answer_in_options
from wbscope.render.arrange import SIDE, main_rows
from wbscope.render.csvtable import csv_text
from wbscope.render.jsondoc import document, result_body
from wbscope.render.markdown import markdown_text
from wbscope.render.table import side_text, table_text

__all__ = ["Explained", "Format", "write_result", "write_text"]

_STDOUT = "-"


@dataclass(frozen=True)
class Explained:
    """A second result that is told below the first, and its title."""

    title: str
    result: Result


@dataclass(frozen=True)
class Format:
    """What the options say; `parquet` and `output` are file names, '-' is stdout.

    `choice` is what is shown of the rows, `width` that of the page if it was asked for,
    `pager` whether long text on a terminal may go through one, `is_csv_raw` whether names are
    written as they were recorded.
    """

    as_json: bool = False
    as_csv: bool = False
    as_markdown: bool = False
    parquet: str | None = None
    output: str = _STDOUT
    force: bool = False
    choice: Choice = ALL
    width: int | None = None
    pager: bool = True
    is_csv_raw: bool = False

    def check(self, inputs: Iterable[str]) -> None:
        """Refuse two formats at once and files that cannot be written, before any work."""
        chosen = [
            option
            for option, given in (
                ("--json", self.as_json),
                ("--csv-raw" if self.is_csv_raw else "--csv", self.as_csv),
                ("--markdown", self.as_markdown),
                ("--parquet", self.parquet is not None),
            )
            if given
        ]
        if len(chosen) > 1:
            found = " ".join(chosen)
            raise UsageError("two-formats", found, "exclude each other, wanted one", fix=chosen[0])
        if chosen and self.width is not None:
            found = f"{chosen[0]} --width {self.width}"
            told = "the width is one of a table of text, which this is not"
            raise UsageError("two-formats", found, told, fix=chosen[0])
        if self.parquet is not None and self.output != _STDOUT:
            raise UsageError(
                "two-outputs",
                f"--parquet {self.parquet} -o {self.output}",
                "are two files, wanted one",
                fix=f"--parquet {self.output}",
            )
        if self.parquet == _STDOUT and sys.stdout is not None and sys.stdout.isatty():
            raise UsageError(
                "binary-to-terminal",
                "--parquet -",
                "would write a binary file to the terminal",
                fix="--parquet FILE.parquet",
            )
        if self.file is not None:
            example = (
                ("answer.txt", "output") if self.parquet is None else ("answer.parquet", "parquet")
            )
            check_output(self.name, self.force, [Path(path) for path in inputs], *example)

    @property
    def is_raw(self) -> bool:
        """Whether it is for programs, which take times as they were recorded."""
        return self.as_json or self.as_csv or self.parquet is not None

    @property
    def page_width(self) -> int | None:
        """What tables have to fit; None: nothing."""
        return table_width(self.width, to_file=self.file is not None)

    @property
    def name(self) -> str:
        """The file as it was named."""
        return self.output if self.parquet is None else self.parquet

    @property
    def file(self) -> Path | None:
        """The file that is written, None for stdout."""
        return None if self.name == _STDOUT else Path(self.name)

    @property
    def one_table(self) -> tuple[str, str] | None:
        """Option and name of a format that holds one table only."""
        if self.as_csv:
            return "--csv", "CSV"
        return None if self.parquet is None else (f"--parquet {self.parquet}", "Parquet")


def write_result(
    kind: str,
    head: dict[str, Any],
    result: Result,
    form: Format,
    explained: Explained | None = None,
) -> None:
    """What was chosen of the result, in the format that was asked for."""
    result = answer_in_options(result)
    # A table leaves some rows out by itself, unless they are asked for.
    is_table = not (form.is_raw or form.as_markdown)
    whole = not is_table or form.choice.names(SIDE)
    result, beside = (result, 0) if whole else main_rows(result)
    rows = form.choice.rows_of(result)
    cut = len(result) - len(rows)
    if cut and explained is not None:
        explained = replace(explained, result=_about(rows, explained.result))
    result = form.choice.columns_of(rows)
    if form.parquet is not None:
        show_warnings(result.warnings)
        _write_parquet(result, form)
    else:
        text = (
            _table(result, form, explained, beside)
            if is_table
            else _text(kind, head, result, form, explained)
        )
        # These two carry their warnings with them.
        warnings = () if form.as_json or form.as_markdown else result.warnings
        write_text(text, form, warnings)
    if form.file is not None and not form.as_json:
        note(f"wrote {form.file}: {counted(len(result), 'row')}")
    if cut:
        note(f"{len(rows)} of {cut + len(rows)} rows: --limit left out {cut}")


def write_text(text: str, form: Format, warnings: Iterable[Notice] = ()) -> None:
    """Where the options say, warnings before any number; long text goes through a pager."""
    if form.file is None:
        colours = not (form.is_raw or form.as_markdown)
        page(text, warnings=warnings, pager=form.pager and not form.is_raw, colours=colours)
        return
    show_warnings(warnings)
    write_whole(form.file, text, force=form.force)


def _text(
    kind: str, head: dict[str, Any], result: Result, form: Format, explained: Explained | None
) -> str:
    if form.as_json:
        body = result_body(result)
        if explained is not None:
            second = explained.result
            body["explain"] = {"query": second.name, **result_body(second)}
        return document(kind, head, body)
    if form.as_csv:
        return csv_text(result, is_raw=form.is_csv_raw)
    below = f"\n## {explained.title}\n\n{markdown_text(explained.result)}" if explained else ""
    return markdown_text(result) + below


def _table(result: Result, form: Format, explained: Explained | None, beside: int) -> str:
    width = form.page_width
    text = table_text(result, width, whole=True) + side_text(beside)
    if explained is None:
        return text
    title = explained.title
    return f"{text}\n{title}\n{'=' * len(title)}\n{table_text(explained.result, width)}"


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


def _write_parquet(result: Result, form: Format) -> None:
    from wbscope.render.frames import write_parquet

    if form.file is not None:
        # Opened here: Arrow takes no name that is no UTF-8.
        with private_output(form.file, force=form.force) as private, private.open("wb") as file:
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
