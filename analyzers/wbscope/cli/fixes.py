# SPDX-License-Identifier: Apache-2.0
"""Fixes that are commands, as whoever typed this command line would type them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from itertools import pairwise

from wbscope.cli.verbs import VERBS

__all__ = ["existing", "with_run", "with_verb"]

# What stands for a run that is read, a dataset or a history; behind -o it is one to be made.
_PLACE = re.compile(r"(?<=\s)(?<!-o )(?:RUN|DATASET|FILE\.db)(?=\s|$)")
# A run that is offered is offered to this verb; these, too, need nothing but a run.
_OFFERED = "wbscope report "
_AS_REPORT = ("check", "explain")
# What comes through a pipe is for the command that was typed, whatever it was.
_PIPED = "| wbscope report -"
_GROUPS = frozenset(verb.name for verb in VERBS if verb.is_group)


def existing(words: Sequence[str]) -> list[str]:
    """Files, folders and URIs among the words of a command line that are no value of an option."""
    verbs = 2 if words and words[0] in _GROUPS else 1
    found = [
        word
        for before, word in pairwise(words[verbs - 1 :])
        if not word.startswith("-")
        and not before.startswith("-")
        and ("://" in word or os.path.exists(word))
    ]
    return list(dict.fromkeys(found))


def with_run(fix: str | None, words: Sequence[str]) -> str | None:
    """`wbscope query fairness RUN` with what is there and is not the value of an option.

    It stays as it is where the command line has none, or more than one. The first word is a verb.
    """
    if fix is None or not fix.startswith("wbscope ") or _PLACE.search(fix) is None:
        return fix
    named = existing(words)
    if len(named) != 1:
        return fix
    return _PLACE.sub(lambda _: shlex.quote(*named), fix)


def with_verb(fix: str | None, words: Sequence[str], subject: str = "") -> str | None:
    """`wbscope report RUN` with the verb that was asked, where that needs no more.

    subject  the word that the error is about: where a run is offered in its place, all other
             words of the command line stay
    """
    verb = words[0] if words else ""
    if fix is None:
        return fix
    kept = verb and subject in words[1:]
    if kept and fix.endswith(_PIPED):
        return f"{fix.removesuffix(_PIPED)}| {_in_place(words, subject, '-')}"
    if not fix.startswith(_OFFERED):
        return fix
    offered = shlex.split(fix.removeprefix(_OFFERED), comments=True)
    if kept and len(offered) == 1 and verb in (*_AS_REPORT, "report"):
        return _in_place(words, subject, offered[0])
    if verb not in _AS_REPORT:
        return fix
    return f"wbscope {verb} {fix.removeprefix(_OFFERED)}"


def _in_place(words: Sequence[str], subject: str, other: str) -> str:
    """The command line with another word for the one that was wrong, which is not the verb."""
    verb, *rest = words
    return shlex.join(["wbscope", verb, *(other if word == subject else word for word in rest)])
