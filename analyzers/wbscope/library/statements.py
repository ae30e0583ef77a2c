# SPDX-License-Identifier: Apache-2.0
"""A text of several SQL statements taken apart at its semicolons, as SQLite sees them."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass

__all__ = ["Statement", "is_complete", "split_statements"]

# White space and comments; one that is not closed goes on to the end of the text.
_BLANK = re.compile(r"(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))*", re.DOTALL)
_COMMAND = re.compile(r"\.[^\n]*")
# What SQLite's lexer does not take: NUL, and bytes that are no UTF-8, as Python has them.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Statement:
    """One statement without its semicolon, or a line with a command such as .tables.

    `line` is the one that it starts on.
    """

    text: str
    line: int

    @property
    def is_command(self) -> bool:
        """Whether it is a line for the program, not for SQLite."""
        return self.text.startswith(".")


def split_statements(text: str) -> list[Statement]:
    """The statements and commands of a text; comments alone are none."""
    statements = []
    seen = _lexed(text)
    start, line, counted = 0, 1, 0
    while start < len(text):
        blank = _BLANK.match(text, start)
        begin = blank.end() if blank else start
        command = _COMMAND.match(text, begin)
        end = command.end() if command else _end(seen, begin)
        line, counted = line + text.count("\n", counted, begin), begin
        if part := text[begin:end].rstrip():
            statements.append(Statement(part, line))
        start = end + 1
    return statements


def is_complete(text: str) -> bool:
    """Whether the last statement of the text has its semicolon."""
    seen = _lexed(text)
    return _BLANK.fullmatch(seen) is not None or sqlite3.complete_statement(seen)


def _lexed(text: str) -> str:
    """The same without what is no text; the statement that has it is refused later."""
    return _NO_TEXT.sub(" ", text)


def _end(text: str, start: int) -> int:
    """Where the statement that starts there has its semicolon; the end of the text without."""
    end = text.find(";", start)
    while end >= 0 and not sqlite3.complete_statement(text[start : end + 1]):
        end = text.find(";", end + 1)
    return end if end >= 0 else len(text)
