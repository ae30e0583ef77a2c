# SPDX-License-Identifier: Apache-2.0
"""One metric: a dot for each run, a line of dots a side, the median, and the base's interval.

Written as SVG by hand: a page has a hundred of them, and matplotlib takes 0.1 s for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from wbscope.plot.axis import ticks
from wbscope.plot.svg import COLORS

__all__ = ["Strip", "dots_svg"]

# Of the drawing in its own units; the page scales it.
_WIDTH = 340
_LEFT, _RIGHT, _TOP = 60, 14, 4
_ROW, _AXIS = 22, 22
# A name longer than the room for it is cut; the table has it whole.
_LETTERS = 8


@dataclass(frozen=True)
class Strip:
    """The values of one side; `expected` is where the base's median, moved by the shift's
    interval, would lie: what the side's typical run can be."""

    name: str
    values: Sequence[float]
    median: float
    expected: tuple[float, float] | None = None


def dots_svg(strips: Sequence[Strip], label: Callable[[float], str], prefix: int) -> str:
    """A small plot; `label` writes a value of the axis, with prefixes in steps of `prefix`."""
    shown = [value for strip in strips for value in (*strip.values, *(strip.expected or ()))]
    low, high = min(shown), max(shown)
    span = high - low or abs(high) or 1.0
    low, high = low - 0.04 * span, high + 0.04 * span
    scale = (_WIDTH - _LEFT - _RIGHT) / (high - low)

    def place(value: float) -> str:
        return f"{_LEFT + (value - low) * scale:.1f}"

    bottom = _TOP + _ROW * len(strips)
    lines = [
        f'<svg class="dots" viewBox="0 0 {_WIDTH} {bottom + _AXIS}" role="img"'
        f' aria-label="{escape(_told(strips, label))}">',
        f'<path class="axis" d="M{_LEFT} {bottom}H{_WIDTH - _RIGHT}"/>',
    ]
    for value in ticks(low, high, prefix):
        lines.append(f'<path class="axis" d="M{place(value)} {bottom}v4"/>')
        lines.append(f'<text x="{place(value)}" y="{bottom + 16}">{escape(label(value))}</text>')
    for number, strip in enumerate(strips):
        lines += _strip(strip, _TOP + _ROW * number + _ROW // 2, COLORS[number], place)
    return "".join([*lines, "</svg>"])


def _strip(strip: Strip, y: int, color: str, place: Callable[[float], str]) -> Iterator[str]:
    name = strip.name if len(strip.name) <= _LETTERS else f"{strip.name[: _LETTERS - 1]}…"
    yield f'<g fill="{color}" stroke="{color}">'
    yield f'<text class="name" x="{_LEFT - 6}" y="{y + 4}">{escape(name)}</text>'
    if strip.expected is not None:
        low, high = strip.expected
        yield f'<path class="band" d="M{place(low)} {y}H{place(high)}"/>'
    for value in strip.values:
        yield f'<circle cx="{place(value)}" cy="{y}" r="3"/>'
    yield f'<path class="median" d="M{place(strip.median)} {y - 8}v16"/></g>'


def _told(strips: Sequence[Strip], label: Callable[[float], str]) -> str:
    told = (f"{s.name}: {len(s.values)} runs, median {label(s.median)}" for s in strips)
    return "; ".join(told)
