# SPDX-License-Identifier: Apache-2.0
"""Files of /proc and /sys, which come and go, and paths as the kernel writes them there."""

from __future__ import annotations

import os
import re
from pathlib import Path

from wbscope.base.errors import SetupError

__all__ = ["entries_of", "plain_path", "require_proc", "text_of"]

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
