# SPDX-License-Identifier: Apache-2.0
"""Compares rows of two engines by type and value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = ["NUMBERS", "TOLERANCE", "Rows", "assert_same", "is_same"]

# Sums of reals can differ in their last bits: SQLite has compensated them since 3.43.
TOLERANCE = 1e-11

# Waits are numbered by the place of their records in the file, and a Perfetto trace has its own.
NUMBERS = frozenset({"stall_id"})

Rows = list[tuple[Any, ...]]


def is_same(ours: Any, theirs: Any) -> bool:
    """Also of one type: 1 is not 1.0."""
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, float):
        return math.isclose(ours, theirs, rel_tol=TOLERANCE)
    return bool(ours == theirs)


def assert_same(columns: Sequence[str], ours: Rows, theirs: Rows) -> None:
    """Row by row; the message names what differs in the first one that does."""
    for place, (our, their) in enumerate(zip(ours, theirs, strict=False)):
        differ = [
            f"{name}: {a!r} is not {b!r}"
            for name, a, b in zip(columns, our, their, strict=True)
            if name not in NUMBERS and not is_same(a, b)
        ]
        assert not differ, f"row {place}: {differ}"
    assert len(ours) == len(theirs)
