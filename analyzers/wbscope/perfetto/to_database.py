# SPDX-License-Identifier: Apache-2.0
"""Perfetto trace to database: trace processor, reader and ingester, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from wbscope.base.errors import InputError, SetupError, WbscopeError
from wbscope.base.result import Notice
from wbscope.base.system import passed_text
from wbscope.ingest.ingest import Choice
from wbscope.ingest.program import Observer, run_ingester
from wbscope.library.library import Library
from wbscope.perfetto.facts import TraceFacts, first_machine, read_facts, with_sampled_files
from wbscope.perfetto.reader import NoFtraceEvents, Reader
from wbscope.perfetto.stream import RecordStream
from wbscope.perfetto.trace_processor import (
    VARIABLE,
    TraceProcessor,
    TraceProcessorDied,
    TraceProcessorError,
)
from wbscope.source.source import Source


def ingest_perfetto(
    source: Source,
    output: Path,
    library: Library,
    choice: Choice,
    observer: Observer | None,
) -> tuple[dict[str, Any], list[Notice]]:
    """As run_ingester: its `done` message and its warnings. The output is in a private folder."""
    globs = [*library.events(), *choice.events]
    with TraceProcessor() as engine:
        load(engine, source, None if observer is None else _Halves(observer).loaded)
        return _write(engine, source, output, globs, library.load_plan(), choice, observer)


def load(
    engine: TraceProcessor, source: Source, advance: Callable[[int, int], None] | None
) -> None:
    """Let the engine parse the trace of a run; advance hears of bytes done and in all."""
    trace = source.trace
    try:
        engine.load(trace, advance)
    except TraceProcessorDied as error:
        raise died(engine, str(trace), error) from error
    except TraceProcessorError as error:
        raise _refused(trace, error) from error


def ingest_facts(engine: TraceProcessor, source: Source, output: Path, library: Library) -> None:
    """A database with everything but the events of a trace that the engine has loaded."""
    _write(engine, source, output, library.events(), "{}", Choice(), None, facts_only=True)


def _refused(trace: Path | str, error: TraceProcessorError | str) -> InputError:
    return InputError(
        "perfetto-refused",
        str(trace),
        f"Perfetto's trace processor cannot read it: {error}",
        effect="nothing was written",
        fix="record or copy the trace again",
    )


class _Halves:
    """Loading is the first half of the work, reading out the second."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def loaded(self, done: int, total: int) -> None:
        self._observer.advance(done, 2 * total)


def _write(
    engine: TraceProcessor,
    source: Source,
    output: Path,
    globs: Sequence[str],
    plan: str,
    choice: Choice,
    observer: Observer | None,
    facts_only: bool = False,
) -> tuple[dict[str, Any], list[Notice]]:
    trace = source.trace
    try:
        return _write_all(engine, source, output, globs, plan, choice, observer, facts_only)
    except TraceProcessorDied as error:
        raise died(engine, str(trace), error) from error
    except TraceProcessorError as error:
        raise _refused(trace, error) from error


def _write_all(
    engine: TraceProcessor,
    source: Source,
    output: Path,
    globs: Sequence[str],
    plan: str,
    choice: Choice,
    observer: Observer | None,
    facts_only: bool,
) -> tuple[dict[str, Any], list[Notice]]:
    trace = source.trace
    machine = first_machine(engine)
    facts = read_facts(trace, machine.raw_id)
    reader = Reader(engine, facts, machine)
    rows = engine.query("SELECT COUNT(*) AS n FROM ftrace_event")[0]["n"]
    progress = _RowProgress(observer, trace.stat().st_size, int(rows or 0))

    def feed(pipe: BinaryIO) -> None:
        out = RecordStream(pipe)
        reader.write(out, globs, choice.load_all, progress.rows, facts_only=facts_only)

    arguments = ["records", "-", "-o", str(output), "--trace", str(trace)]
    if not choice.unpack_limit:
        arguments.append("--no-unpack-limit")
    folder = with_sampled_files(engine, source, output.parent, machine)
    if folder is not None:
        arguments += ["--folder", str(folder)]
    try:
        with passed_text(plan) as (planned, name):
            return run_ingester([*arguments, "--plan", name], feed=feed, files=[planned])
    except NoFtraceEvents as nothing:
        raise _no_events(trace, facts, nothing) from nothing


def _no_events(trace: Path, facts: TraceFacts, nothing: NoFtraceEvents) -> InputError:
    if facts.damage is not None:
        return InputError(
            "nothing-readable",
            str(trace),
            f"no ftrace event could be read: {facts.damage}",
            effect="nothing was written",
            fix="record or copy the trace again",
        )
    if facts.has_zstd_events:
        return InputError(
            "packed-with-zstd",
            str(trace),
            "its packets are packed with zstd, which the trace processor at hand does not read,"
            " wanted that of Perfetto v58 or later",
            have=str(nothing),
            effect="nothing was written",
            fix=f"export {VARIABLE}=/path/to/trace_processor_shell of"
            " https://github.com/google/perfetto/releases, or record without"
            " compression_type: COMPRESSION_TYPE_ZSTD",
        )
    return InputError(
        "no-ftrace-events",
        str(trace),
        "is a trace without ftrace events, wanted one of data source linux.ftrace",
        have=str(nothing),
        effect="nothing was written",
        fix="perfetto -o trace.pftrace -t 10s 'writeback/*' 'vmscan/*' sched/sched_switch",
    )


class _RowProgress:
    """Tells of rows as of bytes of the trace, from its second half on."""

    def __init__(self, observer: Observer | None, trace_bytes: int, rows: int) -> None:
        self._observer = observer
        self._bytes = trace_bytes
        self._rows = max(rows, 1)
        self._done = 0

    def rows(self, count: int) -> None:
        self._done = min(self._done + count, self._rows)
        if self._observer is not None:
            done = self._bytes + self._bytes * self._done // self._rows
            self._observer.advance(done, 2 * self._bytes)


def died(engine: TraceProcessor, trace: str, error: TraceProcessorDied) -> WbscopeError:
    """The engine ended by itself, mostly for want of memory; else the trace made it do so."""
    if error.check is not None:
        return _refused(trace, error.check)
    fix = "free memory, then run the command again"
    if engine.command.is_wasm:
        fix = (
            "install a native trace_processor_shell: the WebAssembly engine has 4 GiB at most;"
            " or record less with perfetto"
        )
    return SetupError(
        "trace-processor-died",
        trace,
        f"Perfetto's trace processor did not finish: {error}",
        have=" ".join(engine.command.arguments),
        effect="nothing was written",
        fix=fix,
    )
