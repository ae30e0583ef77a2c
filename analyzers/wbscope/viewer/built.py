# SPDX-License-Identifier: Apache-2.0
"""The timeline of a run, built once and kept in the cache."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wbscope.base.cache import CACHE_FIX, cache_entry, trim_cache, used
from wbscope.base.errors import InputError, SetupError
from wbscope.base.result import Notice
from wbscope.base.span import WHOLE, Span
from wbscope.base.version import __version__
from wbscope.ingest.program import Observer, find_ingester
from wbscope.library.database import SCHEMA_VERSION
from wbscope.run.run import Run, open_run
from wbscope.run.source import find_source
from wbscope.timeline.export import write_timeline
from wbscope.viewer.commands import Command, any_of
from wbscope.viewer.look import Look
from wbscope.viewer.starttabs import file_summary
from wbscope.viewer.startup import startup_commands

__all__ = ["View", "view_of"]


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
    path = source.path.resolve()
    name = f"{path.name if source.folder else path.stem}.pftrace"
    try:
        with open_run(source, observer=observer) as run:
            shown = None if look is None else look.on_clock(*run.bounds())
            timeline, warnings = _timeline(run, span)
            return View(timeline, name, tuple(startup_commands(run, span)), warnings, shown)
    except InputError as error:
        if error.slug != "no-ftrace-events" or span or look:
            raise
        notice = Notice(error.slug, f"{text} {error.message}; shown as it is")
        expand = Command("ExpandTracksByRegex", (any_of(["Writeback"]),))
        return View(source.trace, name, (expand, file_summary()), (notice,))


def _timeline(run: Run, span: Span) -> tuple[Path, tuple[Notice, ...]]:
    """From the cache, or built; and what has to be known of it."""
    versions = ["timeline", __version__, str(SCHEMA_VERSION), run.library.digest()]
    if span:
        versions.append(str(run.on_clock(span)))
    inputs = [find_ingester(), *run.source.inputs()]
    entry = cache_entry(inputs, versions, ".pftrace")
    if used(entry):
        return entry, run.warnings()
    try:
        warnings = write_timeline(run, entry, force=True, span=span).warnings
    except SetupError as error:
        if error.slug == "cannot-write":
            error.fix = CACHE_FIX  # the user gave no -o
        raise
    trim_cache(keep=entry)
    return entry, warnings
