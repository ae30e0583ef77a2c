# SPDX-License-Identifier: Apache-2.0
"""The bytes of a packed file, of a stranger: what unpacks it has a limit on memory.

Only here are the modules imported that this needs: most runs are not packed.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from wbscope.run.packed import START_BYTES, is_packets, packing
from wbscope.run.strange import open_plain

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["DAMAGES", "has_perfetto", "opened", "start_of", "stream_of"]

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
_CHUNK = 1 << 16
_MOST_MEMBERS = 100


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
                packed = (self._unpacker.unused_data or self._file.read(_CHUNK)).lstrip(b"\0")
                if not packed:
                    return 0
                self._unpacker = self._new()
            elif self._unpacker.needs_input:
                packed = self._file.read(_CHUNK)
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
        with io.BufferedReader(_Xz(file), _CHUNK) as stream:
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
            for member in members[:_MOST_MEMBERS]:
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
