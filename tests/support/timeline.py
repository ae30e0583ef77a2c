# SPDX-License-Identifier: Apache-2.0
"""A timeline as the Perfetto engine sees it, and as the tl_* views give it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cli import Wbscope
from .perfetto_engine import PerfettoEngine, Row

__all__ = ["CounterSample", "Slice", "engine_counters", "engine_slices", "expected_tracks"]
__all__ += ["timeline_rows", "timeline_views"]

_TRACK_PATHS = """
WITH RECURSIVE path(id, text) AS (
  SELECT id, name FROM track WHERE parent_id IS NULL
  UNION ALL
  SELECT t.id, p.text || '/' || t.name FROM track AS t JOIN path AS p ON t.parent_id = p.id
)
"""


@dataclass(frozen=True, order=True)
class Slice:
    """A slice, or an instant with dur 0. Times in ns; args as (key, value text)."""

    track: str
    ts: int
    dur: int
    name: str
    args: tuple[tuple[str, str], ...]


@dataclass(frozen=True, order=True)
class CounterSample:
    """One value of a counter track."""

    track: str
    ts: int
    value: float
    unit: str


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
    return [row for view in views for row in wbscope.sql(run, f"SELECT * FROM {view} ORDER BY ts")]


def expected_tracks(rows: list[dict[str, Any]]) -> tuple[list[Slice], list[CounterSample]]:
    """What the engine has to show for those rows, sorted."""
    slices, counters = [], []
    for row in rows:
        if row["value"] is not None:
            unit = row["unit"] or ""
            counters.append(CounterSample(row["track"], row["ts"], float(row["value"]), unit))
        else:
            pairs = [pair.partition("=") for pair in (row["args"] or "").split("|") if pair]
            args = tuple(sorted((key, _number_text(value)) for key, _, value in pairs))
            slices.append(Slice(row["track"], row["ts"], row["dur"] or 0, row["name"], args))
    return sorted(slices), sorted(counters)


def engine_slices(engine: PerfettoEngine) -> list[Slice]:
    """The engine's slices, sorted."""
    args: dict[Any, list[tuple[str, str]]] = {}
    for row in engine.query("SELECT arg_set_id, key, display_value FROM args ORDER BY id"):
        key = str(row["key"])
        if key.startswith("debug."):
            pair = (key.removeprefix("debug."), _number_text(row["display_value"]))
            args.setdefault(row["arg_set_id"], []).append(pair)
    rows = engine.query(
        f"{_TRACK_PATHS} SELECT p.text AS track, s.ts, s.dur, s.name, s.arg_set_id "
        "FROM slice AS s JOIN path AS p ON s.track_id = p.id"
    )
    return sorted(
        Slice(
            str(row["track"]),
            _whole(row, "ts"),
            _whole(row, "dur"),
            str(row["name"]),
            tuple(sorted(args.get(row["arg_set_id"], []))),
        )
        for row in rows
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


def _whole(row: Row, column: str) -> int:
    value = row[column]
    assert isinstance(value, int), row
    return value


def _number_text(value: object) -> str:
    """Numbers in one spelling, whatever their type on the way; other text as it is."""
    text = str(value)
    return repr(float(text)) if re.fullmatch(r"-?\d+(\.\d*)?(e[-+]?\d+)?", text) else text
