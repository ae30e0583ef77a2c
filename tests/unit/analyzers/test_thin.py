# SPDX-License-Identifier: Apache-2.0
"""Thinning: of each pixel the lowest and the highest value stay, and order and gaps."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from support.properties import for_all
from wbscope.plot.panels import Series, thin

_X = st.integers(0, 10**12) | st.integers(0, 20)
_VALUE = st.floats(-1e9, 1e9) | st.sampled_from((None, 0.0, 1.0))
_POINT = st.tuples(_X, _VALUE, st.floats(0, 1e6))
_POINTS = st.integers(1, 300).flatmap(lambda n: st.lists(_POINT, min_size=n, max_size=n))


def _series(kind: Any, points: list[tuple[int, float | None, float]]) -> Series:
    x, y, more = zip(*sorted(points, key=lambda point: point[0]), strict=True)
    upper = [None if low is None else low + by for low, by in zip(y, more, strict=True)]
    return Series(kind, "value", "a", (), x, y, tuple(upper) if kind == "band" else ())


def _pixel(series: Series, pixels: int, x: Any) -> int:
    low, high = series.x[0], series.x[-1]
    assert isinstance(low, int)
    assert isinstance(high, int)
    return min(int((x - low) / ((high - low) / pixels or 1)), pixels - 1)


@for_all(
    100,
    kind=st.sampled_from(["line", "step", "points", "limit", "ecdf", "band"]),
    points=_POINTS,
    pixels=st.integers(1, 30),
)
def test_no_peak_is_lost(
    kind: str, points: list[tuple[int, float | None, float]], pixels: int
) -> None:
    whole = _series(kind, points)
    few = thin(whole, pixels)
    assert len(few.x) <= max(5 * pixels, pixels * (7 if kind == "band" else 5))
    assert (few.kind, few.label, few.column) == (whole.kind, whole.label, whole.column)
    given = list(zip(whole.x, whole.y, strict=True))
    kept = list(zip(few.x, few.y, strict=True))
    # Points of the series, in their order.
    rest = iter(given)
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
    gaps = {_pixel(whole, pixels, x) for x, y in given if y is None}
    assert gaps == {_pixel(whole, pixels, x) for x, y in kept if y is None}


def test_what_is_small_or_no_curve_stays_as_it_is() -> None:
    series = Series("line", "v", "", (), tuple(range(50)), tuple(range(50)))
    assert thin(series, 10) is series
    bars = Series("bars", "v", "", (), tuple("abc"), (1, 2, 3))
    assert thin(bars, 1) is bars


def test_points_at_one_time() -> None:
    series = Series("points", "v", "", (), (7,) * 100, tuple(range(100)))
    assert thin(series, 5).y == (0, 99)
