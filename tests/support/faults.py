# SPDX-License-Identifier: Apache-2.0
"""What must be true however an ingest ends: the earlier result or the new one, and no more."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
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

__all__ = ["EARLIER", "Place", "memory_disk", "no_file_above"]

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
