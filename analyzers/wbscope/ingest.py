# SPDX-License-Identifier: Apache-2.0
"""Trace to database: what to load, and where to put it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wbscope.children import passed_text
from wbscope.choice import Choice
from wbscope.engine.library import Library
from wbscope.engine.result import Notice
from wbscope.errors import InputError, UsageError
from wbscope.formats import reference_formats
from wbscope.ingester import Observer, run_ingester
from wbscope.outputs import check_output, private_output
from wbscope.selection import check_glob, check_selection
from wbscope.sources import DATABASE_NAME, Kind, Source, find_source

__all__ = ["Ingested", "default_output", "ingest"]


@dataclass(frozen=True)
class Ingested:
    """What a finished ingest did."""

    output: Path
    events_count: int
    loaded_count: int
    damaged: bool
    warnings: tuple[Notice, ...]


def default_output(source: Path) -> Path:
    """FOLDER/run.db; a lone trace has no folder of its own to write to."""
    if source.is_dir():
        return source / DATABASE_NAME
    raise UsageError(
        "no-output",
        str(source),
        "needs an output file; only a run folder has a default, FOLDER/run.db",
        fix=shlex.join(["wbscope", "ingest", str(source), "-o", f"{source.stem}.db"]),
    )


def ingest(
    source: Path,
    output: Path,
    library: Library,
    *,
    events: Sequence[str] = (),
    load_all: bool = False,
    time_range: str | None = None,
    limit: int | None = None,
    force: bool = False,
    unpack_limit: bool = True,
    observer: Observer | None = None,
) -> Ingested:
    """Load what a `Choice` of these values says.

    unpack_limit: refuse a compressed trace of which a thousand times its size comes out.
    """
    for glob in events:
        check_glob(glob)
    run = find_source(str(source))
    if run.kind is Kind.DATABASE:
        raise InputError(
            "already-a-database",
            str(source),
            "is an SQLite database already, wanted a trace",
            fix=shlex.join(["wbscope", "query", "NAME", str(source)]) + "    # wbscope queries",
        )
    check_output(output, force, [source, run.trace])
    choice = Choice(events, load_all, time_range, limit)
    with private_output(output) as private:
        if run.kind is Kind.PERFETTO:
            if time_range is not None or limit is not None:
                raise UsageError(
                    "whole-trace-only",
                    "--time-range, --limit",
                    "are not for Perfetto traces, which trace processor reads as a whole",
                    fix=shlex.join(["wbscope", "ingest", str(source), "-o", str(output)]),
                )
            # Only here: a trace.dat is read without the package perfetto.
            from wbscope.perfetto.ingest import ingest_perfetto

            done, warnings = ingest_perfetto(run, private, library, choice, observer)
        else:
            more = [] if unpack_limit else ["--no-unpack-limit"]
            done, warnings = _ingest(run, source, private, library, choice, observer, more)
        warnings += check_selection(source, private, choice)
    return Ingested(
        output=output,
        events_count=done["events_count"],
        loaded_count=done["loaded_count"],
        damaged=bool(done["damaged"]),
        warnings=tuple(warnings),
    )


def _ingest(
    run: Source,
    source: Path,
    output: Path,
    library: Library,
    choice: Choice,
    observer: Observer | None,
    more_options: Sequence[str],
) -> tuple[dict[str, Any], list[Notice]]:
    # Formats are hundreds of files to read, and for text only.
    texts = [] if run.has_formats() else reference_formats()
    with (
        passed_text("".join(f"{event}\n" for event in library.events())) as (listed, events_name),
        passed_text("".join(texts)) as (formats, formats_name),
    ):
        options = ["--all"] if choice.load_all else ["--events-file", events_name]
        for event in choice.events:
            options += ["--events", event]
        options += [*library.table_options(), *more_options]
        if choice.time_range is not None:
            options += ["--time-range", choice.time_range]
        if choice.limit is not None:
            options += ["--limit", str(choice.limit)]
        return run_ingester(
            ["sqlite", str(source), "-o", str(output), "--formats", formats_name, *options],
            observer,
            files=[listed, formats],
        )
