# SPDX-License-Identifier: Apache-2.0
"""How series look: the few that matter have colours, limits have dashes, the rest is grey."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wbscope.plot.paneldata import PanelData, Series
from wbscope.plot.svg import COLORS

__all__ = ["OTHERS", "Style", "limit_style", "styled"]

LineStyle = str | tuple[float, Sequence[float]]

OTHERS = "#999999"
# What no event tells of.
_UNKNOWN = "#cccccc"
# So many colours are told apart at a glance; a legend of thirty tasks is none.
_MOST = 6
# Black is for limits, green for setpoints; what is left is for what was measured.
_DATA = tuple(color for color in COLORS if color not in ("#000000", "#009e73"))
# Without limits beside them, green is free.
_ALL = (*_DATA, "#009e73")
_LIMITS: dict[str, tuple[str, LineStyle]] = {
    "limit_bytes": ("#000000", "-"),
    "memcg_limit_bytes": ("#000000", "-"),
    "memory_max_bytes": ("#000000", "-"),
    "thresh_bytes": ("#000000", (0, (5, 2))),
    "wb_thresh_bytes": ("#000000", "-"),
    "setpoint_bytes": ("#009e73", "-"),
    "memcg_setpoint_bytes": ("#009e73", "-"),
    "wb_setpoint_bytes": ("#009e73", (0, (5, 2))),
    "memcg_wb_setpoint_bytes": ("#009e73", (0, (5, 2))),
    "freerun_bytes": ("#666666", (0, (1, 1.5))),
    "bg_thresh_bytes": ("#666666", (0, (5, 2, 1, 2))),
}


@dataclass(frozen=True)
class Style:
    """How one series is drawn; label None: it has no line in the legend."""

    series: Series
    color: str
    label: str | None


def limit_style(column: str) -> tuple[str, LineStyle]:
    """Colour and dashes of a limit, the same in every figure."""
    return _LIMITS.get(column, ("#000000", (0, (3, 2))))


def styled(panel: PanelData, colors: dict[tuple[str, ...], str]) -> list[Style]:
    """Each series but limits with its colour, in the order of the legend.

    colors  of keys that have one already: a task has the same in all panels of a picture
    """
    series = [one for one in panel.series if one.kind not in ("limit", "band")]
    has_limits = any(one.kind == "limit" for one in panel.series)
    palette = _DATA if has_limits else _ALL
    keys = list(dict.fromkeys(one.key for one in series))
    # As in the panels above, and what is not known at the end.
    keys.sort(key=lambda key: list(colors).index(key) if key in colors else len(colors))
    keys.sort(key=lambda key: key != () and not any(key))
    series.sort(key=lambda one: keys.index(one.key))
    if keys == [()]:
        return [
            Style(one, palette[number % len(palette)], one.label)
            for number, one in enumerate(series)
        ]
    chief = keys if len(keys) <= _MOST else keys[: _MOST - 1]
    others = sum(1 for key in keys if key not in chief and any(key))
    made: list[Style] = []
    for one in series:
        if one.key and not any(one.key):
            made.append(Style(one, _UNKNOWN, one.label))
        elif one.key in chief:
            free = (color for color in palette if color not in colors.values())
            color = colors.setdefault(one.key, next(free, palette[len(colors) % len(palette)]))
            made.append(Style(one, color, one.label))
        else:
            made.append(Style(one, OTHERS, None))
    first = next((n for n, style in enumerate(made) if style.label is None), None)
    if first is not None:
        word = "other" if others == 1 else "others"
        made[first] = replace(made[first], label=f"{others} {word}")
    return made
