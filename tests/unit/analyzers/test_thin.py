# SPDX-License-Identifier: Apache-2.0
"""Thinning: of each pixel the lowest and the highest value stay, and order and gaps."""

from __future__ import annotations

import random
from typing import Any

import pytest
from wbscope.plot.paneldata import Series
from wbscope.plot.thin import thin


def _series(rng: random.Random, count: int, kind: Any) -> Series:
    x = sorted(rng.randrange(10**12) for _ in range(count))
    y = [None if rng.random() < 0.02 else rng.gauss(0, 1) * 10 ** rng.randrange(6) for _ in x]
    upper = [None if low is None else low + rng.random() for low in y] if kind == "band" else []
    return Series(kind, "value", "a", (), tuple(x), tuple(y), tuple(upper))


def _pixel(series: Series, pixels: int, x: Any) -> int:
    low, high = series.x[0], series.x[-1]
    assert isinstance(low, int)
    assert isinstance(high, int)
    return min(int((x - low) / ((high - low) / pixels or 1)), pixels - 1)


@pytest.mark.parametrize("seed", range(40))
def test_no_peak_is_lost(seed: int) -> None:
    rng = random.Random(seed)
    kind = rng.choice(["line", "step", "points", "limit", "ecdf", "band"])
    whole = _series(rng, rng.randrange(1, 5000), kind)
    pixels = rng.randrange(1, 300)
    few = thin(whole, pixels)
    assert len(few.x) <= max(5 * pixels, pixels * (7 if kind == "band" else 5))
    assert (few.kind, few.label, few.column) == (whole.kind, whole.label, whole.column)
    points = list(zip(whole.x, whole.y, strict=True))
    kept = list(zip(few.x, few.y, strict=True))
    # Points of the series, in their order.
    rest = iter(points)
    assert all(point in rest for point in kept)
    for edge in (whole.y, whole.upper) if whole.upper else (whole.y,):
        other = few.upper if edge is whole.upper else few.y
        before: dict[int, list[float]] = {}
        after: dict[int, list[float]] = {}
        for into, xs, ys in ((before, whole.x, edge), (after, few.x, other)):
            for x, y in zip(xs, ys, strict=True):
                if isinstance(y, int | float):
                    into.setdefault(_pixel(whole, pixels, x), []).append(y)
        assert {p: (min(v), max(v)) for p, v in before.items()} == {
            p: (min(v), max(v)) for p, v in after.items()
        }
    gaps = {_pixel(whole, pixels, x) for x, y in points if y is None}
    assert gaps == {_pixel(whole, pixels, x) for x, y in kept if y is None}


def test_what_is_small_or_no_curve_stays_as_it_is() -> None:
    series = Series("line", "v", "", (), tuple(range(50)), tuple(range(50)))
    assert thin(series, 10) is series
    bars = Series("bars", "v", "", (), tuple("abc"), (1, 2, 3))
    assert thin(bars, 1) is bars


def test_points_at_one_time() -> None:
    series = Series("points", "v", "", (), (7,) * 100, tuple(range(100)))
    assert thin(series, 5).y == (0, 99)
