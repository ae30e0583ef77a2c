# SPDX-License-Identifier: Apache-2.0
"""A figure of a run as a picture: PNG, SVG or PDF; the same numbers always give the same bytes."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

from wbscope.base.units import axis_unit, prefix_step
from wbscope.plot.dots import new_figure, ticks
from wbscope.plot.draw import draw_panel, names_left_out, names_of_panel, plain_panel, shortened
from wbscope.plot.panels import Grid, PanelData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FORMATS = ("png", "svg", "pdf")

_WIDTH = 10.0  # inches
_FIRST, _NEXT, _FRAME = 2.9, 1.9, 1.0
_LANE, _LANES_FRAME = 0.27, 0.75
_DPI = 130
# Letters of small print in a line, and lines of each note.
_LINE, _LINES = 150, 10
# Panels of a kind: those of more devices or cgroups make a poster.
_MOST_PLACES = 4
_SETTINGS: dict[str, Any] = {
    "svg.hashsalt": "wbscope",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": 8,
    "text.parse_math": False,
}
# What would make two files of the same picture differ.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def picture(
    panels: Sequence[PanelData],
    grid: Grid,
    title: str,
    below: Sequence[str],
    warnings: Sequence[str],
    formats: Sequence[str],
) -> dict[str, bytes]:
    """The picture in each of these formats.

    below     lines of small print: the run, and what prints these numbers
    warnings  what makes numbers doubtful, for the small print as well
    """
    from matplotlib import style

    # Of users' own settings none; a letter that no font has is drawn as a box, and not told.
    with style.context(["default", _SETTINGS]), catch_warnings():
        simplefilter("ignore")
        whole = _draw(panels, grid, title, below, warnings)
        # Placed once, or a picture would depend on those made before it.
        whole.draw_without_rendering()
        whole.set_layout_engine("none")
        made = {}
        for name in formats:
            out = io.BytesIO()
            whole.savefig(out, format=name, dpi=_DPI, metadata=_METADATA[name])
            made[name] = out.getvalue()
    return made


def _draw(
    panels: Sequence[PanelData],
    grid: Grid,
    title: str,
    below: Sequence[str],
    warnings: Sequence[str],
) -> Figure:
    panels = [plain_panel(panel) for panel in panels]
    shown = sorted((p for p in panels if p.place < _MOST_PLACES), key=lambda p: p.place)
    heights = [_height(panel, number) for number, panel in enumerate(shown)]
    notes = [*_left_out(panels), *below]
    small = [line for note in notes for line in _wrapped(note)]
    doubts = [line for warning in warnings for line in _wrapped(f"warning: {warning}")]
    frame = _FRAME + 0.14 * (len(small) + len(doubts))
    whole = new_figure(_WIDTH, sum(heights) + frame)
    whole.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    made = whole.subplots(len(shown), 1, squeeze=False, height_ratios=heights)
    colors: dict[tuple[str, ...], str] = {}
    timed = [panel for panel in shown if panel.x_axis == "time"]
    for axes, panel in zip(made[:, 0], shown, strict=True):
        draw_panel(axes, panel, colors)
        if panel.x_axis == "time":
            _scale_time(axes, timed, grid, is_last=panel is timed[-1])
    # As a label of the whole it has room of its own, whatever the panels need.
    whole.supxlabel("\n".join([*doubts, *small]), x=0.01, ha="left", fontsize=7,
                    color="#8a2b00" if doubts else "#555555")  # fmt: skip
    return whole


def _height(panel: PanelData, number: int) -> float:
    lanes = len(names_of_panel(panel))
    if lanes:
        bars = 1 if panel.x_axis == "time" or panel.stacked else len(panel.series) * 0.6
        return _LANES_FRAME + _LANE * max(1, bars) * lanes
    return _FIRST if number == 0 or (panel.place > 0 and panel.log) else _NEXT


def _scale_time(axes: Axes, timed: Sequence[PanelData], grid: Grid, *, is_last: bool) -> None:
    """From start to end of what was asked for, and samples from before."""
    times = [
        float(x)
        for panel in timed
        for one in panel.series
        for x in (*one.x, *(one.upper if one.kind == "spans" else ()))
        if isinstance(x, int | float)
    ]
    low, high = min([grid.from_ns, *times]), max([grid.to_ns, *times])
    unit = axis_unit("ns", high)
    axes.set_xlim(low, high)
    places = ticks(low, high, prefix_step("ns"), 12)
    axes.set_xticks(places, [unit.label(place) if is_last else "" for place in places])
    if is_last:
        axes.set_xlabel(f"time since the first event [{unit.name}]")


def _left_out(panels: Sequence[PanelData]) -> list[str]:
    missing = [panel.about for panel in panels if panel.place >= _MOST_PLACES]
    names = list(dict.fromkeys(missing))
    told = [f"not drawn: {', '.join(names)}"] if names else []
    for panel in panels:
        if more := names_left_out(panel):
            told.append(f"not drawn of '{panel.title}': {more} that took less time")
    return told


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(shortened(text, _LINES * _LINE), _LINE)
