# SPDX-License-Identifier: Apache-2.0
"""The formats of a result: which one was asked for, and writing it where it belongs."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wbscope.base.errors import SetupError, UsageError
from wbscope.base.outputs import check_output, private_output, write_whole
from wbscope.base.result import Result
from wbscope.cli.output import note, page_width, show_warnings, write_stdout
from wbscope.cli.wording import answer_in_options
from wbscope.render.csvtable import csv_text
from wbscope.render.jsondoc import document, result_body
from wbscope.render.markdown import markdown_text
from wbscope.render.table import PAGE_WIDTH, table_text

__all__ = ["Explained", "Format", "write_result"]

_STDOUT = "-"


@dataclass(frozen=True)
class Explained:
    """A second result that is told below the first, and its title."""

    title: str
    result: Result


@dataclass(frozen=True)
class Format:
    """What the options say; `parquet` and `output` are file names, '-' is stdout."""

    as_json: bool = False
    as_csv: bool = False
    as_markdown: bool = False
    parquet: str | None = None
    output: str = _STDOUT
    force: bool = False

    def check(self, inputs: Iterable[str]) -> None:
        """Refuse two formats at once and files that cannot be written, before any work."""
        chosen = [
            option
            for option, given in (
                ("--json", self.as_json),
                ("--csv", self.as_csv),
                ("--markdown", self.as_markdown),
                ("--parquet", self.parquet is not None),
            )
            if given
        ]
        if len(chosen) > 1:
            found = " ".join(chosen)
            raise UsageError("two-formats", found, "exclude each other, wanted one", fix=chosen[0])
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
            check_output(self.file, self.force, [Path(path) for path in inputs], *example)

    @property
    def is_raw(self) -> bool:
        """Whether it is for programs, which take times as they were recorded."""
        return self.as_json or self.as_csv or self.parquet is not None

    @property
    def file(self) -> Path | None:
        """The file that is written, None for stdout."""
        name = self.output if self.parquet is None else self.parquet
        return None if name == _STDOUT else Path(name)

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
    """The result in the format that was asked for; warnings before any number."""
    result = answer_in_options(result)
    # These two carry their warnings with them.
    if not form.as_json and not form.as_markdown:
        show_warnings(result.warnings)
    if form.parquet is not None:
        _write_parquet(result, form)
    elif form.file is None:
        write_stdout(_text(kind, head, result, form, explained, page_width()))
    else:
        write_whole(form.file, _text(kind, head, result, form, explained, PAGE_WIDTH))
    if form.file is not None and not form.as_json:
        note(f"wrote {form.file}: {len(result)} rows")


def _text(
    kind: str,
    head: dict[str, Any],
    result: Result,
    form: Format,
    explained: Explained | None,
    width: int,
) -> str:
    if form.as_json:
        body = result_body(result)
        if explained is not None:
            second = explained.result
            body["explain"] = {"query": second.name, **result_body(second)}
        return document(kind, head, body)
    if form.as_csv:
        return csv_text(result)
    if form.as_markdown:
        below = f"\n## {explained.title}\n\n{markdown_text(explained.result)}" if explained else ""
        return markdown_text(result) + below
    text = table_text(result, width)
    if explained is not None:
        title = explained.title
        text += f"\n{title}\n{'=' * len(title)}\n{table_text(explained.result, width)}"
    return text


def _write_parquet(result: Result, form: Format) -> None:
    from wbscope.render.frames import write_parquet

    if form.file is not None:
        with private_output(form.file) as private:
            write_parquet(result, str(private))
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
        raise SetupError(
            "cannot-write", "stdout", f"cannot be written: {error.strerror or error}"
        ) from error
