# SPDX-License-Identifier: Apache-2.0
"""Sampled series: the counters of /proc and /sys while a trace is recorded.

One file for each source.  A sample is a line `# ts=NS`, the trace clock, and the text of
the source; `== NAME` stands before each part where there are several files.

Every read of /proc/vmstat and of the statistics of a bdi fires an event global_dirty_state
in the reader's context (Linux 4.2 and later).  The instance filters this event by the tid
of the sampler; where that is refused, these sources are read ten times less often.

A machine has thousands of cgroups: sampled are a few, found by debugfs wb_stats (Linux 6.10 and
later), by where the workload's processes are, and by dirty pages in memory.stat.

How long the recorder itself was held in balance_dirty_pages() comes from its own events of that
name, in a small trace instance beside that of the run: they are counted whatever the run records,
and up to the moment when its files are written.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from wbscope.base.errors import SetupError
from wbscope.base.system import entries_of, text_of
from wbscope.record.choose import Instance, pauses_name
from wbscope.record.machine import (
    cgroup_paths,
    joined,
    memory_hierarchy,
    parts_of,
    write_cgroups,
)
from wbscope.record.settings import SmallFiles
from wbscope.record.tasks import EndedNames, NameFile, ended_task_names, reserve_names, task_names
from wbscope.record.what import WHAT
from wbscope.record.workload import descendants

_BDI = Path("/sys/kernel/debug/bdi")
_PROC = Path("/proc")
_ROOT = 1  # WbCgIno of what no cgroup owns
_MOST_WBS = 16  # of a bdi
_MOST_CGROUPS = 8
_MOST_LOOKED_AT = 256
# Of memory.stat's 60 lines; the short names are those of version 1.
_STAT = re.compile(r"^(?:anon|file|file_dirty|file_writeback|cache|dirty|writeback) \d+\n", re.M)
_DIRTY = re.compile(r"^(?:file_dirty|file_writeback|dirty|writeback) [1-9]", re.M)
_BLOCK = re.compile(r"^WbCgIno:\s+(\d+)\n((?:(?!WbCgIno).*\n?)*)", re.M)
_COUNTER = re.compile(r"^Wb(Dirtied|Writeback|Reclaimable):\s+(\d+) kB$", re.M)


class WbStats:
    """`== BDI/INODE` and the text of wb_stats that is this cgroup's.

    Only of bdis that cgroups write to: elsewhere the statistics of the bdi say the same.
    """

    def __init__(self, folder: Path = _BDI) -> None:
        self.inodes: set[int] = set()  # that wrote in the recording
        self._folder = folder
        self._first: dict[tuple[str, int], int] = {}
        self._was_read = False

    def read(self) -> str:
        """Fires global_dirty_state in this thread, as the statistics of a bdi do."""
        text = ""
        for bdi in entries_of(self._folder):
            wrote: dict[int, int] = {}
            blocks = {int(ino): body for ino, body in _BLOCK.findall(text_of(bdi / "wb_stats"))}
            for inode, body in blocks.items():
                values = {key: int(value) for key, value in _COUNTER.findall(body)}
                dirtied = values.get("Dirtied", 0)
                before = 0 if self._was_read else dirtied
                gained = dirtied - self._first.setdefault((bdi.name, inode), before)
                if gained or values.get("Writeback") or values.get("Reclaimable"):
                    wrote[inode] = gained
            most = sorted(wrote, key=lambda inode: -wrote[inode])[:_MOST_WBS]
            if set(most) - {_ROOT}:
                self.inodes |= set(most) - {_ROOT}
                shown = sorted({*most, _ROOT} & blocks.keys())
                text += "".join(f"== {bdi.name}/{inode}\n{blocks[inode]}" for inode in shown)
        self._was_read = True
        return text


class CgroupFiles:
    """`== INODE/FILE` and the text of the file; one that is chosen stays so while it exists."""

    def __init__(self, parent: int, proc: Path = _PROC) -> None:
        self._parent = parent  # of the workload
        self._proc = proc
        self._chosen: dict[int, str] = {}

    def choose(self, paths: Mapping[int, str], writing: Iterable[int]) -> None:
        """`paths`: of each inode. `writing`: inodes that wb_stats tells of."""
        top = memory_hierarchy(self._proc)
        below = {inode: path for inode, path in paths.items() if path not in ("", top)}
        inodes = {path: inode for inode, path in below.items()}
        found = [inode for inode in writing if inode in below]
        found += [inodes[top + place] for place in self._places() if top + place in inodes]
        if len(below) <= _MOST_LOOKED_AT:
            found += [inode for inode, path in below.items() if _DIRTY.search(_stat(path))]
        for inode in found:
            if len(self._chosen) < _MOST_CGROUPS:
                self._chosen.setdefault(inode, below[inode])

    def read(self) -> str:
        text = ""
        for inode, path in list(self._chosen.items()):
            if not os.path.isdir(path):
                del self._chosen[inode]
            for name in WHAT["cgroup"]["files"]:
                found = _stat(path) if name == "memory.stat" else text_of(Path(path, name))
                if found and found != "max\n":
                    text += f"== {inode}/{name}\n{found}"
        return text

    def _places(self) -> Iterator[str]:
        """Of the workload's processes, below the hierarchy's top."""
        for pid in descendants(self._parent, proc=self._proc):
            for line in text_of(self._proc / str(pid) / "cgroup").splitlines():
                _, controllers, place = line.split(":", 2)
                if controllers == "" or "memory" in controllers.split(","):
                    yield place


def _stat(path: str) -> str:
    return "".join(_STAT.findall(text_of(Path(path, "memory.stat"))))


CLOCK_IDS = {"boot": time.CLOCK_BOOTTIME, "mono": time.CLOCK_MONOTONIC}

_SELDOM: int = WHAT["sampling"]["seldom"]
_EARLY = (1, 2, 4, 8)  # samples at which cgroups are looked for, besides the seldom ones,
_FEW = 256  # where there are no more of them than this


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


class Sampler:
    """A thread that takes the samples; what was written of them stays if it is killed.

    The names of tasks and the cgroups are written whenever they were read anew.
    """

    def __init__(
        self, folder: Path, tracefs: Path, clock: str, interval_s: float, proc: Path = _PROC
    ) -> None:
        self.names: dict[int, str] = {}
        self.cgroups: dict[int, str] = {}
        self._folder = folder
        self._tracefs = tracefs
        self._proc = proc
        self._clock = CLOCK_IDS[clock]
        self._interval = interval_s
        self._may_fire = _SELDOM
        self._ended = threading.Event()
        self._go = threading.Event()
        self._known = threading.Event()
        self._wbs = WbStats()
        self._cgroup_files = CgroupFiles(os.getppid(), proc)
        self.tid = 0
        self._error: Exception | None = None
        self._small_files = SmallFiles(folder)
        self._ended_names = EndedNames(tracefs)
        self._name_file = NameFile(folder)
        # Of the thread that learns them and of the one that writes.
        self._lock = threading.Lock()
        self._unsaved: dict[int, str] = {}
        self._saved_cgroups: dict[int, str] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> int:
        """Returns its tid; it waits for go().

        Raises: SetupError when it ended instead.
        """
        self._small_files.start()
        self._thread.start()
        self._known.wait()
        if self._error is not None:
            self._small_files.finish()
            raise SetupError(
                "sampler-died", "the sampler",
                f"ended before anything was recorded: {_said(self._error)}",
                effect="nothing was recorded, and sysctls are as they were",
                fix="wbscope doctor",
            )  # fmt: skip
        return self.tid

    def go(self, filtered: bool) -> None:
        """`filtered`: its own events are not recorded, so it may read what fires them."""
        self._may_fire = 1 if filtered else _SELDOM
        self._go.set()

    def finish(self) -> None:
        """The last sample is the one before; names and cgroups are read once more."""
        self._ended.set()
        self._go.set()
        if self._thread.ident is not None:
            self._thread.join()
        try:
            self._note_names()
            self.cgroups |= cgroup_paths(self._proc)
        except Exception as error:  # the trace matters more
            self._error = self._error or error
        self._save()
        self._small_files.finish()
        self._name_file.leave()

    def problems(self) -> list[str]:
        """What makes the series incomplete."""
        found = []
        if count := self._small_files.left_out:
            found.append(f"{count} samples were not written: the disk of the run was too slow")
        if self._error is not None:
            found.append(f"the sampler ended too early: {_said(self._error)}")
        return found

    def _run(self) -> None:
        try:
            self._begin()
            self._known.set()
            self._go.wait()
            self._take_samples()
        except Exception as error:  # told of by start() or problems()
            self._error = error
        finally:
            self._known.set()

    def _begin(self) -> None:
        self.tid = threading.get_native_id()
        reserve_names(self._folder)
        self._note_names()
        self.cgroups |= cgroup_paths(self._proc)
        self._save()

    def _take_samples(self) -> None:
        sources = [(name, self._reader(name, how.get("from")),
                    self._may_fire if how.get("fires") else how.get("every", 1))
                   for name, how in WHAT["samples"].items()]  # fmt: skip
        number, interval = 0, self._interval
        due = time.monotonic()
        while interval > 0 and not self._ended.is_set():
            if number % _SELDOM == 0 or (number in _EARLY and len(self.cgroups) <= _FEW):
                self._look_for_cgroups()
            for name, read, every in sources:
                if number % every == 0:
                    self._sample(name, read)
            self._learn(self._ended_names.read())
            if number % _SELDOM == 0:
                self._learn(task_names(self._proc))
            self._save()
            number += 1
            if number % WHAT["sampling"]["doubled_after"] == 0:
                interval *= 2
            due = max(due + interval, time.monotonic())
            self._ended.wait(due - time.monotonic())

    def _reader(self, name: str, path: str | None) -> Callable[[], str]:
        if path is not None:
            return (self._proc / Path(path).relative_to(_PROC)).read_text
        if name in WHAT["parts"]:
            return lambda: joined(parts_of(name))
        return {"wb": self._wbs.read, "cgroup": self._cgroup_files.read}[name]

    def _sample(self, name: str, read: Callable[[], str]) -> None:
        ts = time.clock_gettime_ns(self._clock)
        with contextlib.suppress(OSError):  # a source that is gone
            if text := read():
                self._small_files.append(f"{name}.samples", f"# ts={ts}\n{text}")

    def _save(self) -> None:
        """For the one who finds this process killed."""
        if self._unsaved:
            self._small_files.put("names", self._save_names)
        if self.cgroups != self._saved_cgroups:
            self._saved_cgroups = dict(self.cgroups)
            write = partial(write_cgroups, self._folder, self._saved_cgroups)
            self._small_files.put("cgroups", write)

    def _save_names(self) -> None:
        with self._lock:
            new = dict(self._unsaved)
        self._name_file.add(new)
        with self._lock:
            self._unsaved = dict(self._unsaved.items() - new.items())

    def _look_for_cgroups(self) -> None:
        living = cgroup_paths(self._proc)
        self.cgroups |= living
        self._cgroup_files.choose(living, self._wbs.inodes)

    def _note_names(self) -> None:
        """Of those that live the name is what it is now."""
        # All of the list: a number's name may be of one that lived when it was read last.
        self._learn(ended_task_names(self._tracefs))
        self._learn(task_names(self._proc))

    def _learn(self, names: dict[int, str]) -> None:
        new = {tid: comm for tid, comm in names.items() if self.names.get(tid) != comm}
        self.names |= new
        with self._lock:
            self._unsaved |= new


_EVENT = "writeback:balance_dirty_pages"
_BUFFER_KIB = 64
_READ_BYTES = 1 << 16
_READ_SECONDS = 1.0
_NS_PER_MS = 10**6
# The line begins with COMM-TID; a name may have a minus, too.
_LINE = re.compile(rb"-(\d+) +(?:\([^)]*\) +)?\[\d+\].* balance_dirty_pages: .*\bpause=(-?\d+)")
_LOST = re.compile(rb"\[LOST (\d+) EVENTS\]")


class OwnPauses:
    """Started before anything is written; what is refused is told by facts()."""

    def __init__(self, tracefs: Path, name: str) -> None:
        self._instance = Instance(tracefs, pauses_name(name))
        self._keep = -1
        self._pipe = -1
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._why: str | None = None
        self._tids: set[int] = set()
        self._pauses_ms: dict[int, list[int]] = {}
        self._lost = 0
        self._rest = b""

    def start(self, tids: Iterable[int]) -> None:
        instance = self._instance
        try:
            instance.make()
            instance.write("buffer_size_kb", str(_BUFFER_KIB))
            instance.write("options/disable_on_free", "1")
            # Its last close, also by a kill, makes the kernel stop tracing.
            self._keep = os.open(instance.path / "free_buffer", os.O_WRONLY | os.O_CLOEXEC)
            self.follow(tids)
            instance.write(instance.event_file(_EVENT), "1")
            instance.write("tracing_on", "1")
            pipe = instance.path / "trace_pipe"
            self._pipe = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self._thread.start()
        except (SetupError, OSError) as error:
            self._why = str(error)
            self.finish()

    def follow(self, tids: Iterable[int]) -> None:
        """These threads, too; of others between them the events are read and not counted."""
        self._tids |= set(tids)
        first, last = min(self._tids), max(self._tids)
        wanted = f"common_pid >= {first} && common_pid <= {last}"
        try:
            self._instance.write(self._instance.event_file(_EVENT, "filter"), wanted)
        except SetupError as error:
            self._why = str(error)

    def finish(self) -> None:
        """The last pauses are taken; can be called again."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._instance.exists():
            self._instance.stop()
        self._read()
        for number in (self._pipe, self._keep):
            if number >= 0:
                os.close(number)
        self._pipe = self._keep = -1
        if self._instance.exists():
            self._instance.remove()

    def paused_ns(self) -> int:
        return sum(sum(self._pauses_ms.get(tid, ())) for tid in self._tids) * _NS_PER_MS

    def facts(self) -> dict[str, Any]:
        """For meta.json."""
        if self._why is not None:
            return {"recorder_throttled_ns": None, "recorder_throttled": {"why_not": self._why}}
        return {
            "recorder_throttled_ns": self.paused_ns(),
            "recorder_throttled": {
                "basis": "pauses of its balance_dirty_pages events",
                "pauses_count": sum(len(self._pauses_ms.get(tid, ())) for tid in self._tids),
                "lost_count": self._lost,
            },
        }

    def _run(self) -> None:
        while not self._ended.wait(_READ_SECONDS):
            self._read()

    def _read(self) -> None:
        """What there is by now, before it is overwritten."""
        while self._pipe >= 0:
            try:
                data = os.read(self._pipe, _READ_BYTES)
            except OSError:  # EAGAIN, most often
                return
            if not data:
                return
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._note(line)

    def _note(self, line: bytes) -> None:
        if lost := _LOST.search(line):
            self._lost += int(lost[1])
        found = _LINE.search(line)
        if found is not None and int(found[2]) > 0:
            self._pauses_ms.setdefault(int(found[1]), []).append(int(found[2]))


def remove_pauses(tracefs: Path, name: str) -> None:
    """Of a recorder that was killed."""
    instance = Instance(tracefs, pauses_name(name))
    if instance.exists():
        instance.stop()
        instance.remove()
