# SPDX-License-Identifier: Apache-2.0
"""What may stand at the end of a command line: the answer to a shell's Tab.

A shell's script runs `wbscope __complete SHELL ...`. The first line of the answer says what
follows: `words` (each may be taken), `part` (more may follow: a list, NAME=VALUE) or `files`
(the shell knows them). The others are VALUE<Tab>HELP; in bash VALUE.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from typer.main import get_command

from wbscope.base.errors import WbscopeError
from wbscope.cli.verbs import HELP_OPTIONS, VERBS
from wbscope.cli.words import Answer, Line

# The word with which a shell's script asks; no verb is called so.
ASKED = "__complete"

# These take every word up to the next option: cli/compare.py.
_GREEDY = ("--against", "--baseline")
# Of each kind of value; more than a screen helps nobody.
_MOST = 500
_QUOTES = "'\""
_PLAIN = re.compile(r"[\w@%+=:,./-]")


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
    if not any(not text.startswith("-") for text in before):
        return _starting(_options(program([])) if word.startswith("-") else _verbs(), word)
    command, names, rest = _command(program, before)
    if command is None:
        return _FILES
    if hasattr(command, "commands"):
        listed = [(name, one.get_short_help_str(80)) for name, one in command.commands.items()]
        return _starting(_option_words(command) if word.startswith("-") else listed, word)
    return _of_verb(command, " ".join(names), rest, word)


def _of_verb(command: Any, verb: str, before: Sequence[str], word: str) -> Answer:
    parameter, values, is_behind = _read(command, before)
    if parameter is not None and _is_greedy(parameter) and word.startswith("-"):
        parameter = None
    equals = re.fullmatch(r"(--[\w-]+=)(.*)", word, re.DOTALL)
    if parameter is None and equals and not is_behind:
        parameter = _option(command, equals[1][:-1])
        found = _values(command, verb, parameter, values, equals[2])
        return Answer([(equals[1] + value, told) for value, told in found.words], found.is_part)
    if parameter is None and word.startswith("-") and not is_behind:
        return _starting(_option_words(command), word)
    return _values(command, verb, parameter or _argument(command, values), values, word)


def _values(
    command: Any, verb: str, parameter: Any, values: Mapping[str, Sequence[str]], word: str
) -> Answer:
    if parameter is None:
        return _FILES
    choices = [one.value for one in parameter.shell_complete(None, word) if one.type == "plain"]
    if choices:
        return _starting(((str(choice), "") for choice in choices), word)
    # Only here: a verb or an option is completed without the library.
    from wbscope.cli.values import candidates

    found = candidates(Line(verb, str(parameter.name), values), word)
    return Answer(_starting(found.words, word).words, found.is_part)


def _read(command: Any, before: Sequence[str]) -> tuple[Any | None, dict[str, list[str]], bool]:
    """The option that waits for its value, the values so far, and whether a `--` was there."""
    values: dict[str, list[str]] = {}
    waiting, behind = None, False
    for text in before:
        if text == "--" and not behind and waiting is None:
            behind = True
        elif waiting is not None and not (text.startswith("-") and _is_greedy(waiting)):
            values.setdefault(str(waiting.name), []).append(text)
            waiting = waiting if _is_greedy(waiting) else None
        elif text.startswith("-") and len(text) > 1 and not behind:
            name, has_value, value = text.partition("=")
            waiting = _option(command, name)
            if waiting is not None and has_value:
                values.setdefault(str(waiting.name), []).append(value)
            if has_value or waiting is None or waiting.is_flag:
                waiting = None
        else:
            waiting = None
            place = _argument(command, values)
            if place is not None:
                values.setdefault(str(place.name), []).append(text)
    return waiting, values, behind


def _argument(command: Any, values: Mapping[str, Sequence[str]]) -> Any | None:
    """The first argument that has room."""
    for parameter in command.params:
        if parameter.param_type_name == "argument" and (
            parameter.nargs == -1 or parameter.name not in values
        ):
            return parameter
    return None


def _option(command: Any, name: str) -> Any | None:
    return next((one for one in command.params if name in one.opts), None)


def _is_greedy(option: Any) -> bool:
    return option.multiple and any(name in _GREEDY for name in option.opts)


def _command(program: Any, before: Sequence[str]) -> tuple[Any, list[str], list[str]]:
    """The command that the words name (None: there is none), its names, the words behind them."""
    command = get_command(program(before))
    names: list[str] = []
    rest = list(before)
    while hasattr(command, "commands") and rest:
        text = rest.pop(0)
        if not text.startswith("-"):
            names.append(text)
            command = command.commands.get(text)
    return command, names, rest


def _verbs() -> list[tuple[str, str]]:
    return [(verb.name, verb.summary) for verb in VERBS]


def _options(app: Any) -> list[tuple[str, str]]:
    return _option_words(get_command(app))


def _option_words(command: Any) -> list[tuple[str, str]]:
    found = [
        (name, str(getattr(one, "help", "") or ""))
        for one in command.params
        if one.param_type_name == "option"
        for name in one.opts
    ]
    return [*found, *((name, "Show this message and exit.") for name in HELP_OPTIONS)]


def _starting(words: Iterable[tuple[str, str]], word: str) -> Answer:
    found = {value: " ".join(told.split()) for value, told in words if value.startswith(word)}
    return Answer(list(found.items()))


def _split(line: str) -> list[str]:
    """The words of a line that is not at its end; the last is the one that grows."""
    text = line.lstrip()
    for quote in ("", *_QUOTES):
        try:
            words = shlex.split(text + quote)
        except ValueError:
            continue
        is_new = not quote and text[-1:].isspace() and not text.endswith("\\ ")
        return [*words[1:], ""] if is_new else words[1:]
    return [""]


def _for_bash(value: str, word: str, breaks: str) -> str:
    """What bash puts in the place of the part of the word behind the last break."""
    cut = max((word.rfind(one) for one in breaks if one in ":="), default=-1) + 1
    return "".join(c if _PLAIN.fullmatch(c) else f"\\{c}" for c in value[cut:])
