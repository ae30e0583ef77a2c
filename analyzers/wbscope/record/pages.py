# SPDX-License-Identifier: Apache-2.0
"""Ring-buffer pages of each CPU, from trace_pipe_raw into a file.

Full pages are spliced, many in a call and without a copy through this program: a page
that only read(2) takes costs a call each.  What is in the last, half-filled page comes
by read(2) at the end.  The kernel marks in each page what was lost before it; the pages
are kept as they are.  Source: kernel/trace/trace.c, tracing_buffers_splice_read().
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from wbscope.record.tracefs import Instance

__all__ = ["PageCopier", "page_bytes"]

_PIPE_BYTES = 1 << 20
_SLEEP_SECONDS = 0.05
# A CPU whose pages cannot be written is tried again: somebody may make room.
_RETRY_SECONDS = 0.5
# Reading costs little; more threads than these would only wake each other.
_MOST_THREADS = 16
_NICE = -10
_SPLICE = os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE


def page_bytes(instance: Instance) -> int:
    """Size of a page of the ring buffer: what header_page says of head and data together."""
    for line in (instance.tracefs / "events/header_page").read_text().splitlines():
        if "char data" in line:
            numbers = dict(
                part.strip().split(":") for part in line.split(";") if part.count(":") == 1
            )
            return int(numbers["offset"]) + int(numbers["size"])
    return os.sysconf("SC_PAGE_SIZE")


class PageCopier:
    """Copies until it is stopped; a CPU that fails is tried again, the others go on.

    errors  what went wrong, also where it went well later
    failed  CPUs of which pages are missing; known when it has finished
    tell    is called in another thread with an error when it is met
    """

    def __init__(
        self,
        instance: Instance,
        target_of: Callable[[int], Path],
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.errors: list[str] = []
        self.failed: list[int] = []
        self._tell = tell
        self._page_bytes = page_bytes(instance)
        self._ended = threading.Event()
        self._cpus: list[_Cpu] = []
        for number, path in instance.cpus():
            target = target_of(number)
            self._cpus.append(_Cpu(number, path / "trace_pipe_raw", target, self._page_bytes))
        count = min(len(self._cpus), _MOST_THREADS)
        self._threads = [
            threading.Thread(target=self._copy, args=(self._cpus[first::count],), daemon=True)
            for first in range(count)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """After tracing is off: take what is left, close all files."""
        self._join()
        for cpu in self._cpus:
            cpu.retry_at = 0.0
            self._guarded(cpu, last=True)
            if cpu.failed:
                self.failed.append(cpu.number)
        self.close()

    def close(self) -> None:
        """Let go of the files; nothing more is read."""
        self._join()
        for cpu in self._cpus:
            cpu.close()
        self._cpus.clear()

    def _join(self) -> None:
        self._ended.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def bytes_count(self) -> int:
        return sum(cpu.bytes_count for cpu in self._cpus)

    def _copy(self, cpus: list[_Cpu]) -> None:
        with contextlib.suppress(OSError):  # the workload may be greedy; only this thread
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while not self._ended.is_set():
            busy = False
            for cpu in cpus:
                busy |= self._guarded(cpu)
            if not busy:
                self._ended.wait(_SLEEP_SECONDS)

    def _guarded(self, cpu: _Cpu, last: bool = False) -> bool:
        """True when there may be more at once."""
        if cpu.failed and time.monotonic() < cpu.retry_at:
            return False
        try:
            more = cpu.splice()
            while last and more:
                more = cpu.splice()
            if last:
                cpu.read(self._page_bytes)
            cpu.failed = False
            return more
        except OSError as error:
            cpu.failed = True
            cpu.retry_at = time.monotonic() + _RETRY_SECONDS
            if not cpu.told:
                cpu.told = True
                self.errors.append(f"cpu {cpu.number}: {error.strerror or error}")
                self._tell(self.errors[-1])
            return False


class _Cpu:
    """Its files, and a pipe between them: splice wants one."""

    def __init__(self, number: int, source: Path, target: Path, page: int) -> None:
        self.number = number
        self.bytes_count = 0
        self.failed = False
        self.told = False
        self.retry_at = 0.0
        self._in_pipe = 0
        self._unwritten = b""
        self._source = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._target = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        # A copier that was killed may have left a part of a page.
        os.ftruncate(self._target, os.lseek(self._target, 0, os.SEEK_END) // page * page)
        os.lseek(self._target, 0, os.SEEK_END)
        self._from_pipe, self._to_pipe = os.pipe2(os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # over the user's limit: it stays smaller
            fcntl.fcntl(self._to_pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def splice(self) -> bool:
        """Take the full pages that are there; True when the pipe was filled."""
        self._drain()
        try:
            moved = os.splice(self._source, self._to_pipe, _PIPE_BYTES, flags=_SPLICE)
        except BlockingIOError:
            return False
        self._in_pipe += moved
        self._drain()
        return moved * 2 > _PIPE_BYTES

    def _drain(self) -> None:
        """What could not be written before is still in the pipe, or here."""
        while self._in_pipe:
            done = os.splice(self._from_pipe, self._target, self._in_pipe)
            self._in_pipe -= done
            self.bytes_count += done
        while self._unwritten:
            done = os.write(self._target, self._unwritten)
            self._unwritten = self._unwritten[done:]
            self.bytes_count += done

    def read(self, size: int) -> None:
        """The page that is not full."""
        while True:
            self._drain()
            try:
                page = os.read(self._source, size)
            except BlockingIOError:
                return
            except OSError as error:
                # A CPU that can be plugged in and never was: it has a folder and no buffer.
                if error.errno == errno.ENODEV:
                    return
                raise
            if not page:
                return
            self._unwritten = page.ljust(size, b"\0")

    def close(self) -> None:
        for number in (self._source, self._target, self._from_pipe, self._to_pipe):
            with contextlib.suppress(OSError):
                os.close(number)
