# SPDX-License-Identifier: Apache-2.0
"""A text of several SQL statements taken apart at its semicolons."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Statement", "is_complete", "split_statements"]

# Where a semicolon is no end: comments, strings, quoted names. One that is not
# closed goes on to the end of the text.
_TOKEN = re.compile(
    r"""--[^\n]*
      | /\*.*?(?:\*/|\Z)
      | '[^']*(?:''[^']*)*(?:'|\Z)
      | "[^"]*(?:""[^"]*)*(?:"|\Z)
      | `[^`]*(?:``[^`]*)*(?:`|\Z)
      | \[[^\]]*(?:\]|\Z)
      | ;
    """,
    re.VERBOSE | re.DOTALL,
)
_BLANK = re.compile(r"(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))*", re.DOTALL)


@dataclass(frozen=True)
class Statement:
    """One statement without its semicolon, and the line that it starts on."""

    text: str
    line: int


def split_statements(text: str) -> list[Statement]:
    """The statements of a text; comments alone are none."""
    statements = []
    start = 0
    line = 1
    for end in [*_ends(text), len(text)]:
        part = text[start:end]
        blank = _BLANK.match(part)
        skipped = blank.end() if blank else 0
        if skipped < len(part):
            first = line + part.count("\n", 0, skipped)
            statements.append(Statement(part[skipped:].rstrip(), first))
        line += part.count("\n")
        start = end + 1
    return statements


def is_complete(text: str) -> bool:
    """Whether the last statement of the text has its semicolon."""
    ends = list(_ends(text))
    blank = _BLANK.fullmatch(text, ends[-1] + 1 if ends else 0)
    return blank is not None


def _ends(text: str) -> list[int]:
    """Where the semicolons are that end a statement."""
    return [match.start() for match in _TOKEN.finditer(text) if match[0] == ";"]
