# SPDX-License-Identifier: Apache-2.0
"""A timeline as the Perfetto engine sees it, and as the tl_* views give it."""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .cli import Wbscope
from .perfetto_engine import PerfettoEngine, Row

__all__ = ["GROUPS", "CounterSample", "Slice", "TrackInfo", "arguments", "engine_counters"]
__all__ += [
    "engine_slices",
    "engine_tracks",
    "expected_tracks",
    "packets",
    "timeline_rows",
    "timeline_views",
]

GROUPS = [
    "What to look at",
    "Stalls",
    "Dirty pages",
    "Bandwidth",
    "Throttled tasks",
    "Task progress",
    "Dirtied and written",
    "Fairness",
    "Throughput",
    "Flusher work",
    "Block requests",
    "Reclaim",
    "Memory cgroups",
    "vmstat",
    "Lost events",
]
"""Groups of the timeline from top to bottom; a run has those it has data for."""

_TRACK_PATHS = r"""
WITH RECURSIVE path(id, text) AS (
  SELECT id, replace(replace(name, '\', '\\'), '/', '\/') FROM track WHERE parent_id IS NULL
  UNION ALL
  SELECT t.id, p.text || '/' || replace(replace(t.name, '\', '\\'), '/', '\/')
  FROM track AS t JOIN path AS p ON t.parent_id = p.id
)
"""

Args = tuple[tuple[str, int | float | str], ...]


@dataclass(frozen=True, order=True)
class Slice:
    """A slice, or an instant with dur 0, on a track or on one of a thread. Times in ns."""

    tid: int
    track: str
    ts: int
    dur: int
    name: str
    args: Args


@dataclass(frozen=True, order=True)
class CounterSample:
    """One value of a counter track."""

    track: str
    ts: int
    value: float
    unit: str


@dataclass(frozen=True)
class TrackInfo:
    """What the UI is told of a track."""

    path: str
    parent: str
    name: str
    type: str
    facts: dict[str, Any] = field(default_factory=dict)


def timeline_views(sql_folder: Path) -> list[str]:
    """The names of the timeline views, from the headers of sql/timelines."""
    found = []
    for file in sorted((sql_folder / "timelines").glob("*.sql")):
        match = re.search(r"^-- @timeline\s+(\w+)", file.read_text(), re.MULTILINE)
        assert match is not None, f"{file.name} has no @timeline"
        found.append(match[1])
    return found


def timeline_rows(wbscope: Wbscope, run: Path, views: Iterable[str]) -> list[dict[str, Any]]:
    """The rows of the views, read through `wbscope sql`."""
    return [
        row
        for view in views
        for row in wbscope.sql(run, f"SELECT * FROM {view} ORDER BY ts, dur DESC")
    ]


def arguments(row: dict[str, Any]) -> Args:
    """The columns arg_*, without those that are NULL."""
    named = ((name.removeprefix("arg_"), row[name]) for name in row if name.startswith("arg_"))
    return tuple(sorted((name, value) for name, value in named if value is not None))


def expected_tracks(rows: list[dict[str, Any]]) -> tuple[list[Slice], list[CounterSample]]:
    """What the engine has to show for those rows, sorted.

    A value that a counter has already is not there again.
    """
    slices, curves = [], defaultdict(list)
    for row in rows:
        if row["value"] is not None:
            curves[row["track"]].append((row["ts"], row["value"], row["unit"]))
        elif row["unit"] is None:
            args = arguments(row)
            tid = row.get("tid") or 0
            slices.append(Slice(tid, row["track"], row["ts"], row["dur"] or 0, row["name"], args))
    counters = []
    for track, samples in curves.items():
        last = None
        for ts, value, unit in samples:
            if value != last or type(value) is not type(last):
                counters.append(CounterSample(track, ts, float(value), unit))
            last = value
    return sorted(slices, key=_place), sorted(counters)


def _place(row: Slice) -> tuple[Any, ...]:
    return row.tid, row.track, row.ts, -row.dur, row.name, repr(row.args)


def engine_slices(engine: PerfettoEngine) -> list[Slice]:
    """The engine's slices, sorted."""
    args: dict[Any, list[tuple[str, int | float | str]]] = defaultdict(list)
    for row in engine.query(
        "SELECT arg_set_id, key, int_value, real_value, string_value, value_type FROM args "
        "WHERE key GLOB 'debug.*'"
    ):
        value = {"int": row["int_value"], "real": row["real_value"]}.get(
            str(row["value_type"]), row["string_value"]
        )
        assert isinstance(value, (int, float, str)), row
        args[row["arg_set_id"]].append((str(row["key"]).removeprefix("debug."), value))
    rows = engine.query(
        f"{_TRACK_PATHS} SELECT p.text AS track, s.ts, s.dur, s.name, s.arg_set_id, h.tid "
        "FROM slice AS s JOIN path AS p ON s.track_id = p.id "
        "LEFT JOIN thread_track AS t ON t.id = s.track_id LEFT JOIN thread AS h USING (utid)"
    )
    return sorted(
        (
            Slice(
                _whole(row, "tid") if row["tid"] is not None else 0,
                str(row["track"]),
                _whole(row, "ts"),
                _whole(row, "dur"),
                str(row["name"]),
                tuple(sorted(args.get(row["arg_set_id"], []))),
            )
            for row in rows
        ),
        key=_place,
    )


def engine_counters(engine: PerfettoEngine) -> list[CounterSample]:
    """The engine's counter samples, sorted."""
    rows = engine.query(
        f"{_TRACK_PATHS} SELECT p.text AS track, c.ts, c.value, t.unit "
        "FROM counter AS c JOIN path AS p ON c.track_id = p.id "
        "JOIN counter_track AS t ON c.track_id = t.id"
    )
    samples = []
    for row in rows:
        value = row["value"]
        assert isinstance(value, float), row
        samples.append(CounterSample(str(row["track"]), _whole(row, "ts"), value, str(row["unit"])))
    return sorted(samples)


def engine_tracks(engine: PerfettoEngine) -> list[TrackInfo]:
    """All tracks of the engine with what their descriptors say."""
    facts: dict[Any, dict[str, Any]] = defaultdict(dict)
    for row in engine.query(
        "SELECT arg_set_id, key, coalesce(int_value, string_value) AS value FROM args "
        "WHERE arg_set_id IN (SELECT source_arg_set_id FROM track)"
    ):
        facts[row["arg_set_id"]][str(row["key"])] = row["value"]
    rows = engine.query(
        f"{_TRACK_PATHS} SELECT p.text AS path, q.text AS parent, t.name, t.type, "
        "t.source_arg_set_id AS facts FROM path AS p JOIN track AS t ON t.id = p.id "
        "LEFT JOIN path AS q ON q.id = t.parent_id"
    )
    return [
        TrackInfo(
            str(row["path"]),
            str(row["parent"] or ""),
            str(row["name"]),
            str(row["type"]),
            facts[row["facts"]],
        )
        for row in rows
        if row["path"] is not None
    ]


def packets(file: Path) -> Iterator[Any]:
    """The packets of a Perfetto trace, those that are compressed too."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    trace: Any = protos.Trace()
    trace.ParseFromString(file.read_bytes())
    for packet in trace.packet:
        if packet.HasField("compressed_packets"):
            inner: Any = protos.Trace()
            inner.ParseFromString(zlib.decompress(packet.compressed_packets))
            yield from inner.packet
        else:
            yield packet


def _whole(row: Row, column: str) -> int:
    value = row[column]
    assert isinstance(value, int), row
    return value
