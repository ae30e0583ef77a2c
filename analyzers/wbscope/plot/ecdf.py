# SPDX-License-Identifier: Apache-2.0
"""Shares of pauses that were at most so long: a thin curve for each run, a colour a side.

Written as SVG by hand: the policy of a page lets no element have styles of its own, and
matplotlib's do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from wbscope.plot.axis import ticks
from wbscope.plot.svg import COLORS

__all__ = ["Curve", "ecdf_svg"]

Curve = Sequence[tuple[float, float]]  # length, share of all that are at most so long

# Of the drawing in its own units; the page scales it.
_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 20, 10, 48
_ROW = 17
_SHARES = (0, 0.25, 0.5, 0.75, 1)


def ecdf_svg(
    sides: Mapping[str, Sequence[Curve]], label: Callable[[float], str], prefix: int
) -> str:
    """The run is the unit, so each has a curve of its own; `label` writes a length, with
    prefixes in steps of `prefix`."""
    longest = max(length for curves in sides.values() for curve in curves for length, _ in curve)
    high = longest or 1.0
    floor, end = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT

    def across(length: float) -> str:
        return f"{_LEFT + (end - _LEFT) * length / high:.1f}"

    def up(share: float) -> str:
        return f"{floor - (floor - _TOP) * share:.1f}"

    told = ", ".join(f"{name}: {len(curves)} curves" for name, curves in sides.items())
    lines = [
        f'<svg class="ecdf" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
        f' aria-label="share of pauses that were at most so long; {escape(told)}">'
    ]
    for share in _SHARES:
        lines.append(f'<path class="grid" d="M{_LEFT} {up(share)}H{end}"/>')
        lines.append(f'<text class="y" x="{_LEFT - 6}" y="{up(share)}">{share * 100:.0f} %</text>')
    for length in ticks(0, high, prefix, most=7):
        lines.append(f'<path class="grid" d="M{across(length)} {_TOP}V{floor}"/>')
        lines.append(f'<text x="{across(length)}" y="{floor + 16}">{escape(label(length))}</text>')
    lines.append(f'<path class="axis" d="M{_LEFT} {_TOP}V{floor}H{end}"/>')
    middle = (_LEFT + end) // 2
    lines.append(
        f'<text x="{middle}" y="{_HEIGHT - 8}">share of pauses that were at most so long</text>'
    )
    for place, (name, curves) in enumerate(sides.items()):
        color = COLORS[place % len(COLORS)]
        lines.append(f'<g stroke="{color}">')
        for curve in curves:
            steps = "".join(f"H{across(length)}V{up(share)}" for length, share in curve)
            lines.append(f'<path class="curve" d="M{_LEFT} {floor}{steps}H{end}"/>')
        y = floor - _ROW * (len(sides) - place) + 4
        lines.append(f'<path class="key" d="M{end - 24} {y}h20"/></g>')
        lines.append(f'<text class="name" x="{end - 30}" y="{y}">{escape(name)}</text>')
    return "".join([*lines, "</svg>"])
