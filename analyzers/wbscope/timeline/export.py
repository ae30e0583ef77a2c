# SPDX-License-Identifier: Apache-2.0
"""A run's timeline views as a Perfetto trace."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.children import passed_text
from wbscope.base.errors import EvidenceError, WbscopeError
from wbscope.base.outputs import check_output, private_output
from wbscope.base.result import Notice
from wbscope.base.span import WHOLE, Span
from wbscope.ingest.program import run_ingester
from wbscope.library.evidence import require_events
from wbscope.library.finding import Finding
from wbscope.run.run import Run
from wbscope.run.source import Kind
from wbscope.timeline.plan import ORDER, part_name, part_statements, plan_statements

__all__ = ["Beside", "Timeline", "write_timeline"]

_THREADS = "wb_thread"
# Events with more records than this ride along only when asked for: they would be most of the file.
_MOST_RIDING = 100_000

_Part = tuple[int | None, int | None]


@dataclass(frozen=True)
class Beside:
    """A run that shares a trace with another.

    `place` tells their packets apart: 2, 3; files of runs are joined one behind the other. The
    first event of each is drawn at `begin_ns`: take that of one of them.
    """

    title: str
    place: int
    begin_ns: int

    def options(self, first_ns: int) -> list[str]:
        """For wbscope-ingest, of a run or part that begins at this time of its clock."""
        shift = ["--shift", str(self.begin_ns - first_ns)]
        return ["--root", self.title, *shift, "--sequence", str(self.place)]


@dataclass(frozen=True)
class Timeline:
    """What was written: the views in it, and those that lack their events."""

    output: Path
    views: tuple[str, ...]
    skipped: tuple[EvidenceError, ...]
    warnings: tuple[Notice, ...]


def write_timeline(
    run: Run,
    output: Path,
    *,
    force: bool = False,
    events: Sequence[str] | None = None,
    span: Span = WHOLE,
    beside: Beside | None = None,
) -> Timeline:
    """Export every timeline view whose events were recorded, or the part of it in `span`.

    From a trace.dat, recorded events ride along: those that match a pattern in
    `events`, by default those that the library reads. None do `beside` another run.
    Raises: EvidenceError without any; UsageError for a part that no event can be in.
    """
    check_output(output, force, [Path(run.name), run.database], "run.pftrace")
    t0_ns, t1_ns = run.on_clock(span)
    views, skipped = _available(run)
    found = run.findings(span)
    globs = [] if beside else _globs(run, events)
    too_many = _too_many(run, globs, events)
    globs = [event for event in globs if event not in too_many]
    options = [part for view in views for part in ("--view", part_name(view) if span else view)]
    if beside:
        options += beside.options(t0_ns or run.bounds()[0])
    if globs and not span:
        options += ["--trace", str(run.source.trace), *_options(globs)]
    with private_output(output) as private:
        setup = _setup(run, views, found, (t0_ns, t1_ns), kept=True)
        try:
            warnings = _draw(run, setup, options, private)
        except WbscopeError:
            # What the cache kept may be gone or damaged.
            whole = _setup(run, views, found, (t0_ns, t1_ns), kept=False)
            if whole == setup:
                raise
            warnings = _draw(run, whole, options, private)
        if globs and span:
            _append_events(run, private, globs, (t0_ns, t1_ns))
    return Timeline(
        output=output,
        views=tuple(views),
        skipped=tuple(skipped),
        warnings=(*run.warnings(), *warnings, *_stayed(too_many, run)),
    )


def _setup(
    run: Run, views: Sequence[str], found: Sequence[Finding], part: _Part, *, kept: bool
) -> str:
    """The SQL that makes what is drawn, and says how."""
    statements = [
        *run.statements([*views, _THREADS, ORDER], found, kept=kept),
        *plan_statements(run.library, views),
    ]
    if part != (None, None):
        statements += part_statements(run.library, views, *part)
    return "".join(f"{statement};\n" for statement in statements)


def _draw(run: Run, setup: str, options: Sequence[str], output: Path) -> list[Notice]:
    with passed_text(setup) as (script, name):
        arguments = ["timeline", str(run.database), "--setup", name, *options, "--force"]
        return run_ingester([*arguments, "-o", str(output)], files=[script])[1]


def _globs(run: Run, chosen: Sequence[str] | None) -> list[str]:
    """Which events ride along."""
    source = run.source
    if source.kind is not Kind.TRACE or not source.has_formats():
        return []  # nothing but a trace.dat can be written record by record
    return run.library.events() if chosen is None else list(chosen)


def _too_many(run: Run, globs: Sequence[str], chosen: Sequence[str] | None) -> list[str]:
    """Of those that nobody chose the events whose records would be most of the file."""
    if chosen is not None:
        return []
    counts = run.recorded().counts
    return [event for event in globs if counts.get(event, (0, 0))[0] > _MOST_RIDING]


def _stayed(events: Sequence[str], run: Run) -> list[Notice]:
    counts = run.recorded().counts
    told = ", ".join(f"{event} ({counts[event][0]} records)" for event in events)
    text = f"drawn as curves and slices, but left out as events: {told}; name them to have them"
    return [Notice("events-left-out", text)] if events else []


def _options(globs: Sequence[str]) -> list[str]:
    return [part for glob in globs for part in ("--events", glob)]


def _append_events(run: Run, timeline: Path, globs: Sequence[str], part: _Part) -> None:
    """Those of a part of the time: Perfetto traces, one behind the other, are one trace.

    What is wrong with the trace was told when the database was made.
    """
    cut = timeline.with_name(f"{timeline.name}.events")  # the output may have any name
    bounds = "..".join("" if ns is None else str(ns) for ns in part)
    arguments = ["convert", str(run.source.trace), *_options(globs), "--time-range", bounds]
    run_ingester([*arguments, "-o", str(cut)])
    with cut.open("rb") as events, timeline.open("ab") as whole:
        shutil.copyfileobj(events, whole)
    cut.unlink()


def _available(run: Run) -> tuple[list[str], list[EvidenceError]]:
    views: list[str] = []
    skipped: list[EvidenceError] = []
    for file in run.library.timelines():
        try:
            require_events(file, run.recorded(), run.name, run.library.profiles)
        except EvidenceError as error:
            skipped.append(error)
        else:
            views.append(file.name)
    if not views and skipped:
        raise skipped[0]
    # What draws on a group has to make it, before any track in it.
    views.sort(key=lambda name: not run.library.files[name].drawing.is_parent)
    return views, skipped
