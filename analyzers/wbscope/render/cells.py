# SPDX-License-Identifier: Apache-2.0
"""A result's cells as people read them: prefixes, per cent, '-' for not recorded."""

from __future__ import annotations

from typing import Any

from wbscope.base.result import Result
from wbscope.base.units import format_value, is_instant, short_name
from wbscope.render.printable import printable

__all__ = ["body", "column_texts", "headings", "is_text"]


def headings(result: Result) -> list[str]:
    """The names of the columns; the unit is in each cell instead."""
    return [short_name(name, result.units.get(name)) for name in result.columns]


def column_texts(result: Result, index: int) -> list[str]:
    """The cells of one column, safe to show."""
    name = result.columns[index]
    unit, names = result.units.get(name), result.names_in(name)
    # As options take it: a time without it counts from the run's first event.
    clock = "@" if unit == "ns" and is_instant(name) and result.start_ns != 0 else ""

    def text(value: Any) -> str:
        shown = names.get(value) or format_value(name, unit, value)
        return printable(f"{clock}{shown}" if isinstance(value, int) else shown)

    return [text(row[index]) for row in result.rows]


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
