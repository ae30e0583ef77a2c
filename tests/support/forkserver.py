# SPDX-License-Identifier: Apache-2.0
"""A process that has wbscope loaded and forks for each command: an import less for each."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["ForkServer", "run_forked", "run_forked_on"]

_SERVER = Path(__file__).with_name("commandserver.py")
_SECONDS = 10
_PIECE = 1 << 16
# It imports pandas and polars where they are installed: half a second.
_OF_PERFETTO = "perfetto.trace_processor"


class ForkServer:
    """commandserver.py with this environment, until close()."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(env),
        )

    def send(self, job: Mapping[str, Any]) -> None:
        """Have a job done."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """What came of the last job, when it has ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the command server has ended"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Both."""
        self.send(job)
        return self.answer()

    def has_ended(self) -> bool:
        """Whether something has killed it."""
        return self._process.poll() is not None

    def close(self) -> None:
        """It ends when there are no more jobs."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(_SECONDS)
        self._process.stdout.close()


def run_forked(
    words: Sequence[str], cwd: Path | None, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """`wbscope words`, as subprocess.run has it with capture_output and text.

    A fork shares nothing with the next one: caches, signals, the environment and descriptors are
    those of a process of its own. What Python reads of the environment at its start is ours.
    """
    server, folder = _living()
    readers = [
        os.open(folder / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        for name in ("out", "err")
    ]
    try:
        server.send(_job(words, cwd, env, folder / "out", folder / "err"))
        out, err = _read_all(readers)
    finally:
        for reader in readers:
            os.close(reader)
    code = server.answer()["code"]
    return subprocess.CompletedProcess(["wbscope", *words], code, _text(out), _text(err))


def run_forked_on(
    terminal: Path, words: Sequence[str], cwd: Path | None, env: Mapping[str, str]
) -> int:
    """`wbscope words` with both streams on this terminal, which somebody has to read; its code."""
    server, _ = _living()
    code: int = server.ask(_job(words, cwd, env, terminal, terminal))["code"]
    return code


def _job(
    words: Sequence[str], cwd: Path | None, env: Mapping[str, str], out: Path, err: Path
) -> dict[str, Any]:
    return {
        "words": list(words),
        "env": dict(env),
        "only_env": True,
        "out": str(out),
        "err": str(err),
        "folder": str(cwd or Path.cwd()),
        "imports": [_OF_PERFETTO] if any("pftrace" in word for word in words) else [],
    }


def _living() -> tuple[ForkServer, Path]:
    """That of this process, or a new one where something has killed it."""
    if _common()[0].has_ended():
        _common.cache_clear()
    return _common()


@cache
def _common() -> tuple[ForkServer, Path]:
    """The server of this process, and the folder with its two pipes."""
    folder = tempfile.TemporaryDirectory(prefix="wbscope-tests-")
    for name in ("out", "err"):
        os.mkfifo(Path(folder.name) / name)
    # A fork has the thread that asked for it alone. A test may have a library of its own.
    env = {name: value for name, value in os.environ.items() if name != "WBSCOPE_SQL_DIR"}
    server = ForkServer(env | {"OPENBLAS_NUM_THREADS": "1"})
    server.ask({"words": ["queries"], "env": {}, "packages": ["wbscope"]})
    atexit.register(folder.cleanup)
    atexit.register(server.close)
    return server, Path(folder.name)


def _read_all(readers: Sequence[int]) -> list[bytes]:
    """Until nobody writes any more, children of the command included."""
    found = {reader: bytearray() for reader in readers}
    with selectors.DefaultSelector() as waiting:
        for reader in readers:
            waiting.register(reader, selectors.EVENT_READ)
        while waiting.get_map():
            for key, _ in waiting.select():
                if piece := os.read(key.fd, _PIECE):
                    found[key.fd] += piece
                else:
                    waiting.unregister(key.fd)
    return [bytes(found[reader]) for reader in readers]


def _text(data: bytes) -> str:
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")
