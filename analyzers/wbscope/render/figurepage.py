# SPDX-License-Identifier: Apache-2.0
"""The list of figures as text: what each shows, its query, and why a run lacks it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from wbscope.base.errors import WbscopeError
from wbscope.plot.figure import Figure

__all__ = ["figure_list"]

_INDENT = 2


def figure_list(
    figures: Sequence[Figure], reasons: Sequence[WbscopeError | None] | None, width: int
) -> str:
    """A block of lines for each figure; `reasons` says of each why the run cannot have it."""
    lines: list[str] = []
    for number, figure in enumerate(figures):
        reason = None if reasons is None else reasons[number]
        lines.append(f"{figure.name}{'' if reason is None else ': not in this run'}")
        lines += _hung(f"{figure.title}. Query {figure.query}.", width)
        if reason is not None:
            lines += _hung(reason.message, width)
    return "\n".join(lines) + "\n"


def _hung(text: str, width: int) -> list[str]:
    indent = " " * _INDENT
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
