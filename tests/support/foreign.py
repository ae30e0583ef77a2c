# SPDX-License-Identifier: Apache-2.0
"""Things of other people in a folder, and whether they are still there."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

__all__ = ["foreign_files", "snapshot"]


def foreign_files(folder: Path, key: str = "0123456789abcdef" * 2) -> dict[str, Any]:
    """Things of other people, of every kind and old; what they are by name."""
    for name in (".ssh", ".git", ".config", ".a.db.12345678", f".{key}.db.abcd1234", "wbscope.d"):
        (folder / name).mkdir()
        (folder / name / "file").write_text(name)
    (folder / f".run.db.wbscope-{'a' * 7}").mkdir()
    (folder / ".backups1").mkdir()
    for name in ("grafana.db", "mine.pftrace", f"{key}.db", f"{key}.pftrace", "a.txt", ".env"):
        (folder / name).write_bytes(b"x" * 1000)
    (folder / "link.db").symlink_to(folder / "a.txt")
    (folder / ".dangling").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "fifo.db")
    for path in folder.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    return snapshot(folder)


def snapshot(folder: Path) -> dict[str, Any]:
    """Every file below, with what a reader sees of it."""
    seen: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content: Any = None
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        seen[str(path.relative_to(folder))] = (status.st_mode, status.st_ino, content)
    return seen
