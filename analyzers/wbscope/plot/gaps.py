# SPDX-License-Identifier: Apache-2.0
"""What lies between the rows of a series: nothing known, or nothing that happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

__all__ = ["with_gaps", "with_zeros"]

Point = tuple[int, Any, Any]


def with_gaps(points: Sequence[Point], most_ns: int) -> list[Point]:
    """A point without a value between two that are farther apart than this."""
    joined: list[Point] = list(points[:1])
    for before, point in pairwise(points):
        if point[0] - before[0] > most_ns:
            joined.append((before[0] + (point[0] - before[0]) // 2, None, None))
        joined.append(point)
    return joined


def with_zeros(points: Iterable[Point], window_ns: int, from_ns: int, to_ns: int) -> list[Point]:
    """A zero for each window of the time from..to that has no point.

    Of many empty windows in a row only the first and the last get one: that draws the same line.
    """
    known = {point[0]: point for point in points}
    # Windows are counted from the start of what was asked for, samples may lie before it.
    first = min([from_ns, *known])
    first = from_ns - -(-(from_ns - first) // window_ns) * window_ns
    last = max([to_ns - 1, *known])
    filled: list[Point] = []
    starts = range(first, last + 1, window_ns)
    for start in starts:
        if start in known:
            filled.append(known[start])
            continue
        beside = (start - window_ns, start + window_ns)
        if start in (starts[0], starts[-1]) or any(one in known for one in beside):
            filled.append((start, 0, 0))
    return filled
