# SPDX-License-Identifier: Apache-2.0
"""The formats of a result, its columns and rows, and writing it where it belongs."""

from __future__ import annotations

import difflib
import io
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wbscope.base.errors import SetupError, UsageError
from wbscope.base.outputs import check_output, private_output, write_whole
from wbscope.base.result import Notice, Result
from wbscope.base.units import counted, parse_count
from wbscope.cli.output import (
    answer_in_options,
    cannot_write_stdout,
    note,
    page,
    show_warnings,
    table_width,
)
from wbscope.render.json import document, result_body
from wbscope.render.text import SIDE, csv_text, main_rows, markdown_text, side_text, table_text

# A narrower table has no room for a time and a number.
_LEAST_WIDTH = 20


@dataclass(frozen=True)
class Choice:
    """Nothing in it: all columns and rows, in the order of the answer.

    `sort` has names of columns; one with a '-' in front sorts from the largest down.
    """

    columns: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    limit: int | None = None

    def check(self, asked: str, columns: Sequence[str], command: str) -> None:
        """Refuse names that are no columns.

        asked     what the columns are of, as errors call it
        command   that would work with other names
        """
        for option, names in (("--columns", self.columns), ("--sort", self.sort)):
            for name in names:
                plain = name if option == "--columns" else _column(name, columns)
                if plain not in columns:
                    raise self._unknown(option, name, asked, columns, command)

    def names(self, column: str) -> bool:
        """Whether one of the options names it."""
        return column in self.columns or column in [name.removeprefix("-") for name in self.sort]

    @property
    def most_rows(self) -> int | None:
        """More rows than that are not shown, whatever they are."""
        return None if self.sort else self.limit

    def rows_of(self, result: Result) -> Result:
        """Sorted, and the first of them; values that were not recorded come last."""
        rows = list(result.rows)
        for name in reversed(self.sort):
            column = _column(name, result.columns)
            place = result.columns.index(column)
            known = [row for row in rows if row[place] is not None]
            known.sort(key=lambda row: _rank(row[place]), reverse=name != column)
            rows = known + [row for row in rows if row[place] is None]
        return replace(result, rows=rows[: self.limit])

    def of(self, result: Result) -> Result:
        """Both."""
        return self.columns_of(self.rows_of(result))

    def columns_of(self, result: Result) -> Result:
        """Those that were asked for, in that order: what is said of keys holds while they lead."""
        if not self.columns:
            return result
        keys = []
        for name in self.columns:
            if name not in result.keys:
                break
            keys.append(name)
        return replace(result.only(self.columns), keys=tuple(keys), first=())

    def _unknown(
        self, option: str, name: str, asked: str, columns: Sequence[str], command: str
    ) -> UsageError:
        close = _like(name, columns)
        meant = f"; did you mean {' or '.join(close)}?" if close else ""
        return UsageError(
            "unknown-column",
            f"{option} {name}",
            f"is no column of {asked}{meant}",
            have=", ".join(columns),
            fix=f"{command} {self._mended(columns)}",
        )

    def _mended(self, columns: Sequence[str]) -> str:
        """The options again, with the column that is most like each wrong one."""
        words = []
        for option, names in (("--columns", self.columns), ("--sort", self.sort)):
            good = []
            for name in names:
                plain = name if option == "--columns" else _column(name, columns)
                near = [plain] if plain in columns else _like(name, columns)
                sign = "-" if option == "--sort" and plain != name else ""
                good += [f"{sign}{one}" for one in near[:1]]
            if names:
                sign = "-" if option == "--sort" and names[0].startswith("-") else ""
                words.append(f"{option} {','.join(dict.fromkeys(good)) or sign + columns[0]}")
        return " ".join(words + ([] if self.limit is None else [f"--limit {self.limit}"]))


ALL = Choice()


def parse_choice(columns: str | None, sort: str | None, limit: str | None) -> Choice:
    """From the texts of the options. Raises: UsageError."""
    return Choice(
        columns=_listed("columns", columns),
        sort=_listed("sort", sort),
        limit=None if limit is None else parse_count("limit", limit, "--limit 20"),
    )


def parse_width(text: str | None) -> int | None:
    """The width of a page. Raises: UsageError."""
    if text is None:
        return None
    width = parse_count("width", text, "--width 120")
    if width < _LEAST_WIDTH:
        told = f"found {width}, wanted {_LEAST_WIDTH} or more"
        raise UsageError("bad-number", "--width", told, fix="--width 120")
    return width


def _listed(option: str, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        told = f'found "{text}", wanted names with a comma between them'
        raise UsageError("no-columns", f"--{option}", told, fix=f"--{option} tid,comm")
    return tuple(dict.fromkeys(names))


def _column(name: str, columns: Sequence[str]) -> str:
    """The column that a word of --sort names."""
    return name if name in columns else name.removeprefix("-")


def _like(name: str, columns: Sequence[str]) -> list[str]:
    return difflib.get_close_matches(name.removeprefix("-"), columns, n=3, cutoff=0.5)


def _rank(value: Any) -> tuple[int, Any]:
    """Numbers before texts before bytes, as SQLite sorts them."""
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (2, value)


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
