# SPDX-License-Identifier: Apache-2.0
"""Panels with names on one axis: bars, and spans of time in lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wbscope.base.units import axis_unit, format_value, prefix_step
from wbscope.plot.axis import ticks
from wbscope.plot.paneldata import PanelData
from wbscope.plot.styles import Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_bars", "draw_spans", "names_left_out", "names_of_panel"]

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
