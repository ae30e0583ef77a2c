# SPDX-License-Identifier: Apache-2.0
"""What many tests read, made once a run of pytest by whichever worker wants it first."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

__all__ = ["Once"]


class Once:
    """Folders that all workers of a run share. Nobody may change what is in them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder

    def folder(self, name: str) -> Path:
        """An empty one, for what locks itself, as the cache of wbscope does."""
        path = self._folder / name
        path.mkdir(exist_ok=True)
        return path

    def made(self, name: str, make: Callable[[Path], object]) -> Path:
        """The folder that `make` has filled; whoever comes while it does so waits.

        What a killed or failed maker left is made again.
        """
        path, done = self._folder / name, self._folder / f"{name}.done"
        path.parent.mkdir(parents=True, exist_ok=True)
        with (self._folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(path, ignore_errors=True)
                path.mkdir()
                make(path)
                done.touch()
        return path
