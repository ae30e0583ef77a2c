# SPDX-License-Identifier: Apache-2.0
"""Text from a stranger's trace, safe to show on a terminal and in the log of a CI job."""

from __future__ import annotations

import re
import textwrap

__all__ = ["folded", "printable"]

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


def folded(text: str, width: int, indent: str = "  ", *, whole_words: bool = True) -> str:
    """Lines of this width, those behind the first indented; `whole_words` may be wider."""
    return textwrap.fill(
        printable(text),
        width,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=not whole_words,
    )
