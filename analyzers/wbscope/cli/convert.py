# SPDX-License-Identifier: Apache-2.0
"""wbscope convert: every event for Perfetto, no analysis."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wbscope.base.outputs import check_file_name
from wbscope.cli.options import (
    ForceOption,
    JsonOption,
    NoUnpackLimitOption,
    Part,
    QuietOption,
    bound,
)
from wbscope.cli.output import note, progress_bar, show_warnings, warnings_in_options, write_stdout
from wbscope.ingest.ingest import Converted
from wbscope.ingest.ingest import convert as run_convert
from wbscope.render.json import document, rows_body


@bound
def convert(
    *,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC...",
            help="trace.dat or run folder; further ones are guests of the first.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="X.pftrace", show_default=False),
    ],
    events: Annotated[
        list[str] | None,
        typer.Option(
            "-e",
            "--events",
            metavar="GLOB",
            help="Only these events, e.g. sched or 'sched:sched_w*'; repeatable.",
        ),
    ] = None,
    part: Part,
    compat: Annotated[
        bool,
        typer.Option("--compat", help="For Perfetto before v50: larger, the same content."),
    ] = False,
    no_unpack_limit: NoUnpackLimitOption = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write every event of a trace.dat as a Perfetto trace.

    No analysis: `wbscope timeline` writes what the run shows. Open the file at
    https://ui.perfetto.dev; docs/convert.md tells what of a trace goes where.

    \b
    Examples:
      wbscope convert trace.dat -o trace.pftrace
      wbscope convert trace.dat -o part.pftrace --from 10s --to 12s
      wbscope convert RUN -o block.pftrace --events 'sched:*' --events 'block:*'
      wbscope convert host.dat guest.dat -o both.pftrace
    """
    span = part.span()
    check_file_name(output)
    with progress_bar(sources[0], hidden=quiet or as_json) as bar:
        done = run_convert(
            sources,
            Path(output),
            events=events or (),
            span=span,
            compat=compat,
            force=force,
            unpack_limit=not no_unpack_limit,
            observer=bar,
        )
    if as_json:
        write_stdout(_document(sources, done))
        return
    show_warnings(done.warnings)
    note(f"wrote {done.output}: {done.converted_count} of {done.events_count} events")


def _document(sources: list[str], done: Converted) -> str:
    row = {
        "output": str(done.output),
        "events_count": done.events_count,
        "converted_count": done.converted_count,
        "damaged": done.damaged,
    }
    units = dict.fromkeys(("events_count", "converted_count"), "count")
    return document(
        "convert", {"sources": sources}, rows_body([row], warnings_in_options(done.warnings), units)
    )
