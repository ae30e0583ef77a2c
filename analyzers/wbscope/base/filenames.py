# SPDX-License-Identifier: Apache-2.0
"""Names of files, which may be any bytes: as text to store, and as words of a shell."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

__all__ = ["as_utf8", "join", "pasteable", "starting_file"]

# What shlex.quote() makes; a quote within a word is "'".
_QUOTED = re.compile(r"""("'")|'([^']*)'""")


def as_utf8(name: str) -> str:
    """A name that a file of UTF-8 can hold: \\udcff is a byte that is none."""
    return name.encode("utf-8", "backslashreplace").decode()


def pasteable(command: str) -> str | None:
    """A command with words of shlex.quote(), so that it can be pasted as shown: $'\\xff.dat'.

    None where it names bytes that are no UTF-8 outside of quotes.
    """
    try:
        told = _QUOTED.sub(_shown, command)
        told.encode("utf-8")
    except UnicodeEncodeError:
        return None
    return told


def join(words: Iterable[str]) -> str:
    """As shlex.join() does it, in characters that a terminal can show."""
    command = shlex.join(words)
    return pasteable(command) or command


def starting_file(path: Path, text: str) -> str:
    """The command that writes a file to start from where the one that was named should be."""
    if os.path.lexists(path):
        return f"ls -ld {shlex.quote(str(path))}"
    file = path if path.parent.is_dir() else Path(path.name)
    lines = shlex.join(text.splitlines())
    return f"printf '%s\\n' {lines} > {shlex.quote(str(file))}    # one to start from"


def _shown(quoted: re.Match[str]) -> str:
    text = quoted[2]
    if text is None or (text.isprintable() and "##[" not in text):
        return quoted[0]
    told = "".join(map(_escaped, text)).replace("##[", "##\\x5b")  # GitHub runs what begins so
    return f"$'{told}'"


def _escaped(char: str) -> str:
    """Bytes, as bash, zsh and ksh read them between $' and '."""
    if char == "\\":
        return "\\\\"
    if char.isprintable():
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
