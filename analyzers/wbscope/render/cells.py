# SPDX-License-Identifier: Apache-2.0
"""A result's cells as people read them: prefixes, per cent, '-' for not recorded."""

from __future__ import annotations

from wbscope.base.result import Result
from wbscope.base.units import format_value, short_name
from wbscope.render.printable import printable

__all__ = ["body", "headings", "is_text"]


def headings(result: Result) -> list[str]:
    """The names of the columns; the unit is in each cell instead."""
    return [short_name(name, result.units.get(name)) for name in result.columns]


def body(result: Result) -> list[list[str]]:
    """Each row's cells, safe to show."""
    units = [result.units.get(name) for name in result.columns]
    return [
        [
            printable(result.label(name, value) or format_value(name, unit, value))
            for name, unit, value in zip(result.columns, units, row, strict=True)
        ]
        for row in result.rows
    ]


def is_text(result: Result) -> list[bool]:
    """Whether a column holds words, which stand on the left."""
    return [
        any(result.is_text(name, row[index]) for row in result.rows)
        for index, name in enumerate(result.columns)
    ]
