# SPDX-License-Identifier: Apache-2.0
"""The figures of a page: panels of all runs on one time axis, in words and as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wbscope.base.result import Result
from wbscope.base.system import join
from wbscope.base.units import format_value
from wbscope.explain.story import Environment
from wbscope.explain.verdict import Report
from wbscope.plot.draw import OTHERS, limit_style, styled
from wbscope.plot.figures import FIGURES
from wbscope.plot.panels import Asked, Lacking, PanelData, Series, thin
from wbscope.render.text import printable

# Digits of numbers with a point: more than any screen has.
_DIGITS = 9


@dataclass(frozen=True)
class Drawn:
    """A series with its looks; `color` names a colour, which a dark page may have another one of.

    dashes   lengths of strokes and gaps; () = a whole line
    stepped  each value holds until the next, as those of the kind step do
    """

    series: Series
    color: str
    dashes: tuple[float, ...] = ()
    stepped: bool = False


def drawn_of(panel: PanelData, colors: dict[tuple[str, ...], str]) -> list[Drawn]:
    """What is drawn of a panel, in the order of the legend.

    Tasks beyond the chief ones are one: of curves from the lowest to the highest of them, of
    areas their sum, of single points the lowest and the highest.
    """
    styles = styled(panel, colors)
    chief = [style for style in styles if style.color != OTHERS]
    rest = [style.series for style in styles if style.color == OTHERS]
    drawn = [
        Drawn(replace(one.series, label=one.label or ""), one.color, (), one.series.kind == "step")
        for one in chief
    ]
    is_stepped = any(one.kind == "step" for one in rest)
    drawn += [Drawn(one, OTHERS, (), is_stepped) for one in _together(rest)]
    for one in panel.series:
        if one.kind == "limit" and any(value is not None for value in one.y):
            color, line = limit_style(one.column)
            dashes = tuple(line[1]) if isinstance(line, tuple) else ()
            drawn.append(Drawn(one, color, dashes))
    first = drawn[0].color if drawn else OTHERS
    has_limits = any(one.kind == "limit" for one in panel.series)
    for one in panel.series:
        if one.kind == "band" and any(value is not None for value in one.y):
            drawn.append(Drawn(one, "range" if has_limits else first))
    return drawn


def _together(rest: Sequence[Series]) -> list[Series]:
    """The others as one series for each kind of mark."""
    if len(rest) < 2:
        return list(rest)
    made = []
    for column in dict.fromkeys(one.column for one in rest):
        same = [one for one in rest if one.column == column]
        values: dict[Any, list[Any]] = {}
        for one in same:
            for x, y in zip(one.x, one.y, strict=True):
                values.setdefault(x, []).append(y)
        times = sorted(values)
        known = [[y for y in values[x] if y is not None] for x in times]
        label = f"{len(same)} others"
        if same[0].kind == "area":
            sums = tuple(sum(ys) if ys else None for ys in known)
            made.append(Series("area", column, label, ("", ""), tuple(times), sums))
            continue
        low = tuple(min(ys) if ys else None for ys in known)
        high = tuple(max(ys) if ys else None for ys in known)
        if same[0].kind == "points":
            made.append(Series("points", column, f"{label}, highest", ("", ""), tuple(times), high))
            made.append(Series("points", column, f"{label}, lowest", ("", ""), tuple(times), low))
            continue
        label += ", lowest to highest"
        made.append(Series("band", column, label, ("", ""), tuple(times), low, high))
    return made


def extent_of(panel: PanelData) -> tuple[float, float]:
    """Lowest and highest end of the y axis."""
    values = [
        float(value)
        for one in panel.series
        for value in (*one.y, *(one.upper if one.kind == "band" else ()))
        if isinstance(value, int | float)
    ]
    areas = [one for one in panel.series if one.kind == "area"]
    if areas:
        values += [float(sum(y or 0 for y in ys)) for ys in zip(*(a.y for a in areas), strict=True)]
    low, high = min([0.0, *values]), max([0.0, *values])
    if low < -high < 0 and all(one.kind == "points" for one in panel.series):
        low = -high  # what lies below is told, and leaves the others room
    if panel.unit == "ratio" and low >= 0:
        high = max(high, 1.0)
    return low, high if high > low else low + 1.0


def record_of(panel: PanelData, drawn: Iterable[Drawn], pixels: int) -> dict[str, Any]:
    """The numbers for a script: times as differences, once for all series that share them."""
    times: list[list[Any]] = []
    records = []
    for one in drawn:
        series = thin(one.series, pixels)
        x: list[Any] = list(series.x)
        y, upper = [_short(v) for v in series.y], [_short(v) for v in series.upper]
        if one.stepped and panel.window_ns and x:
            # The last window is as long as the others.
            x, y, upper = [*x, x[-1] + panel.window_ns], [*y, y[-1]], [*upper, *upper[-1:]]
        steps = [b - a for a, b in zip([0, *x], x, strict=False)]
        if steps not in times:
            times.append(steps)
        record: dict[str, Any] = {
            "label": series.label,
            "kind": series.kind,
            "color": one.color,
            "x": times.index(steps),
            "y": y,
        }
        if series.kind == "band":
            record["upper"] = upper
        if one.stepped:
            record["stepped"] = True
        if one.dashes:
            record["dashes"] = list(one.dashes)
        records.append(record)
    return {"times": times, "series": records, "lost": [list(span) for span in panel.lost]}


def _short(value: Any) -> Any:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


# What stands open, by the places of panels in their figure; the rest is folded.
_MAIN: dict[str, tuple[int, ...]] = {
    "global_dirty_state": (0,),
    "pool-by-holder": (0,),
    "task-wait": (0,),
    "balance_dirty_pages-pause": (0,),
    "iostat-bw": (0,),
    "iostat-util": (0,),
    "global_dirtied_written": (0,),
    "vmstat": (1, 2, 3),
}
FIGURES_OF_PAGE: tuple[str, ...] = (
    *_MAIN,
    "balance_dirty_pages-bandwidth",
    "balance_dirty_pages-pages",
    "balance_dirty_pages-task-bw",
    "bdi_dirty_state",
    "cgroup_dirty_state",
    "pressure",
)
# No curves over time: `wbscope plot` makes pictures of them.
DRAWN_ELSEWHERE: tuple[str, ...] = (
    "pauses-ecdf",
    "stalls-ecdf",
    "latency-heatmap",
    "copy-and-sync",
    "reclaim-zones",
)
_CURVES = ("line", "step", "points", "area", "limit", "band")


@dataclass(frozen=True)
class RunPage:
    """One run of a page.

    name     what tells it from the others of the page
    figures  those of FIGURES_OF_PAGE, in this order
    longest  its longest waits and how many there are in all, if any event tells of waits
    """

    name: str
    report: Report
    figures: tuple[Asked | Lacking, ...]
    longest: tuple[Result, int] | None
    environment: Environment


def is_of_time(panel: PanelData) -> bool:
    """Whether it has curves over time, which the page draws."""
    return panel.x_axis == "time" and all(one.kind in _CURVES for one in panel.series)


def is_main(asked: Asked, panel: PanelData) -> bool:
    """Whether a panel stands open."""
    titles = [one.title for one in asked.figure.panels]
    return titles.index(panel.title) in _MAIN.get(asked.figure.name, ())


# Panels of one kind: more devices than that are named only.
_MOST_PLACES = 4
# Of the whole page: at about ten bytes each they stay far below what it may weigh.
_MOST_POINTS = 100_000
# The least that a figure has across.
_LEAST_PIXELS = 40
_POINTS_A_PIXEL = 5
# Of the run: what samples may go on behind it, so that figures end where it does.
_SHORTLY = 0.1


@dataclass(frozen=True)
class _Plot:
    """One panel of one run."""

    run: int
    asked: Asked
    panel: PanelData
    drawn: list[Drawn]


@dataclass(frozen=True)
class Figures:
    """`main` and `more` are for the template, `data` for the script; `missing` says what is not."""

    main: list[dict[str, Any]]
    more: list[dict[str, Any]]
    missing: list[tuple[str, str]]
    data: dict[str, Any]


def figures_of(pages: Sequence[RunPage]) -> Figures:
    """The panels of a figure stand together, those of several runs below one another."""
    plots = list(_plots(pages))
    curves = sum(len(plot.drawn) for plot in plots) or 1
    pixels = max(_LEAST_PIXELS, _MOST_POINTS // (_POINTS_A_PIXEL * curves))
    extents = _extents(plots)
    records = {}
    groups: dict[tuple[str, bool], dict[str, Any]] = {}
    for number, plot in enumerate(plots):
        name = f"plot{number}"
        low, high = extents[_kind(plot)]
        records[name] = {
            "run": plot.run,
            "figure": plot.asked.figure.name,
            "unit": plot.panel.unit,
            "low": low,
            "high": high,
            **record_of(plot.panel, plot.drawn, pixels),
        }
        group = groups.setdefault(
            (plot.asked.figure.name, is_main(plot.asked, plot.panel)),
            {"name": plot.asked.figure.name, "title": plot.asked.figure.title, "panels": []},
        )
        group["panels"].append(_told(name, plot, pages))
    ends = [_ends(plot) for plot in plots] or [(0, 1)]
    data = {
        "from": min(start for start, _ in ends),
        "to": max(end for _, end in ends),
        "plots": records,
    }
    open_ones = [group for (_, is_open), group in groups.items() if is_open]
    folded = [group for (_, is_open), group in groups.items() if not is_open]
    return Figures(open_ones, folded, list(_missing(pages)), data)


def _plots(pages: Sequence[RunPage]) -> Iterator[_Plot]:
    """By figure, kind of panel, place, then run: what is compared stands together."""
    colors: list[dict[str, dict[tuple[str, ...], str]]] = [{} for _ in pages]
    names = list(dict.fromkeys(one.figure.name for page in pages for one in page.figures))
    for name in names:
        found = []
        for run, page in enumerate(pages):
            for asked in page.figures:
                if isinstance(asked, Lacking) or asked.figure.name != name:
                    continue
                titles = [panel.title for panel in asked.figure.panels]
                for panel in asked.panels:
                    if is_of_time(panel) and panel.place < _MOST_PLACES:
                        # A task has the same colour in all figures of tasks.
                        keys = _by(asked, panel)
                        drawn = drawn_of(panel, colors[run].setdefault(keys, {}))
                        place = (titles.index(panel.title), panel.place, run)
                        found.append((place, _Plot(run, asked, panel, drawn)))
        found.sort(key=lambda one: one[0])
        yield from (plot for _, plot in found)


def _by(asked: Asked, panel: PanelData) -> str:
    """What the series of a panel are: tasks, devices."""
    declared = next(one for one in asked.figure.panels if one.title == panel.title)
    return " ".join(declared.by) or asked.figure.name + panel.title


def _kind(plot: _Plot) -> tuple[str, str, int]:
    return plot.asked.figure.name, plot.panel.title, plot.panel.place


def _extents(plots: Sequence[_Plot]) -> dict[tuple[str, str, int], tuple[float, float]]:
    """One y axis for the same panel of all runs."""
    found: dict[tuple[str, str, int], tuple[float, float]] = {}
    for plot in plots:
        low, high = extent_of(plot.panel)
        known = found.get(_kind(plot), (low, high))
        found[_kind(plot)] = (min(low, known[0]), max(high, known[1]))
    return found


def _ends(plot: _Plot) -> tuple[float, float]:
    """Samples may lie before what was asked for; the last one, shortly behind it, is left out."""
    times = [x for one in plot.panel.series for x in one.x if isinstance(x, int | float)]
    grid = plot.asked.grid
    end = max([grid.to_ns, *times])
    is_shortly = end - grid.to_ns < _SHORTLY * (grid.to_ns - grid.from_ns)
    return min([grid.from_ns, *times]), grid.to_ns if is_shortly else end


def _told(name: str, plot: _Plot, pages: Sequence[RunPage]) -> dict[str, Any]:
    """What a reader without the drawing gets."""
    page = pages[plot.run]
    panel = plot.panel
    title = f"{panel.about}: {panel.title}" if panel.about else panel.title
    rows = [row for one in plot.drawn if (row := _numbers(one, panel.unit)) is not None]
    asked = plot.asked
    options = [] if asked.window is None else ["--window", asked.window]
    options += [word for option in asked.part.options() for word in option]
    command = ["wbscope", "query", asked.figure.query, page.report.run, *options]
    notes = []
    if panel.place == 0 and panel.of > _MOST_PLACES:
        notes.append(f"{panel.of - _MOST_PLACES} more of this kind are not drawn")
    low, _ = extent_of(panel)
    if below := sum(
        1 for one in panel.series for y in one.y if isinstance(y, int | float) and y < low
    ):
        notes.append(f"{below} points lie below the axis")
    return {
        "id": name,
        "title": printable(title),
        "run": printable(page.name) if len(pages) > 1 else "",
        "alternative": "; ".join(
            f"{label or title}: {lowest} to {highest}, highest at {when}"
            for label, lowest, highest, when in rows[:6]
        )
        + (f"; and {len(rows) - 6} more" if len(rows) > 6 else ""),
        "rows": rows,
        "window": plot.asked.window if panel.window_ns else "",
        "command": printable(join(command)),
        "file": f"{plot.asked.figure.name}-{name}.csv",
        "notes": notes,
    }


def _numbers(one: Drawn, unit: str) -> tuple[str, str, str, str] | None:
    """Label, lowest, highest, when that was."""
    values = one.series.upper if one.series.kind == "band" else one.series.y
    known = [
        (y, x)
        for y, x in zip(values, one.series.x, strict=True)
        if isinstance(y, int | float) and isinstance(x, int | float)
    ]
    lows = [y for y in one.series.y if isinstance(y, int | float)]
    if not known or not lows:
        return None
    highest, when = max(known, key=lambda pair: pair[0])
    shown = "" if unit == "count" else unit
    return (
        printable(one.series.label),
        format_value("", shown or None, min(lows)),
        format_value("", shown or None, highest),
        format_value("dur", "ns", when),
    )


def _missing(pages: Sequence[RunPage]) -> Iterator[tuple[str, str]]:
    """What the page has no figure of, and why."""
    titles = {figure.name: figure.title for figure in FIGURES}
    for page in pages:
        for one in page.figures:
            if isinstance(one, Lacking):
                of = f" of {page.name}" if len(pages) > 1 else ""
                told = printable(one.error.message)
                yield f"{titles[one.figure.name]}{printable(of)}", told
