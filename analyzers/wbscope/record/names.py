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

__all__ = ["add_names", "ended_task_names", "read_names", "reserve_names", "task_names"]

_FILE = ".names"
_ROOM_BYTES = 256 << 10  # some 8,000 tasks; more where the disk has room
_PROC = Path("/proc")


def task_names() -> dict[int, str]:
    """The name of every task that lives now."""
    names = {}
    for process in _PROC.iterdir():
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
    names: dict[int, str] = {}
    try:
        text = (tracefs / "saved_cmdlines").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return names
    for line in text.splitlines():
        tid, _, comm = line.partition(" ")
        if tid.isdigit() and comm != "<...>":
            names[int(tid)] = comm
    return names


def reserve_names(folder: Path) -> None:
    """Room on the disk: zeros after what is there."""
    with contextlib.suppress(OSError), (folder / _FILE).open("ab") as file:
        os.posix_fallocate(file.fileno(), file.tell(), _ROOM_BYTES)


def add_names(folder: Path, names: Mapping[int, str]) -> None:
    """After those that are there, whose names they replace.  Raises: OSError."""
    if not names:
        return
    path = folder / _FILE
    size = len(path.read_bytes().rstrip(b"\0")) if path.exists() else 0
    file = DirectFile(path, is_new=False, size=size)
    try:
        file.append(f"\n{json.dumps(names)}".encode())
    finally:
        file.leave()  # with its room


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
