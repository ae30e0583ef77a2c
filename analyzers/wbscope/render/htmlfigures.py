# SPDX-License-Identifier: Apache-2.0
"""The figures of a page: panels of all runs on one time axis, told in words and as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wbscope.base.filenames import join
from wbscope.base.units import format_value
from wbscope.plot.asked import Asked, Lacking
from wbscope.plot.figures import FIGURES
from wbscope.plot.paneldata import PanelData
from wbscope.render.figurevalues import Drawn, drawn_of, extent_of, record_of
from wbscope.render.printable import printable
from wbscope.render.runpage import RunPage, is_main, is_of_time

__all__ = ["Figures", "figures_of"]

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
