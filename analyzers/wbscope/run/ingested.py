# SPDX-License-Identifier: Apache-2.0
"""From a run to a database: by whoever reads its kind of trace, and kept in the cache."""

from __future__ import annotations

import contextlib
import shlex
import shutil
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.cache import (
    CACHE_FIX,
    CACHE_IS_FULL,
    cache_entry,
    is_own_entry,
    only_maker,
    refuse_foreign,
    trim_cache,
    used,
)
from wbscope.base.errors import (
    Argument,
    InputError,
    Phrase,
    QueryError,
    SetupError,
    UsageError,
    WbscopeError,
)
from wbscope.base.outputs import check_output, private_output
from wbscope.base.result import Notice
from wbscope.base.system import file_word
from wbscope.base.version import __version__
from wbscope.ingest.ingest import Choice, check_glob, check_selection, saying, trace_to_database
from wbscope.ingest.program import Observer, find_ingester
from wbscope.library.database import SCHEMA_VERSION, check_database, check_times, of_losses
from wbscope.library.finding import Finding, find_all
from wbscope.library.library import Library
from wbscope.library.params import Params
from wbscope.library.saved_views import save_views
from wbscope.library.session import Session
from wbscope.library.sqlite import SqliteEngine
from wbscope.run.labels import names_of
from wbscope.source.plain_files import report_of, run_word
from wbscope.source.source import DATABASE_NAME, Kind, Source


@dataclass(frozen=True)
class Ingested:
    """What a finished ingest did."""

    output: Path
    events_count: int
    loaded_count: int
    damaged: bool
    warnings: tuple[Notice, ...]


def engine_of(source: Source, library: Library, observer: Observer | None = None) -> SqliteEngine:
    """For the database of a run; what the cache has and cannot be opened is made anew."""
    shown = str(source.path)
    database = database_of(source, library, observer)
    try:
        return SqliteEngine(database, shown, library)
    except InputError:
        if source.kind is Kind.DATABASE:
            raise
        # An entry of the cache is damaged, or another process has just trimmed it.
    return SqliteEngine(database_of(source, library, observer, anew=True), shown, library)


def database_of(
    source: Source, library: Library, observer: Observer | None = None, *, anew: bool = False
) -> Path:
    """The database of a run; a trace is ingested into the cache when needed.

    `anew`: what the cache has could not be opened.
    """
    if source.kind is Kind.DATABASE:
        return source.trace
    entry = _entry(source, library)
    if anew or not used(entry):
        with only_maker(entry):
            # Another process may have made it in the meantime.
            if _opens(entry, str(source.path)) if anew else used(entry):
                return entry
            refuse_foreign(entry)
            try:
                _make(source, entry, library, observer)
            except SetupError as error:
                if error.slug in CACHE_IS_FULL:
                    error.fix = CACHE_FIX  # the user gave no output
                raise
        trim_cache(keep=entry)
    return entry


def damage_told(error: BaseException | None, source: Source, database: Path) -> InputError | None:
    """What to say of damage that is met late, in a file of the cache: the run is not at fault."""
    if source.kind is Kind.DATABASE or not is_own_entry(database):
        return None
    if not isinstance(error, InputError) or not _is_of_damage(error, database):
        return None
    return InputError(
        "damaged-cache",
        str(database),
        f"is damaged, the database that the cache keeps of {source.path}: {error.message}",
        effect="it is made again when it is gone; the trace is not at fault",
        fix=f"rm {shlex.quote(str(database))}",
    )


def _is_of_damage(error: InputError, database: Path) -> bool:
    """As Python tells it or, of a timeline, wbscope-ingest."""
    if error.slug == "damaged-database":
        return True
    told = ("malformed", "is not a database")
    by_ingester = error.slug == "cannot-read-database" and error.subject == str(database)
    return by_ingester and any(words in error.message for words in told)


def _opens(entry: Path, shown: str) -> bool:
    try:
        check_database(entry, shown)
    except WbscopeError:
        return False
    return True


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
    versions = [*marks, *layout, *library.events(), library.load_plan()]
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
    made = file_word(Path(f"{source.name}.db"))
    raise UsageError(
        "no-output",
        str(source.path),
        "needs an output file; only a run folder has a default, FOLDER/run.db",
        fix=shlex.join(["wbscope", "ingest", run_word(source.path), "-o", made]),
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
        check_database(run.trace, str(run.path))  # which may be unpacked
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
        private_output(output, force=force) as private,
    ):
        if run.kind is Kind.PERFETTO:
            if choice.is_part:
                raise UsageError(
                    "whole-trace-only",
                    _parts_of(choice),
                    "cannot be had of a Perfetto trace, which trace processor reads as a whole",
                    fix=shlex.join(
                        ["wbscope", "ingest", run_word(run.path), "-o", file_word(output)]
                    ),
                )
            # Only here: a trace.dat is read without the package perfetto.
            from wbscope.perfetto.to_database import ingest_perfetto

            done, warnings = ingest_perfetto(run, private, library, choice, observer)
        else:
            with saying(choice.span):
                done, warnings = trace_to_database(run, private, library, choice, observer)
        if private.exists():
            check_times(private, str(run.path))
        warnings += check_selection(run, private, choice)
        if views and private.exists():
            warnings += add_views(private, output, library, engines)
            warnings += _losses(private, library, str(output), {one.slug for one in warnings})
    return Ingested(
        output=output,
        events_count=done["events_count"],
        loaded_count=done["loaded_count"],
        damaged=bool(done["damaged"]),
        warnings=tuple(run.shown(warnings)),
    )


def add_views(
    database: Path, output: Path, library: Library, engines: list[SqliteEngine]
) -> list[Notice]:
    """Put the library's views and findings into the database that will be the output.

    What reads it meanwhile is added to the engines: whoever has them renames and closes them.
    """

    def find(path: Path, saved: Collection[str]) -> list[Finding]:
        engines.append(SqliteEngine(path, str(output), library, saved))
        return _findings(engines[-1], library, str(output))

    return save_views(database, library, str(output), find)


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
    try:
        return find_all(engine, library, Params(), names_of(engine).label)
    finally:
        engine.rest()  # whatever was found: the maker of the file goes on to write


def _losses(database: Path, library: Library, shown: str, told: Iterable[str]) -> list[Notice]:
    """What every question to the file will be answered with, and the reader has not said."""
    # Who asks for a part knows that it is one.
    told = {*told, "part-of-trace"}
    try:
        engine = SqliteEngine(database, shown, library)
    except InputError:
        return []  # and no question is answered
    try:
        found = of_losses(Session(engine, library, shown).warnings())
    except (InputError, QueryError):
        return []
    finally:
        engine.close(keep=False)
    return [notice for notice in found if notice.slug not in told]
