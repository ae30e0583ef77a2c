# SPDX-License-Identifier: Apache-2.0
"""The series of a panel that a page draws: few enough to read and to send, no peak left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wbscope.plot.paneldata import PanelData, Series
from wbscope.plot.styles import OTHERS, limit_style, styled
from wbscope.plot.thin import thin

__all__ = ["Drawn", "drawn_of", "extent_of", "record_of"]

# Digits of numbers with a point: more than any screen has.
_DIGITS = 9


@dataclass(frozen=True)
class Drawn:
    """A series with its looks; `color` names a colour, which a dark page may have another one of.

    dashes   lengths of strokes and gaps; () = a whole line
    stepped  each value holds until the next, as those of the kind step do
    """

    series: Series
    color: str
    dashes: tuple[float, ...] = ()
    stepped: bool = False


def drawn_of(panel: PanelData, colors: dict[tuple[str, ...], str]) -> list[Drawn]:
    """What is drawn of a panel, in the order of the legend.

    Tasks beyond the chief ones are one: of curves from the lowest to the highest of them, of
    areas their sum, of single points the lowest and the highest.
    """
    styles = styled(panel, colors)
    chief = [style for style in styles if style.color != OTHERS]
    rest = [style.series for style in styles if style.color == OTHERS]
    drawn = [
        Drawn(replace(one.series, label=one.label or ""), one.color, (), one.series.kind == "step")
        for one in chief
    ]
    is_stepped = any(one.kind == "step" for one in rest)
    drawn += [Drawn(one, OTHERS, (), is_stepped) for one in _together(rest)]
    for one in panel.series:
        if one.kind == "limit" and any(value is not None for value in one.y):
            color, line = limit_style(one.column)
            dashes = tuple(line[1]) if isinstance(line, tuple) else ()
            drawn.append(Drawn(one, color, dashes))
    first = drawn[0].color if drawn else OTHERS
    has_limits = any(one.kind == "limit" for one in panel.series)
    for one in panel.series:
        if one.kind == "band" and any(value is not None for value in one.y):
            drawn.append(Drawn(one, "range" if has_limits else first))
    return drawn


def _together(rest: Sequence[Series]) -> list[Series]:
    """The others as one series for each kind of mark."""
    if len(rest) < 2:
        return list(rest)
    made = []
    for column in dict.fromkeys(one.column for one in rest):
        same = [one for one in rest if one.column == column]
        values: dict[Any, list[Any]] = {}
        for one in same:
            for x, y in zip(one.x, one.y, strict=True):
                values.setdefault(x, []).append(y)
        times = sorted(values)
        known = [[y for y in values[x] if y is not None] for x in times]
        label = f"{len(same)} others"
        if same[0].kind == "area":
            sums = tuple(sum(ys) if ys else None for ys in known)
            made.append(Series("area", column, label, ("", ""), tuple(times), sums))
            continue
        low = tuple(min(ys) if ys else None for ys in known)
        high = tuple(max(ys) if ys else None for ys in known)
        if same[0].kind == "points":
            made.append(Series("points", column, f"{label}, highest", ("", ""), tuple(times), high))
            made.append(Series("points", column, f"{label}, lowest", ("", ""), tuple(times), low))
            continue
        label += ", lowest to highest"
        made.append(Series("band", column, label, ("", ""), tuple(times), low, high))
    return made


def extent_of(panel: PanelData) -> tuple[float, float]:
    """Lowest and highest end of the y axis."""
    values = [
        float(value)
        for one in panel.series
        for value in (*one.y, *(one.upper if one.kind == "band" else ()))
        if isinstance(value, int | float)
    ]
    areas = [one for one in panel.series if one.kind == "area"]
    if areas:
        values += [float(sum(y or 0 for y in ys)) for ys in zip(*(a.y for a in areas), strict=True)]
    low, high = min([0.0, *values]), max([0.0, *values])
    if low < -high < 0 and all(one.kind == "points" for one in panel.series):
        low = -high  # what lies below is told, and leaves the others room
    if panel.unit == "ratio" and low >= 0:
        high = max(high, 1.0)
    return low, high if high > low else low + 1.0


def record_of(panel: PanelData, drawn: Iterable[Drawn], pixels: int) -> dict[str, Any]:
    """The numbers for a script: times as differences, once for all series that share them."""
    times: list[list[Any]] = []
    records = []
    for one in drawn:
        series = thin(one.series, pixels)
        x: list[Any] = list(series.x)
        y, upper = [_short(v) for v in series.y], [_short(v) for v in series.upper]
        if one.stepped and panel.window_ns and x:
            # The last window is as long as the others.
            x, y, upper = [*x, x[-1] + panel.window_ns], [*y, y[-1]], [*upper, *upper[-1:]]
        steps = [b - a for a, b in zip([0, *x], x, strict=False)]
        if steps not in times:
            times.append(steps)
        record: dict[str, Any] = {
            "label": series.label,
            "kind": series.kind,
            "color": one.color,
            "x": times.index(steps),
            "y": y,
        }
        if series.kind == "band":
            record["upper"] = upper
        if one.stepped:
            record["stepped"] = True
        if one.dashes:
            record["dashes"] = list(one.dashes)
        records.append(record)
    return {"times": times, "series": records, "lost": [list(span) for span in panel.lost]}


def _short(value: Any) -> Any:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
