# SPDX-License-Identifier: Apache-2.0
"""Fewer points for as many pixels: of each pixel its lowest and its highest value stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from wbscope.plot.paneldata import Series

__all__ = ["thin"]

# The kinds that have a number on either axis.
_CURVES = ("line", "step", "points", "limit", "band", "ecdf")


def thin(series: Series, pixels: int) -> Series:
    """The series with at most five points, of a band seven, for each of `pixels` equal parts of x.

    Of each part stay the first and the last point, the lowest and the highest value, and one gap
    where there is any, in their order; of a band the lowest and highest of both its edges. So no
    peak is lost, and a line enters and leaves a pixel where it did. Series with fewer points, and
    those that are no curves, come back as they are.
    """
    count = len(series.x)
    if series.kind not in _CURVES or count <= 5 * pixels or pixels < 1:
        return series
    xs: list[Any] = list(series.x)
    low, high = min(xs), max(xs)
    width = (high - low) / pixels or 1
    kept: list[int] = []
    part: list[int] = []
    pixel = 0
    for index, x in enumerate(xs):
        at = min(int((x - low) / width), pixels - 1)
        if at != pixel and part:
            kept += _chosen(series, part)
            part = []
        pixel = at
        part.append(index)
    kept += _chosen(series, part)
    return replace(
        series,
        x=tuple(series.x[i] for i in kept),
        y=tuple(series.y[i] for i in kept),
        upper=tuple(series.upper[i] for i in kept) if series.upper else (),
    )


def _chosen(series: Series, part: list[int]) -> list[int]:
    """The points of one pixel that stay, by their numbers."""
    keep = {part[0], part[-1]}
    gap = next((i for i in part if series.y[i] is None), None)
    if gap is not None:
        keep.add(gap)
    for values in (series.y, series.upper):
        keep.update(_extremes(values, part))
    return sorted(keep)


def _extremes(values: tuple[Any, ...], part: list[int]) -> Iterator[int]:
    known = [i for i in part if values and values[i] is not None]
    if known:
        yield min(known, key=lambda i: values[i])
        yield max(known, key=lambda i: values[i])
