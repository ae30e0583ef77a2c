# SPDX-License-Identifier: Apache-2.0
"""Colours of text on a terminal: what is wrong, and where a table begins."""

from __future__ import annotations

import os
import re
from typing import TextIO

__all__ = ["coloured", "has_colours", "keeps_colours"]

_RED, _GREEN, _YELLOW, _CYAN, _BOLD = "1;31", "32", "33", "36", "1"
# What a line begins with, and its colour. Values are of no colour: they may be anything.
_RULES = tuple(
    (re.compile(pattern, re.MULTILINE), colour)
    for pattern, colour in (
        (r"^error\[[\w-]+\]", _RED),
        (r"^warning\[[\w-]+\]", _YELLOW),
        (r"^severe(?=  )", _RED),
        (r"^warning(?=  )", _YELLOW),
        (r"^note(?=  )", _CYAN),
        (r"^ok(?=  )", _GREEN),
        (r"(?<=^  )fix(?=: )", _GREEN),
        (r"^To do(?=: )", _BOLD),
        (r"^:\( (?:FAIL|WORSE)\b|(?<=^gate: )(?:FAIL|WORSE|REFUSED)\b", _RED),
        (r"^:\) PASS\b|(?<=^gate: )PASS\b", _GREEN),
        (r"(?<=^gate: )INCONCLUSIVE\b", _YELLOW),
        (r"^\S.*(?=\n={3,}$)", _BOLD),
    )
)


def has_colours(stream: TextIO | None) -> bool:
    """Whether what is written there is seen in colours: https://no-color.org."""
    if stream is None or os.environ.get("NO_COLOR") or not stream.isatty():
        return False
    return os.environ.get("TERM", "dumb") != "dumb"


def keeps_colours(pager: str) -> bool:
    """Whether a pager shows them: less does, where its options say so."""
    program, _, options = pager.partition(" ")
    if os.path.basename(program) != "less":
        return False
    return "R" in f"{options} {os.environ.get('LESS', 'FRX')}"


def coloured(text: str) -> str:
    """The text with the escapes of its colours, and nothing else changed."""
    for pattern, colour in _RULES:
        text = pattern.sub(f"\x1b[{colour}m\\g<0>\x1b[0m", text)
    return text
