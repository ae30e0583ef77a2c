# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several verbs share, and what each group of them says."""

from __future__ import annotations

import difflib
import inspect
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from wbscope.base.errors import UsageError
from wbscope.base.outputs import check_output
from wbscope.base.result import Result
from wbscope.base.span import Span, parse_span
from wbscope.base.units import parse_count
from wbscope.cli.output import page_width, table_width
from wbscope.render.blocks import CSV, HTML, JSON, MARKDOWN, PARQUET, TEXT, WITH_TABLE
from wbscope.render.text import PAGE_WIDTH


class EngineName(StrEnum):
    """What runs the SQL."""

    sqlite = "sqlite"
    perfetto = "perfetto"


# What a RUN may be, for all verbs.
_FILES = "trace.dat, Perfetto trace, text of ftrace or perf, .db; also packed; - is stdin."
RUN_HELP = f"Run folder, {_FILES}"
RunArgument = Annotated[
    str,
    typer.Argument(metavar="RUN", help=RUN_HELP, show_default=False),
]
RunsArgument = Annotated[
    list[str],
    typer.Argument(metavar="RUN...", help=f"Run folders or files: {_FILES}", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="CSV with raw numbers.")]
CsvRawOption = Annotated[
    bool, typer.Option("--csv-raw", help="CSV with names as recorded: they may hold anything.")
]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="A table of Markdown.")]
ParquetOption = Annotated[
    str | None,
    typer.Option("--parquet", metavar="FILE", help="A Parquet file; '-' is stdout."),
]
HtmlOption = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="One HTML page; '-' is stdout.")
]
OutputOption = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="The format by its ending: .txt, .md, .html, .json, .csv, .parquet; '-' is stdout.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
NoUnpackLimitOption = Annotated[
    bool,
    typer.Option(
        "--no-unpack-limit",
        help="Accept traces that expand enormously.",
    ),
]
ColumnsOption = Annotated[
    str | None, typer.Option(metavar="NAME,...", help="Only these columns, in this order.")
]
SortOption = Annotated[
    str | None,
    typer.Option(metavar="[-]NAME,...", help="Sort by these; with '-', the largest first."),
]
LimitOption = Annotated[str | None, typer.Option(metavar="N", help="Only the first N rows.")]
WidthOption = Annotated[
    str | None,
    typer.Option(metavar="N", help="Columns of the page; else COLUMNS or the terminal's."),
]
NoPagerOption = Annotated[
    bool, typer.Option("--no-pager", help="Long text on a terminal as it is, not in $PAGER.")
]
_TIME = "2s: from the first event; @12.5s: by the trace clock"
FromOption = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help=f"Begin here. {_TIME}."),
]
ToOption = Annotated[
    str | None,
    typer.Option("--to", metavar="TIME", help="End before this time, written as for --from."),
]
TimeRangeOption = Annotated[
    str | None,
    typer.Option(metavar="FROM..TO", help="Both at once; one of them may be left out."),
]
ClockOption = Annotated[
    bool,
    typer.Option("--clock", help="Times of the trace clock, not from the first event."),
]
EngineOption = Annotated[
    EngineName,
    typer.Option("--engine", help="What runs the SQL; perfetto: trace processor, on its traces."),
]


def bound(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb of which each parameter that is a dataclass of options is these options."""
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for one in inspect.signature(verb).parameters.values():
        kind = hints[one.name]
        if not is_dataclass(kind):
            parameters.append(one.replace(annotation=hints[one.name], kind=one.KEYWORD_ONLY))
            continue
        groups[one.name] = kind
        of_kind = get_type_hints(kind, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=of_kind[field.name],
            )
            for field in fields(kind)
        ]

    def call(**given: Any) -> None:
        made = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)})
            for name, kind in groups.items()
        }
        verb(**given, **made)

    call.__name__, call.__doc__, call.__module__ = verb.__name__, verb.__doc__, verb.__module__
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


@dataclass(frozen=True)
class Part:
    """Options: the part of the time that is looked at."""

    start: FromOption = None
    end: ToOption = None
    time_range: TimeRangeOption = None

    def span(self) -> Span:
        """Raises: UsageError."""
        return parse_span(self.start, self.end, self.time_range)


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


@dataclass(frozen=True)
class Rows:
    """Options: what is shown of a table, and how wide."""

    columns: ColumnsOption = None
    sort: SortOption = None
    limit: LimitOption = None
    width: WidthOption = None

    def choice(self) -> Choice:
        """Raises: UsageError."""
        limit = self.limit
        return Choice(
            columns=_listed("columns", self.columns),
            sort=_listed("sort", self.sort),
            limit=None if limit is None else parse_count("limit", limit, "--limit 20"),
        )

    def page_width(self, out: Output) -> int | None:
        """Of the page, if it was asked for. Raises: UsageError."""
        if self.width is None:
            return None
        if out.form != TEXT:
            found = f"{out.flag or f'-o {out.name}'} --width {self.width}"
            told = "the width is one of a table of text, which this is not"
            raise UsageError("two-formats", found, told, fix=out.flag or "-o FILE.txt")
        width = parse_count("width", self.width, "--width 120")
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
# What a file is, by the end of its name; any other is text.
_ENDINGS = {
    ".txt": TEXT, ".md": MARKDOWN, ".markdown": MARKDOWN, ".html": HTML, ".htm": HTML,
    ".json": JSON, ".csv": CSV, ".parquet": PARQUET,
}  # fmt: skip
# Names that promise what no document is.
_OTHERS = frozenset(
    (".db", ".docx", ".gz", ".jsonl", ".pdf", ".pftrace", ".png", ".svg", ".tsv", ".xlsx", ".xml",
     ".yaml", ".zip"),
)  # fmt: skip
_LIKE = 0.75  # .htlm and .html are: one letter of four, or two that have changed places


def _is_foreign(ending: str) -> bool:
    """A name with it would not hold what it says, or was mistyped."""
    if ending in _ENDINGS or not ending:
        return False
    return ending in _OTHERS or bool(difflib.get_close_matches(ending, _ENDINGS, cutoff=_LIKE))


def _ending_of(form: str) -> str:
    return next(end for end, one in _ENDINGS.items() if one == form)


@dataclass(frozen=True)
class Output:
    """Options: the format, and where it goes; '-' is stdout.

    The format is what an option says, else what the end of the file's name does.
    """

    as_json: JsonOption = False
    as_csv: CsvOption = False
    csv_raw: CsvRawOption = False
    as_markdown: MarkdownOption = False
    html: HtmlOption = None
    parquet: ParquetOption = None
    output: OutputOption = _STDOUT
    force: ForceOption = False
    no_pager: NoPagerOption = False
    quiet: QuietOption = False

    def check(
        self, inputs: Iterable[str], forms: Sequence[str] = WITH_TABLE, noun: str = "answer"
    ) -> None:
        """Refuse, before any work, formats that exclude each other and files of another kind.

        forms  those that the verb has; `noun` is what it makes
        """
        flags = self._flags()
        if len(flags) > 1:
            found = " ".join(flags)
            raise UsageError("two-formats", found, "exclude each other, wanted one", fix=flags[0])
        if self.name != self.output and self.output != _STDOUT:
            raise UsageError(
                "two-outputs",
                f"{self.flag} {self.name} -o {self.output}",
                "are two files, wanted one",
                fix=f"{self.flag} {self.output}",
            )
        if self.parquet == _STDOUT and sys.stdout is not None and sys.stdout.isatty():
            raise UsageError(
                "binary-to-terminal",
                "--parquet -",
                "would write a binary file to the terminal",
                fix="--parquet FILE.parquet",
            )
        if self.file is not None:
            argument = "output" if self.name == self.output else self.form
            paths = [Path(path) for path in inputs]
            check_output(self.name, self.force, paths, f"{noun}{_ending_of(self.form)}", argument)
        self._check_name(forms, noun)

    def _check_name(self, forms: Sequence[str], noun: str) -> None:
        """No file holds what its name does not say."""
        ending, form = self._ending, self.form
        own = f"-o {self.output}" if self.name == self.output else f"{self.flag} {self.name}"
        if _is_foreign(ending) or form not in forms:
            has = bool(self.flag) and form in forms
            have = [end for end, one in _ENDINGS.items() if one in forms]
            meant = difflib.get_close_matches(ending, have, 1, _LIKE)
            good = _ending_of(HTML if HTML in forms else TEXT)
            good = _ending_of(form if has else _ENDINGS[meant[0]]) if has or meant else good
            stem = noun if self.name in ("", _STDOUT) else self.name
            raise UsageError(
                "unknown-format",
                own if has or not self.flag else self.flag,
                f"this {noun} cannot be written as {ending if _is_foreign(ending) else form}",
                have=", ".join(have),
                fix=f"-o {shlex.quote(str(Path(stem).with_suffix(good)))}",
            )
        if self.flag and _ENDINGS.get(ending, form) not in (TEXT, form):
            raise UsageError(
                "two-formats",
                own if self.name != self.output else f"{self.flag} {own}",
                f"is {form} in a file whose name says {ending}",
                fix=f"-o {shlex.quote(self.name)}",
            )

    def _flags(self) -> list[str]:
        return [
            option
            for option, given in (
                ("--json", self.as_json),
                ("--csv-raw" if self.csv_raw else "--csv", self.as_csv or self.csv_raw),
                ("--markdown", self.as_markdown),
                ("--html", self.html is not None),
                ("--parquet", self.parquet is not None),
            )
            if given
        ]

    @property
    def flag(self) -> str:
        """The option that says the format; "" where none does."""
        return next(iter(self._flags()), "")

    @property
    def form(self) -> str:
        """The format."""
        if self.html is not None or self.parquet is not None:
            return PARQUET if self.html is None else HTML
        if self.as_csv or self.csv_raw:
            return CSV
        if self.as_json or self.as_markdown:
            return JSON if self.as_json else MARKDOWN
        return _ENDINGS.get(self._ending, TEXT)

    @property
    def _ending(self) -> str:
        return "" if self.name == _STDOUT else Path(self.name).suffix.lower()

    @property
    def is_named(self) -> bool:
        """Whether the file's name says a format, whoever has it."""
        return self._ending in _ENDINGS or _is_foreign(self._ending)

    @property
    def is_raw(self) -> bool:
        """Whether it is for programs, which take times as they were recorded."""
        return self.form in (JSON, CSV, PARQUET)

    @property
    def hidden(self) -> bool:
        """No bar is drawn while a run is read."""
        return self.quiet or self.as_json

    def table_width(self, asked: int | None = None) -> int | None:
        """What tables have to fit; None: nothing."""
        return table_width(asked, to_file=self.file is not None)

    def page_width(self, asked: int | None = None) -> int:
        """What sentences have to fit."""
        return asked or (page_width() if self.file is None else PAGE_WIDTH)

    @property
    def name(self) -> str:
        """The file as it was named."""
        named = (name for name in (self.html, self.parquet) if name is not None)
        return next(named, self.output)

    @property
    def file(self) -> Path | None:
        """The file that is written, None for stdout."""
        return None if self.name == _STDOUT else Path(self.name)

    @property
    def one_table(self) -> tuple[str, str] | None:
        """Option and name of a format that holds one table only."""
        if self.form == CSV:
            return self.flag or f"-o {self.output}", "CSV"
        named = f"--parquet {self.parquet}" if self.parquet else f"-o {self.output}"
        return (named, "Parquet") if self.form == PARQUET else None
