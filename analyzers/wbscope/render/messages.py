# SPDX-License-Identifier: Apache-2.0
"""Errors and warnings as lines of text."""

from __future__ import annotations

from wbscope.base.errors import WbscopeError
from wbscope.base.result import Notice
from wbscope.render.printable import printable

__all__ = ["error_text", "warning_text"]


def error_text(error: WbscopeError) -> str:
    """What is wrong on the first line, then where, what there is, and the fix."""
    first = f"error[{error.slug}]: {error.subject}: {error.message}"
    rest = [f"  {label}: {text}" for label, text in error.details()]
    return "\n".join(printable(line) for line in [first, *rest])


def warning_text(notice: Notice) -> str:
    """One line."""
    run = "" if notice.run is None else f"{notice.run}: "
    return printable(f"warning[{notice.slug}]: {run}{notice.message}")
