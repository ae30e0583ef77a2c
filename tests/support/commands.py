# SPDX-License-Identifier: Apache-2.0
"""Commands of users on hostile files: run with limits, judged by what must hold for any file."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from .forkserver import ForkServer
from .runs import REPOSITORY
from .tools import ingester_path
from .waits import GUARD_SECONDS

__all__ = [
    "MEBIBYTES",
    "TEMP_MEBIBYTES",
    "Commands",
    "Ended",
    "problems",
    "sanitized_ingester",
]

MEBIBYTES = 512
TEMP_MEBIBYTES = 1024
_TOLD_BYTES = 1 << 20
_TOLD_WHERE = 4000
# Freed memory is kept for a while to find uses of it: not so much that it is most of the peak.
_SANITIZER = "quarantine_size_mb=32:detect_leaks=1:abort_on_error=0:exitcode=99"


def sanitized_ingester() -> Path:
    """$WBSCOPE_INGEST, else the one that `make test` builds with ASan and UBSan, else any."""
    built = REPOSITORY / "build/tests/wbscope-ingest"
    if "WBSCOPE_INGEST" not in os.environ and built.is_file():
        return built
    return ingester_path()


@dataclass(frozen=True)
class Ended:
    """How a command ended, what it said, and what it left in its temporary folder."""

    words: Sequence[str]
    code: int
    stopped: str  # why it was killed: time, memory, temporary space
    seconds: float
    cpu_seconds: float
    mebibytes: float
    temp_mebibytes: float
    left: list[str]  # processes and files
    out: bytes
    err: str


class Commands:
    """A process that has wbscope loaded, and forks for each command; use it in a with statement.

    folder is for it alone: each run() empties folder/temp, and keeps the cache in folder/cache
    until forget().
    """

    def __init__(self, folder: Path, ingester: Path | None = None) -> None:
        self.folder = folder
        self.temp = folder / "temp"
        self.cache = folder / "cache"
        self.temp.mkdir(parents=True)
        self.cache.mkdir(mode=0o700)
        self._env = {
            "TMPDIR": str(self.temp),
            "SQLITE_TMPDIR": str(self.temp),
            "WBSCOPE_CACHE_DIR": str(self.cache),
            "WBSCOPE_INGEST": str(ingester or sanitized_ingester()),
            "ASAN_OPTIONS": _SANITIZER,
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "NO_COLOR": "1",
            "COLUMNS": "100",
        }
        self._server = ForkServer({**os.environ, **self._env})

    def warm(self, *words: str) -> int:
        """Run a command in the process itself: what it imports, later commands need not."""
        return int(self._server.ask({"words": list(words), "env": {}})["code"])

    def run(self, *words: str, seconds: float = GUARD_SECONDS) -> Ended:
        """Run one command to its end, or until it breaks a limit; that of seconds ends a hang."""
        out, err = self.folder / "out", self.folder / "err"
        answer = self._server.ask(
            {
                "words": list(words),
                "env": {},
                "out": str(out),
                "err": str(err),
                "folder": str(self.folder),
                "temp": str(self.temp),
                "seconds": seconds,
                "mebibytes": MEBIBYTES,
                "temp_mebibytes": TEMP_MEBIBYTES,
            }
        )
        left = answer.pop("left") + sorted(path.name for path in self.temp.iterdir())
        # A file that is half made in the cache; of a command that was killed it is no wonder.
        left += [path.name for path in self.cache.iterdir() if path.name.startswith(".tmp")]
        self._empty(self.temp)
        if answer["stopped"]:
            self.forget()
            left = []
        with out.open("rb") as told:
            said = told.read(_TOLD_BYTES)
        with err.open("rb") as told:
            wrong = told.read(_TOLD_BYTES).decode(errors="backslashreplace")
        return Ended(words=words, left=left, out=said, err=wrong, **answer)

    def forget(self) -> None:
        """Empty the cache."""
        self._empty(self.cache)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()

    @staticmethod
    def _empty(folder: Path) -> None:
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def problems(ended: Ended, good: Collection[int] = (0, 3, 4)) -> list[str]:
    """What must not be, whatever the file was; nothing when all is well."""
    if ended.stopped:
        space = f"{ended.mebibytes:.0f} MiB, temporary {ended.temp_mebibytes:.0f} MiB"
        costs = f"{ended.seconds:.0f} s, {ended.cpu_seconds:.1f} s CPU, {space}"
        return [f"killed, its limit of {ended.stopped} ({costs})\n{ended.err[-_TOLD_WHERE:]}"]
    found = []
    if ended.code not in good:
        found.append(f"exit {ended.code}: {_first_line(ended.err)}")
    if "Traceback (most recent call last)" in ended.err:
        found.append(f"traceback: {ended.err.strip().splitlines()[-1]}")
    if ended.mebibytes > MEBIBYTES:
        found.append(f"{ended.mebibytes:.0f} MiB of memory")
    if ended.left:
        found.append(f"left behind: {ended.left}")
    errors = [line for line in ended.err.splitlines() if _is_error(line)]
    wanted = 0 if ended.code in (0, 1) else 1
    # A gate that has no evidence says so on its page.
    told_on_page = ended.code == 4 and "gate" in ended.words and ended.out
    if len(errors) != wanted and not (told_on_page and not errors):
        found.append(f"{len(errors)} error lines for exit {ended.code}: {_first_line(ended.err)}")
    if ended.code in (2, 3) and ended.out:
        found.append(f"a result beside exit {ended.code}: {ended.out[:60]!r}")
    if "--json" in ended.words and ended.code == 0 and len(ended.out) < _TOLD_BYTES:
        try:
            json.loads(ended.out, parse_constant=_no_number)
        except ValueError as error:
            found.append(f"no JSON: {error}")
    return found


def _is_error(line: str) -> bool:
    if re.match(r"error\[[a-z0-9-]+\]: .", line):
        return True
    return line.startswith('{"') and '"error"' in line


def _first_line(err: str) -> str:
    lines = [line for line in err.splitlines() if line.strip() and not line.startswith("warning[")]
    return " | ".join(line.strip() for line in lines[:3])[:300]


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
