# SPDX-License-Identifier: Apache-2.0
"""A result as text: cells, columns, tables, CSV, Markdown, HTML, and messages as lines.

Columns are in the order for people: keys, what matters most, the rest. JSON, CSV and Parquet keep
the order of the query.

Texts come from a stranger's trace: names of tasks, paths. They are written so that they neither
drive a terminal nor become a formula of a spreadsheet, unless a program wants them as recorded.
"""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from rich.cells import cell_len

from wbscope.base.errors import WbscopeError
from wbscope.base.result import Notice, Result, converter, leading_names
from wbscope.base.units import format_value, is_instant, short_name

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


# What GitHub's runner takes for a command: `::warning::` where a line begins, which a page may
# begin at any word, and `##[warning]` anywhere.
_COMMAND = re.compile(r"(?<!\S):(?=:[\w-]+(?: .*?)?::)|(?<=##)\[(?=[\w-])")


def printable(text: str) -> str:
    """Control characters as \\x1b, line feeds too: a task name must not steer what shows it."""
    if not text.isprintable():
        text = "".join(
            char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
        )
    if "::" in text or "##[" in text:
        text = _COMMAND.sub(lambda match: f"\\x{ord(match[0]):x}", text)
    return text


_KEPT = "\N{NO-BREAK SPACE}"
_UNIT = re.compile(r"(\d) (%|[mun]?s|(?:[KMGTPE]i)?B(?:/s)?)(?=\W|$)")


def fill(
    text: str,
    width: int,
    lead: str = "",
    command: str = "",
    *,
    indent: str | None = None,
    whole_words: bool = True,
) -> list[str]:
    """Lines of this width; a number stays with its unit.

    lead         in front of the first line; the others are as far to the right
    command      behind the text, never broken
    indent       of the other lines, in place of that
    whole_words  even where they are wider than a line
    """
    told = _UNIT.sub(rf"\1{_KEPT}\2", printable(text))
    if command:
        told += f" {printable(command).replace(' ', _KEPT)}"
    if indent is None:
        indent = " " * len(lead) if lead else "  "
    lines = textwrap.wrap(
        told,
        max(width, len(lead) + 20),
        initial_indent=lead,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=not whole_words,
    )
    return [line.replace(_KEPT, " ") for line in lines] or [lead.rstrip()]


def folded(text: str, width: int, indent: str = "  ", *, whole_words: bool = True) -> str:
    """The same as one text."""
    return "\n".join(fill(text, width, indent=indent, whole_words=whole_words))


def headings(result: Result) -> list[str]:
    """The names of the columns; the unit is in each cell instead."""
    return [printable(short_name(name, result.units.get(name))) for name in result.columns]


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


def error_text(error: WbscopeError) -> str:
    """What is wrong on the first line, then where, what there is, and the fix."""
    first = f"error[{error.slug}]: {error.subject}: {error.message}"
    rest = [f"  {label}: {text}" for label, text in error.details()]
    return "\n".join(printable(line) for line in [first, *rest])


def warning_text(notice: Notice) -> str:
    """One line."""
    run = "" if notice.run is None else f"{notice.run}: "
    return printable(f"warning[{notice.slug}]: {run}{notice.message}")


# What begins a formula in spreadsheets, and so stands behind an apostrophe.
# Source: OWASP, CSV Injection.
_FORMULA = ("=", "+", "-", "@")


def csv_text(result: Result, *, is_raw: bool = False) -> str:
    """A header line, then one line a row."""
    told = _as_recorded if is_raw else _harmless
    return "".join(_csv_line(map(told, row)) for row in (result.columns, *result.rows))


def _csv_line(cells: Iterable[Any]) -> str:
    """With this end of a line Python's writer quotes a carriage return, too."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue().removesuffix("\r\n") + "\n"


def _as_recorded(value: Any) -> Any:
    return f"x'{value.hex()}'" if isinstance(value, bytes) else value


def _harmless(value: Any) -> Any:
    value = _as_recorded(value)
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


# What Markdown would read as markup; a task may be called *init*.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#&~])")


def markdown_text(result: Result) -> str:
    """Warnings as quotations above the table, because they leave with it."""
    lines = [f"> {plain(warning_text(notice))}\n>" for notice in result.warnings]
    if lines:
        lines[-1] = lines[-1].removesuffix("\n>")
        lines.append("")
    if not result.rows:
        return "\n".join([*lines, "(no rows)"]) + "\n"
    result = arranged(result)
    marks = ["---" if text else "---:" for text in is_text(result)]
    heads = [plain(printable(heading)) for heading in headings(result)]
    table = [heads, marks, *([plain(cell) for cell in row] for row in body(result))]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in table)]) + "\n"


def plain(text: str) -> str:
    """Text that Markdown takes as it is."""
    return _MARKUP.sub(r"\\\1", text)


# A notebook keeps what it shows in its file: more rows are for to_pandas().
_SHOWN = 100


@converter
def html_table(result: Result) -> str:
    """Warnings, the first rows with times from the run's start, meanings as tooltips."""
    result = arranged(result.from_start())
    meanings = result.descriptions()
    told = "".join(f"<p><b>{escape(warning_text(n))}</b></p>" for n in result.warnings)
    heads = "".join(
        f'<th title="{escape(_tooltip(result, name, meanings))}">{escape(heading)}</th>'
        for name, heading in zip(result.columns, headings(result), strict=True)
    )
    sides = ["left" if text else "right" for text in is_text(result)]
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{side}">{escape(cell)}</td>'
            for side, cell in zip(sides, row, strict=True)
        )
        + "</tr>"
        for row in body(result)[:_SHOWN]
    )
    hidden = len(result.rows) - _SHOWN
    more = f"<p>{hidden} more rows</p>" if hidden > 0 else ""
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<div>{told}{table}{more}</div>"


def _tooltip(result: Result, name: str, meanings: dict[str, str]) -> str:
    unit = result.units.get(name)
    return f"{name}{f' ({unit})' if unit else ''}: {meanings.get(name, '')}".rstrip(": ")
