# SPDX-License-Identifier: Apache-2.0
"""Traces of trace-cmd as a Perfetto trace."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.children import file_word
from wbscope.base.errors import InputError
from wbscope.base.outputs import check_output, private_output
from wbscope.base.result import Notice
from wbscope.base.span import WHOLE, Span
from wbscope.ingest.program import Observer, run_ingester
from wbscope.ingest.selection import check_glob, saying
from wbscope.library.database import check_database
from wbscope.run.offered import report_of
from wbscope.run.source import Kind, Source, find_source

__all__ = ["Converted", "convert"]


@dataclass(frozen=True)
class Converted:
    """What was written, and what is to be known of it."""

    output: Path
    events_count: int
    converted_count: int
    damaged: bool
    warnings: tuple[Notice, ...]


def convert(
    sources: Sequence[str],
    output: Path,
    *,
    events: Sequence[str] = (),
    span: Span = WHOLE,
    compat: bool = False,
    force: bool = False,
    unpack_limit: bool = True,
    observer: Observer | None = None,
) -> Converted:
    """Write every event of the traces, the first of the host, the others of its guests.

    unpack_limit: refuse a trace of which far more comes out than is in it.

    Raises: WbscopeError.
    """
    for glob in events:
        check_glob(glob)
    named = [find_source(source) for source in sources]
    for run in named:
        _check_kind(run)
    inputs = [path for run in named for path in (run.path, run.trace)]
    check_output(output, force, inputs, "run.pftrace")
    options = ["--compat"] if compat else []
    if not unpack_limit:
        options.append("--no-unpack-limit")
    for glob in events:
        options += ["--events", glob]
    if span:
        options += ["--time-range", span.machine()]
    with ExitStack() as stack:
        private = stack.enter_context(private_output(output, force=force))
        stack.enter_context(saying(span))
        runs = [stack.enter_context(run.at_hand(limited=unpack_limit)) for run in named]
        for run in runs:
            _check_kind(run)
        done, warnings = run_ingester(
            ["convert", *(file_word(run.given) for run in runs), "-o", str(private), *options],
            observer,
        )
        for run in runs:
            warnings = run.shown(warnings)
        if events and not done["loaded_count"]:
            told = f": of these there is no record among {done['events_count']}"
            warnings.append(Notice("no-such-event", Phrase(Argument("events", list(events)), told)))
    return Converted(
        output=output,
        events_count=done["events_count"],
        converted_count=done["loaded_count"],
        damaged=bool(done["damaged"]),
        warnings=tuple(warnings),
    )


def _check_kind(run: Source) -> None:
    shown = shlex.quote(str(run.path))
    if run.kind is Kind.PERFETTO:
        raise InputError(
            "already-perfetto",
            str(run.path),
            "is a Perfetto trace already, wanted a trace.dat",
            fix=f"{report_of(run.path)}    # or open it in the Perfetto UI as it is",
        )
    if run.kind is Kind.DATABASE:
        check_database(run.trace, str(run.path))
        raise InputError(
            "not-a-trace",
            str(run.path),
            "is a run database, wanted the trace.dat that it was made from",
            fix=f"wbscope timeline {shown} -o run.pftrace    # what the run shows",
        )
