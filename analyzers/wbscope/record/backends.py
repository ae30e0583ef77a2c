# SPDX-License-Identifier: Apache-2.0
"""The two ways to record: plain tracefs, or trace-cmd, which writes through the page cache.

Both write pages to trace.dat.cpuN and leave a trace.dat; in both only an instance of our
own is used.  trace-cmd runs a shell that waits for its stdin to close: it ends, and
writes its file, also when the one that started it is killed.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from wbscope.base.errors import SetupError
from wbscope.record.choose import Instance
from wbscope.record.pages import PageCopier, Tail, write_trace
from wbscope.record.probes import filter_of
from wbscope.record.register import Plan

TRACE = "trace.dat"
HEAD = ".head"
ELSEWHERE = "remote script"  # the backend of a run that remote.sh recorded
# Of the error after which plain tracefs may do.
TRACE_CMD_FAILED = "trace-cmd-failed"
# Fired by reads of /proc/vmstat and bdi statistics; the second is of a patched kernel.
_FIRES = ("writeback:global_dirty_state", "writeback:wb_domain_dirty_state")
_READY = "wbscope: recording"
_GATE = f"echo '{_READY}'; read -r line; exit 0"
_ENTRIES = re.compile(r"^entries: (\d+)$", re.MULTILINE)
_START_SECONDS = 60.0
_STOP_SECONDS = 600.0
# After SIGKILL; one that waits for a dead server does not end before it answers.
_KILL_SECONDS = 10.0
_STEP_SECONDS = 0.02
_PROC = Path("/proc")


class Backend(Protocol):
    """Started once, stopped once; what it complains of is in `problems`.

    `is_whole` is False when pages of the ring buffer are not in the file.
    """

    problems: list[str]
    is_whole: bool

    def start(self, sampler_tid: int) -> bool:
        """Recording when it returns; True: the sampler's own events are left out."""

    def keep_alive(self) -> int | None:
        """A file whose last close, wherever, makes the kernel stop tracing."""

    def stop(self, tail: Tail) -> None:
        """Tracing off, trace.dat written."""

    def close(self) -> None:
        """Let go of everything, whatever state it is in."""


def backend_of(plan: Plan, tell: Callable[[str], None]) -> Backend:
    """`tell` is called with what goes wrong while it records."""
    return _TraceCmd(plan) if plan.backend == "trace-cmd" else _Tracefs(plan, tell)


def cpu_stats(instance: Instance) -> dict[int, str]:
    """What each CPU's buffer counts: entries, overrun, dropped events."""
    stats = {}
    with contextlib.suppress(OSError):
        for cpu, path in instance.cpus():
            stats[cpu] = (path / "stats").read_text()
    return stats


def _entries(instance: Instance) -> int:
    """Events that are still in the ring buffer."""
    texts = cpu_stats(instance).values()
    return sum(int(count) for text in texts for count in _ENTRIES.findall(text))


def assemble(plan: Plan, tail: Tail) -> None:
    """trace.dat of the pages that were copied; the copies go when it is whole.

    trace-cmd removes them last: with them, its trace.dat is not whole.
    """
    folder = Path(plan.folder)
    files = plan.copied_pages()
    if not (folder / TRACE).exists() or (files and plan.backend == "trace-cmd"):
        write_trace(folder / TRACE, (folder / HEAD).read_bytes(), tail, files)
    # trace-cmd 3.1 makes empty files of that name for the buffers that it was not asked for.
    for path in (*files.values(), *folder.glob("(null).cpu*")):
        path.unlink(missing_ok=True)


class _Tracefs:
    """Nothing but writes to files of tracefs and reads of its pages."""

    def __init__(self, plan: Plan, tell: Callable[[str], None]) -> None:
        self.problems: list[str] = []
        self.is_whole = True
        self._plan = plan
        self._tell = tell
        self._instance = Instance(Path(plan.tracefs), plan.instance)
        self._copier: PageCopier | None = None
        self._keep: int | None = None

    def start(self, sampler_tid: int) -> bool:
        instance, plan = self._instance, self._plan
        instance.make()
        instance.write("trace_clock", plan.clock)
        instance.write("buffer_size_kb", str(plan.buffer_kib))
        with contextlib.suppress(SetupError):
            instance.write("options/disable_on_free", "1")
            self._keep = os.open(instance.path / "free_buffer", os.O_WRONLY | os.O_CLOEXEC)
        fired = [event for event in _FIRES if event in plan.events]
        filtered = all(self._leave_out(event, sampler_tid) for event in fired)
        for event in plan.events:
            if (text := filter_of(event)) is not None:
                instance.write(instance.event_file(event, "filter"), text)
        self._copier = PageCopier(instance, plan.pages_of, self._tell, plan.buffer_kib)
        self._copier.start()
        for event in plan.events:
            instance.write(instance.event_file(event), "1")
        instance.write("tracing_on", "1")
        return filtered

    def keep_alive(self) -> int | None:
        return self._keep

    def stop(self, tail: Tail) -> None:
        self._instance.stop()
        if self._copier is not None:
            self._copier.finish()
            self.problems += self._copier.errors
            if self._copier.failed or _entries(self._instance):
                self.is_whole = False
        assemble(self._plan, tail)
        self.close()

    def close(self) -> None:
        if self._copier is not None:
            self._copier.close()
        if self._keep is not None:
            os.close(self._keep)
            self._keep = None

    def _leave_out(self, event: str, tid: int) -> bool:
        try:
            filter_file = self._instance.event_file(event, "filter")
            self._instance.write(filter_file, f"common_pid != {tid}")
        except SetupError:
            return False
        return True


class _TraceCmd:
    """trace-cmd record, ended by the end of its stdin."""

    def __init__(self, plan: Plan) -> None:
        self.problems: list[str] = []
        self.is_whole = True
        self._plan = plan
        self._instance = Instance(Path(plan.tracefs), plan.instance)
        self._process: subprocess.Popen[bytes] | None = None
        self._left: list[int] = []
        self._log = Path(plan.folder) / ".trace-cmd.log"

    def start(self, sampler_tid: int) -> bool:
        plan = self._plan
        command = ["trace-cmd", "record", "-B", plan.instance, "-C", plan.clock]
        command += ["-b", str(plan.buffer_kib)]
        for event in plan.events:
            command += ["-e", event]
            if event in _FIRES:
                command += ["-f", f"common_pid != {sampler_tid}"]
            elif (text := filter_of(event)) is not None:
                command += ["-f", text]
        # Without a folder: its own one stays where it is, whatever happens to us or the name.
        command += ["-o", TRACE, "sh", "-c", _GATE]
        # A file: trace-cmd would die of a pipe that nobody reads any more.
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=plan.folder,
            )
        self._process = process
        deadline = time.monotonic() + _START_SECONDS
        while _READY not in self._said():
            time.sleep(_STEP_SECONDS)
            if process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise SetupError(
                    TRACE_CMD_FAILED,
                    "trace-cmd record",
                    f"did not start to record, exit code {process.returncode}",
                    have=self._last_words() or None,
                    fix="wbscope record --backend tracefs -o RUN -- CMD    # does not need it",
                )
        return True

    def keep_alive(self) -> int | None:
        return None  # an open file would keep trace-cmd from removing the instance

    def stop(self, tail: Tail) -> None:
        with contextlib.suppress(SetupError):
            self._instance.write("tracing_on", "0")
        self.close()
        process = self._process
        self._instance.stop()
        problem = ""
        if self._left:
            problem = left_text(self._left)
        elif process is not None and process.returncode != 0:
            problem = f"trace-cmd ended with {process.returncode}: {self._last_words()}"
        if problem:
            self.problems.append(problem)
            self.is_whole = False
            if self._instance.exists():
                copier = PageCopier(self._instance, self._plan.pages_of)
                copier.finish()
                self.problems += copier.errors
        assemble(self._plan, tail)

    def close(self) -> None:
        """End it: it has its file to write first."""
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
        self._left = end_trace_cmd(self._plan.instance, 0)

    def _said(self) -> list[str]:
        return self._log.read_text(errors="replace").splitlines()

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._said() if line.strip() and line != _READY]
        return " / ".join(lines[-3:])


def end_trace_cmd(
    instance: str, seconds: float, kill_seconds: float = _KILL_SECONDS, proc: Path = _PROC
) -> list[int]:
    """Give what records into the instance time to end; then it is killed.

    Returns: those that did not end then either.
    """
    deadline = time.monotonic() + seconds
    while pids := trace_cmd_pids(instance, proc):
        late = time.monotonic() - deadline
        if late > kill_seconds:
            break
        if late > 0:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(_STEP_SECONDS)
    return pids


def left_text(pids: Sequence[int]) -> str:
    """That processes of trace-cmd did not end."""
    return f"trace-cmd (pid {', '.join(map(str, pids))}) did not end when it was killed"


def trace_cmd_pids(instance: str, proc: Path = _PROC) -> list[int]:
    """Processes that record into the instance."""
    found = []
    for path in proc.glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            # A process that has ended, but was not waited for, has none.
            if words[0].endswith(b"trace-cmd") and instance.encode() in words:
                found.append(int(path.parent.name))
    return found
