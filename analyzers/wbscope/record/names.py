# SPDX-License-Identifier: Apache-2.0
"""Names of tasks: what the kernel knows, and the file that keeps them until the trace is written.

The file has room from the start: of a recording that fills its disk, the pages that were
copied are of use only with the names.  Each add_names() adds a line, so that one cut short
spoils no other.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from wbscope.record.past_cache import DirectFile

__all__ = [
    "EndedNames",
    "NameFile",
    "add_names",
    "ended_task_names",
    "read_names",
    "reserve_names",
    "task_names",
]

_FILE = ".names"
_ROOM_BYTES = 256 << 10  # some 8,000 tasks; more where the disk has room
_PROC = Path("/proc")


def task_names(proc: Path = _PROC) -> dict[int, str]:
    """The name of every task that lives now."""
    names = {}
    for process in proc.iterdir():
        if not process.name.isdigit():
            continue
        for task in _tasks(process):
            with contextlib.suppress(OSError):  # it ended, and others of its process go on
                names[int(task.name)] = (task / "comm").read_text(errors="replace").rstrip("\n")
    return names


def _tasks(process: Path) -> list[Path]:
    try:
        return list((process / "task").iterdir())
    except OSError:
        return []  # it ended


def ended_task_names(tracefs: Path) -> dict[int, str]:
    """The kernel's own list has the names of tasks that ended, but of few at a time."""
    return EndedNames(tracefs).read()


class EndedNames:
    """That list, read again and again: what is new in it.

    It has 128 names, in newer kernels 6,500 and more.
    A task's name is what it was at an event: that of the shell that became dd is there for a while.
    """

    def __init__(self, tracefs: Path) -> None:
        self._path = tracefs / "saved_cmdlines"
        self._text = b""
        self._lines: frozenset[bytes] = frozenset()

    def read(self) -> dict[int, str]:
        names: dict[int, str] = {}
        try:
            text = self._path.read_bytes()
        except OSError:
            return names
        if text == self._text:
            return names
        lines = text.split(b"\n")
        for line in lines:
            if line in self._lines:
                continue
            tid, _, comm = line.partition(b" ")
            if tid.isdigit() and comm != b"<...>":
                names[int(tid)] = comm.decode("utf-8", "surrogateescape")
        self._text, self._lines = text, frozenset(lines)
        return names


def reserve_names(folder: Path) -> None:
    """Room on the disk: zeros after what is there."""
    with contextlib.suppress(OSError), (folder / _FILE).open("ab") as file:
        os.posix_fallocate(file.fileno(), file.tell(), _ROOM_BYTES)


def add_names(folder: Path, names: Mapping[int, str]) -> None:
    """After those that are there, whose names they replace.  Raises: OSError."""
    file = NameFile(folder)
    try:
        file.add(names)
    finally:
        file.leave()


class NameFile:
    """The file, of one that adds to it often: nobody else does meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._file: DirectFile | None = None

    def add(self, names: Mapping[int, str]) -> None:
        """After those that are there, whose names they replace.

        Raises: OSError; add them again then.
        """
        if not names:
            return
        if self._file is None:
            path = self._path
            size = len(path.read_bytes().rstrip(b"\0")) if path.exists() else 0
            self._file = DirectFile(path, is_new=False, size=size)
        # Behind it may be the rest of a longer one, for which there was no room.
        self._file.append(f"\n{json.dumps(names)}\n".encode())

    def leave(self) -> None:
        """With its room; add() opens it again."""
        if self._file is not None:
            self._file.leave()
            self._file = None


def read_names(folder: Path) -> dict[int, str]:
    """None of them when the file is not there."""
    names: dict[int, str] = {}
    try:
        lines = (folder / _FILE).read_bytes().rstrip(b"\0").splitlines()
    except OSError:
        return names
    for line in lines:
        with contextlib.suppress(ValueError, AttributeError):  # cut short
            names |= {int(tid): str(comm) for tid, comm in json.loads(line).items()}
    return names
