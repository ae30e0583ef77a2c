# SPDX-License-Identifier: Apache-2.0
"""Which of the names that there are was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["nearest"]

_CUTOFF = 0.6
# Fewer are in any name.
_LEAST_LETTERS = 3


def nearest(wanted: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Those that have the word in them, else those that look like it; wildcards are no letters."""
    known = list(dict.fromkeys(names))
    word = wanted.strip("*?").lower()
    if len(word) >= _LEAST_LETTERS:
        having = [name for name in known if word in name.lower()]
        # What begins so was rather meant than what has it somewhere.
        having.sort(key=lambda name: not name.lower().startswith(word))
        if having:
            return having[:most]
    return difflib.get_close_matches(word, known, n=most, cutoff=_CUTOFF)
