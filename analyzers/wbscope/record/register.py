# SPDX-License-Identifier: Apache-2.0
"""What is to be recorded, the register of recordings that go on, and files past the page cache.

Files are written past the page cache: a task that makes pages dirty is held in
balance_dirty_pages() while the machine is over its dirty limit, whichever disk is the slow one:
also a recorder whose own disk is fast. Direct writes make no page dirty. Where a file system
refuses them (tmpfs before 6.6, some FUSE) a file is written as any other; tmpfs holds nobody.
Source: mm/page-writeback.c; open(2), O_DIRECT.

A recording that changes the machine has an entry in the register, which its recorder
keeps locked (flock).  An entry without a lock is of a recorder that was killed: whoever
finds it puts everything back.  Entries do not outlive a boot, nor do traces and sysctls.
What they say is done, so the folder must be this user's own and closed to writers.
"""

from __future__ import annotations

import errno
import fcntl
import json
import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from wbscope.base.errors import Argument, Phrase, SetupError
from wbscope.base.held_folder import HeldFolder

# Alignment of place, length and memory: what every disk takes, but for those of larger sectors.
_BLOCK_BYTES = 1 << 12
_CHUNK_BYTES = 1 << 20
_COPY_BYTES = 1 << 24
_REFUSED = (errno.EINVAL, errno.EOPNOTSUPP)
# ioctl_ficlonerange(2), as all but a few architectures number it.
_FICLONERANGE = 0x4020940D


def open_direct(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open for direct reads and writes where the file system has them; no link is followed.

    Raises: OSError.
    """
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags | os.O_DIRECT, mode)
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
    if flags & os.O_EXCL:  # the kernel has made it before it refused it
        path.unlink(missing_ok=True)
    return os.open(path, flags, mode)


def is_direct(number: int) -> bool:
    return bool(fcntl.fcntl(number, fcntl.F_GETFL) & os.O_DIRECT)


def go_plain(number: int, error: OSError) -> None:
    """After a direct read or write that was refused: the next one is none.

    Raises: the error, when that was not why.
    """
    if error.errno not in _REFUSED or not is_direct(number):
        raise error
    fcntl.fcntl(number, fcntl.F_SETFL, fcntl.fcntl(number, fcntl.F_GETFL) & ~os.O_DIRECT)


def save(path: Path, content: str | bytes) -> None:
    """There whole, as it was or as it is now.  Raises: OSError."""
    data = content if isinstance(content, bytes) else content.encode(errors="surrogateescape")
    part = path.with_name(f".{path.name.lstrip('.')}.part")
    try:
        with DirectFile(part) as file:
            file.append(data)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def cut_zeros(path: Path) -> None:
    """The end of a text file that nobody closed; one with nothing else goes.  Raises: OSError."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(size - _BLOCK_BYTES, 0))
        zeros = len(end := file.read()) - len(end.rstrip(b"\0"))
    if zeros == size:
        path.unlink()
    elif zeros:
        os.truncate(path, size - zeros)


class DirectFile:
    """Appends.  Up to its close the file may have zeros behind what was appended."""

    def __init__(self, path: Path, *, is_new: bool = True, size: int | None = None) -> None:
        """`size`: append there, whatever is behind; else at the end."""
        flags = os.O_RDWR | os.O_CREAT
        if is_new:
            path.unlink(missing_ok=True)
            flags |= os.O_EXCL
        self._number = open_direct(path, flags)
        self._memory = mmap.mmap(-1, _CHUNK_BYTES)  # is aligned
        try:
            size = os.fstat(self._number).st_size if size is None else size
            self._at = size // _BLOCK_BYTES * _BLOCK_BYTES
            self._tail = self._read(self._at)[: size - self._at]  # behind the last whole block
        except BaseException:
            os.close(self._number)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: object, _where: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.leave()

    @property
    def size(self) -> int:
        return self._at + len(self._tail)

    def append(self, data: bytes) -> None:
        """All of it; after an OSError none of it, and it can be tried again."""
        data = self._tail + data
        for start in range(0, len(data), _CHUNK_BYTES):
            self._write(data[start : start + _CHUNK_BYTES], self._at + start)
        whole = len(data) // _BLOCK_BYTES * _BLOCK_BYTES
        self._at, self._tail = self._at + whole, data[whole:]

    def append_file(self, source: Path, count: int) -> None:
        """Its first bytes: the blocks are shared where the file system can."""
        if self._clone(source, count):
            return
        if not is_direct(self._number) or self._tail or count % _BLOCK_BYTES:
            self._copy(source, count)
            return
        number = open_direct(source, os.O_RDONLY)
        try:
            done = 0
            while done < count:
                wanted = min(_CHUNK_BYTES, count - done)
                moved = self._read_into(number, done, wanted)
                if moved < wanted:
                    raise OSError(None, f"{source} is shorter than it was")
                self._put(wanted, self._at + done)
                done += wanted
        finally:
            os.close(number)
        self._at += count

    def close(self) -> None:
        """Raises: OSError, closed in any case."""
        try:
            os.ftruncate(self._number, self.size)
        finally:
            self.leave()

    def leave(self) -> None:
        """Close it as it is."""
        if self._number >= 0:
            os.close(self._number)
            self._number = -1

    def _write(self, data: bytes, at: int) -> None:
        self._memory[: len(data)] = data
        count = len(data)
        if is_direct(self._number) and (more := -count % _BLOCK_BYTES):
            self._memory[count : count + more] = bytes(more)
            count += more
        self._put(count, at)

    def _put(self, count: int, at: int) -> None:
        """What is in memory."""
        done = 0
        with memoryview(self._memory) as memory:
            while done < count:
                try:
                    with memory[done:count] as part:
                        moved = os.pwrite(self._number, part, at + done)
                except OSError as error:
                    go_plain(self._number, error)
                    continue
                if moved == 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                done += moved

    def _read(self, at: int) -> bytes:
        return self._memory[: self._read_into(self._number, at, _BLOCK_BYTES)]

    def _read_into(self, number: int, at: int, count: int) -> int:
        done = 0
        with memoryview(self._memory) as memory:
            while done < count:
                try:
                    with memory[done:count] as part:
                        moved = os.preadv(number, [part], at + done)
                except OSError as error:
                    go_plain(number, error)
                    continue
                if moved == 0:
                    break
                done += moved
        return done

    def _clone(self, source: Path, count: int) -> bool:
        if self._tail:
            return False
        with source.open("rb") as file:
            told = struct.pack("=qQQQ", file.fileno(), 0, count, self._at)
            try:
                fcntl.ioctl(self._number, _FICLONERANGE, told)
            except OSError:
                return False
        self._at += count
        return True

    def _copy(self, source: Path, count: int) -> None:
        """The kernel copies, through the page cache."""
        flags = fcntl.fcntl(self._number, fcntl.F_GETFL)
        fcntl.fcntl(self._number, fcntl.F_SETFL, flags & ~os.O_DIRECT)
        os.lseek(self._number, self.size, os.SEEK_SET)
        with source.open("rb") as file:
            done = 0
            while done < count:
                wanted = min(_COPY_BYTES, count - done)
                try:
                    moved = os.copy_file_range(file.fileno(), self._number, wanted, done)
                except OSError:
                    moved = os.sendfile(self._number, file.fileno(), done, wanted)
                if moved == 0:
                    raise OSError(None, f"{source} is shorter than it was")
                done += moved
        size = self.size + count
        self._at = size // _BLOCK_BYTES * _BLOCK_BYTES
        self._tail = self._read(self._at)[: size - self._at]


# How a recording ended, for meta.json.
COMPLETE = "complete"
INTERRUPTED = "interrupted"
NOT_WHOLE = "pages not copied"
RECORDER_KILLED = "recorder killed"
# An end after which there is nothing to keep.
DISCARD = "no command"

_SUFFIX = ".json"
# mktemp makes a folder that is this user's own and closed to others; this one goes with the boot.
_FIX = "export WBSCOPE_RUN_DIR=$(mktemp -d -p /dev/shm)"


@dataclass(frozen=True)
class Plan:
    """Everything the recorder needs; it goes to it as JSON."""

    folder: str  # private, until the run is whole
    target: str  # its name then
    tracefs: str
    instance: str
    backend: str  # tracefs or trace-cmd
    profile: str
    events: tuple[str, ...]
    clock: str
    buffer_kib: int
    interval_s: float
    command: tuple[str, ...] = ()
    force: bool = False
    probes: bool = False  # where the kernel takes them
    waits: bool = False  # likewise
    settings: dict[str, str] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)  # goes into meta.json as it is

    def pages_of(self, cpu: int) -> Path:
        """Where the pages of a CPU are copied to: where trace-cmd has them."""
        return Path(self.folder) / f"{self._pages_prefix()}{cpu}"

    def copied_pages(self) -> dict[int, Path]:
        """What there is of them."""
        prefix = self._pages_prefix()
        numbers = (
            path.name.removeprefix(prefix)
            for path in Path(self.folder).iterdir()
            if path.name.startswith(prefix)
        )
        return {int(number): self.pages_of(int(number)) for number in numbers if number.isdigit()}

    def _pages_prefix(self) -> str:
        infix = f".{self.instance}" if self.backend == "trace-cmd" else ""
        return f"trace.dat{infix}.cpu"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        values = json.loads(text)
        values["events"] = tuple(values["events"])
        values["command"] = tuple(values["command"])
        return cls(**values)


class Entry:
    """An entry that we hold the lock of."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    def write(self, plan: Plan, saved: dict[str, str], ours: dict[str, str] | None = None) -> None:
        """Before anything is changed; with what the kernel made of our values, afterwards too."""
        ours = plan.settings if ours is None else ours
        content = json.dumps({"plan": plan.to_json(), "saved": saved, "ours": ours}).encode()
        with DirectFile(self.path, is_new=False, size=0) as file:  # the one that we have locked
            file.append(content)

    def read(self) -> tuple[Plan, dict[str, str], dict[str, str]] | None:
        """The plan, what to write back, and what was set.

        None when its recorder was killed before it changed anything.
        """
        try:
            # Up to the zeros of a write that was not the last.
            content = json.loads(self.path.read_bytes().partition(b"\0")[0])
            plan = Plan.from_json(content["plan"])
            return plan, content["saved"], content.get("ours", plan.settings)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def remove(self) -> None:
        """All is as it was."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        os.close(self._lock)


def register_folder() -> Path:
    """For each user one."""
    if chosen := os.environ.get("WBSCOPE_RUN_DIR"):
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/run/wbscope")
    return Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}") / "wbscope"


def _trusted() -> Path:
    """The folder, which may not be there.  Raises: SetupError where others can write to it."""
    folder = register_folder()
    try:
        with HeldFolder(Path(os.path.realpath(folder))) as held:
            held.check_closed()
    except PermissionError as error:
        if error.errno == errno.EPERM:
            raise SetupError(
                "foreign-register",
                str(folder),
                f"{error.strerror}, wanted a folder that only uid {os.geteuid()} can write"
                " to: it says what is put back after a recorder that was killed",
                effect="nothing was read from it or written to it",
                fix=_FIX,
            ) from error
    except OSError:
        pass  # it is not there: whoever writes to it says so
    return folder


def registered() -> set[str]:
    """Instances that have an entry, dead or alive.  Raises: SetupError."""
    return {path.stem for path in _trusted().glob(f"*{_SUFFIX}")}


def open_entry(instance: str) -> Entry:
    """A new entry, locked.  Raises: SetupError where there can be none."""
    folder = register_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _locked(_trusted() / f"{instance}{_SUFFIX}")
    except OSError as error:
        raise SetupError(
            "cannot-write", str(folder), f"cannot be written: {error.strerror or error}",
            fix=_FIX,
        ) from error  # fmt: skip


def _locked(path: Path) -> Entry:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Before it was locked, somebody may have taken it for that of a dead recorder.
        if path.exists() and os.path.samestat(os.fstat(lock), os.stat(path)):
            return Entry(path, lock)
        os.close(lock)


def lock_sysctls() -> int:
    """A file that is locked until it is closed, or its process ends.

    Two recordings at a time must not change sysctls: the second would take what the first
    has set for what was there before.  Raises: SetupError when another one does.
    """
    path = _trusted() / "sysctls.lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise SetupError(
            "sysctls-in-use",
            Phrase(Argument("sysctl")),
            "another recording has changed sysctls for its time",
            fix=Phrase("wait until it has ended, or leave out ", Argument("sysctl")),
        ) from error
    return lock


def dead_entries(only: str | None = None) -> Iterator[Entry]:
    """Entries of recorders that were killed, now locked by us; `only` is an instance.

    Raises: SetupError where others can write to the register.
    """
    folder = _trusted()
    try:
        paths = sorted(folder.glob(f"{only or '*'}{_SUFFIX}"))
    except OSError:
        return
    for path in paths:
        try:
            lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = os.fstat(lock)
            if found.st_uid == os.geteuid() and os.path.samestat(found, os.lstat(path)):
                yield Entry(path, lock)
                continue
        except OSError:
            pass
        os.close(lock)
