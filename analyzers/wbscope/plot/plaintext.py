# SPDX-License-Identifier: Apache-2.0
"""Names of strangers as text of a picture: no control characters, no markup."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wbscope.plot.paneldata import PanelData

__all__ = ["plain", "plain_panel", "shortened"]

_UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
# Longer ones leave no room for the plot.
_MOST = 60


def plain(text: str) -> str:
    """What can be drawn, and stand in an SVG."""
    shown = "".join(one if one.isprintable() else _UNPRINTABLE for one in text)
    # For matplotlib such a label has no place in the legend.
    return f" {shown}" if shown.startswith("_") else shown


def shortened(text: str, most: int) -> str:
    """As plain(), and not longer: matplotlib takes a second for some thousand letters."""
    return plain(text if len(text) <= most else f"{text[: most - 1]}…")


def plain_panel(panel: PanelData) -> PanelData:
    """The panel with such texts; tasks, devices and cgroups may be called anything."""
    series = tuple(
        replace(
            one,
            label=_short(one.label),
            x=tuple(_short(x) for x in one.x),
            y=tuple(_short(y) for y in one.y),
        )
        for one in panel.series
    )
    return replace(panel, about=_short(panel.about), series=series)


def _short(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return shortened(value, _MOST)
