# SPDX-License-Identifier: Apache-2.0
"""Several tests at once: p values adjusted so that one false alarm of all stays rare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["holm"]


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values, in the order given; each is at least its p.

    Source: S. Holm, A simple sequentially rejective multiple test procedure, 1979.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate((p.size - np.arange(p.size)) * p[order])
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(stepped, 1)
    return [float(value) for value in adjusted]
