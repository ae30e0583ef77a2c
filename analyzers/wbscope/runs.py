# SPDX-License-Identifier: Apache-2.0
"""From what the user calls a run to a database: folder, trace.dat or .db."""

from __future__ import annotations

import shlex
import stat
from pathlib import Path

from wbscope.cache import cache_entry, trim_cache, used
from wbscope.engine.database import SCHEMA_VERSION
from wbscope.engine.library import Library
from wbscope.errors import InputError, SetupError, UsageError
from wbscope.ingest import DATABASE_NAME, TRACE_NAME, ingest
from wbscope.ingester import Observer, find_ingester
from wbscope.version import __version__

__all__ = ["check_source", "database_of"]

_SQLITE_MAGIC = b"SQLite format 3\0"
_TRACE_MAGIC = b"\x17\x08\x44tracing"
# What may lie in a run folder but is no part of what was recorded.
_OUTPUT_SUFFIXES = (".db", ".md", ".pftrace")


def check_source(text: str) -> Path:
    """The trace.dat or run folder that the user named, checked to be one."""
    path = Path(text)
    mode = _mode(path, text)
    if stat.S_ISDIR(mode):
        return _check_folder(path, text)
    if not stat.S_ISREG(mode):
        raise InputError("not-a-run", text, "is no regular file and no folder")
    return path


def database_of(text: str, library: Library, observer: Observer | None = None) -> Path:
    """The database of a run; a trace is ingested into the cache when needed."""
    path = check_source(text)
    if path.is_dir():
        inputs = [path / TRACE_NAME, *_sidecars(path)]
    else:
        start = _first_bytes(path, text)
        if start == _SQLITE_MAGIC:
            return path
        if not start.startswith(_TRACE_MAGIC):
            raise InputError(
                "not-a-run",
                text,
                f"starts with {start!r}" if start else "is an empty file",
                have=f"a database starts with {_SQLITE_MAGIC!r}, a trace.dat with {_TRACE_MAGIC!r}",
                fix="trace-cmd record -e writeback -o trace.dat COMMAND",
            )
        inputs = [path]
    return _cached(path, inputs, library, observer)


def _cached(source: Path, inputs: list[Path], library: Library, observer: Observer | None) -> Path:
    versions = [__version__, str(SCHEMA_VERSION), *library.events()]
    # The program is an input too: a new one may read more of the same trace.
    entry = cache_entry([find_ingester(), *inputs], versions)
    if not used(entry):
        ingest(source, entry, library, force=True, observer=observer)
        trim_cache(keep=entry)
    return entry


def _mode(path: Path, text: str) -> int:
    if not text:
        raise UsageError("no-run", "RUN", "is empty, wanted a file or folder name")
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(
            "no-such-file",
            text,
            "does not exist, wanted a run folder, a trace.dat or a .db",
            fix=f"ls {shlex.quote(str(path.parent))}",
        ) from error
    except (OSError, ValueError) as error:
        raise _unreadable(text, error) from error


def _check_folder(path: Path, text: str) -> Path:
    try:
        names = sorted(entry.name for entry in path.iterdir())
    except OSError as error:
        raise _unreadable(text, error) from error
    if TRACE_NAME in names:
        return path
    if DATABASE_NAME in names:
        fix = f"give {shlex.quote(str(path / DATABASE_NAME))} instead of the folder"
    elif any(name.startswith(f"{TRACE_NAME}.cpu") for name in names):
        # A recorder that was killed; only the kernel that it ran on can tell the formats.
        folder = shlex.quote(str(path))
        fix = (
            f"on that machine, before it boots again: trace-cmd restore -c -o {folder}/formats.dat"
            f" && trace-cmd restore -i {folder}/formats.dat -o {folder}/{TRACE_NAME}"
            f" {folder}/{TRACE_NAME}.cpu*"
        )
    else:
        fix = f"trace-cmd record -e writeback -o {shlex.quote(str(path))}/trace.dat CMD"
    raise InputError(
        "no-trace",
        text,
        f"is a folder without {TRACE_NAME}",
        have=", ".join(names[:8]) or "an empty folder",
        fix=fix,
    )


def _sidecars(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and path.name != TRACE_NAME and path.suffix not in _OUTPUT_SUFFIXES
    )


def _first_bytes(path: Path, text: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE_MAGIC))
    except OSError as error:
        raise _unreadable(text, error) from error


def _unreadable(text: str, error: Exception) -> SetupError:
    reason = getattr(error, "strerror", None) or str(error)
    return SetupError("unreadable", text, f"cannot be read: {reason}")
