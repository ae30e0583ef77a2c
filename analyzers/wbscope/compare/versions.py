# SPDX-License-Identifier: Apache-2.0
"""Kernel releases as numbers that can be compared."""

from __future__ import annotations

import re

__all__ = ["is_before"]


def is_before(release: str, border: str) -> bool | None:
    """True when the kernel is older than the border, such as 6.16; None = not known."""
    first, second = _number(release), _number(border)
    return None if first is None or second is None else first < second


def _number(release: str) -> tuple[int, int] | None:
    match = re.match(r"(\d{1,6})\.(\d{1,6})", release)
    return (int(match[1]), int(match[2])) if match else None
