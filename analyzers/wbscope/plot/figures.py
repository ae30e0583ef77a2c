# SPDX-License-Identifier: Apache-2.0
"""All figures of a run, each under its name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from wbscope.base.errors import UsageError
from wbscope.plot.figure import Figure
from wbscope.plot.machinefigures import MACHINE_FIGURES
from wbscope.plot.throttlefigures import THROTTLE_FIGURES

__all__ = ["FIGURES", "find_figures"]

FIGURES: tuple[Figure, ...] = (*THROTTLE_FIGURES, *MACHINE_FIGURES)


def find_figures(names: Sequence[str]) -> tuple[Figure, ...]:
    """The figures of these names, each once; all of them without names.

    Raises: UsageError with the closest names.
    """
    known = {figure.name: figure for figure in FIGURES}
    for name in names:
        if name in known:
            continue
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        close = close or [one for one in known if name.lower() in one][:3]
        raise UsageError(
            "unknown-figure",
            name,
            f"is none of the {len(known)} figures",
            have=f"did you mean {' or '.join(close)}?" if close else ", ".join(known),
            fix=f"wbscope plot RUN {close[0]} -o DIR" if close else "wbscope plot --list",
        )
    return tuple(known[name] for name in dict.fromkeys(names or known))
