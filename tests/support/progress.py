# SPDX-License-Identifier: Apache-2.0
"""How far a command is, told by what it does: as good on a slow machine as on a fast one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from .commandserver import descendants
from .waits import GUARD_SECONDS, wait_until

__all__ = [
    "Hang",
    "Steps",
    "catches",
    "descendants",
    "hang_guard",
    "has_open",
    "returned",
    "wait_for_group",
    "wait_for_work",
    "waits_in",
]

# Below what a step takes: the next one that is looked at is hardly ever far beyond it.
_LOOK_SECONDS = 0.0005
_TICKS = 20  # of its processor time, 10 ms each


class Steps:
    """Reads and writes of a command and of all that it starts, from its start on.

    They are the same from run to run, so that a share of all of them is a moment.
    """

    def __init__(self, process: subprocess.Popen[Any]) -> None:
        self._pid = process.pid
        self._made: dict[int, int] = {}

    def count(self) -> int:
        """How many there were until now."""
        for pid in descendants(self._pid):
            with contextlib.suppress(OSError):
                told = Path(f"/proc/{pid}/io").read_text().split()
                self._made[pid] = int(told[5]) + int(told[7])  # syscr, syscw
        return sum(self._made.values())

    def reach(self, wanted: int, stands_in: str = "") -> bool:
        """Wait until there were so many; False where the command ends, or stands there, before."""
        end = time.monotonic() + GUARD_SECONDS
        while self.count() < wanted:
            if _has_ended(self._pid) or (stands_in and waits_in(self._pid, stands_in)):
                return False
            assert time.monotonic() < end, f"hangs before step {wanted}"
            time.sleep(_LOOK_SECONDS)
        return not _has_ended(self._pid)

    def whole(self) -> int:
        """Wait until the command has ended: all that there were."""
        wait_until(lambda: self.count() and _has_ended(self._pid), "it ends")
        return self.count()


def _has_ended(pid: int) -> bool:
    """Its parent asks, and may ask for its exit code later."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _status(pid: int | str) -> list[str]:
    """What /proc/PID/stat says behind the name: the state first; [] where there is none."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler for the signal: before that, it ends as it is."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def waits_in(pid: int, *functions: str) -> bool:
    """Whether the process sleeps in a function of the kernel that has one of these in its name."""
    with contextlib.suppress(OSError):
        place = Path(f"/proc/{pid}/wchan").read_text()
        return any(function in place for function in functions)
    return False


def has_open(pid: int, path: Path) -> bool:
    """Whether the process has this file open."""
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.path.samefile(f"/proc/{pid}/fd/{name}", path):
                    return True
    return False


def wait_for_work(process: subprocess.Popen[Any], path: Path, ticks: int = _TICKS) -> None:
    """Wait until it has the file open and has then used so much of a processor."""
    wait_until(lambda: process.poll() is not None or has_open(process.pid, path), f"opens {path}")
    begin = _ticks(process.pid)
    wait_until(
        lambda: process.poll() is not None or _ticks(process.pid) >= begin + ticks,
        f"works on {path}",
    )
    assert process.returncode is None, f"ended with {process.returncode}"


def _ticks(pid: int) -> int:
    """User and system time of its threads."""
    status = _status(pid)
    return int(status[11]) + int(status[12]) if status else 0


def wait_for_group(group: int) -> None:
    """Wait until no process of the group lives: one that was killed may be dying still."""

    def lives(name: str) -> bool:
        status = _status(name)
        return bool(status) and status[0] not in "ZX" and int(status[2]) == group

    wait_until(
        lambda: not any(lives(name) for name in os.listdir("/proc") if name.isdigit()),
        f"the processes of group {group} end",
    )


class Hang(BaseException):
    """Something goes on without end."""


@contextlib.contextmanager
def hang_guard() -> Iterator[None]:
    """Within, in the main thread, what hangs ends with Hang: re asks for signals, too."""

    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(round(GUARD_SECONDS))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def returned(function: Callable[[], object]) -> bool:
    """Call it in a thread; whether it came back, and did not wait for ever."""
    calling = threading.Thread(target=function, daemon=True)
    calling.start()
    calling.join(GUARD_SECONDS)
    return not calling.is_alive()
