# SPDX-License-Identifier: Apache-2.0
"""What the exporter is told of tracks and groups, as the headers of the timelines say it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wbscope.base.units import TRACK_UNITS
from wbscope.library.library import Library
from wbscope.library.params import quote

__all__ = [
    "ORDER",
    "ROOT",
    "part_name",
    "part_statements",
    "plan_statements",
    "view_statements",
]

ROOT = "Writeback"
# The view that says which groups come first in this run.
ORDER = "wb_timeline_order"
_MOST_FIRST = 100  # groups that ORDER may name
_ABOUT = (
    "What wbscope makes of the recorded events: who waited and why, dirty pages and the limits"
    " that the kernel held against them, the flusher, the disks and reclaim. Waits are on the"
    " threads too, as tracks named Writeback stalls."
)
_THREADS = """
CREATE TEMP TABLE timeline_thread AS
SELECT t.tid, t.pid, t.comm AS name, t.process_comm AS process_name FROM wb_thread AS t
"""


def plan_statements(library: Library, views: Iterable[str]) -> Iterator[str]:
    """The SQL that makes the tables timeline_*: see ingest/src/timeline_plan.h."""
    yield "CREATE TEMP TABLE timeline_group(path TEXT PRIMARY KEY, rank, description, is_top)"
    yield _THREADS.strip()
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
