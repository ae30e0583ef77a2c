# SPDX-License-Identifier: Apache-2.0
"""A run that comes on stdin: kept in a private file until the command ends."""

from __future__ import annotations

import atexit
import hashlib
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.cache import scratch_folder
from wbscope.base.errors import InputError, SetupError, UsageError
from wbscope.run.archives import MOST_BYTES

__all__ = ["Piped", "read_stdin"]

_NAME = "stdin"
_CHUNK = 1 << 20
_FIX = "ssh HOST cat trace.dat | wbscope report -"


@dataclass(frozen=True)
class Piped:
    """The file, and the SHA-256 of what is in it."""

    path: Path
    digest: str


_piped: Piped | None = None
_open = ExitStack()
# A signal that ends the command at once removes private folders by itself.
atexit.register(_open.close)


def read_stdin() -> Piped:
    """All of stdin, the first time; later the same.

    Raises: UsageError for a terminal, InputError for nothing or too much, SetupError without room.
    """
    global _piped
    if _piped is None:
        if sys.stdin is None or sys.stdin.closed:
            raise UsageError("no-stdin", "-", "is stdin, which is closed", fix=_FIX)
        if sys.stdin.isatty():
            raise UsageError("no-stdin", "-", "is stdin, which is a terminal", fix=_FIX)
        path = _open.enter_context(scratch_folder()) / _NAME
        _piped = Piped(path, _spool(path))
    return _piped


def _spool(path: Path) -> str:
    digest = hashlib.sha256()
    size = 0
    try:
        with path.open("xb") as file:
            while chunk := sys.stdin.buffer.read(_CHUNK):
                size += len(chunk)
                if size > MOST_BYTES:
                    raise InputError(
                        "too-large",
                        "-",
                        f"stdin has more than {MOST_BYTES >> 30} GiB",
                        effect="nothing of it was used",
                        fix="save it to a file, and name that",
                    )
                digest.update(chunk)
                file.write(chunk)
    except OSError as error:
        raise SetupError(
            "cannot-write",
            "-",
            f"stdin cannot be kept in {path.parent.parent}: {error.strerror or error}",
            fix="export WBSCOPE_CACHE_DIR=FOLDER    # one with room",
        ) from error
    if size == 0:
        raise InputError("not-a-run", "-", "stdin is empty, wanted a trace", fix=_FIX)
    return digest.hexdigest()
