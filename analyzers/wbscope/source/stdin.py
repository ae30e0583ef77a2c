# SPDX-License-Identifier: Apache-2.0
"""A run that is read but once: kept in a private file until the command ends."""

from __future__ import annotations

import atexit
import hashlib
import shlex
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from wbscope.base.cache import scratch_folder
from wbscope.base.errors import InputError, SetupError, UsageError
from wbscope.source.archives import MOST_BYTES
from wbscope.source.plain_files import START_BYTES, foreign, is_packets, open_plain, packing

_NAME = "stdin"
_CHUNK = 1 << 20
_HEAD_BYTES = 4 << 20  # of ingest/src/text/text_reader.cc
_MAGICS = (b"SQLite format 3\0", b"\x17\x08\x44tracing")
# Random bytes have a tenth of these, text of any encoding none; NUL is what a crash leaves.
_CONTROLS = bytes(byte for byte in range(1, 32) if byte not in b"\t\n\v\f\r\x1b")
_MOST_CONTROLS_RATIO = 0.03
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
        _piped = Piped(path, _spool(path, sys.stdin.buffer, "-", "stdin"))
        if path.stat().st_size == 0:
            raise InputError("not-a-run", "-", "stdin is empty, wanted a trace", fix=_FIX)
    return _piped


def read_unsized(source: Path) -> Piped:
    """All of a file of the kernel, such as tracefs' trace, whose size is 0 until it is read.

    Raises: OSError, InputError for too much, SetupError without room.
    """
    path = _open.enter_context(scratch_folder()) / source.name
    with open(source, "rb", opener=open_plain) as file:
        return Piped(path, _spool(path, file, str(source), "it"))


def _read(source: BinaryIO, subject: str) -> bytes:
    """Raises: InputError."""
    try:
        return source.read(_CHUNK)
    except OSError as error:
        raise InputError(
            "cannot-read",
            subject,
            f"cannot be read: {error.strerror or error}",
            fix="name a trace or a run folder that you can read",
        ) from error


def _may_be_run(head: bytes) -> bool:
    """Whether what begins so can be one: each line of an event has a colon, and no text is binary.

    As much as the ingester looks at before it takes a text for none.
    """
    if head.startswith(_MAGICS) or packing(head) or is_packets(head[:START_BYTES]):
        return True
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return b":" in head and controls <= _MOST_CONTROLS_RATIO * len(head)


def _spool(path: Path, source: BinaryIO, subject: str, name: str) -> str:
    digest = hashlib.sha256()
    size = 0
    try:
        with path.open("xb") as file:
            head = b""
            while chunk := _read(source, subject):
                if size == 0 and (found := foreign(chunk[:START_BYTES], shlex.quote(subject))):
                    raise InputError("not-a-run", subject, found[0], fix=found[1])
                size += len(chunk)
                if size - len(chunk) < _HEAD_BYTES <= size and not _may_be_run(head + chunk):
                    raise InputError(
                        "not-a-run",
                        subject,
                        f"{name} begins with {_HEAD_BYTES >> 20} MiB of what is no trace",
                        effect="the rest of it was not read",
                        fix=_FIX,
                    )
                head = head + chunk if size < _HEAD_BYTES else b""
                if size > MOST_BYTES:
                    raise InputError(
                        "too-large",
                        subject,
                        f"{name} has more than {MOST_BYTES >> 30} GiB",
                        effect="nothing of it was used",
                        fix="save it to a file, and name that",
                    )
                digest.update(chunk)
                file.write(chunk)
    except OSError as error:
        raise SetupError(
            "cannot-write",
            subject,
            f"{name} cannot be kept in {path.parent.parent}: {error.strerror or error}",
            fix="export WBSCOPE_CACHE_DIR=FOLDER    # one with room",
        ) from error
    return digest.hexdigest()
