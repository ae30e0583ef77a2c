# SPDX-License-Identifier: Apache-2.0
"""A change of exactly the margin is not beyond it, however it was computed."""

from __future__ import annotations

import pytest
from wbscope.stats.estimates import is_beyond, rounding_of, shift


@pytest.mark.parametrize(
    ("old", "new", "margin"),
    [(10, 11, 0.1), (100, 105, 0.05), (20, 21, 0.05), (1e18, 1.3e18, 0.3), (3e-7, 3.09e-7, 0.03)],
)
@pytest.mark.parametrize("scale", ["ratio", "difference"])
def test_exactly_the_margin(old: float, new: float, margin: float, scale: str) -> None:
    a, b = [new] * 6, [old] * 6
    found = shift(a, b, 0.95, scale)  # type: ignore[arg-type]
    change, allowed = (
        (found.estimate - 1, margin) if scale == "ratio" else (found.estimate, margin * old)
    )
    rounding = rounding_of(found.scale, [*a, *b])
    assert not is_beyond(change, allowed, rounding)
    assert is_beyond(change, allowed * (1 - 1e-6), rounding)


def test_what_rounding_is_relative_to() -> None:
    assert rounding_of("ratio", [1e12]) == rounding_of("ratio", [])
    assert rounding_of("difference", []) == 0
    assert rounding_of("difference", [-2e9, 1.0]) == pytest.approx(2e-3)
    assert is_beyond(float("inf"), 1e9, 1.0)
