# SPDX-License-Identifier: Apache-2.0
"""This process and its machine: children, current folder, names of files, small files, /proc."""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from wbscope.base.errors import SetupError


def current_folder() -> Path:
    """Raises: SetupError when it has been removed."""
    try:
        return Path(os.getcwd())
    except FileNotFoundError as error:
        raise SetupError(
            "no-cwd",
            "the current folder",
            "has been removed, and a path is relative to it",
            fix='cd "$PWD"    # where there is one of that name again; else cd to another',
        ) from error


def absolute(path: Path) -> Path:
    """The path as it is, below the current folder.  Raises: as current_folder()."""
    return path if path.is_absolute() else current_folder() / path


# What shlex.quote() makes; a quote within a word is "'".
_QUOTED = re.compile(r"""("'")|'([^']*)'""")


def as_utf8(name: str) -> str:
    """A name that a file of UTF-8 can hold: \\udcff is a byte that is none."""
    return name.encode("utf-8", "backslashreplace").decode()


def pasteable(command: str) -> str | None:
    """A command with words of shlex.quote(), so that it can be pasted as shown: $'\\xff.dat'.

    None where it names bytes that are no UTF-8 outside of quotes.
    """
    try:
        told = _QUOTED.sub(_shown, command)
        told.encode("utf-8")
    except UnicodeEncodeError:
        return None
    return told


def join(words: Iterable[str]) -> str:
    """As shlex.join() does it, in characters that a terminal can show."""
    command = shlex.join(words)
    return pasteable(command) or command


def starting_file(path: Path, text: str) -> str:
    """The command that writes a file to start from where the one that was named should be."""
    if os.path.lexists(path):
        return f"ls -ld {shlex.quote(str(path))}"
    file = path if path.parent.is_dir() else Path(path.name)
    lines = shlex.join(text.splitlines())
    return f"printf '%s\\n' {lines} > {shlex.quote(str(file))}    # one to start from"


def _shown(quoted: re.Match[str]) -> str:
    text = quoted[2]
    if text is None or (text.isprintable() and "##[" not in text):
        return quoted[0]
    told = "".join(map(_escaped, text)).replace("##[", "##\\x5b")  # GitHub runs what begins so
    return f"$'{told}'"


def _escaped(char: str) -> str:
    """Bytes, as bash, zsh and ksh read them between $' and '."""
    if char == "\\":
        return "\\\\"
    if char.isprintable():
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))


_ESCAPED = re.compile(r"\\([0-3][0-7]{2})")


def require_proc() -> None:
    """Raises: SetupError where it is not mounted, as in a bare chroot."""
    if not os.path.exists("/proc/self/fd"):
        raise SetupError("no-proc", "/proc", "is not mounted", fix="sudo mount -t proc proc /proc")


def text_of(path: Path | str) -> str:
    """Nothing of what is not there, or may not be read."""
    try:
        # No buffer, no decoder: many are read each second while a trace is recorded.
        with open(path, "rb", buffering=0) as file:
            return file.read().decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def entries_of(folder: Path) -> list[Path]:
    """What is in it, by name; nothing of a folder that is not there."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def plain_path(field: str) -> str:
    """A path of mounts, mountinfo or swaps: blanks and backslashes are octal there.

    Source: fs/seq_file.c mangle_path().
    """
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), field)


_PR_SET_PDEATHSIG = 1


def dying_with_us(number: signal.Signals = signal.SIGTERM) -> Callable[[], None] | None:
    """For Popen's preexec_fn: the child gets this signal when we are gone, however we went.

    None outside the main thread: the kernel sends it when the thread ends that
    started the child (prctl(2)), and another thread may want the child longer.
    None, too, of a small Python that lacks ctypes.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    try:
        import ctypes
    except ImportError:
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # found before the fork
    parent = os.getpid()

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:  # gone in between
            os._exit(1)

    return prepare


def file_word(path: Path) -> str:
    """The file's name as a word of a command line, which no program takes for an option."""
    text = str(path)
    return f"./{text}" if text.startswith("-") else text


@contextmanager
def passed_text(text: str) -> Iterator[tuple[int, str]]:
    """A file in memory with this text: its descriptor, for pass_fds, and its name in a child.

    One with a name in a folder would stay there when we are killed.
    Raises: SetupError without /proc.
    """
    require_proc()
    fd = os.memfd_create("wbscope", os.MFD_CLOEXEC)
    try:
        data = memoryview(text.encode("utf-8"))
        while data:
            data = data[os.write(fd, data) :]
        yield fd, f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


# More than any policy, matrix or statement; a few milliseconds to read.
_MOST_BYTES = 16 << 20
_MOST_TOML_BYTES = 1 << 20
_MOST_TABLES = 32  # one in the other


def read_small(path: Path, most_bytes: int = _MOST_BYTES) -> bytes:
    """Raises: OSError, also where the file has more bytes (EFBIG)."""
    with path.open("rb") as file:
        return read_bounded(file, most_bytes)


def read_bounded(file: BinaryIO, most_bytes: int = _MOST_BYTES) -> bytes:
    """What is left of an open file. Raises: as read_small()."""
    data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes >> 20} MiB")
    return data


def read_toml(path: Path) -> dict[str, Any]:
    """A policy or a matrix, of a stranger maybe.

    Raises: OSError as read_small(); ValueError that says what is wrong, also for whole numbers
    that TOML has not: they have 64 bits.
    """
    try:
        document = tomllib.loads(read_small(path, _MOST_TOML_BYTES).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError("found bytes that are no text") from error
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # of int()
        raise ValueError("a number has thousands of digits, wanted 64 bits at most") from error
    _check_values("", document)
    return document


def _check_values(where: str, value: Any, depth: int = 0) -> None:
    if depth > _MOST_TABLES:
        raise ValueError(f"{where[:80]} is nested deeper than {_MOST_TABLES} tables")
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{where} is a whole number of more than 64 bits")
    if isinstance(value, dict):
        for key, one in value.items():
            _check_values(f"{where}.{key}" if where else key, one, depth + 1)
    elif isinstance(value, list):
        for one in value:
            _check_values(where, one, depth + 1)
