# SPDX-License-Identifier: Apache-2.0
"""Text from a stranger's trace, safe to show on a terminal."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    """Control characters as \\x1b: a task name must not steer the terminal."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
