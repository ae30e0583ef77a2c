# SPDX-License-Identifier: Apache-2.0
"""One metric of a lab as a picture: a line for each cell, a dot for each run, its median."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wbscope.plot.axis import ticks
from wbscope.plot.svg import COLORS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CellDots", "cells_png"]

_WIDTH, _LINE, _FRAME = 7.0, 0.3, 0.85  # inches
_DPI = 150
# Dots of equal values stand above each other, within the cell's line.
_SPREAD = 0.22


@dataclass(frozen=True)
class CellDots:
    """A cell's runs; `interval` of the median; cells of one group have one colour."""

    name: str
    values: Sequence[float]
    median: float | None
    interval: tuple[float, float] | None
    group: int


def cells_png(
    title: str, cells: Sequence[CellDots], label: Callable[[float], str], prefix: int
) -> bytes:
    """The picture; the same cells always give the same bytes.

    label   writes a value of the axis, with prefixes in steps of `prefix`
    """
    figure = new_figure(_WIDTH, _FRAME + _LINE * len(cells))
    axes = figure.add_subplot()
    for place, cell in enumerate(cells):
        color = COLORS[cell.group % len(COLORS)]
        if cell.interval is not None:
            axes.plot(cell.interval, (place, place), color=color, linewidth=7, alpha=0.25,
                      solid_capstyle="butt")  # fmt: skip
        offsets = [_offset(cell.values, number) for number in range(len(cell.values))]
        axes.plot(cell.values, [place + offset for offset in offsets], "o", color=color,
                  markersize=4, alpha=0.75, markeredgewidth=0)  # fmt: skip
        if cell.median is not None:
            axes.plot((cell.median,) * 2, (place - 0.36, place + 0.36), color=color, linewidth=1.8)
    axes.set_yticks(range(len(cells)), [f"{c.name}  (n={len(c.values)})" for c in cells])
    axes.set_ylim(len(cells) - 0.4, -0.6)
    _scale(axes, cells, label, prefix)
    axes.set_title(title, loc="left", fontsize=9)
    axes.grid(axis="x", alpha=0.3)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(labelsize=8)
    made = io.BytesIO()
    figure.savefig(made, format="png", dpi=_DPI, metadata={"Software": None})
    return made.getvalue()


def _offset(values: Sequence[float], number: int) -> float:
    """Up and down in turns, so that equal values are seen as many."""
    if len(values) == 1:
        return 0.0
    return _SPREAD * (2 * number / (len(values) - 1) - 1)


def _scale(
    axes: Axes, cells: Sequence[CellDots], label: Callable[[float], str], prefix: int
) -> None:
    shown = [v for cell in cells for v in (*cell.values, *(cell.interval or ()))] or [0.0]
    low, high = min(shown), max(shown)
    if low == high:
        low, high = min(0.0, low), max(high, 0.0) or 1.0
    # From 0 on where that costs little room.
    if 0 < low < 0.5 * high:
        low = 0.0
    span = high - low
    low, high = low - 0.03 * span, high + 0.03 * span
    axes.set_xlim(low, high)
    places = ticks(low, high, prefix, 6)
    axes.set_xticks(places, [label(place) for place in places])
