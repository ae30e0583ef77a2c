# SPDX-License-Identifier: Apache-2.0
"""Tasks: what each thread has dirtied, and what it is called.

A line is `WHEN key=value ... comm=NAME`, the name last.  WHEN is `start` or `end`, for threads
that lived then (/proc/PID/task/TID/io), or `exit`, for those that exited in between (taskstats).
Values are totals of a thread's life: what it dirtied in the recording is its end or exit minus
its start.  One that dirtied nothing and has no delays has no exit line.

Source: Documentation/filesystems/proc.rst, /proc/<pid>/io; mm/page-writeback.c
folio_account_dirtied() counts write_bytes.

The file has room from the start: of a recording that fills its disk, the pages that were
copied are of use only with the names.  Each add_names() adds a line, so that one cut short
spoils no other.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from wbscope.base.errors import SetupError
from wbscope.record.register import DirectFile
from wbscope.record.settings import SmallFiles
from wbscope.record.taskstats import ExitedThread, ExitListener, parse_message

FILE = "task_io"

_PROC = Path("/proc")
_DELAYS = Path("sys/kernel/task_delayacct")
_MOST_BYTES = 15 << 20  # ingest reads 16 MiB of a file
_GATHER_SECONDS = 0.1
_GATHER_SECONDS_OF_FEW = 0.05  # where there is room for some hundred
_EXITING = 0x4  # PF_EXITING
_STATE, _FLAGS = 0, 6  # in /proc/PID/stat, behind the name
_KEYS = {
    "wchar": "write_char_bytes",
    "rchar": "read_char_bytes",
    "write_bytes": "write_bytes",
    "read_bytes": "read_bytes",
    "cancelled_write_bytes": "cancelled_write_bytes",
}
_DELAY_KEYS = (
    "blkio_delay_ns",
    "swapin_delay_ns",
    "freepages_delay_ns",
    "thrashing_delay_ns",
)
_NOT_IN_FILE = ("tid", "tgid", "comm", "life_ns", "version")
_VALUE_KEYS = tuple(f.name for f in fields(ExitedThread) if f.name not in _NOT_IN_FILE)


@dataclass(frozen=True)
class LivingThread:
    """Totals of its life up to now."""

    tid: int
    tgid: int
    comm: str
    is_exiting: bool  # taskstats tells of it, or has
    values: Mapping[str, int]


class TaskIo:
    """Writes the file while a trace is recorded.

    What is refused leaves no line; `facts` says why.
    """

    def __init__(
        self,
        folder: Path,
        clock: int,
        proc: Path = _PROC,
        listen: Callable[[], ExitListener] = ExitListener,
    ) -> None:
        self._small_files = SmallFiles(folder)
        self._clock = clock
        self._proc = proc
        self._open_listener = listen
        self._why: str | None = None
        self._version: int | None = None
        self._counts = {"start": 0, "end": 0, "exit": 0}
        self._left_out = 0
        self._lost = False
        self._room = _MOST_BYTES
        self._is_open = False
        self._listener: ExitListener | None = None
        self._thread: threading.Thread | None = None
        self._waker: tuple[int, int] | None = None
        self._at_start: set[int] = set()
        # Two threads note: whoever is first with a thread at the end has its only line.
        self._lock = threading.Lock()
        self._is_ending = False
        self._at_end: set[int] = set()
        self._exited: set[int] = set()  # since the end is noted
        self._began_ns = 0
        self._has_delays: bool | None = False

    def start(self) -> None:
        """Before the first event."""
        if not (self._proc / "self/io").exists():
            self._why = "this kernel does not count it (CONFIG_TASK_IO_ACCOUNTING)"
            return
        try:
            self._small_files.create(FILE)
        except OSError as error:
            self._why = f"{FILE} cannot be written: {error.strerror}"
            return
        self._is_open = True
        self._small_files.start()
        self._has_delays = _counts_delays(self._proc)
        self._began_ns = time.monotonic_ns()
        try:
            self._listener = self._open_listener()
        except SetupError as error:
            self._why = error.message
        self._note_living("start", self._at_start)
        if self._listener is not None:
            self._waker = os.pipe()
            self._thread = threading.Thread(target=self._listen, daemon=True)
            self._thread.start()

    def finish(self) -> None:
        """After the last event; a thread that ends meanwhile has one line, not two."""
        if not self._is_open:
            return
        self._is_ending = True
        self._note_living("end", self._at_end)
        if self._listener is not None and self._waker is not None and self._thread is not None:
            os.write(self._waker[1], b".")
            self._thread.join()
        self.close()

    def close(self) -> None:
        """Also of a recording that did not begin."""
        if self._listener is not None:
            self._listener.close()
        for end in self._waker or ():
            with contextlib.suppress(OSError):
                os.close(end)
        self._waker = None
        if self._is_open:
            self._is_open = False
            self._small_files.finish()

    def problems(self) -> list[str]:
        """What makes sums of the file wrong."""
        found = []
        if self._lost:
            found.append("threads exited faster than taskstats was read; task_io lacks some")
        if self._left_out:
            found.append(f"{self._left_out} threads are not in task_io, which has no room for them")
        return found

    def facts(self) -> dict[str, Any]:
        """For meta.json."""
        return {
            "exits": None if self._listener is None else "taskstats",
            "why_not": self._why,
            "taskstats_version": self._version,
            "has_delays": self._has_delays,
            "start_count": self._counts["start"],
            "exit_count": self._counts["exit"],
            "end_count": self._counts["end"],
            "left_out_count": self._left_out,
            "exits_lost": self._lost,
        }

    def _note_living(self, when: str, noted: set[int]) -> None:
        """Their lines; `noted` gets each tid before its line is written."""
        ts = time.clock_gettime_ns(self._clock)
        has_exits = self._listener is not None
        for thread in living_threads(self._proc):
            if has_exits and thread.is_exiting:
                continue
            with self._lock:
                if thread.tid in self._exited:
                    continue  # it was told between our look and now
                noted.add(thread.tid)
            self._add(when, _living_line(when, ts, thread))

    def _listen(self) -> None:
        assert self._listener is not None
        assert self._waker is not None
        sources = [self._listener.fileno(), self._waker[0]]
        gather = _GATHER_SECONDS if self._listener.has_room else _GATHER_SECONDS_OF_FEW
        while True:
            ready, _, _ = select.select(sources, [], [])
            if self._waker[0] not in ready:
                # Many at a time cost less, where there is room for some thousands.
                ready, _, _ = select.select(sources[1:], [], [], gather)
            self._take()
            if self._waker[0] in ready:
                return

    def _take(self) -> None:
        """What the kernel has told so far."""
        assert self._listener is not None
        while True:
            try:
                for data in self._listener.read():
                    for thread in parse_message(data):
                        self._note_exit(thread)
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    self._why = f"taskstats ended: {error.strerror}"
                    self._lost = True
                    return
                self._lost = True  # and read on

    def _note_exit(self, thread: ExitedThread) -> None:
        self._version = thread.version
        with self._lock:
            if thread.tid in self._at_end:
                return
            if self._is_ending:
                self._exited.add(thread.tid)
        is_older = time.monotonic_ns() - thread.life_ns < self._began_ns
        if is_older and thread.tid not in self._at_start:
            return  # exited while we began: nothing of it is in the recording
        self._at_start.discard(thread.tid)
        values = {key: getattr(thread, key) for key in _VALUE_KEYS}
        are_counted = self._has_delays and not is_older  # for all threads that begin now
        if self._has_delays is False or not (are_counted or any(values[k] for k in _DELAY_KEYS)):
            values |= dict.fromkeys(_DELAY_KEYS)
        told = ("write_bytes", "cancelled_write_bytes", *_DELAY_KEYS)
        if not is_older and not any(values[key] for key in told):
            return
        ts = time.clock_gettime_ns(self._clock)
        self._add("exit", _line("exit", ts, thread.tid, thread.tgid, thread.comm, values))

    def _add(self, when: str, line: str) -> None:
        size = len(line)
        has_room = self._is_open and size <= self._room
        if not has_room or not self._small_files.append(FILE, line):
            self._left_out += 1
            return
        self._room -= size
        self._counts[when] += 1


def add_living(folder: Path, clock: int, proc: Path = _PROC) -> None:
    """The `end` lines of a recording whose recorder was killed a moment ago.

    Raises: OSError.
    """
    path = folder / FILE
    if not path.exists():
        return
    told = path.read_bytes().rstrip(b"\0")  # zeros: of a write that was not the last
    if re.search(rb"^end ", told, re.MULTILINE):
        return
    ts = time.clock_gettime_ns(clock)
    lines = "".join(_living_line("end", ts, thread) for thread in living_threads(proc))
    with DirectFile(path, is_new=False, size=len(told)) as file:
        file.append(f"\n{lines}".encode(errors="surrogateescape"))  # the last may be cut short


def living_threads(proc: Path = _PROC) -> Iterator[LivingThread]:
    """Those that this user may read."""
    for process in _listed(proc):
        for task in _listed(process / "task"):
            try:
                stat = (task / "stat").read_text(encoding="utf-8", errors="surrogateescape")
                text = (task / "io").read_text()
            except OSError:
                continue  # it ended, or is not ours
            comm, _, rest = stat.partition("(")[2].rpartition(")")
            stats = rest.split()
            found = (line.partition(":") for line in text.splitlines())
            values = {_KEYS[key]: int(value) for key, _, value in found if key in _KEYS}
            is_exiting = stats[_STATE] in "ZX" or bool(int(stats[_FLAGS]) & _EXITING)
            yield LivingThread(int(task.name), int(process.name), comm, is_exiting, values)


def _listed(folder: Path) -> Iterable[Path]:
    try:
        return [path for path in folder.iterdir() if path.name.isdigit()]
    except OSError:
        return []


def _counts_delays(proc: Path) -> bool | None:
    """Delays are 0 where nobody counts them; None before 5.14, where no file tells."""
    try:
        return (proc / _DELAYS).read_text().strip() == "1"
    except OSError:
        return None


def _living_line(when: str, ts: int, thread: LivingThread) -> str:
    return _line(when, ts, thread.tid, thread.tgid, thread.comm, thread.values)


def _line(
    when: str,
    ts: int,
    tid: int,
    tgid: int | None,
    comm: str,
    values: Mapping[str, int | None],
) -> str:
    numbers = {"ts": ts, "tid": tid, "tgid": tgid, **values}
    told = " ".join(f"{key}={value}" for key, value in numbers.items() if value is not None)
    name = comm.replace("\\", "\\\\").replace("\n", "\\n")
    return f"{when} {told} comm={name}\n"


_FILE = ".names"
_ROOM_BYTES = 256 << 10  # some 8,000 tasks; more where the disk has room


def task_names(proc: Path = _PROC) -> dict[int, str]:
    """The name of every task that lives now."""
    names = {}
    for process in proc.iterdir():
        if not process.name.isdigit():
            continue
        for task in _tasks(process):
            with contextlib.suppress(OSError):  # it ended, and others of its process go on
                names[int(task.name)] = (task / "comm").read_text(errors="replace").rstrip("\n")
    return names


def _tasks(process: Path) -> list[Path]:
    try:
        return list((process / "task").iterdir())
    except OSError:
        return []  # it ended


def ended_task_names(tracefs: Path) -> dict[int, str]:
    """The kernel's own list has the names of tasks that ended, but of few at a time."""
    return EndedNames(tracefs).read()


class EndedNames:
    """That list, read again and again: what is new in it.

    It has 128 names, in newer kernels 6,500 and more.
    A task's name is what it was at an event: that of the shell that became dd is there for a while.
    """

    def __init__(self, tracefs: Path) -> None:
        self._path = tracefs / "saved_cmdlines"
        self._text = b""
        self._lines: frozenset[bytes] = frozenset()

    def read(self) -> dict[int, str]:
        names: dict[int, str] = {}
        try:
            text = self._path.read_bytes()
        except OSError:
            return names
        if text == self._text:
            return names
        lines = text.split(b"\n")
        for line in lines:
            if line in self._lines:
                continue
            tid, _, comm = line.partition(b" ")
            if tid.isdigit() and comm != b"<...>":
                names[int(tid)] = comm.decode("utf-8", "surrogateescape")
        self._text, self._lines = text, frozenset(lines)
        return names


def reserve_names(folder: Path) -> None:
    """Room on the disk: zeros after what is there."""
    with contextlib.suppress(OSError), (folder / _FILE).open("ab") as file:
        os.posix_fallocate(file.fileno(), file.tell(), _ROOM_BYTES)


def add_names(folder: Path, names: Mapping[int, str]) -> None:
    """After those that are there, whose names they replace.  Raises: OSError."""
    file = NameFile(folder)
    try:
        file.add(names)
    finally:
        file.leave()


class NameFile:
    """The file, of one that adds to it often: nobody else does meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._file: DirectFile | None = None

    def add(self, names: Mapping[int, str]) -> None:
        """After those that are there, whose names they replace.

        Raises: OSError; add them again then.
        """
        if not names:
            return
        if self._file is None:
            path = self._path
            size = len(path.read_bytes().rstrip(b"\0")) if path.exists() else 0
            self._file = DirectFile(path, is_new=False, size=size)
        # Behind it may be the rest of a longer one, for which there was no room.
        self._file.append(f"\n{json.dumps(names)}\n".encode())

    def leave(self) -> None:
        """With its room; add() opens it again."""
        if self._file is not None:
            self._file.leave()
            self._file = None


def read_names(folder: Path) -> dict[int, str]:
    """None of them when the file is not there."""
    names: dict[int, str] = {}
    try:
        lines = (folder / _FILE).read_bytes().rstrip(b"\0").splitlines()
    except OSError:
        return names
    for line in lines:
        with contextlib.suppress(ValueError, AttributeError):  # cut short
            names |= {int(tid): str(comm) for tid, comm in json.loads(line).items()}
    return names
