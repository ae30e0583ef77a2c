# SPDX-License-Identifier: Apache-2.0
"""Which folder has no room, where SQLite only says that some disk is full."""

from __future__ import annotations

import os
from pathlib import Path

from wbscope.base.errors import SetupError

__all__ = ["can_write_temp", "no_room"]

_CANDIDATES = "$SQLITE_TMPDIR, $TMPDIR, /var/tmp, /usr/tmp, /tmp or ."


def no_room(why: str, shown: str, database: Path | None) -> SetupError:
    """Of a write that failed while `shown` was used; database: where it lies, if it was written.

    SQLite has given back what its statement had taken, so the folder with less room is the one.
    """
    temp = _temp_folder()
    if temp is None:
        return _cannot_write_temp(_CANDIDATES, why, shown, "none of them can be written")
    free = _free_bytes(temp)
    if database is not None and _free_bytes(str(database.parent)) < free:
        return SetupError(
            "cannot-write-database",
            shown,
            why,
            have=f"its folder has {_room(str(database.parent))}",
            effect="nothing was written under that name",
            fix="check the free space and permissions of its directory",
        )
    return _cannot_write_temp(temp, why, shown, _room(temp))


def _cannot_write_temp(folder: str, why: str, shown: str, have: str) -> SetupError:
    return SetupError(
        "no-room",
        folder,
        f"SQLite cannot write its temporary files: {why}",
        at=f"using {shown}",
        have=have,
        fix="export SQLITE_TMPDIR=FOLDER    # one with room",
    )


def can_write_temp() -> bool:
    """Whether SQLite can make temporary files at all: not so where all is read only."""
    import tempfile  # an error is rare

    try:
        with tempfile.TemporaryFile(dir=_temp_folder() or "/nonexistent"):
            return True
    except OSError:
        return False


def _temp_folder() -> str | None:
    """Where SQLite makes its temporary files (https://sqlite.org/tempfiles.html, 5)."""
    named = (os.environ.get(name) for name in ("SQLITE_TMPDIR", "TMPDIR"))
    for folder in (*named, "/var/tmp", "/usr/tmp", "/tmp", "."):
        if folder and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    return None


def _free_bytes(folder: str) -> int:
    try:
        room = os.statvfs(folder)
    except OSError:
        return 0
    return room.f_bavail * room.f_frsize


def _room(folder: str) -> str:
    return f"{_free_bytes(folder)} bytes free, less than it takes"
