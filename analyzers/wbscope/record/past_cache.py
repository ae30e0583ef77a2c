# SPDX-License-Identifier: Apache-2.0
"""Files of a run, written past the page cache.

A task that makes pages dirty is held in balance_dirty_pages() while the machine is over its
dirty limit, whichever disk is the slow one: also a recorder whose own disk is fast. Direct
writes make no page dirty. Where a file system refuses them (tmpfs before 6.6, some FUSE) a file
is written as any other; tmpfs holds nobody.
Source: mm/page-writeback.c; open(2), O_DIRECT.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["DirectFile", "cut_zeros", "go_plain", "is_direct", "open_direct", "save"]

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
