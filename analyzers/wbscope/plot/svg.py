# SPDX-License-Identifier: Apache-2.0
"""What all pictures share: colours, and a figure of matplotlib without pyplot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLORS", "new_figure"]

# Okabe and Ito: told apart with all kinds of colour vision.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_SETTINGS: Any = {"font.size": 8}


def new_figure(width: float, height: float) -> Figure:
    """In inches; without pyplot, which keeps figures and looks for a display."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_SETTINGS):
        return Figure(figsize=(width, height), layout="constrained")
