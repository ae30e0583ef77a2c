# SPDX-License-Identifier: Apache-2.0
"""A figure and the answer to its query become panels of series: numbers and words, no drawing.

This is what every drawing of a run is made of: pictures by matplotlib, plots in a page. All of it
is plain data (`as_json`). Values are those of the rows, unchanged and in the unit of their column;
only times are moved, so that they count from the run's first event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from wbscope.base.errors import EvidenceError
from wbscope.base.result import Result
from wbscope.base.span import WHOLE, Span
from wbscope.base.units import duration_argument, round_window_ns
from wbscope.library.finding import require_events
from wbscope.plot.figures import Figure, Kind, Mark, Panel
from wbscope.run.filters import Filters
from wbscope.run.run import Run

Point = tuple[int, Any, Any]


def with_gaps(points: Sequence[Point], most_ns: int) -> list[Point]:
    """A point without a value between two that are farther apart than this."""
    joined: list[Point] = list(points[:1])
    for before, point in pairwise(points):
        if point[0] - before[0] > most_ns:
            joined.append((before[0] + (point[0] - before[0]) // 2, None, None))
        joined.append(point)
    return joined


def with_zeros(points: Iterable[Point], window_ns: int, from_ns: int, to_ns: int) -> list[Point]:
    """A zero for each window of the time from..to that has no point.

    Of many empty windows in a row only the first and the last get one: that draws the same line.
    """
    known = {point[0]: point for point in points}
    # Windows are counted from the start of what was asked for, samples may lie before it.
    first = min([from_ns, *known])
    first = from_ns - -(-(from_ns - first) // window_ns) * window_ns
    last = max([to_ns - 1, *known])
    filled: list[Point] = []
    starts = range(first, last + 1, window_ns)
    for start in starts:
        if start in known:
            filled.append(known[start])
            continue
        beside = (start - window_ns, start + window_ns)
        if start in (starts[0], starts[-1]) or any(one in known for one in beside):
            filled.append((start, 0, 0))
    return filled


# The root's cgroup, or a kernel without cgroups for writeback: nothing worth a word.
_ROOT_CGROUP = 1
_UNKNOWN = "unknown"


def label_of(result: Result, columns: Sequence[str], values: Sequence[Any]) -> str:
    """`dd-123 (probe)`, `vda (/data), cgroup /small`, `node 0 DMA32`; names of the result."""
    if columns and all(value is None for value in values):
        return _UNKNOWN
    parts: list[str] = []
    for column, value in zip(columns, values, strict=True):
        shown = result.label(column, value) or ("" if value is None else str(value))
        if column == "comm" and "tid" in columns:
            shown = f"{shown}-{values[list(columns).index('tid')]}"
        elif column == "tid" and "comm" in columns:
            continue
        elif column == "cgroup_ino":
            if value is None or value == _ROOT_CGROUP:
                continue
            shown = f"cgroup {shown}"
        elif column.endswith("_basis"):
            shown = f"({shown})"
        elif column == "node":
            shown = f"node {shown}" if shown else ""
        if shown:
            parts.append(shown)
    separator = ", " if "cgroup_ino" in columns else " "
    return separator.join(parts)


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


# The kinds that have a number on either axis.
_CURVES = ("line", "step", "points", "limit", "band", "ecdf")


def thin(series: Series, pixels: int) -> Series:
    """The series with at most five points, of a band seven, for each of `pixels` equal parts of x.

    Of each part stay the first and the last point, the lowest and the highest value, and one gap
    where there is any, in their order; of a band the lowest and highest of both its edges. So no
    peak is lost, and a line enters and leaves a pixel where it did. Series with fewer points, and
    those that are no curves, come back as they are.
    """
    count = len(series.x)
    if series.kind not in _CURVES or count <= 5 * pixels or pixels < 1:
        return series
    xs: list[Any] = list(series.x)
    low, high = min(xs), max(xs)
    width = (high - low) / pixels or 1
    kept: list[int] = []
    part: list[int] = []
    pixel = 0
    for index, x in enumerate(xs):
        at = min(int((x - low) / width), pixels - 1)
        if at != pixel and part:
            kept += _chosen(series, part)
            part = []
        pixel = at
        part.append(index)
    kept += _chosen(series, part)
    return replace(
        series,
        x=tuple(series.x[i] for i in kept),
        y=tuple(series.y[i] for i in kept),
        upper=tuple(series.upper[i] for i in kept) if series.upper else (),
    )


def _chosen(series: Series, part: list[int]) -> list[int]:
    """The points of one pixel that stay, by their numbers."""
    keep = {part[0], part[-1]}
    gap = next((i for i in part if series.y[i] is None), None)
    if gap is not None:
        keep.add(gap)
    for values in (series.y, series.upper):
        keep.update(_extremes(values, part))
    return sorted(keep)


def _extremes(values: tuple[Any, ...], part: list[int]) -> Iterator[int]:
    known = [i for i in part if values and values[i] is not None]
    if known:
        yield min(known, key=lambda i: values[i])
        yield max(known, key=lambda i: values[i])


_NOT_RECORDED = "-not-recorded"  # how the slugs of such warnings end


@dataclass(frozen=True)
class Asked:
    """A figure with its numbers; `window` as the command line takes it, None without windows.

    `part` is the part of the time that they are of.
    """

    figure: Figure
    result: Result
    grid: Grid
    panels: tuple[PanelData, ...]
    window: str | None
    part: Span = WHOLE


@dataclass(frozen=True)
class Lacking:
    """Why a figure cannot be drawn of this run, in one line."""

    figure: Figure
    error: EvidenceError


def ask_figure(run: Run, figure: Figure, span: Span = WHOLE) -> Asked | Lacking:
    """The numbers of a figure, for a part of the run.

    Raises: as ask_figures().
    """
    return ask_figures(run, [figure], span)[0]


def ask_figures(run: Run, figures: Sequence[Figure], span: Span = WHOLE) -> list[Asked | Lacking]:
    """The numbers of these figures, for a part of the run; what several show is asked once.

    Raises: UsageError for a part that no event can be in.
    """
    grids = [_grid(run, figure, span) for figure in figures]
    questions = [
        (_filters(run, figure, grid, span), figure.query)
        for figure, grid in zip(figures, grids, strict=True)
    ]
    # What has the same filters stands together: a session keeps what it makes with them.
    names: dict[Filters, list[str]] = {}
    for filters, name in dict.fromkeys(questions):
        names.setdefault(filters, []).append(name)
    answers = {}
    for filters in sorted(names, key=lambda filters: filters.window_ns or 0):
        for name in run.expect(names[filters], filters):
            answers[filters, name] = _answer(run, name, filters)
    return [
        _with_numbers(run, figure, grid, answers[question], question[0].span)
        for figure, grid, question in zip(figures, grids, questions, strict=True)
    ]


def _grid(run: Run, figure: Figure, span: Span) -> Grid:
    first, last = run.bounds()
    t0_ns, t1_ns = run.on_clock(span)
    from_ns = 0 if t0_ns is None else t0_ns - first
    to_ns = (last + 1 if t1_ns is None else t1_ns) - first
    window_ns = None
    if figure.windows:
        window_ns = round_window_ns(max(figure.least_window_ns, (to_ns - from_ns) / figure.windows))
    return Grid(from_ns, to_ns, window_ns)


def _filters(run: Run, figure: Figure, grid: Grid, span: Span) -> Filters:
    # A query that takes no part of the time is of the whole run, and says so in its warnings.
    part = span if run.library.query(figure.query).takes_range() else WHOLE
    return Filters(window_ns=grid.window_ns, span=part)


def _answer(run: Run, name: str, filters: Filters) -> Result | EvidenceError:
    try:
        return run.ask(name, filters)
    except EvidenceError as error:
        return error


def _with_numbers(
    run: Run, figure: Figure, grid: Grid, answer: Result | EvidenceError, part: Span
) -> Asked | Lacking:
    if isinstance(answer, EvidenceError):
        return Lacking(figure, answer)
    made = panels(figure, answer, grid)
    if not made:
        return Lacking(figure, _nothing(run, figure, answer))
    window = None if grid.window_ns is None else duration_argument(grid.window_ns)
    return Asked(figure, answer, grid, made, window, part)


def why_not(run: Run, figure: Figure) -> EvidenceError | None:
    """Why the run cannot have this figure, without asking where its events tell."""
    query = run.library.query(figure.query)
    try:
        require_events(query, run.recorded(), run.name, run.library.profiles)
    except EvidenceError as error:
        return error
    if query.events:
        return None
    # Only its rows tell whether samples were taken.
    asked = ask_figure(run, figure)
    return asked.error if isinstance(asked, Lacking) else None


def _nothing(run: Run, figure: Figure, answer: Result) -> EvidenceError:
    """What was not recorded may have happened."""
    lacking = (one.message for one in answer.warnings if one.slug.endswith(_NOT_RECORDED))
    return EvidenceError(
        "nothing-to-draw",
        figure.name,
        f"has nothing to draw: {next(lacking, figure.no_rows)}",
        fix=f"wbscope query {figure.query} {run.name}",
    )
