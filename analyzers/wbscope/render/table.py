# SPDX-License-Identifier: Apache-2.0
"""A result as a text table that fits the page: wide ones go on below, nothing is cut."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from wbscope.base.result import Result
from wbscope.render.arrange import arranged, main_rows
from wbscope.render.cells import column_texts, headings, is_text

__all__ = ["PAGE_WIDTH", "side_text", "table_text"]

PAGE_WIDTH = 80

_GAP = "  "
# Text wider than this is folded when its table does not fit otherwise.
_FOLD = 36
# So narrow are keys folded to need fewer blocks; narrower only where nothing else has room.
_NARROW = 12
_NARROWEST = 6
# Headings of names that are typed again, such as those of findings, and how long these may be.
_IDS = ("id", "finding", "rule")
_ID_WIDTH = 24
_PIECE = re.compile(r"[^_/:=,.-]*[_/:=,.-]+|[^_/:=,.-]+")


@dataclass(frozen=True)
class _Texts:
    """A column before it is laid out; `width` is that of its widest text."""

    words: str
    texts: list[str]
    right: bool
    width: int

    def is_whole(self, fold: int | None) -> bool:
        """Numbers are never folded; nor short names that somebody types, where there is room."""
        is_id = self.words in _IDS and self.width <= _ID_WIDTH
        return self.right or (is_id and (fold is None or fold >= _NARROW))

    def at_most(self, fold: int) -> int:
        """How wide it gets when its text is folded there; numbers stay whole."""
        body = self.width if self.is_whole(fold) else min(self.width, fold)
        return max(body, self.least())

    def least(self) -> int:
        """Words of the heading stay whole, too."""
        return max(map(len, self.words.split()), default=1)


@dataclass(frozen=True)
class _Column:
    """The lines of each cell."""

    header: list[str]
    cells: list[list[str]]
    right: bool
    width: int


def table_text(
    result: Result,
    width: int | None = PAGE_WIDTH,
    *,
    whole: bool = False,
    blocks: int | None = None,
) -> str:
    """The table; columns that do not fit follow in blocks, each with all keys.

    width   of the page; None: as wide as the table is
    whole   all rows and columns, those about tasks that wrote on the side too
    blocks  at most so many, so that columns that matter less are left out
    """
    if not result.rows:
        return "(no rows)\n"
    shown, left_out = (result, 0) if whole else main_rows(result)
    made = _blocks(shown, width)[:blocks]
    text = "\n".join(_block_text(block, len(shown.rows)) for block in made)
    return text + side_text(left_out)


def side_text(count: int) -> str:
    """What is said of rows about tasks that wrote on the side, which are not shown."""
    if count == 0:
        return ""
    are = "row is" if count == 1 else "rows are"
    return f"{count} more {are} about tasks that wrote a few KiB; JSON and CSV have them all\n"


def _blocks(result: Result, width: int | None) -> list[list[_Column]]:
    made = arranged(result)
    columns = [
        _Texts(words, texts := column_texts(made, index), not text, max(map(cell_len, texts)))
        for index, (words, text) in enumerate(zip(headings(made), is_text(made), strict=True))
    ]
    if width is None or _total([max(c.width, c.least()) for c in columns]) <= width:
        return [[_folded(column, None) for column in columns]]
    count = len(made.keys)
    if not result.keys:
        # Nobody said that these are keys: they leave room for something else.
        while count > 1 and _total([c.at_most(_FOLD) for c in columns[:count]]) > width // 2:
            count -= 1
    keys, rest = columns[:count], columns[count:]
    whole = [_folded(column, _FOLD) for column in columns]
    if not rest or _total([column.width for column in whole]) <= width:
        return [whole]
    if len(set(zip(*(key.texts for key in keys), strict=True))) < len(made.rows):
        keys = [_row_numbers(len(made.rows)), *keys]
    fold = _fold_of_keys(keys, rest, width)
    repeated = [_folded(key, fold) for key in keys]
    room = width - _total([key.width for key in repeated]) - len(_GAP)
    values = [_folded(column, min(_FOLD, max(_NARROW, room))) for column in rest]
    pieces = _pieces([column.width for column in values], room)
    return [[*repeated, *values[start:end]] for start, end in pieces]


def _fold_of_keys(keys: Sequence[_Texts], rest: Sequence[_Texts], width: int) -> int:
    """Where texts of keys are folded, when they take more than half of the page.

    As wide as can be with the fewest blocks.
    """
    if _total([key.at_most(_FOLD) for key in keys]) <= width // 2:
        return _FOLD
    widths = [column.at_most(_FOLD) for column in rest]
    widest = max(column.at_most(_NARROW) for column in rest)

    def room(fold: int) -> int:
        return width - _total([key.at_most(fold) for key in keys]) - len(_GAP)

    least = len(_pieces(widths, room(_NARROW)))
    for fold in range(_FOLD, _NARROWEST, -1):
        fits = room(fold) >= widest
        if fits and (fold <= _NARROW or len(_pieces(widths, room(fold))) == least):
            return fold
    return _NARROWEST


def _pieces(widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """The columns of each block, from and to."""
    starts, used = [0], 0
    for place, width in enumerate(widths):
        used += width + (len(_GAP) if place > starts[-1] else 0)
        if used > room and place > starts[-1]:
            starts.append(place)
            used = width
    return list(zip(starts, [*starts[1:], len(widths)], strict=True))


def _row_numbers(count: int) -> _Texts:
    return _Texts("#", [str(i + 1) for i in range(count)], right=True, width=len(str(count)))


def _folded(column: _Texts, fold: int | None) -> _Column:
    cells = [_fold(text, None if column.is_whole(fold) else fold) for text in column.texts]
    body = max(cell_len(line) for cell in cells for line in cell)
    header = textwrap.wrap(column.words, max(body, column.least())) or [""]
    width = max(body, *(len(line) for line in header))
    return _Column(header, cells, column.right, width)


def _fold(text: str, fold: int | None) -> list[str]:
    """Lines of at most so many characters; a word that is longer is broken behind one of _/:=,.-"""
    if fold is None or len(text) <= fold:
        return [text]
    lines = [""]
    for word in text.split(" "):
        pieces = [word] if len(word) <= fold else _PIECE.findall(word)
        gap = " " if lines[-1] else ""
        for piece in pieces:
            if len(lines[-1] + gap + piece) > fold and lines[-1]:
                lines.append("")
                gap = ""
            lines[-1] += gap + piece
            gap = ""
            while len(lines[-1]) > fold:
                lines[-1:] = [lines[-1][:fold], lines[-1][fold:]]
    return lines


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


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
