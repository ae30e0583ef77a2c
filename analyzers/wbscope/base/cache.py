# SPDX-License-Identifier: Apache-2.0
"""What was made on the fly, kept until the trace changes or room runs out.

They lie in BASE/wbscope/v1, which nobody but wbscope makes: BASE is $WBSCOPE_CACHE_DIR,
else $XDG_CACHE_HOME, else ~/.cache. What is read from there is believed, so both folders must be
this user's own and closed to others; what is removed there has a name that only wbscope gives.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from wbscope.base.errors import SetupError
from wbscope.base.outputs import private_folder, remove_if_dead
from wbscope.base.system import absolute

LIMIT_BYTES = 4 << 30
# A folder that mktemp makes is this user's own and closed to others.
CACHE_FIX = "export WBSCOPE_CACHE_DIR=$(mktemp -d)"
# Of the writer of an entry, and of SQLite in it.
CACHE_IS_FULL = ("cannot-write", "cannot-write-database")

_FOLDERS = ("wbscope", "v1")
_VARIABLE = "WBSCOPE_CACHE_DIR"
_SCRATCH = "scratch"
_ENTRY = re.compile(r"[0-9a-f]{32}\.(db|pftrace|library)")
_LOCK = re.compile(r"[0-9a-f]{32}\.[a-z]+\.lock")
# Of those who write an entry, as outputs.py names them.
_PRIVATE = re.compile(rf"\.({_SCRATCH}|{_ENTRY.pattern})\.wbscope-[a-z0-9_]{{8}}")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_TAG_NAME = "CACHEDIR.TAG"
# As https://bford.info/cachedir wants it: programs for backups leave the folder out.
_TAG = """\
Signature: 8a477f597d28d172789f06886806bc55
# Databases and timelines that wbscope made of traces; it makes them again when they are gone.
"""
# A private folder older than this was left by a killed command.
_STALE_SECONDS = 24 * 60 * 60


def cache_entry(inputs: Sequence[Path], versions: Sequence[str], suffix: str = ".db") -> Path:
    """Where what is made of exactly these files belongs; makes the folder."""
    files = []
    for path in inputs:
        status = path.stat()
        files.append(
            [os.path.realpath(path), status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        )
    return entry_of([files, *versions], suffix)


def entry_of(key: Sequence[Any], suffix: str = ".db") -> Path:
    """Where the file that this key tells apart belongs; makes the folder.

    Raises: SetupError where there is no folder that can be trusted.
    """
    text = json.dumps(key, default=str).encode()
    return _folder() / f"{hashlib.sha256(text).hexdigest()[:32]}{suffix}"


def is_own_entry(entry: Path) -> bool:
    """Whether this is a file that wbscope has put there: nothing else may be removed."""
    try:
        return _ENTRY.fullmatch(entry.name) is not None and _is_own_file(entry.lstat())
    except OSError:
        return False


def refuse_foreign(entry: Path) -> None:
    """Raises: SetupError where something that is not wbscope's own has the entry's name."""
    if not os.path.lexists(entry) or is_own_entry(entry):
        return
    raise SetupError(
        "cache-entry-taken",
        str(entry),
        "is no file that wbscope made, and stands where the cache keeps what is made of a trace",
        effect="it was left as it is",
        fix=f'mv {shlex.quote(str(entry))} "$(mktemp -d)"',
    )


def used(entry: Path) -> bool:
    """True if the entry is there and this user's own; marks it as just used."""
    try:
        if not is_own_entry(entry):
            return False
        os.utime(entry, follow_symlinks=False)
    except OSError:
        return False
    return True


@contextmanager
def only_maker(entry: Path) -> Iterator[None]:
    """Within, no other process makes this entry: who came second waits, then finds it there.

    The lock goes with its process, however that ends; where there are no locks, all may make it.
    """
    name = entry.with_name(f"{entry.name}.lock")
    lock = _locked(name)
    try:
        yield
    finally:
        if lock is not None:
            # While it is held: who waits for this file sees that it is gone, and takes a new one.
            with contextlib.suppress(OSError):
                name.unlink(missing_ok=True)
            os.close(lock)


def _locked(name: Path) -> int | None:
    while True:
        try:
            lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return None  # writing the entry says what is wrong
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(lock), name.lstat()):
                return lock
        except FileNotFoundError:
            pass  # it was another one's, who is done
        except OSError:
            os.close(lock)
            return None
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def trim_cache(keep: Path, limit_bytes: int = LIMIT_BYTES) -> None:
    """Remove the entries used longest ago until the rest fits; never `keep`."""
    entries = []
    for path in keep.parent.iterdir():
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue  # another command trims too
        if stat.S_ISDIR(status.st_mode):
            if _PRIVATE.fullmatch(path.name) and status.st_mtime < time.time() - _STALE_SECONDS:
                remove_if_dead(path)
        elif _ENTRY.fullmatch(path.name) and _is_own_file(status):
            entries.append((status.st_mtime_ns, status.st_size, path))
        elif _LOCK.fullmatch(path.name) and status.st_mtime < time.time() - _STALE_SECONDS:
            path.unlink(missing_ok=True)  # of one that was killed
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit_bytes:
            return
        if path != keep:
            path.unlink(missing_ok=True)
            total -= size


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for files that only this command needs; what a killed one left goes first.

    Raises: SetupError where there is no folder that can be trusted.
    """
    with private_folder(_folder() / _SCRATCH) as folder:
        yield folder


def own_folder(name: str) -> Path:
    """A folder beside the entries, for what is large and used for long; nothing in it is trimmed.

    Raises: SetupError where there is no folder that can be trusted.
    """
    folder = _folder() / name
    try:
        _make_own(folder)
    except OSError as error:
        _refuse(folder, f"cannot be used: {error}")
    return folder


def _folder() -> Path:
    """The folder of this version; made, and looked at again each time.

    Raises: SetupError.
    """
    base = _base()
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_base(base)
        folder = base
        for name in _FOLDERS:
            folder = folder / name
            _make_own(folder)
        with contextlib.suppress(FileExistsError), (folder / _TAG_NAME).open("x") as tag:
            tag.write(_TAG)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(f"no permission to write to {folder}")
    except (OSError, ValueError) as error:
        _refuse(base, f"cannot be used: {error}")
    return absolute(folder)


def _base() -> Path:
    if chosen := os.environ.get(_VARIABLE):
        return Path(chosen)
    if (xdg := os.environ.get("XDG_CACHE_HOME")) and os.path.isabs(xdg):
        return Path(xdg)
    try:
        return Path.home() / ".cache"
    except RuntimeError as error:
        _refuse(Path("~/.cache"), f"cannot be used: {error}")


def _check_base(base: Path) -> None:
    """Who can write to it can put another folder in the place of ours."""
    status = base.lstat()
    if stat.S_ISLNK(status.st_mode):
        if os.environ.get(_VARIABLE):
            real = os.path.realpath(base)
            fix = f"export {_VARIABLE}={shlex.quote(real)}    # when that is a folder of yours"
            _refuse(base, f"is a symbolic link, to {real}, wanted a folder", fix)
        # ~/.cache is a link on many machines; whose link it is, is what counts.
        if status.st_uid not in (0, os.geteuid()):
            _refuse(base, f"is a symbolic link of uid {status.st_uid}")
        status = base.stat()
    if not stat.S_ISDIR(status.st_mode):
        _refuse(base, "is no folder")
    if status.st_uid not in (0, os.geteuid()):
        _refuse(base, f"belongs to uid {status.st_uid}, wanted a folder of uid {os.geteuid()}")
    # In a sticky folder such as /tmp nobody can rename or remove what is another's.
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        _refuse(base, f"can be written by everybody (mode {stat.S_IMODE(status.st_mode):04o})")


def _make_own(folder: Path) -> None:
    """A folder that only this user can enter, as wbscope makes it."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        _refuse(folder, f"is a symbolic link, to {os.path.realpath(folder)}, wanted a folder")
    if not stat.S_ISDIR(status.st_mode):
        _refuse(folder, "is no folder")
    if status.st_uid != os.geteuid():
        _refuse(folder, f"belongs to uid {status.st_uid}, wanted a folder of uid {os.geteuid()}")
    if mode & _OTHERS:
        _refuse(folder, f"is open to others (mode {mode:04o}), wanted 0700")


def _is_own_file(status: os.stat_result) -> bool:
    """Nobody else can have written to it, in a folder that is closed to others."""
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _refuse(folder: Path, message: str, fix: str = CACHE_FIX) -> NoReturn:
    raise SetupError(
        "no-cache",
        str(folder),
        f"the cache folder {message}",
        effect="nothing was read from it or written to it",
        fix=fix,
    )
