# SPDX-License-Identifier: Apache-2.0
"""The columns of a table for people: its keys, what matters most, the rest.

JSON, CSV and Parquet keep the order of the query.
"""

from __future__ import annotations

from dataclasses import replace

from wbscope.base.result import Result, leading_names

__all__ = ["SIDE", "arranged", "main_rows"]

_WINDOW = "window_start_ns"
# Of a task that wrote on the side.
SIDE = "is_incidental"


def arranged(result: Result) -> Result:
    """With `keys` in front, then `first`; a window that no row has is left out.

    A result that does not say what its keys are keeps its order.
    """
    keys = [name for name in result.keys if name in result.columns]
    if _WINDOW in keys and result.rows and not _has_value(result, _WINDOW):
        keys.remove(_WINDOW)
        result = result.only([name for name in result.columns if name != _WINDOW])
    first = [name for name in result.first if name in result.columns and name not in keys]
    rest = [name for name in result.columns if name not in keys and name not in first]
    made = result.only([*keys, *first, *rest])
    return replace(made, keys=tuple(keys) or leading_names(made.columns))


def main_rows(result: Result) -> tuple[Result, int]:
    """Without rows about tasks that wrote on the side, when there are others; how many they are."""
    if result.name == "sql" or SIDE not in result.columns:
        return result, 0
    place = result.columns.index(SIDE)
    rows = [row for row in result.rows if not row[place]] or result.rows
    cut = replace(result, rows=rows).only([name for name in result.columns if name != SIDE])
    return cut, len(result.rows) - len(rows)


def _has_value(result: Result, name: str) -> bool:
    place = result.columns.index(name)
    return any(row[place] is not None for row in result.rows)
