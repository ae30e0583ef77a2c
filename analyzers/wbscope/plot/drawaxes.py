# SPDX-License-Identifier: Apache-2.0
"""One panel on one pair of matplotlib's axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wbscope.base.units import axis_unit, prefix_step, tick_text
from wbscope.plot.axis import ticks
from wbscope.plot.drawbars import draw_bars, draw_spans
from wbscope.plot.heatcells import draw_heat
from wbscope.plot.paneldata import PanelData, Series
from wbscope.plot.styles import OTHERS, Style, limit_style, styled
from wbscope.plot.thin import thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_panel"]

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
