# SPDX-License-Identifier: Apache-2.0
"""A result's cells as people read them: prefixes, per cent, '-' for not recorded."""

from __future__ import annotations

from wbscope.base.result import Result
from wbscope.base.units import format_value, short_name
from wbscope.render.printable import printable

__all__ = ["body", "column_texts", "headings", "is_text"]


def headings(result: Result) -> list[str]:
    """The names of the columns; the unit is in each cell instead."""
    return [short_name(name, result.units.get(name)) for name in result.columns]


def column_texts(result: Result, index: int) -> list[str]:
    """The cells of one column, safe to show."""
    name = result.columns[index]
    unit, names = result.units.get(name), result.names_in(name)
    values = (row[index] for row in result.rows)
    return [printable(names.get(value) or format_value(name, unit, value)) for value in values]


def body(result: Result) -> list[list[str]]:
    """Each row's cells."""
    texts = [column_texts(result, index) for index in range(len(result.columns))]
    return [list(row) for row in zip(*texts, strict=True)]


def is_text(result: Result) -> list[bool]:
    """Whether a column holds words, which stand on the left."""
    return [
        any(result.is_text(name, row[index]) for row in result.rows)
        for index, name in enumerate(result.columns)
    ]
