# SPDX-License-Identifier: Apache-2.0
"""What may stand at the end of a command line: the answer to a shell's Tab.

A shell's script runs `wbscope __complete SHELL ...`. The first line of the answer says what
follows: `words` (each may be taken), `part` (more may follow: a list, NAME=VALUE) or `files`
(the shell knows them). The others are VALUE<Tab>HELP; in bash VALUE.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Typer has its own copy of click, and no other name for these.
from typer._click.shell_completion import (
    _resolve_context,
    _resolve_incomplete,
    split_arg_string,
)
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from wbscope.base.errors import WbscopeError
from wbscope.cli.verbs import VERBS

# The word with which a shell's script asks; no verb is called so.
ASKED = "__complete"

# Of each kind of value; more than a screen helps nobody.
_MOST = 500
_PLAIN = re.compile(r"[\w@%+=:,./-]")


@dataclass(frozen=True)
class Answer:
    """Words with what they mean; none: files. `is_part`: more may follow each."""

    words: Sequence[tuple[str, str]] = ()
    is_part: bool = False


_FILES = Answer()


def complete(program: Any, asked: Sequence[str]) -> int:
    """Answer a script, on stdout; whatever is wrong, a Tab shows nothing of it.

    program   makes the Typer of these words: main.program
    asked     SHELL, then LINE and the characters that break words (bash), or the words
    """
    shell, *words = asked or [""]
    breaks = ""
    if shell == "bash":
        words, breaks = _split(words[0] if words else ""), "".join(words[1:2])
    try:
        found = answer(program, words or [""])
    except (WbscopeError, OSError, ImportError):
        found = _FILES
    if not found.words:
        print("files")
        return 0
    print("part" if found.is_part else "words")
    for value, help_text in found.words[:_MOST]:
        if shell == "bash":
            print(_for_bash(value, words[-1], breaks))
        else:
            print(f"{value}\t{help_text}")
    return 0


def answer(program: Any, words: Sequence[str]) -> Answer:
    """What the last of the words may be; the others stand before it."""
    *before, word = words
    # With an option that has no value yet the parser would give up, and know no other word.
    whole = before[:-1] if before and before[-1].startswith("-") else before
    context = _resolve_context(get_command(program(before)), {}, "wbscope", whole)
    equals = re.match(r"(--[\w-]+)=", word)
    place = _option(context.command, equals[1] if equals else "".join(before[-1:]))
    if place is None:
        place, _ = _resolve_incomplete(context, list(before), word)
    start = equals[0] if equals else ""
    part = word.removeprefix(start)
    found = _of_place(context, place, before, part)
    told = {start + text: " ".join(more.split()) for text, more in found.words
            if text.startswith(part)}  # fmt: skip
    return Answer(list(told.items()), found.is_part)


def _option(command: Any, name: str) -> Any | None:
    """The one that waits for its value."""
    takers = (one for one in command.params if not getattr(one, "is_flag", True))
    return next((one for one in takers if name in one.opts), None)


def _of_place(context: Any, place: Any, before: Sequence[str], part: str) -> Answer:
    """What may stand in the place of a parameter; a command's are its options and commands."""
    if isinstance(place, TyperGroup) and not part.startswith("-"):
        verbs = [text for text in before if not text.startswith("-")]
        if not verbs:
            return Answer([(verb.name, verb.summary) for verb in VERBS])
        is_verb = len(verbs) == context.command_path.count(" ")
        listed = [(name, one.get_short_help_str(80)) for name, one in place.commands.items()]
        return Answer(listed if is_verb else ())
    if items := [one for one in place.shell_complete(context, part) if one.type == "plain"]:
        return Answer([(str(one.value), one.help or "") for one in items])
    if isinstance(place, TyperCommand):
        return Answer()
    # Only here: a verb or an option is completed without the library.
    from wbscope.cli.values import Line, candidates

    verb = context.command_path.partition(" ")[2]
    return Answer(*candidates(Line(verb, str(place.name), _texts(context.params)), part))


def _texts(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Of those that were given."""
    lists = {name: value if isinstance(value, list | tuple) else [value]
             for name, value in values.items() if value is not None}  # fmt: skip
    return {name: [str(one) for one in found] for name, found in lists.items()}


def _split(line: str) -> list[str]:
    """The words of a line that is not at its end; the last is the one that grows."""
    *words, last = split_arg_string(line + "x")  # so that there is one behind a blank, too
    return [*words[1:], last[:-1]]


def _for_bash(value: str, word: str, breaks: str) -> str:
    """What bash puts in the place of the part of the word behind the last break."""
    cut = max((word.rfind(one) for one in breaks if one in ":="), default=-1) + 1
    return "".join(c if _PLAIN.fullmatch(c) else f"\\{c}" for c in value[cut:])
