# SPDX-License-Identifier: Apache-2.0
"""Small pictures of a metric: dots of runs, shares of pauses, cells of a lab, commits.

Written as SVG by hand: a page has a hundred of them, and matplotlib takes 0.1 s for each; the
policy of a page lets no element have styles of its own, and matplotlib's do.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def ticks(low: float, high: float, prefix: int, most: int = 4) -> list[float]:
    """Up to `most` round values from low to high.

    prefix  from one prefix of the unit to the next: with 2 ** 10, ticks are at
            10 MiB and not at 9.54 MiB
    """
    size = max(abs(low), abs(high))
    unit = float(prefix) ** max(0, math.floor(math.log(size, prefix))) if size >= 1 else 1.0
    power = 10.0 ** math.floor(math.log10((high - low) / unit / most))
    for factor in (1, 2, 5, 10, 20):
        step = factor * power * unit
        first, last = math.ceil(low / step), math.floor(high / step)
        if last - first < most:
            return [number * step for number in range(first, last + 1)]
    raise AssertionError("a step of 20 times the least one leaves at most four ticks")


# Okabe and Ito: told apart with all kinds of colour vision.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_SETTINGS: Any = {"font.size": 8}


def new_figure(width: float, height: float) -> Figure:
    """In inches; without pyplot, which keeps figures and looks for a display."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_SETTINGS):
        return Figure(figsize=(width, height), layout="constrained")


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


Curve = Sequence[tuple[float, float]]  # length, share of all that are at most so long

# Of the drawing in its own units; the page scales it.
_ECDF_WIDTH, _HEIGHT = 640, 300
_ECDF_LEFT, _ECDF_RIGHT, _ECDF_TOP, _BOTTOM = 52, 20, 10, 48
_ECDF_ROW = 17
_SHARES = (0, 0.25, 0.5, 0.75, 1)


def ecdf_svg(
    sides: Mapping[str, Sequence[Curve]], label: Callable[[float], str], prefix: int
) -> str:
    """The run is the unit, so each has a curve of its own; `label` writes a length, with
    prefixes in steps of `prefix`."""
    longest = max(length for curves in sides.values() for curve in curves for length, _ in curve)
    high = longest or 1.0
    floor, end = _HEIGHT - _BOTTOM, _ECDF_WIDTH - _ECDF_RIGHT

    def across(length: float) -> str:
        return f"{_ECDF_LEFT + (end - _ECDF_LEFT) * length / high:.1f}"

    def up(share: float) -> str:
        return f"{floor - (floor - _ECDF_TOP) * share:.1f}"

    told = ", ".join(f"{name}: {len(curves)} curves" for name, curves in sides.items())
    lines = [
        f'<svg class="ecdf" viewBox="0 0 {_ECDF_WIDTH} {_HEIGHT}" role="img"'
        f' aria-label="share of pauses that were at most so long; {escape(told)}">'
    ]
    for share in _SHARES:
        lines.append(f'<path class="grid" d="M{_ECDF_LEFT} {up(share)}H{end}"/>')
        lines.append(
            f'<text class="y" x="{_ECDF_LEFT - 6}" y="{up(share)}">{share * 100:.0f} %</text>'
        )
    for length in ticks(0, high, prefix, most=7):
        lines.append(f'<path class="grid" d="M{across(length)} {_ECDF_TOP}V{floor}"/>')
        lines.append(f'<text x="{across(length)}" y="{floor + 16}">{escape(label(length))}</text>')
    lines.append(f'<path class="axis" d="M{_ECDF_LEFT} {_ECDF_TOP}V{floor}H{end}"/>')
    middle = (_ECDF_LEFT + end) // 2
    lines.append(
        f'<text x="{middle}" y="{_HEIGHT - 8}">share of pauses that were at most so long</text>'
    )
    for place, (name, curves) in enumerate(sides.items()):
        color = COLORS[place % len(COLORS)]
        lines.append(f'<g stroke="{color}">')
        for curve in curves:
            steps = "".join(f"H{across(length)}V{up(share)}" for length, share in curve)
            lines.append(f'<path class="curve" d="M{_ECDF_LEFT} {floor}{steps}H{end}"/>')
        y = floor - _ECDF_ROW * (len(sides) - place) + 4
        lines.append(f'<path class="key" d="M{end - 24} {y}h20"/></g>')
        lines.append(f'<text class="name" x="{end - 30}" y="{y}">{escape(name)}</text>')
    return "".join([*lines, "</svg>"])


_CELL_WIDTH, _LINE, _FRAME = 7.0, 0.3, 0.85  # inches
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
    figure = new_figure(_CELL_WIDTH, _FRAME + _LINE * len(cells))
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


# Of the drawing in its own units; the page scales it.
_TREND_WIDTH, _TREND_HEIGHT = 720, 190
_TREND_LEFT, _TREND_RIGHT, _TREND_TOP, _TREND_BOTTOM = 84, 14, 20, 24
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
    scale = (_TREND_HEIGHT - _TREND_TOP - _TREND_BOTTOM) / (high - low)
    wide = (_TREND_WIDTH - _TREND_LEFT - _TREND_RIGHT) / len(columns)

    def up(value: float) -> str:
        return f"{_TREND_HEIGHT - _TREND_BOTTOM - (value - low) * scale:.1f}"

    def along(number: float) -> str:
        return f"{_TREND_LEFT + number * wide:.1f}"

    bottom = _TREND_HEIGHT - _TREND_BOTTOM
    told = f"{len(columns)} commits, {len(shown)} runs, {len(steps)} changes"
    lines = [
        f'<svg class="trend" viewBox="0 0 {_TREND_WIDTH} {_TREND_HEIGHT}" role="img"'
        f' aria-label="{told}">',
        f'<path class="axis"'
        f' d="M{_TREND_LEFT} {_TREND_TOP}V{bottom}H{_TREND_WIDTH - _TREND_RIGHT}"/>',
    ]
    for value in ticks(low, high, prefix):
        lines.append(f'<path class="axis" d="M{_TREND_LEFT} {up(value)}h-4"/>')
        lines.append(
            f'<text class="y" x="{_TREND_LEFT - 8}" y="{up(value)}">{escape(label(value))}</text>'
        )
    for place, anchor, word in (
        (_TREND_LEFT, "start", ends[0]),
        (_TREND_WIDTH - _TREND_RIGHT, "end", ends[1]),
    ):
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
        yield f'<path d="M{x} {_TREND_TOP}V{bottom}"/>'
        yield f'<text x="{x}" y="{_TREND_TOP - 6}">{escape(step.label)}</text></g>'
