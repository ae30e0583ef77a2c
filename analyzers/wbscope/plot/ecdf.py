# SPDX-License-Identifier: Apache-2.0
"""Shares of pauses that were at most so long: a thin curve for each run, a colour a side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wbscope.plot.svg import COLORS, new_figure, svg_text

__all__ = ["Curve", "ecdf_svg"]

Curve = Sequence[tuple[float, float]]  # length, share of all that are at most so long


def ecdf_svg(sides: Mapping[str, Sequence[Curve]], label: Callable[[float], str]) -> str:
    """The run is the unit, so each has a curve of its own."""
    figure = new_figure(6.4, 3.2)
    axes = figure.add_subplot()
    for place, (name, curves) in enumerate(sides.items()):
        for number, curve in enumerate(curves):
            lengths = [0.0, *(length for length, _ in curve)]
            shares = [0.0, *(share for _, share in curve)]
            axes.step(lengths, shares, where="post", color=COLORS[place % len(COLORS)],
                      linewidth=1, alpha=0.7, label=name if number == 0 else None)  # fmt: skip
    axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    axes.set_ylabel("share of pauses")
    axes.set_xlabel("at most so long")
    axes.xaxis.set_major_formatter(lambda value, _position: label(value))
    axes.yaxis.set_major_formatter(lambda value, _position: f"{value * 100:.0f} %")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", frameon=False)
    return svg_text(figure)
