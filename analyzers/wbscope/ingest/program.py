# SPDX-License-Identifier: Apache-2.0
"""Runs the program wbscope-ingest and turns its JSON lines into Python values.

A file begins with "# kernel RELEASE-MACHINE", or "# text NAME" where it was written by hand for
the lines of another printer; "# system NAME" stands before the formats of each system.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol, cast

from wbscope.base.errors import InputError, InternalError, SetupError, UsageError, WbscopeError
from wbscope.base.result import Notice
from wbscope.base.system import dying_with_us

_PROGRAM = "wbscope-ingest"
_ERRORS: dict[int, type[WbscopeError]] = {2: UsageError, 3: InputError, 5: SetupError}
_INTERRUPTED = 130
_LABELS = ("at", "have", "effect", "fix")
# Time for the ingester to remove its temporary file after Ctrl-C.
_GRACE_SECONDS = 0.7


class Observer(Protocol):
    """Hears of progress while the ingester works."""

    def advance(self, done_bytes: int, total_bytes: int) -> None:
        """So much has been read."""


class _Lines:
    """What the ingester has said so far."""

    def __init__(self, observer: Observer | None) -> None:
        self._observer = observer
        self.warnings: list[Notice] = []
        self.error: dict[str, Any] | None = None
        self.done: dict[str, Any] | None = None
        self.other: deque[str] = deque(maxlen=5)

    def take_all(self, stderr: IO[bytes] | None) -> None:
        for line in stderr or ():
            self.take(line.decode("utf-8", errors="replace"))

    def take(self, line: str) -> None:
        try:
            message = json.loads(line)
            kind = message["type"]
        except (ValueError, TypeError, KeyError):
            # A sanitizer report or a library's own message: shown on a crash.
            self.other.append(line.strip())
            return
        if kind == "progress" and self._observer is not None:
            self._observer.advance(message["done_bytes"], message["total_bytes"])
        elif kind == "warning":
            self.warnings.append(_warning(message))
        elif kind == "error":
            self.error = message
        elif kind == "done":
            self.done = message


def run_ingester(
    arguments: Sequence[str],
    observer: Observer | None = None,
    feed: Callable[[BinaryIO], None] | None = None,
    files: Sequence[int] = (),
) -> tuple[dict[str, Any], list[Notice]]:
    """Run it to the end: its `done` message and its warnings, or the right error.

    feed writes what the ingester reads on its stdin; it gets these open files, too.
    """
    command = [str(find_ingester()), *arguments, "--json-lines"]
    lines = _Lines(observer)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if feed is None else subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=files,
            preexec_fn=dying_with_us(),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SetupError(
            "no-ingester",
            command[0],
            f"cannot be run: {getattr(error, 'strerror', None) or error}",
            fix="make setup",
        ) from error
    with process:
        try:
            if feed is None:
                lines.take_all(process.stderr)
            else:
                _feed(process, feed, lines)
            code = process.wait()
        except BaseException:
            _stop(process)
            raise
    if code == 0 and lines.done is not None:
        return lines.done, lines.warnings
    raise _failure(code, lines)


def find_ingester() -> Path:
    """$WBSCOPE_INGEST, else beside this Python, where pip puts a user's own, on the PATH."""
    if chosen := os.environ.get("WBSCOPE_INGEST"):
        return Path(chosen)
    beside = Path(sys.executable).parent / _PROGRAM
    if beside.is_file():
        return beside
    of_user = Path(sysconfig.get_path("scripts", "posix_user")) / _PROGRAM
    if of_user.is_file():
        return of_user
    if found := shutil.which(_PROGRAM):
        return Path(found)
    raise SetupError(
        "no-ingester",
        _PROGRAM,
        f"is neither {beside} nor on the PATH",
        fix="make setup",
    )


def _feed(
    process: subprocess.Popen[bytes], feed: Callable[[BinaryIO], None], lines: _Lines
) -> None:
    """Write and listen at the same time: a full pipe on either side would stop both."""
    listener = threading.Thread(target=lines.take_all, args=(process.stderr,), daemon=True)
    listener.start()
    try:
        # A closed pipe: the ingester has ended and says why.
        with contextlib.suppress(BrokenPipeError), cast(BinaryIO, process.stdin) as pipe:
            feed(pipe)
    except BaseException:
        _stop(process)
        raise
    finally:
        listener.join()  # before its pipe is closed


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _failure(code: int, lines: _Lines) -> BaseException:
    if code in (_INTERRUPTED, -signal.SIGINT):
        return KeyboardInterrupt()
    if lines.error is not None:
        kind = _ERRORS.get(code, InternalError)
        labels = {name: lines.error.get(name) for name in _LABELS}
        return kind(
            str(lines.error.get("slug", "ingest")),
            str(lines.error.get("object", _PROGRAM)),
            str(lines.error.get("message", f"ended with exit code {code}")),
            **labels,
        )
    said = " | ".join(lines.other) or None
    if code in (-signal.SIGKILL, -signal.SIGTERM):
        return SetupError(
            "ingester-killed",
            _PROGRAM,
            f"was killed by {signal.Signals(-code).name} before it was done",
            effect="nothing was written",
            fix="free memory or raise the limit, then run the command again",
        )
    end = f"signal {-code}" if code < 0 else f"exit code {code}"
    return InternalError(
        "ingester-crashed",
        _PROGRAM,
        f"ended with {end} and no message (a bug)",
        have=said,
        effect="nothing was written",
    )


def _warning(message: dict[str, Any]) -> Notice:
    parts = [f"{message.get('object', _PROGRAM)}: {message.get('message', '')}"]
    parts += [f"{name}: {message[name]}" for name in _LABELS if name in message]
    return Notice(str(message.get("slug", "ingest")), "; ".join(parts))


CAPTURED = "formats"
WRITTEN = "text-formats"
_PART = re.compile(r"^(?:# system (?P<system>\S+)$|(?=name: (?P<name>\S+)$))", re.MULTILINE)


@dataclass(frozen=True)
class Format:
    """What one kernel prints of one event in tracefs."""

    kernel: str
    system: str
    name: str
    text: str

    @property
    def event(self) -> str:
        """As in trace-cmd record -e."""
        return f"{self.system}:{self.name}"


def captured(part: str = CAPTURED) -> Iterator[Format]:
    """Every format that was captured from a kernel, or (WRITTEN) written by hand."""
    for path in sorted((find_formats_dir() / part).glob("*.formats")):
        text = path.read_text(encoding="utf-8", errors="replace")
        parts = list(_PART.finditer(text))
        system = ""
        for here, after in zip(parts, [*parts[1:], None], strict=True):
            if here["name"] is None:
                system = here["system"]
                continue
            end = after.start() if after is not None else len(text)
            yield Format(path.stem, system, here["name"], text[here.start() : end])


def reference_formats() -> Iterator[str]:
    """The content of a file for `wbscope-ingest --formats`, piece by piece."""
    root = find_formats_dir()
    for part in (CAPTURED, WRITTEN):
        for path in sorted((root / part).glob("*.formats")):
            yield path.read_text(encoding="utf-8", errors="replace")


def find_formats_dir() -> Path:
    """$WBSCOPE_FORMATS_DIR, else in the package, else kernel-tracepoints/ of the checkout."""
    if chosen := os.environ.get("WBSCOPE_FORMATS_DIR"):
        return Path(chosen)
    package = Path(__file__).resolve().parents[1]
    installed = package / "kernel-tracepoints"
    return installed if installed.is_dir() else package.parents[1] / "kernel-tracepoints"
