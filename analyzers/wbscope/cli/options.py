# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several verbs share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

__all__ = [
    "RUN_HELP",
    "ClockOption",
    "ColumnsOption",
    "CsvOption",
    "CsvRawOption",
    "EngineName",
    "EngineOption",
    "ForceOption",
    "FromOption",
    "JsonOption",
    "LimitOption",
    "MarkdownOption",
    "NoPagerOption",
    "NoUnpackLimitOption",
    "OutputOption",
    "ParquetOption",
    "QuietOption",
    "RunArgument",
    "RunsArgument",
    "SortOption",
    "TimeRangeOption",
    "ToOption",
    "WidthOption",
]


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
OutputOption = Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="'-' is stdout.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
NoUnpackLimitOption = Annotated[
    bool,
    typer.Option(
        "--no-unpack-limit",
        help="Also a trace of which far more comes out than is in it.",
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
