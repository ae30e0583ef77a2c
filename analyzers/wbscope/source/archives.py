# SPDX-License-Identifier: Apache-2.0
"""Packed files and archives of strangers: unpacked with limits, kept in the cache.

Only here are the modules imported that this needs: most runs are not packed.

An archive is a stranger's file. Members are written by us, one after the other, as plain
files below one folder; links, devices and names that lead out of it are refused, and so
is what grows beyond any run. (tarfile's `data` filter, which Python 3.11.2 of Debian 12
lacks, leaves links in.)
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import shlex
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, Self, cast

from wbscope.base.cache import scratch_folder
from wbscope.base.errors import InputError, SetupError
from wbscope.source.plain_files import (
    START_BYTES,
    first_bytes,
    is_packets,
    is_tar,
    open_plain,
    packing,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


# What a damaged file raises, whoever unpacks it.
DAMAGES = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    zstd.ZstdError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)

# xz -9 takes 65 MiB; zstd's own limit is 128 MiB.
_XZ_MEMORY_BYTES = 256 << 20
_UNPACKED_CHUNK = 1 << 16
_UNPACKED_MOST_MEMBERS = 100


class _Xz(io.RawIOBase):
    """LZMAFile, which takes no limit on memory, for one stream or several."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._unpacker = self._new()
        self._begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            packed = b""
            if self._unpacker.eof:
                packed = (self._unpacker.unused_data or self._file.read(_UNPACKED_CHUNK)).lstrip(
                    b"\0"
                )
                if not packed:
                    return 0
                self._unpacker = self._new()
            elif self._unpacker.needs_input:
                packed = self._file.read(_UNPACKED_CHUNK)
                if not packed:
                    raise EOFError("it ends too early")
            data = self._unpacker.decompress(packed, len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)

    @staticmethod
    def _new() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file that one of the streams packs, or of one that none does.

    Raises: OSError, DAMAGES, also on reading.
    """
    with open(path, "rb", opener=open_plain) as file:
        kind = packing(file.read(START_BYTES))
        file.seek(0)
        with stream_of(file, kind) as stream:
            yield stream


@contextmanager
def stream_of(file: BinaryIO, kind: str | None) -> Iterator[BinaryIO]:
    """What is packed in it; of a pipe, too.  Raises: as opened()."""
    if kind == "gzip":
        with gzip.GzipFile(fileobj=file) as stream:
            yield cast(BinaryIO, stream)
    elif kind == "bzip2":
        with bz2.BZ2File(file) as stream:
            yield cast(BinaryIO, stream)
    elif kind == "xz":
        with io.BufferedReader(_Xz(file), _UNPACKED_CHUNK) as stream:
            yield cast(BinaryIO, stream)
    elif kind == "zstd":
        with zstd.ZstdFile(file) as stream:
            yield cast(BinaryIO, stream)
    else:
        yield file


def start_of(path: Path) -> bytes:
    """How the bytes of a packed stream begin; nothing of one that is damaged there."""
    try:
        with opened(path) as stream:
            return stream.read(START_BYTES)
    except (OSError, *DAMAGES):
        return b""


def has_perfetto(path: Path) -> bool:
    """Whether a zip has a Perfetto trace: trace processor reads those in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if not info.is_dir()]
            for member in members[:_UNPACKED_MOST_MEMBERS]:
                with archive.open(member) as file:
                    start = file.read(START_BYTES)
                    if packing(start) == "gzip":
                        file.seek(0)
                        start = gzip.GzipFile(fileobj=file).read(START_BYTES)
                if is_packets(start):
                    return True
    except (OSError, *DAMAGES):
        pass
    return False


MOST_BYTES = 16 << 30
_MOST_MEMBERS = 20_000
_MOST_FOLDERS = 100  # one in the other
# Text of /proc shrinks to a 50th at most; a bomb to less than a 1000th.
_MOST_RATIO = 200
_FREE_BYTES = 64 << 20  # so much is no bomb, whatever the ratio
_CHUNK = 1 << 20
# What describes one member: long names, times and attributes, 64 KiB at most each.
_MOST_HEADER_BYTES = 1 << 20
# Errors that are the archive's: a damaged one, a folder where a file is, a name too long.
_OF_NAMES = (None, errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG)
# To see what is wrong with it.
_TESTS = {"zip": "unzip -t", "gzip": "gzip -t", "xz": "xz -t", "zstd": "zstd -t"}
_TESTS |= {"bzip2": "bzip2 -t", "tar": "tar -tf"}


class _Member(tarfile.TarInfo):
    """tarfile takes a header that is damaged or not there for the end of the archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"it is cut off or damaged: {error}") from error


@dataclass
class Budget:
    """What was written so far, of a file of this size; without limits of any."""

    subject: str
    most: int
    packed: int = 0  # of a pipe: what was read of it so far
    limited: bool = True
    fix: str = "unpack it yourself, and give the folder, if you trust it"
    members: int = 0
    written: int = 0

    def member(self) -> None:
        self.members += 1
        if self.members > _MOST_MEMBERS:
            raise self.too_much(f"has more than {_MOST_MEMBERS} members")

    def add(self, size: int, name: str) -> None:
        self.written += size
        if not self.limited:
            return
        if self.written > self.most:
            raise self.too_much(f"is more than {self.most >> 30} GiB unpacked, at {name}")
        if self.written > max(_FREE_BYTES, _MOST_RATIO * self.packed):
            told = f"grows to more than {_MOST_RATIO} times its size, at {name}"
            raise self.too_much(told)

    def too_much(self, message: str) -> InputError:
        return InputError(
            "too-large",
            self.subject,
            f"{message}, wanted a trace or an archive of runs",
            effect="nothing of it was used",
            fix=self.fix,
        )


class _Counted(io.RawIOBase):
    """A file or a pipe; what is read of it is what the budget is measured by."""

    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        self._file = file
        self._budget = budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._budget.packed += len(data)
        return len(data)


class _Headers:
    """The bytes of a tar. tarfile reads what describes a member as a whole, however long it is."""

    def __init__(self, stream: IO[bytes], budget: Budget) -> None:
        self._stream = stream
        self._budget = budget
        self._in_header = True
        self._left = _MOST_HEADER_BYTES

    def read(self, size: int) -> bytes:
        """Raises: InputError where headers go on and on."""
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0 and self._in_header and self._budget.limited:
            most = f"{_MOST_HEADER_BYTES >> 20} MiB"
            at = f"member {self._budget.members + 1}"
            raise self._budget.too_much(f"has headers of more than {most}, at {at}")
        return data

    def next(self, archive: tarfile.TarFile) -> tarfile.TarInfo | None:
        """The next member; what is in it may be as long as the budget lets it."""
        self._left = _MOST_HEADER_BYTES
        self._in_header = True
        try:
            return archive.next()
        finally:
            self._in_header = False


def is_archive(path: Path) -> bool:
    """By content: a zip without a Perfetto trace, a tar, packed or not."""
    start = first_bytes(path, START_BYTES)
    kind = packing(start)
    if kind == "zip":
        return not has_perfetto(path)
    return is_tar(start) or (kind is not None and is_tar(start_of(path)))


@contextmanager
def unpacked(path: Path, subject: str = "", *, limited: bool = True) -> Iterator[Path]:
    """A folder with what is in the file, as long as it is read.

    A folder that holds nothing but one other folder is that one; of a packed trace there is a
    file of its name. `subject` is what errors call the file.

    Raises: InputError that names the member that is not as it should be.
    """
    subject = subject or str(path)
    with scratch_folder() as folder:
        inside = folder / "runs"
        inside.mkdir()
        budget = Budget(subject, MOST_BYTES, path.stat().st_size, limited)
        kind = packing(first_bytes(path, START_BYTES)) or "tar"
        try:
            if kind == "zip":
                _unpack_zip(path, inside, budget)
            elif is_archive(path):
                with opened(path) as stream:
                    _unpack_stream(stream, inside, budget)
            else:
                budget.member()
                with opened(path) as source:
                    _write(source, inside / _plain_name(path), budget, subject)
        except (OSError, *DAMAGES) as error:
            if isinstance(error, OSError) and error.errno not in _OF_NAMES:
                raise SetupError(
                    "cannot-unpack",
                    subject,
                    f"cannot be unpacked into {folder}: {error.strerror}",
                    fix=f"df -h {shlex.quote(str(folder.parent))}",
                ) from error
            raise InputError(
                "damaged-archive",
                subject,
                f"cannot be unpacked: {error or type(error).__name__}",
                at=f"member {budget.members}",
                effect="nothing of it was used",
                fix=f"{_TESTS[kind]} {shlex.quote(subject)}",
            ) from error
        yield _only_folder(inside)


def _only_folder(folder: Path) -> Path:
    while True:
        entries = list(folder.iterdir())
        if len(entries) != 1 or not entries[0].is_dir():
            return folder
        folder = entries[0]


def _plain_name(path: Path) -> str:
    """trace.dat of trace.dat.gz; a name without an end that tells how it is packed stays."""
    return path.stem if path.suffix in (".gz", ".xz", ".zst", ".bz2") else path.name


def unpack_tar(archive: IO[bytes], folder: Path, budget: Budget) -> None:
    """Of a file or a pipe, packed or not, as files and folders below the folder.

    Raises: InputError for what is refused; OSError, DAMAGES.
    """
    with io.BufferedReader(_Counted(archive, budget), _CHUNK) as file:
        kind = packing(file.peek(START_BYTES)[:START_BYTES])
        with stream_of(file, kind) as stream:
            _unpack_stream(stream, folder, budget)


def _unpack_stream(stream: IO[bytes], folder: Path, budget: Budget) -> None:
    headers = _Headers(stream, budget)
    with tarfile.open(fileobj=cast(IO[bytes], headers), mode="r|", tarinfo=_Member) as archive:
        _unpack_members(archive, headers, folder, budget)


def _unpack_members(
    archive: tarfile.TarFile, headers: _Headers, folder: Path, budget: Budget
) -> None:
    while (member := headers.next(archive)) is not None:
        budget.member()
        if member.isdir():
            _place(folder, member.name, budget.subject).mkdir(parents=True, exist_ok=True)
            continue
        if not member.isreg():
            kind = "a link" if member.islnk() or member.issym() else "no regular file"
            raise _refused(budget.subject, member.name, f"is {kind}, wanted files and folders")
        source = archive.extractfile(member)
        if source is not None:
            _write(source, _place(folder, member.name, budget.subject), budget, member.name)


def _unpack_zip(path: Path, folder: Path, budget: Budget) -> None:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            budget.member()
            mode = member.external_attr >> 16
            if mode and (mode & 0o170000) not in (0, 0o100000, 0o040000):
                told = "is a link or a device, wanted files and folders"
                raise _refused(budget.subject, member.filename, told)
            place = _place(folder, member.filename, budget.subject)
            if member.is_dir():
                place.mkdir(parents=True, exist_ok=True)
                continue
            if member.flag_bits & 1:
                raise _refused(budget.subject, member.filename, "has a password")
            with archive.open(member) as source:
                _write(source, place, budget, member.filename)


def _place(folder: Path, name: str, subject: str) -> Path:
    """Where a member goes: always below the folder."""
    parts = [part for part in PurePosixPath(name).parts if part != "."]
    bad = not name or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name
    if len(parts) > _MOST_FOLDERS:
        told = f"lies in {len(parts) - 1} folders, wanted fewer than {_MOST_FOLDERS}"
        raise _refused(subject, f"{name[:40]}...", told)
    if bad or any(len(part.encode()) > 255 for part in parts):
        raise _refused(subject, name[:200], "has a name that leads out of the archive")
    return folder.joinpath(*parts)


def _write(source: IO[bytes], place: Path, budget: Budget, name: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        target = place.open("xb")
    except FileExistsError:
        raise _refused(budget.subject, name, "is there twice") from None
    with target:
        while chunk := source.read(_CHUNK):
            budget.add(len(chunk), name)
            target.write(chunk)


def _refused(subject: str, member: str, message: str) -> InputError:
    return InputError(
        "bad-archive",
        f"{subject}:{member}",
        message,
        effect="nothing of the archive was used",
        fix="pack the runs again: tar -czf runs.tar.gz --dereference RUNS",
    )
