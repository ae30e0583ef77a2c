# SPDX-License-Identifier: Apache-2.0
"""A timeline as the Perfetto engine sees it, and as the tl_* views give it."""

from __future__ import annotations

import re
import shlex
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from wbscope.run.run import open_run

from .cli import Document, Wbscope
from .pftrace import PerfettoEngine, Row

__all__ = ["ROOT", "CounterSample", "Curves", "Slice", "TrackInfo", "Wanted", "arguments"]
__all__ += [
    "curves_of",
    "difference_of_curves",
    "drawn_path",
    "engine_counters",
    "engine_slices",
    "engine_tracks",
    "expected_tracks",
    "packets",
    "places_of_groups",
    "timeline_views",
    "verdict_name",
    "wanted_timeline",
]

ROOT = "Writeback"
_EXACT_POINTS = 4096
_STEPS = 2048
_TOLD = ("severe", "warning", "ok")
_MOST_TOLD = 3
# What people are shown, by the unit of the view.
_SHOWN = {
    "ns": ("ms", 1e-6),
    "bytes": ("MiB", 1 / 1024**2),
    "bytes/s": ("MiB/s", 1 / 1024**2),
    "ratio": ("%", 100),
}

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


Curves = dict[str, list[CounterSample]]
"""The points of each counter, by its path."""


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
        names = re.findall(r"^-- @timeline\s+(\w+)", file.read_text(), re.MULTILINE)
        assert names, f"{file.name} has no @timeline"
        found += names
    return found


@dataclass(frozen=True)
class Wanted:
    """What a timeline has to show.

    `places` has the groups that the run is about, the first first, and whether each stands beside
    the group of all. Counters are by track; a long one is thinned out in steps of `step_ns`.
    """

    places: dict[str, bool]
    slices: list[Slice]
    curves: Curves
    step_ns: int


def wanted_timeline(wbscope: Wbscope, run: Path, shown: Path, views: Iterable[str]) -> Wanted:
    """Of the rows of the views in a database, and of the findings of the run that was drawn."""
    findings = wbscope.query("findings", shown)
    with open_run(run) as opened:
        first_ts, last_ts = opened.bounds()
        rows = []
        for view in views:
            if view == "tl_verdict":
                continue  # below, out of what the query says
            found = opened.sql(f"SELECT * FROM {view} ORDER BY ts, dur DESC")
            rows += [dict(zip(found.columns, values, strict=True)) for values in found.rows]
        order = opened.sql("SELECT group_name, is_top FROM wb_timeline_order ORDER BY place").rows
    places = {str(name): bool(is_top) for name, is_top in order}
    _add_advice(rows, findings)
    rows += _verdict(findings, shlex.quote(str(shown)), first_ts, last_ts)
    slices, curves = expected_tracks(rows, {name for name in places if places[name]})
    return Wanted(places, slices, curves, (last_ts - first_ts) // _STEPS)


def places_of_groups(sql_folder: Path) -> dict[str, int]:
    """The groups by the least @order of their views, from the headers."""
    orders: dict[str, int] = {}
    texts = (file.read_text() for file in (sql_folder / "timelines").glob("*.sql"))
    for text in chain.from_iterable(text.split("-- @timeline ")[1:] for text in texts):
        order = re.search(r"^-- @order\s+(\d+)", text, re.MULTILINE)
        group = re.search(r"^-- @group\s+([^:\n]+)", text, re.MULTILINE)
        if order and group:
            orders[group[1].strip()] = min(int(order[1]), orders.get(group[1].strip(), 1 << 20))
    return orders


def _add_advice(rows: list[dict[str, Any]], findings: list[Document]) -> None:
    """An episode has the advice of the finding that tells of it."""
    advice: dict[str, str] = {}
    for one in findings:
        if one["advice"] is not None:
            advice[one["id"]] = min(one["advice"], advice.get(one["id"], one["advice"]))
    for row in rows:
        if row["track"] == f"{ROOT}/What to look at":
            row["arg_advice"] = advice.get(row["arg_finding"])


def _verdict(
    findings: list[Document], path: str, first_ts: int, last_ts: int
) -> list[dict[str, Any]]:
    """The first of the findings, as slices as long as the run, and what to do about the first."""
    names = ("text", "advice", "evidence", "severity", "confidence", "cost_task_ns")
    told = findings[:1] + [one for one in findings[1:_MOST_TOLD] if one["severity"] in _TOLD]
    whole = {"ts": first_ts, "dur": max(last_ts - first_ts, 1_000_000), "track": ROOT}
    rows: list[dict[str, Any]] = [
        {
            **whole,
            **{"name": verdict_name(one), "value": None, "unit": None, "arg_rule": one["id"]},
            **{f"arg_{name}": one[name] for name in names},
            # A file that others get says nothing of the folder that it was made in.
            "arg_evidence": one["evidence"] and one["evidence"].replace(path, "RUN"),
        }
        for one in told
    ]
    if told and told[0]["advice"]:
        todo = f"to do: {told[0]['advice']}"
        rows.insert(1, {**whole, "name": todo, "value": None, "unit": None})
    return rows


def verdict_name(finding: Document) -> str:
    """How bad, what, and how sure."""
    doubt = "" if finding["confidence"] == "measured" else f" ({finding['confidence']})"
    return f"{finding['severity']}: {finding['text']}{doubt}"


def arguments(row: dict[str, Any]) -> Args:
    """The columns arg_* without those that are NULL, and each line of arg_more."""
    named = [
        (name.removeprefix("arg_"), row[name])
        for name in row
        if name.startswith("arg_") and name != "arg_more"
    ]
    for line in (row.get("arg_more") or "").splitlines():
        name, _, value = line.partition("=")
        named.append((name, value))
    return tuple(sorted((name, value) for name, value in named if value is not None))


def drawn_path(track: str, tops: Iterable[str]) -> str:
    """Groups that stand beside that of all have no parent."""
    root, _, below = track.partition("/")
    is_top = root == ROOT and any(below == top or below.startswith(f"{top}/") for top in tops)
    return below if is_top else track


def expected_tracks(
    rows: list[dict[str, Any]], tops: Iterable[str] = ()
) -> tuple[list[Slice], Curves]:
    """What the engine has to show for those rows: slices, sorted, and every point of counters.

    A value that a counter has already is not there again, nor a counter that is always 0.
    """
    slices, curves = [], defaultdict(list)
    for row in rows:
        track = drawn_path(row["track"], tops)
        if row["value"] is not None:
            curves[track].append((row["ts"], row["value"], row["unit"]))
        elif row["unit"] is None:
            args = arguments(row)
            tid = row.get("tid") or 0
            slices.append(Slice(tid, track, row["ts"], row["dur"] or 0, row["name"], args))
    return sorted(slices, key=_place), {
        track: _points(track, samples)
        for track, samples in curves.items()
        if any(value != 0 for _, value, _ in samples)
    }


def _points(track: str, samples: list[tuple[int, int | float, str]]) -> list[CounterSample]:
    """What people are shown of the samples of one counter."""
    points: list[CounterSample] = []
    last = None
    for ts, value, unit in samples:
        if value == last and type(value) is type(last):
            continue
        if value == 0 and last == 0 and not any(point.value for point in points):
            continue  # of another type of number: 0 before it is anything
        shown, factor = _SHOWN.get(unit, (unit, 1))
        points.append(CounterSample(track, ts, float(value) * factor, shown))
        last = value
    if points[0].value == 0 and points[0].ts == points[1].ts:
        del points[0]
    return points


def curves_of(samples: Iterable[CounterSample]) -> Curves:
    """Samples by track, each in the order of time."""
    curves: Curves = defaultdict(list)
    for sample in sorted(samples):
        curves[sample.track].append(sample)
    return dict(curves)


def difference_of_curves(found: Curves, wanted: Curves, step_ns: int) -> str:
    """What is wrong with the engine's counters; "" when nothing is.

    The first points of each are all there. Of a long one, each step of time behind them has
    its first, lowest, highest and last point, at their own times, and no other.
    """
    if found.keys() != wanted.keys():
        return f"tracks: {sorted(found.keys() ^ wanted.keys())}"
    for track, points in wanted.items():
        exact, rest = points[:_EXACT_POINTS], points[_EXACT_POINTS:]
        if sorted(exact) != found[track][: len(exact)]:
            pairs = zip(sorted(exact), found[track], strict=False)
            first = next((pair for pair in pairs if pair[0] != pair[1]), "their number")
            return f"{track}: {first}"
        problem = _thinned(found[track][len(exact) :], rest, step_ns)
        if problem:
            return f"{track}: {problem}"
    return ""


def _thinned(found: list[CounterSample], wanted: list[CounterSample], step_ns: int) -> str:
    if not set(found) <= set(wanted):
        return f"points that no row has: {sorted(set(found) - set(wanted))[:3]}"
    kept, all_of = _steps(found, step_ns), _steps(wanted, step_ns)
    if kept.keys() != all_of.keys():
        return f"steps without a point: {sorted(all_of.keys() - kept.keys())[:3]}"
    for step, points in all_of.items():
        few = kept[step]
        if len(few) > 4 or (len(points) <= 4 and len(few) != len(points)):
            return f"step {step} has {len(few)} points of {len(points)}"
        for of in (_ends, _extremes):
            if of(few) != of(points):
                return f"step {step}: {of(few)}, wanted {of(points)}"
    return ""


def _steps(points: list[CounterSample], step_ns: int) -> dict[int, list[CounterSample]]:
    steps: dict[int, list[CounterSample]] = defaultdict(list)
    for point in points:
        steps[point.ts // step_ns].append(point)
    return steps


def _ends(points: list[CounterSample]) -> tuple[int, int]:
    return min(point.ts for point in points), max(point.ts for point in points)


def _extremes(points: list[CounterSample]) -> tuple[float, float]:
    return min(point.value for point in points), max(point.value for point in points)


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
