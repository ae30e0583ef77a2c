# SPDX-License-Identifier: Apache-2.0
"""From a run to a database: by whoever reads its kind of trace, and kept in the cache."""

from __future__ import annotations

import contextlib
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.cache import CACHE_FIX, cache_entry, only_maker, trim_cache, used
from wbscope.base.errors import InputError, SetupError, UsageError
from wbscope.base.outputs import check_output, private_output
from wbscope.base.result import Notice
from wbscope.base.version import __version__
from wbscope.ingest.program import Observer, find_ingester
from wbscope.ingest.selection import Choice, check_glob, check_selection, saying
from wbscope.ingest.to_database import trace_to_database
from wbscope.library.database import SCHEMA_VERSION, check_database
from wbscope.library.finding import Finding, find_all
from wbscope.library.library import Library
from wbscope.library.params import Params
from wbscope.library.saved import save_views
from wbscope.library.sqlite import SqliteEngine
from wbscope.run.labels import names_of
from wbscope.run.offered import report_of
from wbscope.run.source import DATABASE_NAME, Kind, Source

__all__ = ["Ingested", "database_of", "default_output", "ingest", "kept_database"]


@dataclass(frozen=True)
class Ingested:
    """What a finished ingest did."""

    output: Path
    events_count: int
    loaded_count: int
    damaged: bool
    warnings: tuple[Notice, ...]


def database_of(source: Source, library: Library, observer: Observer | None = None) -> Path:
    """The database of a run; a trace is ingested into the cache when needed."""
    if source.kind is Kind.DATABASE:
        return source.trace
    entry = _entry(source, library)
    if not used(entry):
        with only_maker(entry):
            if used(entry):  # another process has made it in the meantime
                return entry
            try:
                _make(source, entry, library, observer)
            except SetupError as error:
                if error.slug == "cannot-write":
                    error.fix = CACHE_FIX  # the user gave no output
                raise
        trim_cache(keep=entry)
    return entry


def kept_database(source: Source, library: Library) -> Path | None:
    """The database of a run if there is one: a trace is not ingested for it."""
    if source.kind is Kind.DATABASE:
        return source.trace
    entry = _entry(source, library)
    return entry if used(entry) else None


def _entry(source: Source, library: Library) -> Path:
    """Where in the cache the database of a trace belongs."""
    inputs, marks = source.marks()
    layout = [__version__, str(SCHEMA_VERSION)]
    versions = [*marks, *layout, *library.events(), *library.table_options()]
    # The program is an input too: a new one may read more of the same trace.
    return cache_entry([find_ingester(), *inputs], versions)


def _make(source: Source, entry: Path, library: Library, observer: Observer | None) -> None:
    with source.at_hand() as run:
        if run.kind is Kind.DATABASE:
            with private_output(entry) as private:
                shutil.copyfile(run.trace, private)
        else:
            ingest(run, entry, library, force=True, observer=observer, views=False)


def _parts_of(choice: Choice) -> Phrase:
    """The arguments that ask for a part of the trace, as they were written."""
    parts = list(choice.span.words().parts)
    if choice.limit is not None:
        parts += [*([" "] if parts else []), Argument("limit", choice.limit)]
    return Phrase(*parts)


def default_output(source: Source) -> Path:
    """FOLDER/run.db; a lone trace has no folder of its own to write to."""
    if source.path.is_dir() and not source.digest:
        return source.path / DATABASE_NAME
    raise UsageError(
        "no-output",
        str(source.path),
        "needs an output file; only a run folder has a default, FOLDER/run.db",
        fix=shlex.join(["wbscope", "ingest", str(source.path), "-o", f"{source.name}.db"]),
    )


def ingest(
    run: Source,
    output: Path,
    library: Library,
    choice: Choice | None = None,
    *,
    force: bool = False,
    observer: Observer | None = None,
    views: bool = True,
) -> Ingested:
    """Load what the choice says; the library's views go with it, for readers without wbscope.

    Raises: WbscopeError.
    """
    choice = choice or Choice()
    for glob in choice.events:
        check_glob(glob)
    if run.kind is Kind.PACKED:
        check_output(output, force, [run.path, run.trace])
        with run.at_hand(limited=choice.unpack_limit) as plain:
            return ingest(
                plain, output, library, choice, force=force, observer=observer, views=views
            )
    if run.kind is Kind.DATABASE:
        check_database(run.path, str(run.path))
        raise InputError(
            "already-a-database",
            str(run.path),
            "is a run database already, wanted a trace",
            fix=report_of(run.path),
        )
    check_output(output, force, [run.path, run.trace])
    with (
        _kept_for(output) as engines,
        run.at_hand(),
        private_output(output) as private,
    ):
        if run.kind is Kind.PERFETTO:
            if choice.is_part:
                raise UsageError(
                    "whole-trace-only",
                    _parts_of(choice),
                    "cannot be had of a Perfetto trace, which trace processor reads as a whole",
                    fix=shlex.join(["wbscope", "ingest", str(run.path), "-o", str(output)]),
                )
            # Only here: a trace.dat is read without the package perfetto.
            from wbscope.perfetto.ingest import ingest_perfetto

            done, warnings = ingest_perfetto(run, private, library, choice, observer)
        else:
            with saying(choice.span):
                done, warnings = trace_to_database(run, private, library, choice, observer)
        warnings += check_selection(run, private, choice)
        if views and private.exists():

            def find(database: Path) -> list[Finding]:
                engines.append(SqliteEngine(database, str(output), library))
                return _findings(engines[-1], library, str(output))

            warnings += save_views(private, library, str(output), find)
    return Ingested(
        output=output,
        events_count=done["events_count"],
        loaded_count=done["loaded_count"],
        damaged=bool(done["damaged"]),
        warnings=tuple(run.shown(warnings)),
    )


@contextlib.contextmanager
def _kept_for(output: Path) -> Iterator[list[SqliteEngine]]:
    """Engines that read the file before it has its name: what they made is kept for whoever asks.

    Judging a run makes most of what the first question to it needs.
    """
    engines: list[SqliteEngine] = []
    try:
        yield engines
        for engine in engines:
            engine.rename(output)
    except BaseException:
        for engine in engines:
            engine.close(keep=False)
        raise
    for engine in engines:
        engine.close()


def _findings(engine: SqliteEngine, library: Library, shown: str) -> list[Finding]:
    found = find_all(engine, library, shown, Params(), names_of(engine).label)
    engine.rest()
    return found
