# SPDX-License-Identifier: Apache-2.0
"""What is told about one side: for reading, never the test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Description", "describe"]

# Without the smallest and the largest value there have to be two for an s.d.
_LEAST_TRIMMED = 4


@dataclass(frozen=True)
class Description:
    """Of n values; s.d. with n - 1, None where there are too few values.

    trimmed_mean and trimmed_sd leave the smallest and the largest value out, as
    "dropping the fastest and slowest" does.  That makes the s.d. too small by a
    factor of 0.6 (6 runs) to 0.7 (10 runs), so it must not feed a test.
    """

    n: int
    median: float | None = None
    mean: float | None = None
    sd: float | None = None
    least: float | None = None
    most: float | None = None
    trimmed_mean: float | None = None
    trimmed_sd: float | None = None


def describe(values: ArrayLike) -> Description:
    """Shape: values (n,), n >= 0, finite."""
    sorted_values = np.sort(np.asarray(values, dtype=float))
    n = sorted_values.size
    if n == 0:
        return Description(0)
    kept = sorted_values[1:-1] if n >= _LEAST_TRIMMED else None
    return Description(
        n=n,
        median=float(np.median(sorted_values)),
        mean=float(sorted_values.mean()),
        sd=float(sorted_values.std(ddof=1)) if n > 1 else None,
        least=float(sorted_values[0]),
        most=float(sorted_values[-1]),
        trimmed_mean=None if kept is None else float(kept.mean()),
        trimmed_sd=None if kept is None else float(kept.std(ddof=1)),
    )
