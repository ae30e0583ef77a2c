# SPDX-License-Identifier: Apache-2.0
"""Timeline views of one run, or of two, as a Perfetto trace."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from wbscope.base.errors import EvidenceError, WbscopeError
from wbscope.base.outputs import check_output, private_output
from wbscope.base.result import Notice
from wbscope.base.span import WHOLE, Span
from wbscope.base.system import file_word
from wbscope.base.units import TRACK_UNITS
from wbscope.ingest.ingest import check_glob, matches, no_such_event
from wbscope.ingest.program import run_ingester
from wbscope.library.engine import FINDINGS
from wbscope.library.finding import Finding, require_events
from wbscope.library.library import Library
from wbscope.library.params import quote
from wbscope.run.run import Run
from wbscope.source.source import Kind, Source

ROOT = "Writeback"
# The view that says which groups come first in this run.
ORDER = "wb_timeline_order"
_MOST_FIRST = 100  # groups that ORDER may name
_ABOUT = (
    "What wbscope makes of the recorded events: who waited and why, dirty pages and the limits"
    " that the kernel held against them, the flusher, the disks and reclaim. Waits are on the"
    " threads too, as tracks named Writeback stalls."
)
_PLAN_THREADS = """
CREATE TEMP TABLE timeline_thread AS
SELECT t.tid, t.pid, t.comm AS name, t.process_comm AS process_name FROM wb_thread AS t
"""


def plan_statements(library: Library, views: Iterable[str]) -> Iterator[str]:
    """The SQL that makes the tables timeline_*: see ingest/src/timeline_plan.h."""
    yield "CREATE TEMP TABLE timeline_group(path TEXT PRIMARY KEY, rank, description, is_top)"
    yield _PLAN_THREADS.strip()
    yield from _groups(library)
    yield "CREATE TEMP TABLE timeline_unit(unit TEXT PRIMARY KEY, shown, factor)"
    for unit, shown in TRACK_UNITS.items():
        values = f"{quote(unit)}, {quote(shown.name)}, {1 / shown.size!r}"
        yield f"INSERT INTO timeline_unit VALUES ({values})"
    yield from view_statements(library, views)


def view_statements(library: Library, views: Iterable[str]) -> Iterator[str]:
    """Of these tables, those that say how the rows of views are read and drawn."""
    yield (
        "CREATE TEMP TABLE IF NOT EXISTS timeline_view"
        "(name TEXT PRIMARY KEY, place, track_group, level, is_flat, is_sorted)"
    )
    yield "CREATE TEMP TABLE IF NOT EXISTS timeline_track(view, pattern, axis, description)"
    places = {file.name: place for place, file in enumerate(library.timelines())}
    for name in views:
        drawing = library.files[name].drawing
        flags = f"{int(drawing.is_flat)}, {int(drawing.is_sorted)}"
        yield (
            f"INSERT INTO timeline_view VALUES ({quote(name)}, {places[name]},"
            f" {quote(f'{ROOT}/{drawing.group}')}, {quote(drawing.level)}, {flags})"
        )
        for track in drawing.tracks:
            values = ", ".join(
                quote(v) for v in (name, track.pattern, track.axis, track.description)
            )
            yield f"INSERT INTO timeline_track VALUES ({values})"


def part_name(view: str) -> str:
    """What `part_statements()` calls what it cuts out of a timeline."""
    return f"part_{view}"


def part_statements(
    library: Library,
    views: Iterable[str],
    told: Iterable[str],
    t0_ns: int | None,
    t1_ns: int | None,
) -> Iterator[str]:
    """The SQL that cuts timelines, behind that of `plan_statements()`; `told` are the views there.

    What reaches into the part of the time is whole in it, so that slices are as long as they are;
    but those that are spanning are about that part, and cut.
    """
    kept = []
    if t0_ns is not None:
        kept.append(f"(t.ts >= {quote(t0_ns)} OR t.ts + t.dur > {quote(t0_ns)})")
    if t1_ns is not None:
        kept.append(f"t.ts < {quote(t1_ns)}")
    where = " AND ".join(kept) or "1"
    start = "ts" if t0_ns is None else f"max(ts, {quote(t0_ns)})"
    end = "ts + dur" if t1_ns is None else f"min(ts + dur, {quote(t1_ns)})"
    for view in views:
        part = part_name(view)
        if library.files[view].drawing.is_spanning:
            yield f"CREATE TEMP TABLE {part} AS SELECT * FROM {view} AS t WHERE {where}"
            yield f"UPDATE {part} SET ts = {start}, dur = {end} - {start}"
        else:
            yield f"CREATE TEMP VIEW {part} AS SELECT * FROM {view} AS t WHERE {where}"
    for view in told:
        part = part_name(view)
        # Cut, they may come in another order.
        yield (
            f"UPDATE timeline_view SET name = {quote(part)}, is_sorted = 0"
            f" WHERE name = {quote(view)}"
        )
        yield f"UPDATE timeline_track SET view = {quote(part)} WHERE view = {quote(view)}"


def _groups(library: Library) -> Iterator[str]:
    """Groups are in the order of the first of their timelines; the first that tells of it does."""
    about: dict[str, str] = {}
    for file in library.timelines():
        drawing = file.drawing
        if drawing.group:
            about[drawing.group] = about.get(drawing.group) or drawing.about
    yield f"INSERT INTO timeline_group VALUES ({quote(ROOT)}, 0, {quote(_ABOUT)}, 0)"
    for rank, (group, text) in enumerate(about.items()):
        path = quote(f"{ROOT}/{group}")
        yield f"INSERT INTO timeline_group VALUES ({path}, {_MOST_FIRST + rank}, {quote(text)}, 0)"
    path = f"{quote(ROOT + '/')} || o.group_name"
    yield (
        f"UPDATE timeline_group AS g SET rank = o.place, is_top = o.is_top FROM {ORDER} AS o"
        f" WHERE g.path = {path}"
    )


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


LETTERS = ("A", "B")
"""What the names of the groups of two runs begin with, those below them too: A Stalls."""


def group_names(first: Run, second: Run) -> tuple[str, str]:
    """What the groups of two runs are called: A: NAME and B: NAME."""
    names = [_name(run) for run in (first, second)]
    if names[0] == names[1]:
        names = [first.name, second.name]
    one, other = (f"{letter}: {name}" for letter, name in zip(LETTERS, names, strict=True))
    return one, other


def write_two_timelines(
    first: Run, second: Run, output: Path, *, force: bool = False, span: Span = WHOLE
) -> Timeline:
    """Write the views of both runs, or the part `span` of each, without their recorded events.

    Times are those of the first run: the second one, or its part, begins when that begins.
    Raises: as write_timeline() does.
    """
    runs = (first, second)
    check_output(
        output,
        force,
        [path for run in runs for path in (Path(run.name), run.database)],
        "two.pftrace",
    )
    titles = group_names(first, second)
    begin_ns = _begin(first, span)
    done: list[Timeline] = []
    with private_output(output, force=force) as private:
        parts = [private.with_name(f"{letter}.pftrace") for letter in LETTERS]
        for place, (run, title, part) in enumerate(zip(runs, titles, parts, strict=True), 2):
            beside = Beside(title, LETTERS[place - 2], place, begin_ns)
            done.append(write_timeline(run, part, span=span, beside=beside))
        with private.open("wb") as whole:
            for part in parts:
                with part.open("rb") as one:
                    shutil.copyfileobj(one, whole)
    return Timeline(
        output=output,
        views=tuple(dict.fromkeys(view for one in done for view in one.views)),
        skipped=tuple(error for one in done for error in one.skipped),
        warnings=tuple(
            replace(notice, run=title)
            for one, title in zip(done, titles, strict=True)
            for notice in one.warnings
        ),
    )


def _name(run: Run) -> str:
    return run.source.name


def _begin(run: Run, span: Span) -> int:
    start, _ = run.on_clock(span)
    return run.bounds()[0] if start is None else start
