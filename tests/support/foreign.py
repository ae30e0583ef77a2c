# SPDX-License-Identifier: Apache-2.0
"""Things of other people in a folder, and whether they are still there."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

__all__ = ["OTHER_UID", "as_root", "foreign_files", "is_untouched", "make_victim", "snapshot"]

OTHER_UID = 65534
_PRECIOUS = (".ssh/id", ".bashrc", "thesis.txt", "x.db", ".writer.lock")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def make_victim(folder: Path) -> Path:
    """Somebody's files, among them one of an output's name, x.db, and a writer's lock."""
    (folder / ".ssh").mkdir(parents=True)
    for name in _PRECIOUS:
        (folder / name).write_text("precious")
    folder.chmod(0o750)
    return folder


def is_untouched(victim: Path) -> bool:
    """Whether make_victim()'s folder is as it was made."""
    files = (path for path in victim.rglob("*") if not path.is_dir())
    found = {str(path.relative_to(victim)): path.read_text() for path in files}
    is_closed = stat.S_IMODE(victim.stat().st_mode) == 0o750
    return is_closed and found == dict.fromkeys(_PRECIOUS, "precious")


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
