# SPDX-License-Identifier: Apache-2.0
"""A result as a text table that fits the page: wide ones go on below, nothing is cut."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from wbscope.base.result import Result
from wbscope.base.units import format_value, short_name
from wbscope.render.printable import printable

__all__ = ["PAGE_WIDTH", "table_text"]

PAGE_WIDTH = 80

_GAP = "  "
# Text wider than this is folded when its table does not fit otherwise.
_FOLD = 36
_WINDOW = "window_start_ns"
_SIDE = "is_incidental"


@dataclass(frozen=True)
class _Column:
    name: str
    header: list[str]
    cells: list[list[str]]
    right: bool
    width: int


def table_text(result: Result, width: int = PAGE_WIDTH) -> str:
    """The table; columns that do not fit follow in blocks with the same keys."""
    if not result.rows:
        return "(no rows)\n"
    result, left_out = _without_side(_windows_first(result))
    columns = [_column(result, index, None) for index in range(len(result.columns))]
    if _total(columns) > width:
        columns = [_column(result, i, _FOLD) for i in range(len(result.columns))]
    blocks = _blocks(columns, _key_count(result), width)
    text = "\n".join(_block_text(block, len(result.rows)) for block in blocks)
    if left_out == 0:
        return text
    return f"{text}{left_out} more wrote a few KiB on the side: JSON and CSV list them\n"


def _without_side(result: Result) -> tuple[Result, int]:
    """Without rows about tasks that wrote on the side, when there are others; how many they are."""
    if result.name == "sql" or _SIDE not in result.columns:
        return result, 0
    place = result.columns.index(_SIDE)
    rows = [row for row in result.rows if not row[place]] or result.rows
    columns = result.columns[:place] + result.columns[place + 1 :]
    cut = [row[:place] + row[place + 1 :] for row in rows]
    return replace(result, columns=columns, rows=cut), len(result.rows) - len(rows)


def _windows_first(result: Result) -> Result:
    """A query that answers by window only when asked to says which one last: here it is first.

    Where no window was asked for, the column has no value and is left out.
    """
    last = len(result.columns) - 1
    if result.name == "sql" or result.columns[last:] != (_WINDOW,):
        return result
    order = list(range(last))
    if any(row[last] is not None for row in result.rows):
        order.insert(1 if result.columns[0] == "run" else 0, last)
    return replace(
        result,
        columns=tuple(result.columns[i] for i in order),
        rows=[tuple(row[i] for i in order) for row in result.rows],
    )


def _column(result: Result, index: int, fold: int | None) -> _Column:
    name = result.columns[index]
    unit = result.units.get(name)
    values = [row[index] for row in result.rows]
    words = short_name(name, unit)
    texts = (result.label(name, v) or format_value(name, unit, v) for v in values)
    cells = [_fold(printable(text), fold) for text in texts]
    body = max(cell_len(line) for cell in cells for line in cell)
    longest_word = max(len(word) for word in words.split() or [""])
    header = textwrap.wrap(words, max(body, longest_word, 1)) or [""]
    return _Column(
        name=name,
        header=header,
        cells=cells,
        right=not any(result.is_text(name, value) for value in values),
        width=max(body, *(len(line) for line in header)),
    )


def _fold(text: str, fold: int | None) -> list[str]:
    if fold is None or len(text) <= fold:
        return [text]
    return textwrap.wrap(text, fold)


def _key_count(result: Result) -> int:
    """Leading columns that say what a row is about: the window, and those before any number."""
    count = 0
    for column in result.columns:
        if column in result.units and column != _WINDOW:
            break
        count += 1
    return max(1, count)


def _blocks(columns: list[_Column], key_count: int, width: int) -> list[list[_Column]]:
    # Keys are repeated in each block and must leave room for something else.
    while key_count > 1 and _total(columns[:key_count]) > width // 2:
        key_count -= 1
    keys, rest = columns[:key_count], columns[key_count:]
    blocks: list[list[_Column]] = [list(keys)]
    for column in rest:
        if len(blocks[-1]) > len(keys) and _total([*blocks[-1], column]) > width:
            blocks.append(list(keys))
        blocks[-1].append(column)
    return blocks


def _total(columns: Sequence[_Column]) -> int:
    return sum(column.width for column in columns) + len(_GAP) * (len(columns) - 1)


def _block_text(columns: list[_Column], row_count: int) -> str:
    height = max(len(column.header) for column in columns)
    lines = []
    for level in range(height):
        header = [_line(column.header, level - height + len(column.header)) for column in columns]
        lines.append(_join(columns, header))
    lines.append(_GAP.join("-" * column.width for column in columns))
    for row in range(row_count):
        depth = max(len(column.cells[row]) for column in columns)
        for level in range(depth):
            cells = [_line(column.cells[row], level) for column in columns]
            lines.append(_join(columns, cells))
    return "\n".join(lines) + "\n"


def _line(lines: list[str], level: int) -> str:
    return lines[level] if 0 <= level < len(lines) else ""


def _join(columns: list[_Column], texts: list[str]) -> str:
    padded = []
    for column, text in zip(columns, texts, strict=True):
        space = " " * (column.width - cell_len(text))
        padded.append(space + text if column.right else text + space)
    return _GAP.join(padded).rstrip()
