# SPDX-License-Identifier: Apache-2.0
"""The command that is measured: started, waited for, and what it cost."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self

from wbscope.base.errors import UsageError
from wbscope.base.watch import hold
from wbscope.record.register import save

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# timeout(1) and a shell that ends tell a process, and then its group: that is one.
_SAME_SECONDS = 0.3


class Interrupts:
    """In force inside `with`.  What cannot be begun again is done while they are held.

    count  how often the user has asked for the end
    """

    def __init__(self, same_seconds: float = _SAME_SECONDS) -> None:
        self.count = 0
        self._same_seconds = same_seconds
        self._last = float("-inf")
        self._is_held = False
        self._was_raised = False
        self._before: dict[signal.Signals, Any] = {}
        self._unforced = ExitStack()

    def __enter__(self) -> Self:
        self._unforced.enter_context(hold())
        for number in _ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup, a job of a script
                self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._unforced.close()

    def hold(self) -> None:
        """To the end."""
        self._is_held = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """One that comes meanwhile is raised afterwards."""
        before, self._is_held = self._is_held, True
        try:
            yield
        finally:
            self._is_held = before
        self._raise_first()

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last > self._same_seconds:
            self.count += 1
        self._last = now
        self._raise_first()

    def _raise_first(self) -> None:
        if self.count and not self._is_held and not self._was_raised:
            self._was_raised = True
            raise KeyboardInterrupt


# A pid and when it started: the pid alone may be of another one later.
Process = tuple[int, int]

_PR_SET_CHILD_SUBREAPER = 36
# A terminal told it too, a plain kill of ours did not: it is told when it goes on.
_TOLD_SECONDS = 1.0
_PATIENCE_SECONDS = 5.0
_END_SECONDS = 2.0
_STEP_SECONDS = 0.02
_PROC = Path("/proc")
# In /proc/PID/stat, counted from behind the name of the program.
_STATE, _PARENT, _START = 0, 1, 19


class Workload:
    """Runs in the foreground group: Ctrl-C reaches it as in a shell.

    Its stdout is our stderr, for ours has the report.  What it starts and leaves behind
    becomes a child of this process, so that it can be ended too.
    """

    def __init__(self, command: Sequence[str], clock: int, events: queue.Queue[Any]) -> None:
        self.facts: dict[str, Any] = {}
        self._lives = True
        _adopt_orphans()
        self._clock = clock
        self._events = events
        self._started_ns = time.clock_gettime_ns(clock)
        try:
            self._process = subprocess.Popen(
                list(command), stdout=sys.stderr.fileno() if sys.stderr else None
            )
        except OSError as error:
            raise UsageError(
                "no-command",
                command[0],
                f"cannot be run: {error.strerror}",
                fix="wbscope record -o RUN -- CMD...",
            ) from error
        self.facts = {"command_pid": self._process.pid, "command_started_ts_ns": self._started_ns}
        threading.Thread(target=self._wait, daemon=True).start()

    def lives(self) -> bool:
        return self._lives

    def end(self, interrupts: Interrupts) -> None:
        """Asked again, it is not waited for; the third time it is left to itself."""
        seconds = _TOLD_SECONDS
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + seconds
            while self._lives and time.monotonic() < deadline and interrupts.count < 2:
                time.sleep(_STEP_SECONDS)
            self._kill(number)
            seconds = _PATIENCE_SECONDS
        while self._lives and interrupts.count < 3:
            time.sleep(_STEP_SECONDS)

    def _kill(self, number: signal.Signals) -> None:
        """Not the group: we are in it."""
        with contextlib.suppress(ProcessLookupError):
            if self._lives:
                os.kill(self._process.pid, number)

    def _wait(self) -> None:
        try:
            _, status, used = os.wait4(self._process.pid, 0)
            self.facts |= self._end_facts(os.waitstatus_to_exitcode(status), used)
        except ChildProcessError:
            pass  # the kernel has waited for it: SIGCHLD is ignored
        self._lives = False
        self._events.put("ended")

    def _end_facts(self, code: int, used: resource.struct_rusage) -> dict[str, Any]:
        ended = time.clock_gettime_ns(self._clock)
        self._process.returncode = code
        return {
            "command_ended_ts_ns": ended,
            "command_duration_ns": ended - self._started_ns,
            "command_exit_code": code if code >= 0 else None,
            "command_signal": -code if code < 0 else None,
            **_usage(used),
        }


def end_descendants(spared: int, interrupts: Interrupts, others: Collection[Process] = ()) -> None:
    """All processes below this one but the recorder: they are the command's.

    `others`: those that were there before it, of a shell that became this process.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _END_SECONDS
        told: set[int] = set()
        while left := descendants(os.getpid(), spared, others=others):
            for pid in left - told:  # what appears meanwhile, too
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            told |= left
            is_patient = number == signal.SIGKILL or interrupts.count < 2
            if time.monotonic() > deadline or not is_patient:
                break
            time.sleep(_STEP_SECONDS)


def descendants(
    pid: int,
    spared: int | None = None,
    proc: Path = _PROC,
    others: Collection[Process] = (),
) -> set[int]:
    """Processes that live and descend from one; without a branch, and those of `others`."""
    return {found for found, _ in _below(pid, spared, proc, others)}


def processes_below(pid: int) -> set[Process]:
    """Those that there are now."""
    return _below(pid, None, _PROC, ())


def _adopt_orphans() -> None:
    """prctl(2); where it is refused, what a command leaves behind goes on."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # a small Python may lack it

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _below(pid: int, spared: int | None, proc: Path, others: Collection[Process]) -> set[Process]:
    children: dict[int, list[Process]] = {}
    for path in proc.glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended
        if fields[_STATE] not in "ZX":
            process = (int(path.parent.name), int(fields[_START]))
            children.setdefault(int(fields[_PARENT]), []).append(process)
    found: set[Process] = set()
    left = [pid]
    while left:
        for child in children.get(left.pop(), ()):
            if child[0] != spared and child not in others:
                found.add(child)
                left.append(child[0])
    return found


def _usage(used: resource.struct_rusage) -> dict[str, Any]:
    return {
        "command_user_s": used.ru_utime,
        "command_system_s": used.ru_stime,
        "command_max_rss_bytes": used.ru_maxrss << 10,
        "command_major_faults_count": used.ru_majflt,
        "command_minor_faults_count": used.ru_minflt,
    }


FIO_JSON = "fio.json"
# Where fio writes what it would print: the text, and the JSON after it.
_PRINTED = "fio.out"
_FORMAT, _OUTPUT = "output-format", "output"
_JSON = ("json", "json+")
_MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class FioResults:
    """What to run instead, and where its results are then.

    printed  the file is ours and has what fio would have printed
    shown    the user wants the JSON in it, too
    problem  why there can be no JSON
    """

    command: tuple[str, ...]
    output: Path | None = None
    printed: bool = False
    shown: bool = False
    problem: str | None = None
    before: tuple[int, int] | None = None

    def save(self, run: Path, show: Callable[[str], None]) -> str | None:
        """fio.json of the run, whole or not at all; returns why there is none.

        `show` is called with what fio would have printed.
        """
        output = run / _PRINTED if self.printed else self.output
        if self.problem is not None or output is None:
            return self.problem
        if not self.printed and _state(output) == self.before:
            return f"fio did not write {output}, so the run has no {FIO_JSON}"
        try:
            text = self._text(output)
            if text is None:
                return f"what fio wrote is larger than {_MOST_BYTES >> 20} MiB: no {FIO_JSON}"
        except OSError as error:
            return f"what fio wrote cannot be read ({error.strerror}): no {FIO_JSON}"
        part = json_part(text)
        if self.printed:
            show(text if part is None or self.shown else text.replace(part, "", 1))
            with contextlib.suppress(OSError):
                output.unlink()
        if part is None:
            return f"fio wrote no whole JSON, so the run has no {FIO_JSON}"
        try:
            save(run / FIO_JSON, part)
        except OSError as error:
            return f"{FIO_JSON} cannot be written: {error.strerror}"
        return None

    def _text(self, output: Path) -> str | None:
        """None when it is too long. The run is the user's by now: in it no link is followed."""
        flags = os.O_RDONLY | os.O_CLOEXEC | (os.O_NOFOLLOW if self.printed else 0)
        with open(os.open(output, flags), encoding="utf-8", errors="replace") as file:
            if os.fstat(file.fileno()).st_size > _MOST_BYTES:
                return None
            return file.read()


def fio_results(command: Sequence[str], folder: Path, cwd: Path) -> FioResults | None:
    """None for what is not fio."""
    if not command or Path(command[0]).name != "fio":
        return None
    words = tuple(command)
    formats, output = _options(words[1:])
    wants_json = any(name.strip() in _JSON for name in formats)
    if output is None and (wants_json or not formats):
        if shutil.which(words[0]) is None:
            return None
        added = [f"--{_OUTPUT}={folder / _PRINTED}"]
        if not formats:
            added.append(f"--{_FORMAT}=normal,json")
        return FioResults((words[0], *added, *words[1:]), printed=True, shown=wants_json)
    if not wants_json:
        told = ",".join(formats) or "its text"
        where = "stdout" if output is None else output
        return FioResults(
            words,
            problem=f"fio was asked for {told} on {where}: the run has no {FIO_JSON};"
            f" add --{_FORMAT}={','.join(formats) or 'normal'},json",
        )
    path = (cwd / str(output)).absolute()
    return FioResults(words, path, before=_state(path))


def _options(words: Sequence[str]) -> tuple[list[str], str | None]:
    """--output-format and --output, as --NAME=VALUE and as --NAME VALUE; the last ones count."""
    formats: list[str] = []
    output = None
    left = list(words)
    while left:
        name, equals, value = left.pop(0).partition("=")
        if not name.startswith("-"):
            continue
        name = name.lstrip("-")
        # Like getopt_long(3), fio takes the beginning of a name.
        is_format = len(name) > len(_OUTPUT) and _FORMAT.startswith(name)
        if name != _OUTPUT and not is_format:
            continue
        if not equals:
            value = left.pop(0) if left else ""
        if is_format:
            formats = value.split(",")
        else:
            output = value
    return formats, output


def json_part(text: str) -> str | None:
    """The last JSON object that begins on a line of its own; fio prints notes around it."""
    decoder = json.JSONDecoder()
    found, past = None, 0
    for start in re.finditer(r"^\{", text, re.MULTILINE):
        if start.start() < past:
            continue
        try:
            _, past = decoder.raw_decode(text, start.start())
        except ValueError:
            continue
        found = text[start.start() : past]
    return found


def _state(path: Path) -> tuple[int, int] | None:
    """Size and time of a file: another one when it was written."""
    try:
        told = path.stat()
    except OSError:
        return None
    return told.st_size, told.st_mtime_ns
