# SPDX-License-Identifier: Apache-2.0
"""One metric: a dot for each run, a line of dots a side, the median, and the base's interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wbscope.plot.svg import COLORS, new_figure, svg_text

__all__ = ["Strip", "dots_svg"]

_WIDTH = 4.2
_ROW = 0.28
_AXIS = 0.35


@dataclass(frozen=True)
class Strip:
    """The values of one side; `expected` is where the base's median, moved by the shift's
    interval, would lie: what the side's typical run can be."""

    name: str
    values: Sequence[float]
    median: float
    expected: tuple[float, float] | None = None


def dots_svg(strips: Sequence[Strip], label: Callable[[float], str]) -> str:
    """A small plot; `label` writes a value of the axis."""
    figure = new_figure(_WIDTH, _AXIS + _ROW * len(strips))
    axes = figure.add_subplot()
    for place, strip in enumerate(strips):
        color = COLORS[place % len(COLORS)]
        if strip.expected is not None:
            axes.plot(strip.expected, [place, place], color=color, linewidth=6, alpha=0.25,
                      solid_capstyle="butt")  # fmt: skip
        axes.plot(strip.values, [place] * len(strip.values), "o", color=color, markersize=4,
                  alpha=0.6, markeredgewidth=0)  # fmt: skip
        axes.plot([strip.median], [place], "|", color=color, markersize=13, markeredgewidth=2)
    axes.set_yticks(range(len(strips)), [strip.name for strip in strips])
    axes.set_ylim(len(strips) - 0.5, -0.5)
    axes.xaxis.set_major_formatter(lambda value, _position: label(value))
    axes.locator_params(axis="x", nbins=4)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return svg_text(figure)
