# SPDX-License-Identifier: Apache-2.0
"""What a query gives back: columns, units, rows and warnings, all raw values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Notice", "Result", "unique_names", "unit_of"]

# Longest suffix first: _bytes_per_s before anything that ends in _s.
_SUFFIXES = (
    ("_bytes_per_s", "bytes/s"),
    ("_pages_per_s", "pages/s"),
    ("_bytes", "bytes"),
    ("_ns", "ns"),
    ("_count", "count"),
    ("_ratio", "ratio"),
    ("_ts", "ns"),
)


@dataclass(frozen=True)
class Notice:
    """One reason to read the rows with care."""

    slug: str
    message: str


@dataclass(frozen=True)
class Result:
    """The rows of one query; `units` has the columns that have a unit."""

    name: str
    columns: tuple[str, ...]
    units: dict[str, str]
    rows: list[tuple[Any, ...]]
    warnings: tuple[Notice, ...] = ()

    def records(self) -> list[dict[str, Any]]:
        """The rows as dictionaries by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def unit_of(column: str) -> str | None:
    """The unit that a column's name states, if any."""
    if column in ("ts", "dur"):
        return "ns"
    if column in ("bytes", "count"):
        return column
    for suffix, unit in _SUFFIXES:
        if column.endswith(suffix):
            return unit
    return None


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Column names made distinct as SQLite does it: a, a:1, a:2."""
    unique: list[str] = []
    for name in names:
        candidate, number = name, 0
        while candidate in unique:
            number += 1
            candidate = f"{name}:{number}"
        unique.append(candidate)
    return tuple(unique)
