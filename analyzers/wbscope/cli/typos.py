# SPDX-License-Identifier: Apache-2.0
"""Command lines of the first minute, as they were meant: a forgotten verb, options of others."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wbscope.base.errors import WbscopeError
from wbscope.base.outputs import free_name
from wbscope.cli.fixes import existing

__all__ = ["meant", "query_first"]

# The output that a verb cannot do without, and a name for it; {} is that of the run.
_OUTPUTS = {
    "convert": ("-o", "{}.pftrace"),
    "export": ("--parquet", "answers"),
    "timeline": ("-o", "{}.pftrace"),
}
# What other programs have a name of a format for.
_FORMATS = ("--format", "--output-format", "--fmt")
_PAGES = {"html": "html", "htm": "html", "md": "md", "markdown": "md", "txt": "txt"}


def meant(error: Any, words: Sequence[str]) -> str | None:
    """The whole command that was meant, for an error of usage; None: nobody can tell.

    error  of Typer's parser, which knows the verb and its options
    """
    command = getattr(getattr(error, "ctx", None), "command", None)
    if hasattr(command, "commands") and os.path.exists(words[0]):
        return _join("report", words[0], *existing(words))
    option = str(getattr(error, "option_name", "") or "")
    if command is not None and option:
        return _other_option(command, option, words)
    missing = getattr(getattr(error, "param", None), "opts", ())
    named = existing(words)
    output = _OUTPUTS.get(words[0])
    if output is None or output[0] not in missing or len(named) != 1:
        return None
    name = output[1].format(_stem(named[0]))
    return _join(*words, output[0], str(free_name(Path(name))))


def query_first(error: WbscopeError, words: Sequence[str]) -> str | None:
    """`query trace.dat fairness` with the two in their order."""
    run = error.subject
    if error.slug != "unknown-query" or run not in words or not os.path.exists(run):
        return None
    from wbscope.library.library import load_library

    known = {file.name for file in load_library().queries()}
    name = next((word for word in words[1:] if word in known), None)
    if name is None:
        return None
    rest = list(words)
    rest.remove(name)
    rest.insert(rest.index(run), name)
    return _join(*rest)


def _other_option(command: Any, option: str, words: Sequence[str]) -> str | None:
    """--html and --format html are -o report.html, --format csv is --csv."""
    place = next((i for i, word in enumerate(words) if word.partition("=")[0] == option), None)
    if place is None:
        return None
    _, has_value, value = words[place].partition("=")
    behind = place + 1
    if not has_value and behind < len(words) and not os.path.exists(words[behind]):
        value = words[behind]
        behind += 1
    known = {name for one in command.params for name in one.opts}
    name = value.lower() if option in _FORMATS else option.removeprefix("--")
    if option not in _FORMATS and not has_value and not _is_page(value, name):
        behind = place + 1  # a word of another meaning
        value = ""
    if f"--{name}" in known and option in _FORMATS:
        instead = [f"--{name}"]
    elif name in _PAGES and words[0] == "report":
        file = value if _is_page(value, name) else str(free_name(Path(f"report.{_PAGES[name]}")))
        instead = ["-o", file]
    else:
        return None
    return _join(*words[:place], *words[behind:], *instead)


def _is_page(word: str, form: str) -> bool:
    return Path(word).suffix == f".{_PAGES.get(form, form)}"


def _stem(run: str) -> str:
    """A name for what is made of it; `-` and `.` give none."""
    return Path(run).name.partition(".")[0] or "run"


def _join(*words: str) -> str:
    return shlex.join(["wbscope", *words])
