# SPDX-License-Identifier: Apache-2.0
"""One metric over commits: a dot for each run, the level between changes, and where it changed.

Written as SVG by hand, as the dots of a comparison: a page has a hundred of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from wbscope.plot.axis import ticks
from wbscope.plot.svg import COLORS

__all__ = ["Column", "Step", "trend_svg"]

# Of the drawing in its own units; the page scales it.
_WIDTH, _HEIGHT = 720, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 14, 20, 24
_COLOR = COLORS[0]
_STEPS = {"better": COLORS[2], "worse": COLORS[1]}
_OTHER_STEP = "#666666"


@dataclass(frozen=True)
class Column:
    """The values of a commit's runs; `told` is what a reader sees when pointing at one."""

    values: Sequence[float]
    told: str


@dataclass(frozen=True)
class Step:
    """A change: from the column `index` on the level is `level`."""

    index: int
    level: float
    label: str
    outcome: str


def trend_svg(
    columns: Sequence[Column],
    first_level: float,
    steps: Sequence[Step],
    ends: tuple[str, str],
    label: Callable[[float], str],
    prefix: int,
) -> str:
    """A plot of at least one column; `label` writes a value of the axis, with prefixes in steps
    of `prefix`; `ends` are the words below the first and the last column."""
    shown = [value for column in columns for value in column.values]
    low, high = min(shown), max(shown)
    span = high - low or abs(high) or 1.0
    low, high = low - 0.06 * span, high + 0.06 * span
    scale = (_HEIGHT - _TOP - _BOTTOM) / (high - low)
    wide = (_WIDTH - _LEFT - _RIGHT) / len(columns)

    def up(value: float) -> str:
        return f"{_HEIGHT - _BOTTOM - (value - low) * scale:.1f}"

    def along(number: float) -> str:
        return f"{_LEFT + number * wide:.1f}"

    bottom = _HEIGHT - _BOTTOM
    told = f"{len(columns)} commits, {len(shown)} runs, {len(steps)} changes"
    lines = [
        f'<svg class="trend" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{told}">',
        f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{_WIDTH - _RIGHT}"/>',
    ]
    for value in ticks(low, high, prefix):
        lines.append(f'<path class="axis" d="M{_LEFT} {up(value)}h-4"/>')
        lines.append(
            f'<text class="y" x="{_LEFT - 8}" y="{up(value)}">{escape(label(value))}</text>'
        )
    for place, anchor, word in ((_LEFT, "start", ends[0]), (_WIDTH - _RIGHT, "end", ends[1])):
        lines.append(
            f'<text class="x" text-anchor="{anchor}" x="{place}" y="{bottom + 16}">'
            f"{escape(word)}</text>"
        )
    for number, column in enumerate(columns):
        dots = "".join(
            f'<circle cx="{along(number + 0.5)}" cy="{up(value)}" r="3"/>'
            for value in column.values
        )
        lines.append(f'<g fill="{_COLOR}"><title>{escape(column.told)}</title>{dots}</g>')
    lines += _levels(first_level, steps, len(columns), along, up)
    lines += _changes(steps, along, bottom)
    return "".join([*lines, "</svg>"])


def _levels(
    first: float,
    steps: Sequence[Step],
    count: int,
    along: Callable[[float], str],
    up: Callable[[float], str],
) -> Iterator[str]:
    starts = [0, *(step.index for step in steps)]
    ends = [*starts[1:], count]
    levels = [first, *(step.level for step in steps)]
    for start, end, level in zip(starts, ends, levels, strict=True):
        yield f'<path class="level" d="M{along(start)} {up(level)}H{along(end)}"/>'


def _changes(steps: Sequence[Step], along: Callable[[float], str], bottom: int) -> Iterator[str]:
    for step in steps:
        color = _STEPS.get(step.outcome, _OTHER_STEP)
        x = along(step.index)
        yield f'<g class="change" stroke="{color}" fill="{color}">'
        yield f'<path d="M{x} {_TOP}V{bottom}"/>'
        yield f'<text x="{x}" y="{_TOP - 6}">{escape(step.label)}</text></g>'
