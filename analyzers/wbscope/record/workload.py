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

from wbscope.errors import UsageError

__all__ = ["Workload", "with_fio_json"]

_FIO_JSON = "fio.json"


def with_fio_json(command: Sequence[str], folder: Path) -> tuple[list[str], Path | None]:
    """fio writes its results as JSON into the run; its own file, when it was asked for one.

    Returns the command, and a file to copy afterwards.
    """
    words = list(command)
    if not words or Path(words[0]).name != "fio":
        return words, None
    options = dict(word.lstrip("-").partition("=")[::2] for word in words[1:])
    formats = options.get("output-format")
    if formats is None:
        added = ["--output-format=json", f"--output={folder / _FIO_JSON}"]
        return [words[0], *added, *words[1:]], None
    if "json" not in formats:
        return words, None
    if output := options.get("output"):
        return words, Path(output).absolute()
    return [words[0], f"--output={folder / _FIO_JSON}", *words[1:]], None


class Workload:
    """Runs in the foreground group: Ctrl-C reaches it as in a shell.

    Its stdout is our stderr, for ours has the report.
    """

    def __init__(self, command: Sequence[str], clock: int, events: queue.Queue[Any]) -> None:
        self.facts: dict[str, Any] = {}
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
        threading.Thread(target=self._wait, daemon=True).start()

    def lives(self) -> bool:
        return not self.facts

    def kill(self, number: signal.Signals) -> None:
        """Not the group: we are in it."""
        with contextlib.suppress(ProcessLookupError):
            if self.lives():
                os.kill(self._process.pid, number)

    def _wait(self) -> None:
        _, status, used = os.wait4(self._process.pid, 0)
        ended = time.clock_gettime_ns(self._clock)
        code = os.waitstatus_to_exitcode(status)
        self._process.returncode = code
        self.facts = {
            "command_pid": self._process.pid,
            "command_started_ts_ns": self._started_ns,
            "command_ended_ts_ns": ended,
            "command_duration_ns": ended - self._started_ns,
            "command_exit_code": code if code >= 0 else None,
            "command_signal": -code if code < 0 else None,
            **_usage(used),
        }
        self._events.put("ended")


def _usage(used: resource.struct_rusage) -> dict[str, Any]:
    return {
        "command_user_s": used.ru_utime,
        "command_system_s": used.ru_stime,
        "command_max_rss_bytes": used.ru_maxrss << 10,
        "command_major_faults_count": used.ru_majflt,
        "command_minor_faults_count": used.ru_minflt,
    }
