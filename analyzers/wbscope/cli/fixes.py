# SPDX-License-Identifier: Apache-2.0
"""Fixes that are commands, as whoever typed this command line would type them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from itertools import pairwise

__all__ = ["with_run", "with_verb"]

# One that is read; behind -o it is one to be made.
_RUN = re.compile(r"(?<=\s)(?<!-o )RUN(?=\s|$)")
# A run that is offered is offered to this verb; these, too, need nothing but a run.
_OFFERED = "wbscope report "
_AS_REPORT = ("check", "explain")


def with_run(fix: str | None, words: Sequence[str]) -> str | None:
    """`wbscope query fairness RUN` with what is there and is not the value of an option.

    It stays as it is where the command line has none, or more than one. The first word is a verb.
    """
    if fix is None or not fix.startswith("wbscope ") or _RUN.search(fix) is None:
        return fix
    named = {
        word
        for before, word in pairwise(words)
        if not word.startswith("-") and not before.startswith("-") and os.path.exists(word)
    }
    if len(named) != 1:
        return fix
    return _RUN.sub(lambda _: shlex.quote(*named), fix)


def with_verb(fix: str | None, words: Sequence[str]) -> str | None:
    """`wbscope report RUN` with the verb that was asked, where that needs no more."""
    verb = words[0] if words else ""
    if fix is None or verb not in _AS_REPORT or not fix.startswith(_OFFERED):
        return fix
    return f"wbscope {verb} {fix.removeprefix(_OFFERED)}"
