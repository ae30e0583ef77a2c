# SPDX-License-Identifier: Apache-2.0
"""Is a change beyond a margin?  10 s and 11 s differ by 10 %, whatever logarithms make of it."""

from __future__ import annotations

from collections.abc import Iterable

from wbscope.stats.shift import Scale

__all__ = ["is_beyond", "rounding_of"]

# Of what is compared: double precision keeps 1e-16, logarithms of large numbers 1e-14.
_ROUNDING = 1e-12


def is_beyond(change: float, margin: float, rounding: float) -> bool:
    """True when the change is larger than the margin by more than rounding makes of it."""
    return change - margin > rounding


def rounding_of(scale: Scale, values: Iterable[float]) -> float:
    """How far off a shift of such values may be by rounding: a ratio is near 1, whatever they are.

    Shape: the values of both sides, finite.
    """
    if scale == "ratio":
        return _ROUNDING
    return _ROUNDING * max(map(abs, values), default=0.0)
