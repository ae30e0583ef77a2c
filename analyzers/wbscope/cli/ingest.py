# SPDX-License-Identifier: Apache-2.0
"""wbscope ingest: trace to database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wbscope.base.errors import UsageError
from wbscope.base.outputs import check_file_name
from wbscope.base.units import parse_count
from wbscope.cli.options import (
    ForceOption,
    JsonOption,
    NoUnpackLimitOption,
    Part,
    QuietOption,
    bound,
)
from wbscope.cli.output import note, progress_bar, show_warnings, warnings_in_options, write_stdout
from wbscope.ingest.ingest import Choice
from wbscope.library.library import load_library
from wbscope.render.json import document, rows_body
from wbscope.run.ingested import Ingested, default_output
from wbscope.run.ingested import ingest as run_ingest
from wbscope.source.source import find_source


@bound
def ingest(
    *,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SRC",
            help="Run folder or trace of any kind, also packed; - is stdin.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="RUN.db",
            help="Default for a run folder: FOLDER/run.db.",
        ),
    ] = None,
    events: Annotated[
        list[str] | None,
        typer.Option(
            "-e",
            "--events",
            metavar="GLOB",
            help="Load these too, e.g. sched or 'sched:sched_w*'; repeatable.",
        ),
    ] = None,
    load_all: Annotated[bool, typer.Option("--all", help="Load every event.")] = False,
    part: Part,
    limit: Annotated[
        str | None, typer.Option(metavar="N", help="Stop after N loaded records.")
    ] = None,
    no_unpack_limit: NoUnpackLimitOption = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Load a trace into an SQLite database.

    Without --events and --all it loads the events that the canned queries use;
    all others are counted.

    \b
    Examples:
      wbscope ingest trace.dat -o run.db
      wbscope ingest RUN --events 'ext4:*' --force
      wbscope ingest trace.dat -o run.db --all
      wbscope ingest trace.dat -o part.db --all --from 10s --to 12s
      wbscope ingest trace.dat -o head.db --all --limit 1000
      wbscope ingest trace.pftrace -o run.db
    """
    if events and load_all:
        raise UsageError(
            "two-choices", "--events --all", "exclude each other, wanted one", fix="--all"
        )
    span = part.span()
    row_limit = None if limit is None else parse_count("limit", limit, "wbscope ingest --help")
    if output is not None:
        check_file_name(output)
    run = find_source(source)
    target = default_output(run) if output is None else Path(output)
    choice = Choice(events or (), load_all, span, row_limit, not no_unpack_limit)
    with progress_bar(source, hidden=quiet or as_json) as bar:
        done = run_ingest(run, target, load_library(), choice, force=force, observer=bar)
    if as_json:
        write_stdout(_document(source, done))
        return
    show_warnings(done.warnings)
    note(f"wrote {target}: {done.events_count} events, {done.loaded_count} of them loaded")


def _document(source: str, done: Ingested) -> str:
    row = {
        "output": str(done.output),
        "events_count": done.events_count,
        "loaded_count": done.loaded_count,
        "damaged": done.damaged,
    }
    units = dict.fromkeys(("events_count", "loaded_count"), "count")
    return document(
        "ingest", {"source": source}, rows_body([row], warnings_in_options(done.warnings), units)
    )
