# SPDX-License-Identifier: Apache-2.0
"""What root makes for somebody who called sudo belongs to that somebody."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from wbscope.base.heldfolder import HeldFolder

__all__ = ["belongs_to_us", "give_to_caller"]


def give_to_caller(folder: Path | HeldFolder, environment: Mapping[str, str] = os.environ) -> bool:
    """Make the one who called sudo the owner of a folder and of all in it.

    True when it was done.  Nothing happens where nobody called sudo, or root did.  No
    symbolic link is followed and a file of several names stays, so that neither a link
    nor a name that somebody puts there meanwhile gives away another file.  A folder goes
    after what is in it: its new owner could put another file there.

    Raises: OSError where the file system refuses.
    Source: sudo(8), SUDO_UID and SUDO_GID.
    """
    caller = _caller(environment)
    if caller is None:
        return False
    if isinstance(folder, Path):
        with HeldFolder(folder) as held:
            return give_to_caller(held, environment)
    top = folder.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _, _, names, inside in os.fwalk(".", topdown=False, dir_fd=top):
            for name in names:
                found = os.stat(name, dir_fd=inside, follow_symlinks=False)
                if found.st_nlink == 1 and (stat.S_ISREG(found.st_mode) or _is_link(found)):
                    os.chown(name, *caller, dir_fd=inside, follow_symlinks=False)
            os.fchown(inside, *caller)
    finally:
        os.close(top)
    return True


def belongs_to_us(folder: HeldFolder, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether its owner is this user, or the one who called sudo."""
    caller = _caller(environment)
    if caller is not None and folder.stat(".").st_uid == caller[0]:
        return True
    try:
        folder.check_own()
    except PermissionError:
        return False
    return True


def _is_link(found: os.stat_result) -> bool:
    return stat.S_ISLNK(found.st_mode)


def _caller(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """Numbers of user and group, None where root works for itself."""
    texts = [environment.get(name, "") for name in ("SUDO_UID", "SUDO_GID")]
    if os.geteuid() != 0 or not all(text.isascii() and text.isdecimal() for text in texts):
        return None
    user, group = map(int, texts)
    return (user, group) if user else None
