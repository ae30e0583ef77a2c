# SPDX-License-Identifier: Apache-2.0
"""Files of a run folder of a stranger: plain ones, their kind, names like a wrong one.

A FIFO holds its reader for ever, and a link out of the folder puts a file of this machine into
a database that people share. What wbscope reads is refused then; other files do not matter.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from wbscope.base.errors import InputError, nearest
from wbscope.base.held_folder import (
    PACKED_NAMES,
    PERFETTO_NAMES,
    SIDECAR_NAMES,
    TEXT_NAME,
    TRACE_NAME,
)
from wbscope.base.system import file_word

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


START_BYTES = 512

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_STREAMS = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
}
# bzip2: the size of its blocks, then pi, or an end where nothing is in it.
_BZIP2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")
_TAR_MAGIC = (257, b"ustar")
_PACKET_TAG = 0x0A  # Trace.packet, protos/perfetto/trace/trace.proto
_PCAPNG_MAGIC = b"\n\r\r\n"
# Written by a machine of this byte order, and of the other.
_PERF_MAGICS = (b"PERFILE2", b"2ELIFREP")
_TEXT_CONTROLS = b"\t\n\v\f\r\x1b"


def packing(start: bytes) -> str | None:
    """How a file that begins so is packed: gzip, xz, zstd, bzip2, zip, tar; None if it is not."""
    if start.startswith(_ZIP):
        return "zip"
    name = next((name for magic, name in _STREAMS.items() if start.startswith(magic)), None)
    if name == "bzip2" and not start[4:10].startswith(_BZIP2_BLOCKS):
        name = None
    return name or ("tar" if is_tar(start) else None)


def is_tar(start: bytes) -> bool:
    """Whether a tar begins so."""
    at, magic = _TAR_MAGIC
    return start[at : at + len(magic)] == magic


def foreign(start: bytes, quoted: str) -> tuple[str, str | None] | None:
    """What a file of a known other program is, and the command that makes text of it.

    quoted  the file, as a word of a shell
    """
    if start.startswith(_PERF_MAGICS):
        told = "is a perf.data, which only perf reads; wanted the text of perf script"
        return told, f"perf script -i {quoted} --ns | wbscope report -"
    if start.startswith(_PCAPNG_MAGIC):
        return "holds packets of a network (pcapng), wanted a trace of the kernel", None
    return None


def is_packets(start: bytes) -> bool:
    """A text can start with the same byte, a newline, but has no other control characters."""
    if start[:1] != bytes([_PACKET_TAG]) or start.startswith(_PCAPNG_MAGIC):
        return False
    return any(byte < 0x20 and byte not in _TEXT_CONTROLS for byte in start)


IsRun = Callable[[Path], bool]

_SHOWN = 8
# Of a folder with more no one is looked for.
_MOST_ENTRIES = 2_000


def report_of(path: Path) -> str:
    """The command that reads this run, whatever was wanted of it."""
    return f"wbscope report {shlex.quote(run_word(path))}"


def run_word(path: Path) -> str:
    """What names this run on a command line; stdin stays what it is."""
    return "-" if str(path) == "-" else file_word(path)


def runs_among(folder: Path, names: Sequence[str], is_run: IsRun) -> list[str]:
    """The entries of a folder that are runs."""
    if len(names) > _MOST_ENTRIES:
        return []
    return [name for name in names if not name.startswith(".") and is_run(folder / name)]


def no_such_file(text: str, is_run: IsRun) -> InputError:
    """With what is like it in the same folder, or what a pattern in quotes would have matched."""
    if re.match(r"(?:https?|ftp)://.", text):
        return InputError(
            "no-such-file",
            text,
            "is an address, wanted a run folder, a trace or a .db",
            fix=f"curl -L {shlex.quote(text)} | wbscope report -",
        )
    path = Path(text)
    folder = path.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    near = [folder / name for name in _like(path.name, folder)] if folder == path.parent else []
    runs = [one for one in near if is_run(one)]
    told = "does not exist, wanted a run folder, a trace or a .db"
    if any(sign in path.name for sign in "*?["):
        met = any(fnmatchcase(one.name, path.name) for one in near)
        told = "is in quotes, so no shell put names for it" if met else "matches no file"
    return InputError(
        "no-such-file",
        text,
        told,
        have=", ".join(map(str, (runs or near)[:_SHOWN])) or None,
        fix=report_of(runs[0]) if runs else f"ls {shlex.quote(str(folder))}",
    )


def _like(name: str, folder: Path) -> list[str]:
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []
    if len(names) > _MOST_ENTRIES:
        return []
    return [one for one in names if fnmatchcase(one, name)] or nearest(name, names)
