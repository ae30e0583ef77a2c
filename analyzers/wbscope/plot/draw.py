# SPDX-License-Identifier: Apache-2.0
"""Panels on matplotlib's axes: lines, bars, spans and heat maps, and how series look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wbscope.base.units import axis_unit, format_value, prefix_step, tick_text
from wbscope.plot.dots import COLORS, ticks
from wbscope.plot.panels import PanelData, Series, thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# From light to dark in one hue: it reads the same without colours.
_COLORS = "Blues"


def draw_heat(axes: Axes, panel: PanelData, series: Series) -> None:
    """A cell is a window wide and, as classes double, a factor of two high."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LogNorm

    width = panel.window_ns or 1
    corners, counts = [], []
    for x, y, count in zip(series.x, series.y, series.upper, strict=True):
        if isinstance(x, str) or isinstance(y, str) or y is None or not count:
            continue
        low = max(float(y), 1.0)
        left, right, high = float(x), float(x) + width, 2 * low
        corners.append([(left, low), (right, low), (right, high), (left, high)])
        counts.append(float(count))
    # Single requests must be seen beside thousands.
    norm = LogNorm(vmin=0.5, vmax=max(*counts, 2.0))
    cells = PolyCollection(corners, array=counts, cmap=_COLORS, norm=norm, linewidths=0)
    axes.add_collection(cells)
    axes.set_yscale("log")
    lows = [corner[0][1] for corner in corners]
    bottom, top = min(lows) / 2, 4 * max(lows)
    axes.set_ylim(bottom, top)
    powers = range(math.ceil(math.log10(bottom)), math.floor(math.log10(top)) + 1)
    places = [10.0**power for power in powers]
    axes.set_yticks(places, [tick_text("ns", place) for place in places])
    axes.minorticks_off()
    axes.set_ylabel("time taken")
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)
    figure = axes.get_figure()
    if figure is None:
        return
    most = int(max(counts))
    marks = [n for n in (1, 10, 100, 1000, 10_000, 100_000) if n <= most]
    marks = marks if len(marks) > 1 else sorted({1, most})
    bar = figure.colorbar(cells, ax=axes, pad=0.01, aspect=15, label="requests")
    bar.set_ticks(marks, labels=[str(mark) for mark in marks])
    bar.minorticks_off()
    bar.ax.tick_params(labelsize=8)


LineStyle = str | tuple[float, Sequence[float]]

OTHERS = "#999999"
# What no event tells of.
_UNKNOWN = "#cccccc"
# So many colours are told apart at a glance; a legend of thirty tasks is none.
_MOST = 6
# Black is for limits, green for setpoints; what is left is for what was measured.
_DATA = tuple(color for color in COLORS if color not in ("#000000", "#009e73"))
# Without limits beside them, green is free.
_ALL = (*_DATA, "#009e73")
_LIMITS: dict[str, tuple[str, LineStyle]] = {
    "limit_bytes": ("#000000", "-"),
    "memcg_limit_bytes": ("#000000", "-"),
    "memory_max_bytes": ("#000000", "-"),
    "thresh_bytes": ("#000000", (0, (5, 2))),
    "wb_thresh_bytes": ("#000000", "-"),
    "setpoint_bytes": ("#009e73", "-"),
    "memcg_setpoint_bytes": ("#009e73", "-"),
    "wb_setpoint_bytes": ("#009e73", (0, (5, 2))),
    "memcg_wb_setpoint_bytes": ("#009e73", (0, (5, 2))),
    "freerun_bytes": ("#666666", (0, (1, 1.5))),
    "bg_thresh_bytes": ("#666666", (0, (5, 2, 1, 2))),
}


@dataclass(frozen=True)
class Style:
    """How one series is drawn; label None: it has no line in the legend."""

    series: Series
    color: str
    label: str | None


def limit_style(column: str) -> tuple[str, LineStyle]:
    """Colour and dashes of a limit, the same in every figure."""
    return _LIMITS.get(column, ("#000000", (0, (3, 2))))


def styled(panel: PanelData, colors: dict[tuple[str, ...], str]) -> list[Style]:
    """Each series but limits with its colour, in the order of the legend.

    colors  of keys that have one already: a task has the same in all panels of a picture
    """
    series = [one for one in panel.series if one.kind not in ("limit", "band")]
    has_limits = any(one.kind == "limit" for one in panel.series)
    palette = _DATA if has_limits else _ALL
    keys = list(dict.fromkeys(one.key for one in series))
    # As in the panels above, and what is not known at the end.
    keys.sort(key=lambda key: list(colors).index(key) if key in colors else len(colors))
    keys.sort(key=lambda key: key != () and not any(key))
    series.sort(key=lambda one: keys.index(one.key))
    if keys == [()]:
        return [
            Style(one, palette[number % len(palette)], one.label)
            for number, one in enumerate(series)
        ]
    chief = keys if len(keys) <= _MOST else keys[: _MOST - 1]
    others = sum(1 for key in keys if key not in chief and any(key))
    made: list[Style] = []
    for one in series:
        if one.key and not any(one.key):
            made.append(Style(one, _UNKNOWN, one.label))
        elif one.key in chief:
            free = (color for color in palette if color not in colors.values())
            color = colors.setdefault(one.key, next(free, palette[len(colors) % len(palette)]))
            made.append(Style(one, color, one.label))
        else:
            made.append(Style(one, OTHERS, None))
    first = next((n for n, style in enumerate(made) if style.label is None), None)
    if first is not None:
        word = "other" if others == 1 else "others"
        made[first] = replace(made[first], label=f"{others} {word}")
    return made


# More lanes than these make no picture but a list, and a query prints lists.
_MOST_LANES, _MOST_GROUPS = 16, 8
_THICK = 0.7


def names_of_panel(panel: PanelData) -> list[str]:
    """The names on the axis that are drawn."""
    return _names(panel)[: _most(panel)]


def names_left_out(panel: PanelData) -> int:
    """How many names are not drawn."""
    return max(0, len(_names(panel)) - _most(panel))


def _most(panel: PanelData) -> int:
    return _MOST_LANES if panel.x_axis == "time" or panel.stacked else _MOST_GROUPS


def _names(panel: PanelData) -> list[str]:
    if panel.x_axis == "names":
        return list(dict.fromkeys(str(x) for one in panel.series for x in one.x))
    spans = (one for one in panel.series if one.kind == "spans")
    # The longest first, whatever its series.
    lanes = [
        (float(end) - float(start), str(lane))
        for one in spans
        for start, lane, end in zip(one.x, one.y, one.upper, strict=True)
        if end is not None
    ]
    lanes.sort(key=lambda lane: -lane[0])
    return list(dict.fromkeys(lane for _, lane in lanes))


def draw_bars(axes: Axes, panel: PanelData, styles: Sequence[Style]) -> None:
    """Lying bars, so that names can be read; each with its value where it stands alone."""
    names = names_of_panel(panel)
    ends = dict.fromkeys(names, 0.0)
    thick = _THICK if panel.stacked else _THICK / len(styles)
    most = 0.0
    for number, style in enumerate(styles):
        label = style.label
        for name, value in zip(style.series.x, style.series.y, strict=True):
            if name not in ends or not isinstance(value, int | float):
                continue
            start = ends[str(name)] if panel.stacked else 0.0
            shift = 0.0 if panel.stacked else (number - (len(styles) - 1) / 2) * thick
            axes.barh(names.index(str(name)) + shift, value, thick, start, color=style.color,
                      label=label, zorder=2)  # fmt: skip
            label = None
            ends[str(name)] = start + value
            most = max(most, start + value)
            if not panel.stacked:
                _told(axes, panel.unit, value, names.index(str(name)) + shift)
    if panel.stacked:
        for name, end in ends.items():
            _told(axes, panel.unit, end, names.index(name))
    unit = axis_unit(panel.unit, most)
    most = most or 1.0
    axes.set_xlim(0, most * 1.12)
    places = ticks(0, most * 1.12, prefix_step(panel.unit), 8)
    axes.set_xticks(places, [unit.label(place) for place in places])
    axes.set_xlabel(unit.name)
    _lanes(axes, names)


def draw_spans(axes: Axes, panel: PanelData, styles: Sequence[Style]) -> None:
    """A bar from its start to its end in the lane of its task."""
    names = names_of_panel(panel)
    starts = {
        name: min(float(x) for style in styles for x, y in _places(style) if y == name)
        for name in names
    }
    # As they come, one below the other.
    names = sorted(names, key=lambda name: starts[name])
    for style in styles:
        label = style.label
        for (start, name), end in zip(_places(style), style.series.upper, strict=True):
            if name in names and end is not None:
                axes.barh(names.index(name), end - start, _THICK, start, color=style.color,
                          label=label, edgecolor=style.color, linewidth=0.8, zorder=2)  # fmt: skip
                label = None
    _lanes(axes, names)


def _places(style: Style) -> list[tuple[float, str]]:
    return [(float(x), str(y)) for x, y in zip(style.series.x, style.series.y, strict=True)]


def _told(axes: Axes, unit: str, value: float, place: float) -> None:
    text = axis_unit(unit, value).label(value) if unit == "pages" else format_value("", unit, value)
    axes.annotate(text, (value, place), (4, 0), textcoords="offset points", va="center",
                  fontsize=7)  # fmt: skip


def _lanes(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), list(names))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.3, linewidth=0.6)


# Of the widest axes of a picture: more points than that nobody sees.
_PIXELS = 1200
_RANGE = "#009e73"
_LOST = "#d55e00"


def draw_panel(axes: Axes, panel: PanelData, colors: dict[tuple[str, ...], str]) -> None:
    """Series, limits and axes with their units; `colors` as `styled` takes them."""
    title = f"{panel.about}: {panel.title}" if panel.about else panel.title
    axes.set_title(title, loc="left", fontsize=9)
    styles = styled(panel, colors)
    kinds = {style.series.kind for style in styles}
    if "bars" in kinds:
        draw_bars(axes, panel, styles)
    elif "spans" in kinds:
        draw_spans(axes, panel, styles)
    elif "heat" in kinds:
        draw_heat(axes, panel, styles[0].series)
    else:
        _curves(axes, panel, styles)
        _scale_y(axes, panel)
    if panel.x_axis == "length":
        _scale_length(axes, panel)
    for from_ns, to_ns in panel.lost:
        axes.axvspan(from_ns, to_ns, color=_LOST, alpha=0.25, linewidth=0, zorder=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8)
    handles, labels = axes.get_legend_handles_labels()
    # One curve that the title names needs no legend.
    if len(labels) > 1 or (labels and panel.series[0].key):
        axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.005, 1.02),
                    frameon=False, fontsize=8, borderaxespad=0, markerscale=2)  # fmt: skip


def _curves(axes: Axes, panel: PanelData, styles: Sequence[Style]) -> None:
    axes.grid(alpha=0.3, linewidth=0.6)
    areas = [style for style in styles if style.series.kind == "area"]
    if areas:
        _stack(axes, areas)
    curves = [style for style in styles if style.series.kind != "area"]
    # Of curves that lie on each other the first is seen on both sides of the next.
    is_nested = len(curves) > 1 and not any(style.series.key for style in curves)
    for number, style in enumerate(curves):
        width = max(1.0, 1.9 - 0.5 * number) if is_nested else 1.2
        _curve(axes, panel, style, width, 2.5 if style.color == OTHERS else 3 + 0.01 * number)
    for one in panel.series:
        if one.kind == "limit" and any(value is not None for value in one.y):
            color, dashes = limit_style(one.column)
            x, y = _numbers(thin(one, _PIXELS))
            axes.plot(x, y, color=color, linestyle=dashes, linewidth=1.1, label=one.label, zorder=2)
    for one in panel.series:
        if one.kind == "band" and any(value is not None for value in one.y):
            has_limits = any(other.kind == "limit" for other in panel.series)
            shade = _RANGE if has_limits else styles[-1].color
            few = thin(one, _PIXELS)
            x, low = _numbers(few)
            high = [math.nan if value is None else value for value in few.upper]
            axes.fill_between(x, low, high, color=shade, alpha=0.13, linewidth=0,
                              label=one.label, zorder=1)  # fmt: skip


def _curve(axes: Axes, panel: PanelData, style: Style, width: float, zorder: float) -> None:
    few = thin(style.series, _PIXELS)
    x, y = _numbers(few)
    if all(math.isnan(value) for value in y):
        return  # nor is it in the legend
    common: dict[str, Any] = {"color": style.color, "label": style.label, "zorder": zorder}
    if few.kind == "points":
        axes.plot(x, y, ".", markersize=5, markeredgewidth=0, alpha=0.7, **common)
        return
    if few.kind == "line":
        axes.plot(x, y, linewidth=width, **common)
        lonely = _lonely(y)
        axes.plot([x[i] for i in lonely], [y[i] for i in lonely], ".", markersize=3,
                  color=style.color, zorder=zorder)  # fmt: skip
        return
    if few.kind == "ecdf":
        x, y = ([x[0], *x], [0.0, *y]) if x else (x, y)
    elif few.kind == "step" and x:
        # The last window is as long as the others.
        x, y = [*x, x[-1] + (panel.window_ns or 0)], [*y, y[-1]]
    axes.step(x, y, where="post", linewidth=width, **common)


def _stack(axes: Axes, areas: Sequence[Style]) -> None:
    """What adds up: all have the same times."""
    below = [0.0] * len(areas[0].series.x)
    for style in areas:
        x, y = _numbers(style.series)
        top = [low + value for low, value in zip(below, y, strict=True)]
        axes.fill_between(x, below, top, color=style.color, alpha=0.65, linewidth=0,
                          label=style.label, zorder=1.5)  # fmt: skip
        below = top


def _numbers(series: Series) -> tuple[list[Any], list[Any]]:
    """x and y with gaps as matplotlib has them."""
    return list(series.x), [math.nan if value is None else value for value in series.y]


def _lonely(y: Sequence[float]) -> list[int]:
    """Values between two gaps, which no line shows."""
    gap = [True, *(math.isnan(value) for value in y), True]
    return [i for i in range(len(y)) if gap[i] and not gap[i + 1] and gap[i + 2]]


def _scale_y(axes: Axes, panel: PanelData) -> None:
    values = [
        float(value)
        for one in panel.series
        for value in (*one.y, *(one.upper if one.kind == "band" else ()))
        if isinstance(value, int | float)
    ]
    if any(one.kind == "area" for one in panel.series):
        values.append(axes.get_ylim()[1] / 1.05)
    low, high = min([0.0, *values]), max([0.0, *values])
    if low < -high < 0 and all(one.kind == "points" for one in panel.series):
        low = -high
        _tell_below(axes, panel, low)
    if panel.unit == "ratio" and low >= 0:
        high = max(high, 1.0)
    high = high if high > low else low + 1.0
    _limit_y(axes, panel, low, high)


def _tell_below(axes: Axes, panel: PanelData, low: float) -> None:
    """Far below the others: a mark at the edge, so that the others can still be read."""
    places = [
        float(x)
        for one in panel.series
        for x, y in zip(one.x, one.y, strict=True)
        if isinstance(x, int | float) and isinstance(y, int | float) and y < low
    ]
    axes.plot(places, [low] * len(places), "v", markersize=4, color="#000000", clip_on=False,
              label=f"{len(places)} further below", zorder=4)  # fmt: skip


def _limit_y(axes: Axes, panel: PanelData, low: float, high: float) -> None:
    room = 0.04 * (high - low)
    unit = axis_unit(panel.unit, max(abs(low), abs(high)))
    axes.set_ylim(low - (room if low < 0 else 0), high + room)
    places = ticks(low, high + room / 2, prefix_step(panel.unit), 6)
    axes.set_yticks(places, [unit.label(place) for place in places])
    axes.set_ylabel(unit.name)


def _scale_length(axes: Axes, panel: PanelData) -> None:
    """How long something took: all of it, or in powers of ten."""
    lengths = [x for one in panel.series for x in one.x if isinstance(x, int | float)]
    most = max(lengths)
    if panel.log != "x":
        unit = axis_unit("ns", most)
        axes.set_xlim(0, most * 1.03)
        places = ticks(0, most * 1.03, prefix_step("ns"), 10)
        axes.set_xticks(places, [unit.label(place) for place in places])
        axes.set_xlabel(f"at most so long [{unit.name}]")
        return
    low = 10.0 ** math.floor(math.log10(max(min(lengths), 1)))
    high = 10.0 ** math.ceil(math.log10(max(most, 2)))
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    powers = [low * 10.0**n for n in range(round(math.log10(high / low)) + 1)]
    axes.set_xticks(powers, [tick_text("ns", power) for power in powers])
    axes.minorticks_off()
    axes.set_xlabel("at most so long")


_UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
# Longer ones leave no room for the plot.
_PLAIN_MOST = 60


def plain(text: str) -> str:
    """What can be drawn, and stand in an SVG."""
    shown = "".join(one if one.isprintable() else _UNPRINTABLE for one in text)
    # For matplotlib such a label has no place in the legend.
    return f" {shown}" if shown.startswith("_") else shown


def shortened(text: str, most: int) -> str:
    """As plain(), and not longer: matplotlib takes a second for some thousand letters."""
    return plain(text if len(text) <= most else f"{text[: most - 1]}…")


def plain_panel(panel: PanelData) -> PanelData:
    """The panel with such texts; tasks, devices and cgroups may be called anything."""
    series = tuple(
        replace(
            one,
            label=_short(one.label),
            x=tuple(_short(x) for x in one.x),
            y=tuple(_short(y) for y in one.y),
        )
        for one in panel.series
    )
    return replace(panel, about=_short(panel.about), series=series)


def _short(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return shortened(value, _PLAIN_MOST)
