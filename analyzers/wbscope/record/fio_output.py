# SPDX-License-Identifier: Apache-2.0
"""fio's results as JSON in the run, without a change of what the user asked fio for."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wbscope.record.past_cache import save

__all__ = ["FIO_JSON", "FioResults", "fio_results", "json_part"]

FIO_JSON = "fio.json"
# Where fio writes what it would print: the text, and the JSON after it.
_PRINTED = "fio.out"
_FORMAT, _OUTPUT = "output-format", "output"
_JSON = ("json", "json+")
_MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class FioResults:
    """What to run instead, and where its results are then.

    printed  the file is ours and has what fio would have printed
    shown    the user wants the JSON in it, too
    problem  why there can be no JSON
    """

    command: tuple[str, ...]
    output: Path | None = None
    printed: bool = False
    shown: bool = False
    problem: str | None = None
    before: tuple[int, int] | None = None

    def save(self, run: Path, show: Callable[[str], None]) -> str | None:
        """fio.json of the run, whole or not at all; returns why there is none.

        `show` is called with what fio would have printed.
        """
        output = run / _PRINTED if self.printed else self.output
        if self.problem is not None or output is None:
            return self.problem
        if not self.printed and _state(output) == self.before:
            return f"fio did not write {output}, so the run has no {FIO_JSON}"
        try:
            text = self._text(output)
            if text is None:
                return f"what fio wrote is larger than {_MOST_BYTES >> 20} MiB: no {FIO_JSON}"
        except OSError as error:
            return f"what fio wrote cannot be read ({error.strerror}): no {FIO_JSON}"
        part = json_part(text)
        if self.printed:
            show(text if part is None or self.shown else text.replace(part, "", 1))
            with contextlib.suppress(OSError):
                output.unlink()
        if part is None:
            return f"fio wrote no whole JSON, so the run has no {FIO_JSON}"
        try:
            save(run / FIO_JSON, part)
        except OSError as error:
            return f"{FIO_JSON} cannot be written: {error.strerror}"
        return None

    def _text(self, output: Path) -> str | None:
        """None when it is too long. The run is the user's by now: in it no link is followed."""
        flags = os.O_RDONLY | os.O_CLOEXEC | (os.O_NOFOLLOW if self.printed else 0)
        with open(os.open(output, flags), encoding="utf-8", errors="replace") as file:
            if os.fstat(file.fileno()).st_size > _MOST_BYTES:
                return None
            return file.read()


def fio_results(command: Sequence[str], folder: Path, cwd: Path) -> FioResults | None:
    """None for what is not fio."""
    if not command or Path(command[0]).name != "fio":
        return None
    words = tuple(command)
    formats, output = _options(words[1:])
    wants_json = any(name.strip() in _JSON for name in formats)
    if output is None and (wants_json or not formats):
        if shutil.which(words[0]) is None:
            return None
        added = [f"--{_OUTPUT}={folder / _PRINTED}"]
        if not formats:
            added.append(f"--{_FORMAT}=normal,json")
        return FioResults((words[0], *added, *words[1:]), printed=True, shown=wants_json)
    if not wants_json:
        told = ",".join(formats) or "its text"
        where = "stdout" if output is None else output
        return FioResults(
            words,
            problem=f"fio was asked for {told} on {where}: the run has no {FIO_JSON};"
            f" add --{_FORMAT}={','.join(formats) or 'normal'},json",
        )
    path = (cwd / str(output)).absolute()
    return FioResults(words, path, before=_state(path))


def _options(words: Sequence[str]) -> tuple[list[str], str | None]:
    """--output-format and --output, as --NAME=VALUE and as --NAME VALUE; the last ones count."""
    formats: list[str] = []
    output = None
    left = list(words)
    while left:
        name, equals, value = left.pop(0).partition("=")
        if not name.startswith("-"):
            continue
        name = name.lstrip("-")
        # Like getopt_long(3), fio takes the beginning of a name.
        is_format = len(name) > len(_OUTPUT) and _FORMAT.startswith(name)
        if name != _OUTPUT and not is_format:
            continue
        if not equals:
            value = left.pop(0) if left else ""
        if is_format:
            formats = value.split(",")
        else:
            output = value
    return formats, output


def json_part(text: str) -> str | None:
    """The last JSON object that begins on a line of its own; fio prints notes around it."""
    decoder = json.JSONDecoder()
    found, past = None, 0
    for start in re.finditer(r"^\{", text, re.MULTILINE):
        if start.start() < past:
            continue
        try:
            _, past = decoder.raw_decode(text, start.start())
        except ValueError:
            continue
        found = text[start.start() : past]
    return found


def _state(path: Path) -> tuple[int, int] | None:
    """Size and time of a file: another one when it was written."""
    try:
        told = path.stat()
    except OSError:
        return None
    return told.st_size, told.st_mtime_ns
