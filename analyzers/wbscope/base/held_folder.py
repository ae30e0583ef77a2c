# SPDX-License-Identifier: Apache-2.0
"""Folders of a run: held open while files in them are replaced, and which files are inputs.

Who may write to the folder above it can rename it at any moment, and leave a link there or a
folder of their own. What goes through the open folder does not meet them.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHER = "another program has put something in the place of its folder"
_MOST_TEXT = 16 << 20


class HeldFolder:
    """Until it is closed.

    path    as it was called when it was opened
    inside  a name of it for this process, and for those of this user that it starts, for as long
            as it is open; where there is no /proc, the path
    """

    def __init__(self, path: Path) -> None:
        """Raises: OSError for a link, and for what is no folder."""
        self.path = path
        self._number = os.open(path, _OPEN)
        # Of a thread that ends the command while another one is done with the folder.
        self._lock = threading.Lock()
        inside = Path(f"/proc/{os.getpid()}/fd/{self._number}")
        self.inside = inside if self._is_at(inside, follow=True) else path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            if self._number >= 0:
                os.close(self._number)
                self._number = -1

    def is_in_place(self) -> bool:
        """Whether its path still leads to it, and not through a link."""
        return self._is_at(self.path, follow=False)

    def check_in_place(self) -> None:
        """Raises: OSError."""
        if not self.is_in_place():
            raise OSError(errno.ESTALE, _OTHER, str(self.path))

    def check_own(self) -> None:
        """Raises: PermissionError where it is another user's."""
        owner = os.fstat(self._number).st_uid
        # Root has another number on a network, and all have one on a memory stick.
        if owner != os.geteuid() and owner != self._uid_there():
            raise PermissionError(errno.EPERM, f"belongs to uid {owner}", str(self.path))

    def check_closed(self) -> None:
        """Raises: PermissionError where another user can write to it, or has made it."""
        self.check_own()
        mode = stat.S_IMODE(os.fstat(self._number).st_mode)
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(
                errno.EPERM, f"can be written by others (mode {mode:04o})", str(self.path)
            )

    def check_new(self) -> None:
        """Raises: OSError where it is not the one that this user has just made."""
        self.check_own()
        if self.names():
            raise OSError(errno.ENOTEMPTY, _OTHER, str(self.path))

    def names(self) -> list[str]:
        return os.listdir(self._number)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """A file in it, through no link.  Raises: OSError."""
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=self._number)

    def read_text(self, name: str) -> str:
        """Of a plain file.  Raises: OSError."""

        def opener(name: str, _flags: int) -> int:
            return self.open(name, os.O_RDONLY | os.O_NONBLOCK)

        with open(name, encoding="utf-8", errors="replace", opener=opener) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "is no file", name)
            return file.read(_MOST_TEXT)

    def stat(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._number, follow_symlinks=False)

    def unlink(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._number)

    def remove(self, last: str | None = None) -> None:
        """With all that is in it; errors are not told. `last` is what a kill leaves to the end."""
        with self._lock, suppress(OSError):
            if self._number < 0:
                return
            for name in self.names():
                if name == last:
                    continue
                if stat.S_ISDIR(self.stat(name).st_mode):
                    shutil.rmtree(name, dir_fd=self._number)
                else:
                    self.unlink(name)
            if last is not None:
                self.unlink(last)
            if self.is_in_place():
                os.rmdir(self.path)  # takes no link

    def _is_at(self, path: Path, *, follow: bool) -> bool:
        try:
            there = os.stat(path, follow_symlinks=follow)
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self._number))

    def _uid_there(self) -> int | None:
        """Who owns a file that this process makes in it."""
        name = f".wbscope-{secrets.token_hex(8)}"
        try:
            made = self.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except OSError:
            return None
        try:
            return os.fstat(made).st_uid
        finally:
            os.close(made)
            self.unlink(name)


def remove_own(path: Path) -> None:
    """A folder of this user with all that is in it; another's stays, errors are not told."""
    with suppress(OSError), HeldFolder(path) as folder:
        folder.check_own()
        folder.remove()


TRACE_NAME = "trace.dat"
TEXT_NAME = "trace.txt"
PERFETTO_NAMES = (
    "trace.pftrace",
    "trace.perfetto-trace",
    "trace.pftrace.gz",
    "trace.perfetto-trace.gz",
)
# A trace that was packed to save room, beside the files of its run.
PACKED_NAMES = tuple(
    f"{name}.{end}" for name in (TRACE_NAME, TEXT_NAME) for end in ("gz", "xz", "zst", "bz2")
)
# What is_sidecar() of ingest/src/sidecar/sidecars.cc names; a test compares the two.
_STATES = ("vmstat", "meminfo", "zoneinfo", "block", "bdi", "psi")
# Those that `record` writes; the others are put beside them by a person.
RECORDED_NAMES = (
    *(f"{name}.{when}" for name in _STATES for when in ("before", "after", "samples")),
    *("wb.samples", "cgroup.samples", "task_io", "recorder_tasks"),
    *("meminfo", "zoneinfo", "cgroups", "fio.json", "uname", "meta.json"),
    *("mounts", "bdis", "sysctls", "swaps", "devices", "stacks", "kernel-command-line"),
)
SIDECAR_NAMES = (
    *RECORDED_NAMES,
    *("ls-files", "session", "perf-stat.txt", "perf-stat.json", "time.txt", "ops.txt"),
    "vmstat.txt",
)
# Perfetto traces are read where there is no trace.dat: beside one they may be made of it.
_READ = frozenset((TRACE_NAME, TEXT_NAME, *PACKED_NAMES, *SIDECAR_NAMES))


def is_read(output: Path, given: Path) -> bool:
    """Whether this file is what was given, or what a run is read from in a folder that was given.

    Such a folder is a run, or holds runs in folders of their own.
    """
    try:
        if given.is_dir():
            return any(output.samefile(path) for path in _read_in(given))
        return given.samefile(output)
    except OSError:
        return False  # what is given and not there is told of by who reads it


def _read_in(folder: Path) -> Iterator[Path]:
    """The files that runs are read from, of a run folder or of a folder of runs."""
    inside = sorted(folder.iterdir())
    yield from _of_run(inside)
    for path in inside:
        if path.is_dir() and not path.name.startswith("."):
            with suppress(OSError):  # whoever reads it tells why it cannot
                yield from _of_run(sorted(path.iterdir()))


def _of_run(paths: Sequence[Path]) -> Iterator[Path]:
    """Databases are read where there is no trace, which they may be made of."""
    names = {path.name for path in paths}
    read = _READ if TRACE_NAME in names else _READ.union(PERFETTO_NAMES)
    has_trace = not names.isdisjoint((TRACE_NAME, TEXT_NAME, *PACKED_NAMES, *PERFETTO_NAMES))
    for path in paths:
        is_database = path.suffix == ".db" and not has_trace
        if (path.name in read or is_database) and path.is_file():
            yield path
