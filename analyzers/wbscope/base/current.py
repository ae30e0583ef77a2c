# SPDX-License-Identifier: Apache-2.0
"""The folder that the process is in, which somebody may have removed."""

from __future__ import annotations

import os
from pathlib import Path

from wbscope.base.errors import SetupError

__all__ = ["absolute", "current_folder"]


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
