# SPDX-License-Identifier: Apache-2.0
"""A heat map: how many of each length in each window, darker is more."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from wbscope.base.units import tick_text
from wbscope.plot.paneldata import PanelData, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_heat"]

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
