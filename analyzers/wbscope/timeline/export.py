# SPDX-License-Identifier: Apache-2.0
"""A run's timeline views as a Perfetto trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from wbscope.base.children import file_word
from wbscope.base.errors import EvidenceError, WbscopeError
from wbscope.base.outputs import check_output, private_output
from wbscope.base.result import Notice
from wbscope.base.span import WHOLE, Span
from wbscope.ingest.program import run_ingester
from wbscope.ingest.selection import check_glob, matches, no_such_event
from wbscope.library.engine import FINDINGS
from wbscope.library.evidence import require_events
from wbscope.library.finding import Finding
from wbscope.run.run import Run
from wbscope.run.source import Kind, Source
from wbscope.timeline.plan import (
    ORDER,
    part_name,
    part_statements,
    plan_statements,
    view_statements,
)

__all__ = ["Beside", "Timeline", "write_timeline"]

_THREADS = "wb_thread"
# Events with more records than this ride along only when asked for: they would be most of the file.
_MOST_RIDING = 100_000

_Part = tuple[int | None, int | None]


@dataclass(frozen=True)
class Beside:
    """A run that shares a trace with another.

    `mark` begins the names of its groups. `place` tells their packets apart: 2, 3; files of runs
    are joined one behind the other. The first event of each is drawn at `begin_ns`: take that of
    one of them.
    """

    title: str
    mark: str
    place: int
    begin_ns: int

    def options(self, first_ns: int) -> list[str]:
        """For wbscope-ingest, of a run or part that begins at this time of its clock."""
        shift = ["--shift", str(self.begin_ns - first_ns)]
        return ["--root", self.title, "--mark", self.mark, *shift, "--sequence", str(self.place)]


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
    with ExitStack() as stack:
        source = run.source
        if not beside and events != ():
            source = stack.enter_context(source.at_hand())
        return _write(run, source, output, events, span, beside, force)


def _write(
    run: Run,
    source: Source,
    output: Path,
    events: Sequence[str] | None,
    span: Span,
    beside: Beside | None,
    force: bool,
) -> Timeline:
    """As write_timeline(), with a trace that is no longer packed."""
    t0_ns, t1_ns = run.on_clock(span)
    views, skipped = _available(run)
    globs = [] if beside else _globs(run, source, events)
    too_many = _too_many(run, globs, events)
    globs = [event for event in globs if event not in too_many]
    drawing = _Drawing(run, views, span, (t0_ns, t1_ns))
    options = _named("--view", drawing.names(views))
    if beside:
        options += beside.options(t0_ns or run.bounds()[0])
    if globs:
        options += ["--trace", str(source.trace), *_options(globs, (t0_ns, t1_ns))]
    with private_output(output, force=force) as private:
        try:
            warnings = drawing.draw(options, private, kept=True)
        except WbscopeError:
            # What the cache kept may be gone or damaged.
            if not drawing.read_kept():
                raise
            warnings = drawing.draw(options, private, kept=False)
    return Timeline(
        output=output,
        views=tuple(views),
        skipped=tuple(skipped),
        warnings=(*run.warnings(), *warnings, *_stayed(too_many, run)),
    )


class _Drawing:
    """What wbscope-ingest is told, once the run was asked for its verdict."""

    def __init__(self, run: Run, views: Sequence[str], span: Span, part: _Part) -> None:
        self._run = run
        self._views = views
        self._span = span
        self._part = part
        self._found: list[Finding] | None = None
        self._scripts: list[str] = []

    def names(self, views: Iterable[str]) -> list[str]:
        """What the script calls these views."""
        return [part_name(view) for view in views] if self._span else list(views)

    def draw(self, options: Sequence[str], output: Path, *, kept: bool) -> list[Notice]:
        """Write the file; with `kept` of steps that are there."""

        def tell(pipe: BinaryIO) -> None:
            self._run.begin(self._asked)
            if self._found is None:
                self._found = self._run.findings(self._span)
            self._scripts = self._told(kept=kept)
            pipe.write("\0".join(self._scripts).encode("utf-8"))

        arguments = ["timeline", file_word(self._run.database), "--setup", "-", *options]
        if lane := self._lane():
            arguments += ["--lane", "-", *_named("--lane-view", self.names(lane))]
        return run_ingester([*arguments, "--force", "-o", str(output)], feed=tell)[1]

    def read_kept(self) -> bool:
        """Whether the last one was of other scripts than those without kept steps."""
        return self._found is not None and self._scripts != self._told(kept=False)

    @property
    def _asked(self) -> list[str]:
        return [*self._views, _THREADS, ORDER]

    def _lane(self) -> list[str]:
        """Views that a second connection reads, about half of the work."""
        if not self._run.recorded().is_long:
            return []
        files = [self._run.library.files[view] for view in self._views]
        lane: list[str] = []
        balance = 0
        for file in sorted(files, key=lambda file: (-file.cost, file.name)):
            if balance > 0 and FINDINGS not in file.needs:
                lane.append(file.name)
                balance -= file.cost
            else:
                balance += file.cost
        return [view for view in self._views if view in lane]

    def _told(self, *, kept: bool) -> list[str]:
        """For the connection that says how all views are drawn, and for the other."""
        lane = self._lane()
        main = [name for name in self._asked if name not in lane]
        told = (plan_statements(self._run.library, self._views), self._cut(main[:-2], self._views))
        scripts = [self._script(main, *told, kept=kept)]
        if lane:
            plan = view_statements(self._run.library, lane)
            scripts.append(self._script(lane, plan, self._cut(lane, lane), kept=kept))
        return scripts

    def _script(self, names: list[str], *plan: Iterable[str], kept: bool) -> str:
        statements = self._run.script(names, self._found or (), kept=kept).statements
        return "".join(f"{one};\n" for part in (statements, *plan) for one in part)

    def _cut(self, views: Sequence[str], told: Sequence[str]) -> Iterable[str]:
        return part_statements(self._run.library, views, told, *self._part) if self._span else ()


def _named(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _globs(run: Run, source: Source, chosen: Sequence[str] | None) -> list[str]:
    """Which events ride along."""
    if source.kind is not Kind.TRACE or not source.has_formats():
        return []  # nothing but a trace.dat can be written record by record
    known = run.recorded()
    if chosen is None:
        return [event for event in run.library.events() if event in known.tables]
    for glob in chosen:
        check_glob(glob)
        if not any(matches(glob, event) for event in (*known.tables, *known.counts)):
            raise no_such_event(glob, list(known.counts))
    return list(chosen)


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


def _options(globs: Sequence[str], part: _Part) -> list[str]:
    bounds = "..".join("" if ns is None else str(ns) for ns in part)
    return [*_named("--events", globs), *(["--time-range", bounds] if bounds != ".." else [])]


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
