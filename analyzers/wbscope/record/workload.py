# SPDX-License-Identifier: Apache-2.0
"""The command that is measured: started, waited for, and what it cost."""

from __future__ import annotations

import contextlib
import os
import queue
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from wbscope.base.errors import UsageError
from wbscope.record.interrupts import Interrupts

__all__ = ["Process", "Workload", "descendants", "end_descendants", "processes_below"]

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
