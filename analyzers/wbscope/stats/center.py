# SPDX-License-Identifier: Apache-2.0
"""Between which of its values the median of what one side could give lies."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["median_interval"]


def median_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float] | None:
    """The k-th smallest and the k-th largest value, with the largest k that is sure enough.

    None where not even all values are, as with 5 values and 95 %.

    Shape:  values (n,), n >= 0, finite.
    Source: Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, 3rd ed., 3.6
            (the sign test); no shape of the distribution is assumed.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    n = int(ordered.size)
    below, rank = 0, 0
    while rank < (n + 1) // 2:
        below += comb(n, rank)
        if 2 * below / 2**n > 1 - confidence:
            break
        rank += 1
    return (float(ordered[rank - 1]), float(ordered[n - rank])) if rank else None
