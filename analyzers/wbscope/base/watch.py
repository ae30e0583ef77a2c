# SPDX-License-Identifier: Apache-2.0
"""What a command may take: signals are heard at once, and SQL has limits on time and room.

SQLite comes back to Python seldom, and a step of it may take minutes: a signal handler, which
Python runs between its own steps, waits for it. So a thread listens, too. On a signal, or beyond a
limit, it stops the statements that run; what has not come to an end soon after is ended.
"""

from __future__ import annotations

import _thread
import contextlib
import importlib.util
import os
import select
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from wbscope.base.errors import Argument, Phrase, QueryError, UsageError, WbscopeError
from wbscope.base.outputs import remove_private_folders
from wbscope.base.units import seconds

_ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_INTERRUPTED = 130
# From the signal to the end of a command that does not end by itself.
_GRACE_SECONDS = 0.7
_FIRST_SECONDS = 0.15
# From a limit to the end: the statement is stopped, the error is printed.
_LATE_SECONDS = 2.0
_LOOK_SECONDS = 0.2

_TIMEOUT = "WBSCOPE_TIMEOUT"
_TIMEOUT_SECONDS = 600
# More than any machine has, of bytes and of seconds.
_MOST_DIGITS = 18
_TEMP = "WBSCOPE_TEMP_LIMIT"
_TEMP_BYTES = 4 << 30
_MEMORY = "WBSCOPE_MEMORY_LIMIT"
_MEMORY_BYTES = 4 << 30


class Running:
    """Something with limits that goes on now: a statement, or what a command does with it."""

    def __init__(self, interrupt: Callable[[], None] | None, limit_ns: int | None) -> None:
        self.interrupt = interrupt
        self.limit_s = None if limit_ns is None else seconds(limit_ns)
        self.deadline = None if limit_ns is None else time.monotonic() + seconds(limit_ns)
        self.broken: WbscopeError | None = None
        self.broken_at = 0.0

    def is_late(self) -> bool:
        """Whether its time is over."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def too_late(self) -> WbscopeError:
        """The error for that."""
        return QueryError(
            "time-limit",
            "sql",
            f"the question ran into its time limit of {self.limit_s:g} s and was stopped",
            fix=Phrase(
                "give it more time (",
                Argument("timeout"),
                f", or {_TIMEOUT}=SECONDS), or ask for less",
            ),
        )


class _Watch:
    """The thread and what it looks after."""

    def __init__(self, on_forced: Callable[[WbscopeError], int]) -> None:
        self._on_forced = on_forced
        self._temp_limit, self._memory_limit = temp_limit(), memory_limit()
        self.lock = threading.Lock()
        self.runs: list[Running] = []
        self.held = 0
        self._signalled_at = 0.0
        self._own_count = 0
        self._reading, self.writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._listen, name="wbscope-watch", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Nothing is forced from here on."""
        with contextlib.suppress(OSError):
            os.write(self.writing, b"\0")
        self._thread.join()
        os.close(self._reading)
        os.close(self.writing)

    def _listen(self) -> None:
        poll = select.poll()  # select() takes no descriptor above 1023
        poll.register(self._reading, select.POLLIN)
        while True:
            heard = os.read(self._reading, 512) if poll.poll(_LOOK_SECONDS * 1000) else b""
            if 0 in heard:
                return
            with self.lock:
                # Our own interrupts come this way, too.
                own = min(self._own_count, heard.count(signal.SIGINT))
                self._own_count -= own
                if sum(number in _ENDING for number in heard) > own:
                    self._signalled_at = self._signalled_at or time.monotonic()
                if self._signalled_at:
                    self._hurry()
                self._look()

    def _hurry(self) -> None:
        """A signal has come: stop what runs, and end if that does not help."""
        since = time.monotonic() - self._signalled_at
        # Python's own handler goes first: mostly it is run within SQLite in a moment, and two
        # exceptions at once would leave things open.
        for run in self.runs if since > _FIRST_SECONDS else ():
            _interrupt(run)
        if self.held and not any(run.interrupt for run in self.runs):
            self._signalled_at = 0.0  # it was heard, and there is more to do than to end
        elif since > _GRACE_SECONDS:
            remove_private_folders()
            # The command's own word, which it has not said. Without a stderr, another file has
            # its number.
            if sys.stderr is not None:
                with contextlib.suppress(OSError):
                    os.write(sys.stderr.fileno(), b"interrupted\n")
            os._exit(_INTERRUPTED)

    def _look(self) -> None:
        if not self.runs:
            return
        error = self._taken()
        for run in self.runs:
            if run.broken is not None:
                _interrupt(run)
                if time.monotonic() - run.broken_at > _LATE_SECONDS:
                    code = self._on_forced(run.broken)
                    remove_private_folders()
                    os._exit(code)
            elif (found := error or (run.too_late() if run.is_late() else None)) is not None:
                run.broken, run.broken_at = found, time.monotonic()
                _interrupt(run)
                if run.interrupt is None:
                    self._own_count += 1
                    _thread.interrupt_main()

    def _taken(self) -> WbscopeError | None:
        """What is beyond its limit, if anything is."""
        if temp_bytes() > self._temp_limit:
            return too_much_temp()
        if _resident_bytes() > self._memory_limit:
            return too_much_memory()
        return None


_watch: _Watch | None = None


@contextmanager
def watching(on_forced: Callable[[WbscopeError], int]) -> Iterator[None]:
    """Within, for the main thread of a command. on_forced prints an error and has its exit code."""
    global _watch
    if _watch is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    watch = _watch = _Watch(on_forced)
    before = signal.set_wakeup_fd(watch.writing, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        _watch = None
        watch.end()


@contextmanager
def hold() -> Iterator[None]:
    """Within, a signal ends a statement that runs; what else goes on ends in its own time."""
    if _watch is None:
        yield
        return
    _watch.held += 1
    try:
        yield
    finally:
        _watch.held -= 1


@contextmanager
def running(interrupt: Callable[[], None] | None, limit_ns: int | None) -> Iterator[Running]:
    """A statement that `interrupt` stops; the caller asks `broken` why it was stopped."""
    run = Running(interrupt, limit_ns)
    watch = _watch
    if watch is None:
        yield run
        return
    if threading.current_thread() is threading.main_thread():
        # A prompt takes the descriptor away when it ends.
        signal.set_wakeup_fd(watch.writing, warn_on_full_buffer=False)
    try:
        with watch.lock:
            watch.runs.append(run)
        yield run
    finally:
        with watch.lock:
            watch.runs = [other for other in watch.runs if other is not run]


@contextmanager
def time_limit(limit_ns: int | None) -> Iterator[None]:
    """Of all that is done within: opening, asking, printing.

    Raises: QueryError time-limit.
    """
    if limit_ns is None:
        yield
        return
    with running(None, limit_ns) as run:
        try:
            yield
        except KeyboardInterrupt:
            if run.broken is not None:
                raise run.broken from None
            raise
    if run.broken is not None:
        # It was broken in the last moment: the interrupt is still under way.
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(_LOOK_SECONDS)
        raise run.broken


def default_limit_ns() -> int:
    """How long one question may take: $WBSCOPE_TIMEOUT, else ten minutes."""
    return _number(_TIMEOUT, _TIMEOUT_SECONDS, "seconds") * 10**9


def memory_limit() -> int:
    """What a question may take of memory: $WBSCOPE_MEMORY_LIMIT, else as docs/formats.md says."""
    return _number(_MEMORY, min(_MEMORY_BYTES, _physical_bytes() // 2), "bytes")


def temp_limit() -> int:
    """... of temporary space: $WBSCOPE_TEMP_LIMIT, else 4 GiB."""
    return _number(_TEMP, _TEMP_BYTES, "bytes")


def too_much_memory() -> QueryError:
    """The error for that."""
    return _too_much("memory-limit", "memory", _MEMORY, memory_limit())


def too_much_temp() -> QueryError:
    """The error for that."""
    return _too_much("temp-limit", "temporary space", _TEMP, temp_limit())


def temp_bytes() -> int:
    """What this process has in files without a name: SQLite's, mostly."""
    total = 0
    with contextlib.suppress(OSError):
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                status = os.stat(f"/proc/self/fd/{fd}")
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                    total += status.st_blocks * 512
    return total


def _interrupt(run: Running) -> None:
    if run.interrupt is not None:
        run.interrupt()


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _physical_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _number(name: str, default: int, unit: str) -> int:
    text = os.environ.get(name)
    if not text:
        return default
    if not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) == 0:
        short = repr(text) if len(text) <= _MOST_DIGITS else f"of {len(text)} characters"
        raise UsageError(
            "bad-variable", name, f"is {short}, wanted {unit}, a whole number above 0",
            fix=f"export {name}={default}",
        )  # fmt: skip
    return int(text)


def _too_much(slug: str, what: str, name: str, limit: int) -> QueryError:
    return QueryError(
        slug,
        "sql",
        f"the question took more than the {limit >> 20} MiB of {what} that are allowed",
        effect="it was stopped",
        fix=Phrase(
            "ask for less (",
            Argument("start"),
            ", ",
            Argument("end"),
            f", LIMIT), or {name}=BYTES for more",
        ),
    )


_SQLITE_CONFIG_MEMSTATUS = 9


def leave_memory_uncounted() -> None:
    """Two threads need not wait for each other at each piece of memory (docs/benchmarks.md).

    SQLite counts what it allocates under a lock of the process, for limits that wbscope does not
    use. It can be told so only before its first use, and only by whom the process belongs to: not
    by a library that somebody imports. Where it cannot be told, it counts.
    Source: sqlite.org/c3ref/c_config_covering_index_scan.html, SQLITE_CONFIG_MEMSTATUS.
    """
    if "sqlite3" in sys.modules:
        return
    # A small Python may lack ctypes.
    with contextlib.suppress(ImportError, OSError, AttributeError, ValueError):
        import ctypes  # takes as long as the list of verbs

        # The library that Python itself will use, linked in or shared.
        module = importlib.util.find_spec("_sqlite3")
        if module is not None and module.origin is not None:
            ctypes.CDLL(module.origin).sqlite3_config(_SQLITE_CONFIG_MEMSTATUS, 0)
