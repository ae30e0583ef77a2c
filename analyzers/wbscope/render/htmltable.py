# SPDX-License-Identifier: Apache-2.0
"""A result as a table of a page: raw numbers beside what people read, a command for each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import pairwise
from typing import Any

from wbscope.base.filenames import join
from wbscope.base.result import Result
from wbscope.base.units import format_value
from wbscope.render.arrange import arranged
from wbscope.render.cells import column_texts, headings, is_text
from wbscope.render.printable import printable

__all__ = ["MOST_ROWS", "copy_button", "meanings_of", "open_command", "open_commands", "table_html"]

# Longer tables have a command for all rows.
MOST_ROWS = 100
_TIMES = ("ts", "window_start_ns")
_RIGHT = ' class="n"'


def table_html(
    result: Result, title: str, commands: Sequence[str | None] = (), most: int = MOST_ROWS
) -> str:
    """The <table>; `commands` open the timeline where each row was, if it has a time."""
    shown = arranged(replace(result, rows=list(result.rows[:most])))
    texts = [column_texts(shown, place) for place in range(len(shown.columns))]
    words = is_text(shown)
    has_commands = any(commands[:most])
    heads = "".join(
        f'<th scope="col"{"" if text else _RIGHT} title="{escape(printable(name))}">'
        f"{escape(printable(heading))}</th>"
        for name, heading, text in zip(shown.columns, headings(shown), words, strict=True)
    )
    if has_commands:
        heads = f'<th scope="col" class="js">timeline</th>{heads}'
    lines = []
    for number, row in enumerate(shown.rows):
        cells = "".join(
            _cell(value, texts[place][number], words[place]) for place, value in enumerate(row)
        )
        if has_commands:
            cells = f'<td class="js">{copy_button(commands[number], "copy")}</td>{cells}'
        lines.append(f"<tr>{cells}</tr>\n")
    return (
        f"<table><caption>{escape(printable(title))}</caption>\n<thead><tr>{heads}</tr></thead>\n"
        f"<tbody>\n{''.join(lines)}</tbody></table>"
    )


def _cell(value: Any, text: str, words: bool) -> str:
    is_number = isinstance(value, int | float)
    raw = f' data-v="{value!r}"' if is_number and str(value) != text else ""
    return f"<td{'' if words else _RIGHT}{raw}>{escape(text, quote=False)}</td>"


def copy_button(command: str | None, label: str) -> str:
    """A button that a script gives its meaning; without one it is not shown."""
    if command is None:
        return ""
    return f'<button type="button" class="copy" data-copy="{escape(command)}">{label}</button>'


def meanings_of(result: Result) -> list[tuple[str, str]]:
    """Each column as its head calls it, and what it means; in the order of the table."""
    shown = arranged(result)
    known = shown.descriptions()
    return [
        (heading, f"{name}: {known[name]}" if heading != name else known[name])
        for name, heading in zip(shown.columns, headings(shown), strict=True)
        if name in known
    ]


def open_commands(result: Result, paths: Mapping[str, str]) -> list[str | None]:
    """For each row with a time, what shows it on the timeline; times count from the first event.

    paths  each run as it was given, by its name in the column `run`; "" where there is none
    """
    names = result.columns
    time = next((name for name in _TIMES if name in names), None)
    if time is None:
        return []
    at = names.index(time)
    dur = names.index("dur") if "dur" in names else None
    run = names.index("run") if "run" in names else None
    starts = sorted({row[at] for row in result.rows if isinstance(row[at], int)})
    window = min((b - a for a, b in pairwise(starts)), default=None)
    found: list[str | None] = []
    for row in result.rows:
        start = row[at]
        if not isinstance(start, int):
            found.append(None)
            continue
        length = row[dur] if dur is not None else window if time != "ts" else None
        end = None if not isinstance(length, int) else start + length
        found.append(open_command(paths["" if run is None else str(row[run])], start, end))
    return found


def open_command(run: str, start_ns: int, end_ns: int | None) -> str:
    """What a user types to see this time; ns from the run's first event."""
    start = _moment(max(start_ns, 0))
    end = start if end_ns is None else _moment(max(end_ns, 0))
    at = start if start == end else f"{start}..{end}"
    return join(["wbscope", "open", run, "--at", at])


def _moment(ns: int) -> str:
    """As the command line takes it, in s down to a microsecond."""
    return format_value("ts", "ns", ns).replace(" ", "")
