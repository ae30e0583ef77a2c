# SPDX-License-Identifier: Apache-2.0
"""Files of a run folder that are no plain files of it: somebody may have sent the folder.

A FIFO holds its reader for ever, and a link out of the folder puts a file of this machine into
a database that people share. What wbscope reads is refused then; other files do not matter.
"""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from wbscope.base.errors import InputError
from wbscope.base.runinputs import (
    PACKED_NAMES,
    PERFETTO_NAMES,
    SIDECAR_NAMES,
    TEXT_NAME,
    TRACE_NAME,
)

__all__ = ["check_folder", "first_bytes", "open_plain"]

_READ = frozenset((TRACE_NAME, TEXT_NAME, *PERFETTO_NAMES, *PACKED_NAMES, *SIDECAR_NAMES))
_KILLED_RECORDER = "trace.dat."
_KINDS = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


def check_folder(folder: Path) -> None:
    """Whether every file that is read in a run folder is a regular one of it.

    Raises: InputError that names the first that is not; OSError when the folder cannot be read.
    """
    names = sorted(entry.name for entry in folder.iterdir())
    for name in names:
        if name in _READ or name.startswith(_KILLED_RECORDER):
            path = folder / name
            if found := _strangeness(path):
                raise InputError(
                    "strange-file",
                    str(path),
                    f"is {found}; wanted a regular file",
                    effect="nothing was read or written",
                    # Never rm: it may be a device, or somebody's only link.
                    fix=shlex.join(["mv", str(path), str(path.with_name(f"aside.{name}"))])
                    + "    # and put a copy of the file that was meant in its place",
                )


def first_bytes(path: Path, count: int) -> bytes:
    """How a regular file begins, to see what it is; nothing of what cannot be read or is none."""
    try:
        with open(path, "rb", opener=open_plain) as file:
            return file.read(count) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return b""


def open_plain(path: str | Path, _flags: int = 0) -> int:
    """A descriptor to read a file of a run with. It does not wait for the writer of a FIFO.

    For open() as its opener: one that it is given, it leaves open where it is a folder's.
    Raises: OSError.
    """
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)


def _strangeness(path: Path) -> str:
    """What it is, when it is no regular file of its folder."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            target = path.resolve()
            if not target.is_relative_to(path.parent.resolve()):
                return f"a symbolic link to {target}, outside of the folder"
            mode = target.stat().st_mode
    except FileNotFoundError:  # gone, or a link to nothing in the folder
        return ""
    except (OSError, RuntimeError):
        return "a symbolic link that leads to itself"
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "")
