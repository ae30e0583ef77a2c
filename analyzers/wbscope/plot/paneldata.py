# SPDX-License-Identifier: Apache-2.0
"""A figure and the answer to its query become panels of series: numbers and words, no drawing.

This is what every drawing of a run is made of: pictures by matplotlib, plots in a page. All of it
is plain data (`as_json`). Values are those of the rows, unchanged and in the unit of their column;
only times are moved, so that they count from the run's first event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wbscope.base.result import Result
from wbscope.plot.figure import Figure, Kind, Mark, Panel
from wbscope.plot.gaps import with_gaps, with_zeros
from wbscope.plot.legends import label_of

__all__ = ["Grid", "PanelData", "Series", "as_json", "panels"]

Number = int | float
_LOST = "lost_gaps_count"
_WINDOW = "window_start_ns"


@dataclass(frozen=True)
class Grid:
    """The part of the run that was asked for, in ns from its first event, and the windows in it.

    window_ns is None where the query has no windows.
    """

    from_ns: int
    to_ns: int
    window_ns: int | None = None


@dataclass(frozen=True)
class Series:
    """One curve, or the bars of one colour.

    kind    how it is drawn, see `figure.Kind`
    column  the query's column that `y` has
    label   for the legend
    key     values of the columns that tell series apart, as texts; () where a panel has one of
            each
    x       ns from the run's start; of an ecdf a length in ns; of bars names
    y       values in the panel's unit; None = not recorded, a gap; of spans names of lanes
    upper   as `y`: upper ends of a band, ends of spans (ns from the run's start), numbers of
            cells; () for other kinds
    """

    kind: Kind
    column: str
    label: str
    key: tuple[str, ...]
    x: tuple[Number | str, ...]
    y: tuple[Number | str | None, ...]
    upper: tuple[Number | None, ...] = ()


@dataclass(frozen=True)
class PanelData:
    """One pair of axes with its series, largest first; marks in the order of the figure.

    about      value of the columns that have a panel each: vda (/data); "" without such columns
    unit       of y: bytes, bytes/s, pages/s, ns, ratio or count
    x_axis     time, length (ns), or names
    place, of  its number among the panels of the same kind, largest first, and how many there are
    window_ns  length of a step
    lost       windows in which events are lost: from, to
    """

    title: str
    about: str
    unit: str
    x_axis: str
    series: tuple[Series, ...]
    place: int = 0
    of: int = 1
    window_ns: int | None = None
    lost: tuple[tuple[int, int], ...] = ()
    stacked: bool = False
    log: str = ""


def panels(figure: Figure, result: Result, grid: Grid) -> tuple[PanelData, ...]:
    """The panels of a figure that have anything to show; none when there is nothing to draw."""
    answer = result.from_start()
    records = answer.records()
    made: list[PanelData] = []
    # A device has the same place in all kinds of panels: that of the first kind.
    order: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for panel in figure.panels:
        rows = [row for row in records if _is_wanted(row, panel)]
        groups = _grouped(rows, panel.each, panel.marks)
        known = order.setdefault(panel.each, list(groups))
        known += [key for key in groups if key not in known]
        drawn = []
        for key in (key for key in known if key in groups):
            chosen = groups[key]
            series = tuple(_series(panel, chosen, answer, grid))
            if any(_has_values(one) for one in series if one.kind not in ("limit", "band")):
                drawn.append((key, chosen, series))
        for key, chosen, series in drawn:
            made.append(
                PanelData(
                    title=panel.title,
                    about=label_of(answer, panel.each, key),
                    unit=panel.unit,
                    x_axis=_x_axis(panel),
                    series=series,
                    place=known.index(key),
                    of=len(known),
                    window_ns=grid.window_ns if panel.x == _WINDOW else None,
                    lost=_lost(chosen, panel, grid),
                    stacked=panel.stacked,
                    log=panel.log,
                )
            )
    return tuple(made)


def as_json(made: Iterable[PanelData]) -> list[dict[str, Any]]:
    """The panels as lists and dictionaries."""
    return [asdict(panel) for panel in made]


def _is_wanted(row: Mapping[str, Any], panel: Panel) -> bool:
    return all(row[column] in values for column, values in panel.only)


def _grouped(
    rows: Sequence[dict[str, Any]], columns: Sequence[str], marks: Sequence[Mark]
) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The rows by the values of these columns, those with the largest numbers first."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    column = marks[0].upper or marks[0].y

    def size(group: list[dict[str, Any]]) -> float:
        values = [row[column] for row in group] if column else [1] * len(group)
        return float(sum(abs(value) for value in values if isinstance(value, int | float)))

    # Sorting keeps the order of the query where sizes are equal.
    return dict(sorted(groups.items(), key=lambda item: -size(item[1])))


def _series(
    panel: Panel, rows: Sequence[dict[str, Any]], answer: Result, grid: Grid
) -> Iterable[Series]:
    groups = _grouped(rows, panel.by, panel.marks)
    for mark in panel.marks:
        for key, chosen in groups.items():
            name = label_of(answer, panel.by, key)
            label = ": ".join(part for part in (name, mark.label) if part)
            if mark.kind == "area" and panel.by:
                chosen = _at_all_times(panel, mark, chosen, rows)
            x, y, upper = _points(panel, mark, chosen, answer, grid)
            texts = tuple("" if value is None else str(value) for value in key)
            yield Series(mark.kind, mark.y or panel.x, label, texts, x, y, upper)


def _at_all_times(
    panel: Panel, mark: Mark, chosen: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Of series that add up, one without a row where others have one had nothing then."""
    own = {row[panel.x]: row for row in chosen}
    times = sorted({row[panel.x] for row in rows})
    return [own.get(time) or {panel.x: time, mark.y: 0} for time in times]


def _points(
    panel: Panel, mark: Mark, rows: Sequence[dict[str, Any]], answer: Result, grid: Grid
) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    if panel.longest:
        rows = sorted(rows, key=lambda row: -(row[panel.longest] or 0))
    if mark.kind == "bars":
        names = [label_of(answer, panel.names, [row[c] for c in panel.names]) for row in rows]
        return tuple(names), tuple(row[mark.y] for row in rows), ()
    if mark.kind == "spans":
        known = [row for row in rows if row[mark.upper] is not None]
        lanes = [label_of(answer, panel.names, [row[c] for c in panel.names]) for row in known]
        ends = tuple(row[panel.x] + row[mark.upper] for row in known)
        return tuple(row[panel.x] for row in known), tuple(lanes), ends
    if mark.kind == "ecdf" and not mark.y:
        lengths = sorted(row[panel.x] for row in rows if row[panel.x] is not None)
        shares = {length: n / len(lengths) for n, length in enumerate(lengths, 1)}
        return tuple(shares), tuple(shares.values()), ()
    points = [(row[panel.x], row[mark.y], row[mark.upper] if mark.upper else None) for row in rows]
    if mark.kind == "heat":
        pass  # an empty cell needs no mark
    elif panel.zero and grid.window_ns is not None:
        points = with_zeros(points, grid.window_ns, grid.from_ns, grid.to_ns)
    elif panel.gap_ns is not None:
        needed = [one.y for one in panel.marks if one.kind == "area"]
        needed = needed if mark.kind == "area" else [mark.y]  # what adds up has the same times
        has_all = [all(row[column] is not None for column in needed) for row in rows]
        told = [point for point, is_told in zip(points, has_all, strict=True) if is_told]
        # Two windows beside each other are never apart.
        points = with_gaps(told, max(panel.gap_ns, grid.window_ns or 0))
    x, y, upper = zip(*points, strict=True) if points else ((), (), ())
    return tuple(x), tuple(y), tuple(upper) if mark.upper else ()


def _has_values(series: Series) -> bool:
    return any(value is not None for value in series.y)


def _x_axis(panel: Panel) -> str:
    kinds = {mark.kind for mark in panel.marks}
    if "bars" in kinds:
        return "names"
    return "length" if "ecdf" in kinds else "time"


def _lost(
    rows: Sequence[Mapping[str, Any]], panel: Panel, grid: Grid
) -> tuple[tuple[int, int], ...]:
    if grid.window_ns is None:
        return ()
    starts = sorted({row[_WINDOW] for row in rows if row.get(_LOST)})
    return tuple((start, start + grid.window_ns) for start in starts)
