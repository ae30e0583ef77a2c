# SPDX-License-Identifier: Apache-2.0
"""What the user calls a run: which file in it is the trace, and who reads it."""

from __future__ import annotations

import errno
import gzip
import shlex
import stat
import zipfile
import zlib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from wbscope.base.errors import InputError, SetupError, UsageError, WbscopeError
from wbscope.run.strange import check_folder, open_plain

__all__ = ["DATABASE_NAME", "Kind", "Source", "find_source"]

DATABASE_NAME = "run.db"

_TRACE_NAME = "trace.dat"
_PERFETTO_NAMES = (
    "trace.pftrace",
    "trace.perfetto-trace",
    "trace.pftrace.gz",
    "trace.perfetto-trace.gz",
)
_TEXT_NAME = "trace.txt"
# What may lie in a run folder but is no part of what was recorded.
_OUTPUT_SUFFIXES = (".csv", ".db", ".md", ".parquet", ".pftrace")

_SQLITE_MAGIC = b"SQLite format 3\0"
_GZIP_MAGIC = b"\x1f\x8b"
_TRACE_MAGIC = b"\x17\x08\x44tracing"
_ZIP_MAGIC = b"PK\x03\x04"
_PACKET_TAG = 0x0A  # Trace.packet, protos/perfetto/trace/trace.proto
_START_BYTES = 512
_MOST_MEMBERS = 100
_TEXT_CONTROLS = b"\t\n\v\f\r\x1b"


class Kind(Enum):
    """Who reads it."""

    DATABASE = "a run database"
    PERFETTO = "a Perfetto trace"
    TRACE = "a trace.dat or ftrace text: the ingester tells which"


@dataclass(frozen=True)
class Source:
    """A run that is there; its content has been looked at, not read."""

    path: Path  # as the user named it
    trace: Path  # the file that is read
    kind: Kind

    @property
    def folder(self) -> Path | None:
        """The run folder, None for a lone file."""
        return None if self.trace == self.path else self.path

    def has_formats(self) -> bool:
        """A trace.dat holds the event formats of its kernel, text does not."""
        with open(open_plain(self.trace), "rb") as file:
            return file.read(len(_TRACE_MAGIC)) == _TRACE_MAGIC

    def inputs(self) -> list[Path]:
        """Every file that the database is made from."""
        if self.folder is None:
            return [self.trace]
        others = (
            path
            for path in self.folder.iterdir()
            if path.is_file() and path != self.trace and path.suffix not in _OUTPUT_SUFFIXES
        )
        return [self.trace, *sorted(others)]


def find_source(text: str) -> Source:
    """The run that the user named.

    Raises: UsageError, InputError, SetupError when there is none, or when what is read in a
    folder is no regular file of it.
    """
    path = Path(text)
    mode = _mode(path, text)
    if stat.S_ISDIR(mode):
        trace = _trace_in_folder(path, text)
        kind = Kind.TRACE if trace.name == _TRACE_NAME else _kind(trace, str(trace))
        return Source(path, trace, kind)
    if not stat.S_ISREG(mode):
        raise InputError(
            "not-a-run",
            text,
            "is no regular file and no folder",
            fix=f"save it to a file first: cat {shlex.quote(text)} > trace",
        )
    return Source(path, path, _kind(path, text))


def _mode(path: Path, text: str) -> int:
    if not text:
        raise UsageError("no-run", "RUN", "is empty, wanted a file or folder name")
    if text == "-":
        raise UsageError(
            "no-stdin", "-", "is stdin, wanted a file or folder", fix="save it to a file first"
        )
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(
            "no-such-file",
            text,
            "does not exist, wanted a run folder, a trace or a .db",
            fix=f"ls {shlex.quote(str(path.parent))}",
        ) from error
    except (OSError, ValueError) as error:
        raise _unreadable(text, error) from error


def _trace_in_folder(path: Path, text: str) -> Path:
    """trace.dat, else the only Perfetto trace, else trace.txt."""
    try:
        check_folder(path)
        names = sorted(entry.name for entry in path.iterdir())
    except OSError as error:
        raise _unreadable(text, error) from error
    if _TRACE_NAME in names:
        return path / _TRACE_NAME
    perfetto = [name for name in _PERFETTO_NAMES if name in names]
    if len(perfetto) > 1:
        raise InputError(
            "two-traces",
            text,
            f"has {len(perfetto)} traces, wanted one",
            have=", ".join(perfetto),
            fix=f"name one of them: {shlex.quote(str(path / perfetto[0]))}",
        )
    if perfetto or _TEXT_NAME in names:
        return path / (perfetto[0] if perfetto else _TEXT_NAME)
    if DATABASE_NAME in names:
        fix = f"give {shlex.quote(str(path / DATABASE_NAME))} instead of the folder"
    elif any(name.startswith(f"{_TRACE_NAME}.cpu") for name in names):
        # A recorder that was killed; only the kernel that it ran on can tell the formats.
        formats, trace = (shlex.quote(str(path / name)) for name in ("formats.dat", _TRACE_NAME))
        fix = (
            f"on that machine, before it boots again: trace-cmd restore -c -o {formats}"
            f" && trace-cmd restore -i {formats} -o {trace} {trace}.cpu*"
        )
    else:
        fix = f"trace-cmd record -e writeback -o {shlex.quote(str(path / _TRACE_NAME))} COMMAND"
    raise InputError(
        "no-trace",
        text,
        f"is a folder without {_TRACE_NAME}, {_PERFETTO_NAMES[0]} or {_TEXT_NAME}",
        have=", ".join(names[:8]) or "an empty folder",
        fix=fix,
    )


def _kind(path: Path, text: str) -> Kind:
    """By content: suffixes lie."""
    try:
        # It may have become another file since it was looked at.
        with open(open_plain(path), "rb") as file:
            start = file.read(_START_BYTES) or b""
    except OSError as error:
        raise _unreadable(text, error) from error
    if not start:
        raise InputError(
            "not-a-run",
            text,
            "is an empty file",
            fix="trace-cmd record -e writeback -o trace.dat COMMAND",
        )
    if start.startswith(_SQLITE_MAGIC):
        return Kind.DATABASE
    if start.startswith(_GZIP_MAGIC):
        start = _inflated(path)
    if start.startswith(_ZIP_MAGIC):
        _check_archive(path, text)
        return Kind.PERFETTO
    return Kind.PERFETTO if _is_packets(start) else Kind.TRACE


def _is_packets(start: bytes) -> bool:
    """A text can start with the same byte, a newline, but has no other control characters."""
    if start[:1] != bytes([_PACKET_TAG]):
        return False
    return any(byte < 0x20 and byte not in _TEXT_CONTROLS for byte in start)


def _check_archive(path: Path, text: str) -> None:
    """Trace processor reads Perfetto traces in a zip; what else is in one has to come out."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if not info.is_dir()]
            for member in members[:_MOST_MEMBERS]:
                with archive.open(member) as file:
                    start = file.read(_START_BYTES)
                if _is_packets(start) or start.startswith(_GZIP_MAGIC):
                    return
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return  # damaged or locked: trace processor says what is wrong with it
    if len(members) <= _MOST_MEMBERS:
        raise InputError(
            "not-a-trace",
            text,
            "is a zip archive without a Perfetto trace, wanted a trace.dat, the text of a trace"
            " or a Perfetto trace",
            have=", ".join(member.filename for member in members[:8]) or "an empty archive",
            fix=f"unzip {shlex.quote(text)}, then name the trace that was in it",
        )


def _inflated(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            return file.read(_START_BYTES)
    except (OSError, EOFError, zlib.error):
        return b""


def _unreadable(text: str, error: Exception) -> WbscopeError:
    """As the ingester has it."""
    reason = getattr(error, "strerror", None) or str(error)
    if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        return SetupError(
            "cannot-open",
            text,
            f"cannot be opened: {reason}",
            fix="close other programs or raise the limit (ulimit -n)",
        )
    return InputError(
        "cannot-read",
        text,
        f"cannot be read: {reason}",
        fix="name a trace or a run folder that you can read",
    )
