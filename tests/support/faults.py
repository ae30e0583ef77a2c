# SPDX-License-Identifier: Apache-2.0
"""Faults of disks and places, and files that others leave there."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .progress import Steps
from .tools import ingester_path, wbscope_path
from .waits import GUARD_SECONDS

__all__ = [
    "EARLIER",
    "OTHER_UID",
    "Place",
    "as_root",
    "foreign_files",
    "is_untouched",
    "make_victim",
    "memory_disk",
    "no_file_above",
    "snapshot",
]


# What must be true however an ingest ends: the earlier result or the new one, and no more.

EARLIER = b"an earlier result"


@dataclass
class Place:
    """A folder with an earlier result `run.db`, and a source that lies elsewhere."""

    folder: Path
    source: Path

    @property
    def output(self) -> Path:
        return self.folder / "run.db"

    def reset(self) -> None:
        """Put the earlier result back."""
        self.output.write_bytes(EARLIER)

    def ingester(self, *options: str) -> list[str]:
        """The ingester alone."""
        return [
            str(ingester_path()),
            *("sqlite", str(self.source), "-o", str(self.output), "--all", "--force", *options),
        ]

    def wbscope(self, *options: str) -> list[str]:
        """The whole command."""
        return [
            str(wbscope_path()),
            *("ingest", str(self.source), "-o", str(self.output), "--all", "--force", *options),
        ]

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start it in a process group of its own, so that finish() can end all of it."""
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(command, text=True, start_new_session=True, **options)

    def finish(self, process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
        """Wait for the end; a process that hangs is killed and fails the test."""
        try:
            out, err = process.communicate(timeout=GUARD_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            pytest.fail(f"{process.args!r} did not end")
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def run(self, command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Start it and wait for its end."""
        return self.finish(self.start(command, **options))

    def steps(self, command: Sequence[str]) -> int:
        """All that a whole run of it takes: what moments are drawn from."""
        process = self.start(command)
        made = Steps(process).whole()
        self.check(self.finish(process), [0])
        self.reset()
        return made

    def check(
        self,
        ended: subprocess.CompletedProcess[str],
        codes: Sequence[int],
        *,
        leftovers: bool = False,
    ) -> None:
        """The exit code is one of these; the output fits it; nothing else is there."""
        said = f"exit {ended.returncode}: {ended.stderr}"
        assert ended.returncode in codes, said
        self.check_output(said, leftovers=leftovers, done=ended.returncode == 0)
        if ended.returncode > 0 and ended.stderr is not None:
            errors = [line for line in ended.stderr.splitlines() if line.startswith("error[")]
            stopped = "interrupted" in ended.stderr
            assert len(errors) == 1 or (ended.returncode == 130 and stopped), said

    def check_output(self, said: str, *, leftovers: bool, done: bool | None) -> None:
        """done None: either result will do."""
        names = sorted(os.listdir(self.folder))
        assert "run.db" in names, said
        if not leftovers:
            assert names == ["run.db"], f"{said}; left: {names}"
        now = self.output.read_bytes()
        if done is None:
            done = now != EARLIER
        assert done or now == EARLIER, said
        if done:
            with closing(sqlite3.connect(f"file:{self.output}?mode=ro", uri=True)) as database:
                assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",), said
                counted = "SELECT value FROM meta WHERE key = 'events_count'"
                assert database.execute(counted).fetchone()[0] > 0, said


@contextmanager
def memory_disk(options: str) -> Iterator[Path]:
    """A small disk in memory; skips the test where this user may not mount one."""
    folder = Path(tempfile.mkdtemp(prefix="wbscope-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", options, "wbscope-test", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        if mounted.returncode != 0:
            pytest.skip(f"cannot mount a tmpfs here: {mounted.stderr.strip()}")
        yield folder
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """What this process writes beyond fails (EFBIG), as on a disk that is full (ENOSPC)."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)


# Things of other people in a folder, and whether they are still there.

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
