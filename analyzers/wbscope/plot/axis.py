# SPDX-License-Identifier: Apache-2.0
"""Where the ticks of a small axis are: at round numbers of the unit that is printed."""

from __future__ import annotations

import math

__all__ = ["ticks"]


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
