# SPDX-License-Identifier: Apache-2.0
"""Ring-buffer pages of each CPU, and the trace.dat that is written of them.

One thread takes full pages into pipes, another one writes them, so that a slow disk loses no
event while there is memory for more pipes.  Pages are spliced, many in a call and without a copy,
also into the file: directly, past the page cache, where the file system can.  A page that only
read(2) takes costs a call each.  What is in the last, half-filled page comes by read(2) at the
end.  The kernel marks in each page what was lost before it; the pages are kept as they are.
Source: kernel/trace/trace.c, tracing_buffers_splice_read(); fs/splice.c,
iter_file_splice_write(), which locks the pipe while it writes: hence many pipes, not a large one.

Source: trace-cmd.dat.v6(5).  The first part is saved when a recording starts, so that
whatever ends it, the pages that were copied can still be read.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import re
import resource
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wbscope.base.version import __version__
from wbscope.record.choose import Instance, memory_kib
from wbscope.record.register import DirectFile, go_plain, is_direct, open_direct

_PIPE_BYTES = 1 << 20
# What waits for the disk, at most: of all CPUs, and of each.
_SHARE = 32  # of the available memory
_MOST_WAITING_BYTES = 64 << 20
# How long a CPU whose pages are few is left alone: each look costs, for its thread is out of the
# caches.  Half of what the ring buffer takes from a CPU that writes as fast as this, twice of what
# was ever seen (every event of Linux 6.1 under four dd), within bounds.
_FASTEST_BYTES = 64 << 20  # a second
_SLEEP_SECONDS = (0.05, 0.2)
# Fewer pages than fill half a pipe are not written at once.
_GATHER_SECONDS = 0.2
# A CPU whose pages cannot be written is tried again: somebody may make room.
_RETRY_SECONDS = 0.5
# Reading costs little; more threads than these would only wake each other.
_MOST_THREADS = 16
_CPUS_OF_A_READER = 4
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
        buffer_kib: int = 0,  # of each CPU
        most_waiting: int = _MOST_WAITING_BYTES,
    ) -> None:
        self.errors: list[str] = []
        self.failed: list[int] = []
        self._tell = tell
        self._page_bytes = page_bytes(instance)
        self._ended = threading.Event()
        self._cpus: list[_Cpu] = []
        _allow_files()
        paths = list(instance.cpus())
        waiting = min(_waiting_bytes(len(paths)), most_waiting)
        readers = min(-(-len(paths) // _CPUS_OF_A_READER), _MOST_THREADS)
        writers = [threading.Event() for _ in paths[:_MOST_THREADS]]
        for place, (number, path) in enumerate(paths):
            raw, woken = path / "trace_pipe_raw", writers[place % len(writers)]
            cpu = _Cpu(number, raw, target_of(number), self._page_bytes, waiting, woken)
            self._cpus.append(cpu)
        least, most = _SLEEP_SECONDS
        self._sleep = min(most, max(least, (buffer_kib << 10) / 2 / _FASTEST_BYTES))
        # Who waits for the disk holds no other up.
        self._threads = [
            threading.Thread(target=work, args=(self._cpus[first::count],), daemon=True)
            for work, count in ((self._take, readers), (self._write, len(writers)))
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
        for cpu in self._cpus:
            cpu.woken.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def bytes_count(self) -> int:
        return sum(cpu.bytes_count for cpu in self._cpus)

    def is_direct(self) -> bool:
        """Past the page cache, of every CPU."""
        return all(cpu.is_direct() for cpu in self._cpus)

    def _take(self, cpus: list[_Cpu]) -> None:
        _go_first()
        while not self._ended.is_set():
            busy = is_full = False
            for cpu in cpus:
                with contextlib.suppress(OSError):  # told by finish(), which tries it again
                    busy |= cpu.take() * 2 > cpu.room
                is_full |= cpu.is_full()
            if not busy:
                self._ended.wait(_SLEEP_SECONDS[0] if is_full else self._sleep)

    def _write(self, cpus: list[_Cpu]) -> None:
        _go_first()
        woken = cpus[0].woken
        while not self._ended.is_set():
            woken.wait(_RETRY_SECONDS if any(cpu.failed for cpu in cpus) else None)
            woken.clear()
            for cpu in cpus:
                self._guarded(cpu)

    def _guarded(self, cpu: _Cpu, last: bool = False) -> None:
        """Write what waits; an error is told once and tried again later."""
        if cpu.failed and time.monotonic() < cpu.retry_at:
            return
        try:
            cpu.write()
            if last:
                while cpu.take(last=True) or cpu.write():
                    pass
                cpu.read()
            cpu.failed = False
        except OSError as error:
            cpu.failed = True
            cpu.retry_at = time.monotonic() + _RETRY_SECONDS
            if not cpu.told:
                cpu.told = True
                self.errors.append(f"cpu {cpu.number}: {error.strerror or error}")
                self._tell(self.errors[-1])


def _waiting_bytes(cpus: int) -> int:
    """Room of each CPU."""
    each = (memory_kib() << 10) // _SHARE // max(cpus, 1)
    return max(2 * _PIPE_BYTES, each)


def _go_first() -> None:
    """The workload may be greedy; only this thread."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


def _allow_files() -> None:
    """As many as there are pipes for, in a process that starts no program."""
    with contextlib.suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class _Pipe:
    """Filled by one thread, then emptied by the other."""

    def __init__(self) -> None:
        self.bytes = 0
        self.output, self.input = os.pipe2(os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # over the user's limit: it stays smaller
            fcntl.fcntl(self.input, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self.room = fcntl.fcntl(self.input, fcntl.F_GETPIPE_SZ)

    def close(self) -> None:
        os.close(self.output)
        os.close(self.input)


class _Cpu:
    """Its files and pipes.  take() is of one thread, write() of another one."""

    def __init__(
        self,
        number: int,
        source: Path,
        target: Path,
        page: int,
        waiting: int,
        woken: threading.Event,
    ) -> None:
        self.number = number
        self.woken = woken  # set when there is something to write
        self.bytes_count = 0
        self.failed = False
        self.told = False
        self.retry_at = 0.0
        self._unwritten = 0  # of the page that only read(2) takes
        self._due_at = 0.0
        self._page = mmap.mmap(-1, page)  # aligned, as direct writes want it
        self._source = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._target = open_direct(target, os.O_WRONLY | os.O_CREAT, 0o644)
        # A copier that was killed may have left a part of a page.
        os.ftruncate(self._target, os.lseek(self._target, 0, os.SEEK_END) // page * page)
        os.lseek(self._target, 0, os.SEEK_END)
        self._taking = _Pipe()
        self._pipes = [self._taking]
        self._most_pipes = waiting // _PIPE_BYTES
        # What append() and popleft() do is safe between threads.
        self._full: deque[_Pipe] = deque()
        self._empty: deque[_Pipe] = deque()

    def is_direct(self) -> bool:
        return is_direct(self._target)

    @property
    def room(self) -> int:
        """Of a pipe; less than was asked for where the user's limit is lower."""
        return self._taking.room

    def is_full(self) -> bool:
        """No page can be taken before one is written."""
        return self._taking.bytes >= self._taking.room

    def take(self, last: bool = False) -> int:
        """Bytes of the full pages that are there, as far as there is room for them."""
        pipe = self._taking
        was_full = self.is_full()
        moved = 0
        if not was_full:
            try:
                moved = os.splice(self._source, pipe.input, pipe.room - pipe.bytes, flags=_SPLICE)
            except BlockingIOError:
                pass
            except OSError as error:
                # A CPU that can be plugged in and never was: it has a folder and no buffer.
                if error.errno != errno.ENODEV:
                    raise
        pipe.bytes += moved
        is_due = last or pipe.bytes * 2 >= pipe.room or time.monotonic() >= self._due_at
        if pipe.bytes and is_due and (other := self._another()) is not None:
            self._due_at = time.monotonic() + _GATHER_SECONDS
            self._full.append(pipe)
            self.woken.set()
            self._taking = other
            if was_full:  # the disk was slow, and pages wait
                return self.take(last)
        return moved

    def _another(self) -> _Pipe | None:
        """An empty pipe; None while the disk is too slow."""
        with contextlib.suppress(IndexError):
            return self._empty.popleft()
        if len(self._pipes) >= self._most_pipes:
            return None
        try:
            self._pipes.append(_Pipe())
        except OSError:  # too many files
            return None
        return self._pipes[-1]

    def write(self) -> bool:
        """What waits; False when nothing does."""
        wrote = bool(self._full)
        while self._full:
            pipe = self._full[0]
            while pipe.bytes:
                try:
                    done = os.splice(pipe.output, self._target, pipe.bytes)
                except OSError as error:
                    go_plain(self._target, error)
                    continue
                pipe.bytes -= done
                self.bytes_count += done
            self._empty.append(self._full.popleft())
        while self._unwritten:
            with memoryview(self._page) as page, page[-self._unwritten :] as rest:
                try:
                    done = os.write(self._target, rest)
                except OSError as error:
                    go_plain(self._target, error)
                    continue
            self._unwritten -= done
            self.bytes_count += done
        return wrote

    def read(self) -> None:
        """The page that is not full, when nothing else is left."""
        size = len(self._page)
        while True:
            self.write()
            try:
                page = os.read(self._source, size)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                raise
            if not page:
                return
            self._page[:] = page.ljust(size, b"\0")
            self._unwritten = size

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        self._pipes.clear()
        for number in (self._source, self._target):
            with contextlib.suppress(OSError):
                os.close(number)


_MAGIC = b"\x17\x08\x44tracing6\0"
_OPTIONS, _FLYRECORD = b"options  \0", b"flyrecord\0"
_CPUSTAT, _CLOCK, _UNAME, _CPUCOUNT, _VERSION, _TRACEID = 2, 4, 5, 8, 9, 11
# Print formats that name symbols: only they need the table of all of them.
_SYMBOLS = re.compile(r"%-?\d*p[sSfFB]|__print_symbolic_sym|%pS")
_KALLSYMS = Path("/proc/kallsyms")


@dataclass(frozen=True)
class Machine:
    """Of the machine that recorded: byte order as struct has it, and size of a long."""

    order: str = "<" if sys.byteorder == "little" else ">"
    long_bytes: int = struct.calcsize("l")
    kallsyms: Path = _KALLSYMS


@dataclass
class Tail:
    """What is known only when a recording ends."""

    clock: str
    uname: str
    trace_id: int
    cmdlines: Mapping[int, str] = field(default_factory=dict)
    cpu_stats: Mapping[int, str] = field(default_factory=dict)


def head_of(instance: Instance, events: Iterable[str], machine: Machine | None = None) -> bytes:
    """Everything before the names of tasks: formats, symbols, printk formats."""
    machine = machine or Machine()
    pack = _Packer(machine.order)
    events_dir = instance.tracefs / "events"
    head = [_MAGIC, bytes([machine.order == ">", machine.long_bytes])]
    head += [pack.number(page_bytes(instance))]
    for name in ("header_page", "header_event"):
        head += [name.encode() + b"\0", pack.sized(_read(events_dir / name))]
    head.append(pack.files(sorted((events_dir / "ftrace").glob("*/format"))))
    systems: dict[str, list[Path]] = {}
    for event in sorted(events):
        system, _, name = event.partition(":")
        systems.setdefault(system, []).append(events_dir / system / name / "format")
    head.append(pack.number(len(systems)))
    wants_symbols = False
    for system, paths in systems.items():
        wants_symbols |= any(_SYMBOLS.search(path.read_text(errors="replace")) for path in paths)
        head += [system.encode() + b"\0", pack.files(paths)]
    kallsyms = _read(machine.kallsyms) if wants_symbols else b""
    head += [pack.sized(kallsyms, "I"), pack.sized(_read(instance.tracefs / "printk_formats"), "I")]
    return b"".join(head)


def write_trace(output: Path, head: bytes, tail: Tail, cpu_files: Mapping[int, Path]) -> int:
    """Put the parts together; returns the bytes of pages. `output` is replaced when whole."""
    pack = _Packer(">" if head[len(_MAGIC)] else "<")
    page = struct.unpack_from(f"{pack.order}I", head, len(_MAGIC) + 2)[0]
    cpus = max(cpu_files, default=-1) + 1
    before = head + _cmdlines(pack, tail.cmdlines) + pack.number(cpus) + _options(pack, tail, cpus)
    sizes = {cpu: path.stat().st_size // page * page for cpu, path in cpu_files.items()}
    at = _aligned(len(before) + len(_FLYRECORD) + 16 * cpus, page)
    table = []
    for cpu in range(cpus):
        table.append(pack.number(at, "Q") + pack.number(sizes.get(cpu, 0), "Q"))
        at += sizes.get(cpu, 0)
    before += _FLYRECORD + b"".join(table)
    part = output.with_name(f".{output.name}.part")
    with DirectFile(part) as out:
        out.append(before + bytes(-len(before) % page))
        for cpu in sorted(cpu_files):
            out.append_file(cpu_files[cpu], sizes[cpu])
    os.replace(part, output)
    return sum(sizes.values())


def _options(pack: _Packer, tail: Tail, cpus: int) -> bytes:
    options = [
        (_CLOCK, tail.clock.encode() + b"\0"),
        (_UNAME, tail.uname.encode() + b"\0"),
        (_VERSION, f"wbscope {__version__}".encode() + b"\0"),
        (_TRACEID, pack.number(tail.trace_id, "Q")),
        (_CPUCOUNT, pack.number(cpus)),
        *(
            (_CPUSTAT, f"CPU: {cpu}\n{text}".encode() + b"\0")
            for cpu, text in sorted(tail.cpu_stats.items())
        ),
    ]
    packed = (pack.number(number, "H") + pack.sized(data, "I") for number, data in options)
    return _OPTIONS + b"".join(packed) + pack.number(0, "H")


def _cmdlines(pack: _Packer, names: Mapping[int, str]) -> bytes:
    lines = "".join(f"{tid} {comm}\n" for tid, comm in sorted(names.items()))
    return pack.sized(lines.encode(errors="surrogateescape"))


@dataclass(frozen=True)
class _Packer:
    """Numbers in the byte order of the recording machine."""

    order: str

    def number(self, value: int, size: str = "I") -> bytes:
        return struct.pack(f"{self.order}{size}", value)

    def sized(self, data: bytes, size: str = "Q") -> bytes:
        return self.number(len(data), size) + data

    def files(self, paths: list[Path]) -> bytes:
        return self.number(len(paths)) + b"".join(self.sized(_read(path)) for path in paths)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _aligned(at: int, page: int) -> int:
    return -(-at // page) * page
