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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wbscope.base.errors import UsageError
from wbscope.record.interrupts import Interrupts

__all__ = ["Workload", "descendants", "end_descendants"]

_PR_SET_CHILD_SUBREAPER = 36
# A terminal told it too, a plain kill of ours did not: it is told when it goes on.
_TOLD_SECONDS = 1.0
_PATIENCE_SECONDS = 5.0
_END_SECONDS = 2.0
_STEP_SECONDS = 0.02


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


def end_descendants(spared: int, interrupts: Interrupts) -> None:
    """All processes below this one but the recorder: they are the command's."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _END_SECONDS
        told: set[int] = set()
        while left := descendants(os.getpid(), spared):
            for pid in left - told:  # what appears meanwhile, too
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            told |= left
            is_patient = number == signal.SIGKILL or interrupts.count < 2
            if time.monotonic() > deadline or not is_patient:
                break
            time.sleep(_STEP_SECONDS)


def _adopt_orphans() -> None:
    """prctl(2); where it is refused, what a command leaves behind goes on."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # a small Python may lack it

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(pid: int, spared: int | None = None, proc: Path = Path("/proc")) -> set[int]:
    """Processes that live and descend from one; without a branch."""
    children: dict[int, list[int]] = {}
    for path in proc.glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended
        if fields[0] not in "ZX":
            children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found: set[int] = set()
    left = [pid]
    while left:
        for child in children.get(left.pop(), ()):
            if child != spared:
                found.add(child)
                left.append(child)
    return found


def _usage(used: resource.struct_rusage) -> dict[str, Any]:
    return {
        "command_user_s": used.ru_utime,
        "command_system_s": used.ru_stime,
        "command_max_rss_bytes": used.ru_maxrss << 10,
        "command_major_faults_count": used.ru_majflt,
        "command_minor_faults_count": used.ru_minflt,
    }
