# SPDX-License-Identifier: Apache-2.0
"""Many tests looked through at once: of what is found, a bounded share is chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["false_discovery"]


def false_discovery(p_values: Sequence[float]) -> list[float]:
    """q values, in the order given: of the tests with q at most a, at most a share a is false.

    Source: Y. Benjamini and Y. Hochberg, Controlling the false discovery rate, 1995; it holds
    also for tests that depend positively on each other.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")[::-1]
    stepped = np.minimum.accumulate(p.size / np.arange(p.size, 0, -1) * p[order])
    found = np.empty(p.size)
    found[order] = np.minimum(stepped, 1)
    return [float(value) for value in found]
