# SPDX-License-Identifier: Apache-2.0
"""A result as a table of Markdown, to paste into an issue or a mail."""

from __future__ import annotations

import re

from wbscope.base.result import Result
from wbscope.render.arrange import arranged
from wbscope.render.cells import body, headings, is_text
from wbscope.render.messages import warning_text
from wbscope.render.printable import printable

__all__ = ["markdown_text", "plain"]

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
