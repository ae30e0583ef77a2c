# SPDX-License-Identifier: Apache-2.0
"""The timeline of a run, built once and kept in the cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from wbscope.base.cache import (
    CACHE_FIX,
    CACHE_IS_FULL,
    cache_entry,
    refuse_foreign,
    trim_cache,
    used,
)
from wbscope.base.errors import InputError, SetupError
from wbscope.base.result import Notice
from wbscope.base.span import WHOLE, Span
from wbscope.base.version import __version__
from wbscope.ingest.program import Observer, find_ingester
from wbscope.library.database import SCHEMA_VERSION
from wbscope.run.run import Run, open_run
from wbscope.source.source import Kind, find_source
from wbscope.timeline.export import group_names, write_timeline, write_two_timelines
from wbscope.viewer.link import Command, Look, any_of
from wbscope.viewer.startup import file_summary, startup_commands, startup_commands_of_two


@dataclass(frozen=True)
class View:
    """A trace for the UI, what the UI calls it, what is done with it at start.

    `shown` is what the UI shows first, from and to on the trace clock; None: all of it.
    """

    trace: Path
    name: str
    commands: tuple[Command, ...]
    warnings: tuple[Notice, ...]
    shown: tuple[int, int] | None = None


def view_of(
    text: str, observer: Observer | None = None, span: Span = WHOLE, look: Look | None = None
) -> View:
    """The timeline of a run, or a part of it, with a look at a time of it.

    A Perfetto trace without ftrace events is shown as it is, and as a whole only.
    Raises: UsageError for a time that the run does not have.
    """
    source = find_source(text)
    name = f"{source.name}.pftrace"
    try:
        with open_run(source, observer=observer) as run:
            shown = None if look is None else look.on_clock(*run.bounds())
            timeline, warnings = _timeline(run, span)
            return View(timeline, name, tuple(startup_commands(run, span)), warnings, shown)
    except InputError as error:
        if error.slug != "no-ftrace-events" or source.kind is Kind.PACKED or span or look:
            raise
        notice = Notice(error.slug, f"{text} {error.message}; shown as it is")
        expand = Command("ExpandTracksByRegex", (any_of(["Writeback"]),))
        return View(source.trace, name, (expand, file_summary()), (notice,))


def view_of_two(
    text: str,
    against: str,
    observer: Observer | None = None,
    span: Span = WHOLE,
    look: Look | None = None,
) -> View:
    """Two runs as two groups that begin at the same time; a look is at a time of the first.

    Raises: UsageError for a time that one of them does not have.
    """
    with (
        open_run(find_source(text), observer=observer) as first,
        open_run(find_source(against), observer=observer) as second,
    ):
        shown = None if look is None else look.on_clock(*first.bounds())
        timeline, warnings = _two_timelines(first, second, span)
        titles = group_names(first, second)
        commands = tuple(startup_commands_of_two({titles[0]: first, titles[1]: second}, span))
        name = "-against-".join(title.partition(": ")[2] for title in titles)
        return View(timeline, f"{Path(name).name}.pftrace", commands, warnings, shown)


def _two_timelines(first: Run, second: Run, span: Span) -> tuple[Path, tuple[Notice, ...]]:
    titles = group_names(first, second)
    versions = [*_versions(first), *titles]
    if span:
        versions += [str(run.on_clock(span)) for run in (first, second)]
    (inputs, marks), (others, more) = first.source.marks(), second.source.marks()
    inputs = [find_ingester(), *inputs, *others]
    entry = cache_entry(inputs, [*versions, *marks, *more], ".pftrace")
    if not used(entry):
        with _told_of_cache():
            refuse_foreign(entry)
            write_two_timelines(first, second, entry, force=True, span=span)
        trim_cache(keep=entry)
    warnings = (
        replace(notice, run=title)
        for run, title in zip((first, second), titles, strict=True)
        for notice in run.warnings()
    )
    return entry, tuple(warnings)


def _timeline(run: Run, span: Span) -> tuple[Path, tuple[Notice, ...]]:
    """From the cache, or built; and what has to be known of it."""
    versions = _versions(run)
    if span:
        versions.append(str(run.on_clock(span)))
    inputs, marks = run.source.marks()
    entry = cache_entry([find_ingester(), *inputs], [*versions, *marks], ".pftrace")
    if used(entry):
        return entry, run.warnings()
    with _told_of_cache():
        refuse_foreign(entry)
        warnings = write_timeline(run, entry, force=True, span=span).warnings
    trim_cache(keep=entry)
    return entry, warnings


def _versions(run: Run) -> list[str]:
    return ["timeline", __version__, str(SCHEMA_VERSION), run.library.digest()]


@contextmanager
def _told_of_cache() -> Iterator[None]:
    try:
        yield
    except SetupError as error:
        if error.slug in CACHE_IS_FULL:
            error.fix = CACHE_FIX  # the user gave no -o
        raise
