# SPDX-License-Identifier: Apache-2.0
"""Sampled series: the counters of /proc and /sys while a trace is recorded.

One file for each source.  A sample is a line `# ts=NS`, the trace clock, and the text of
the source; `== NAME` stands before each part where there are several files.

Every read of /proc/vmstat and of the statistics of a bdi fires an event global_dirty_state
in the reader's context (Linux 4.2 and later).  The instance filters this event by the tid
of the sampler; where that is refused, these sources are read ten times less often.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from wbscope.base.errors import SetupError
from wbscope.record.cgroup_samples import CgroupFiles, WbStats
from wbscope.record.machine_facts import (
    PSI,
    bdi_stats,
    block_stats,
    cgroup_paths,
    write_cgroups,
)
from wbscope.record.names import (
    EndedNames,
    NameFile,
    ended_task_names,
    reserve_names,
    task_names,
)
from wbscope.record.small_files import SmallFiles

__all__ = ["CLOCK_IDS", "Sampler"]

CLOCK_IDS = {"boot": time.CLOCK_BOOTTIME, "mono": time.CLOCK_MONOTONIC}

_PROC = Path("/proc")
_SELDOM = 10  # every so many samples, what is long or changes slowly
_AT_A_RATE = 600
_EARLY = (1, 2, 4, 8)  # samples at which cgroups are looked for, besides the seldom ones,
_FEW = 256  # where there are no more of them than this
Source = tuple[str, Callable[[], str], int]


def _psi(proc: Path) -> str:
    parts = ((name, proc / "pressure" / name) for name in PSI)
    return "".join(f"== {name}\n{path.read_text()}" for name, path in parts if path.exists())


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _named(parts: Callable[[], object]) -> Callable[[], str]:
    return lambda: "".join(f"== {name}\n{text}" for name, text in parts())  # type: ignore[attr-defined]


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
        sources: list[Source] = [
            ("vmstat", (self._proc / "vmstat").read_text, self._may_fire),
            ("meminfo", (self._proc / "meminfo").read_text, 1),
            ("block", _named(block_stats), 1),
            ("psi", partial(_psi, self._proc), 1),
            ("bdi", _named(bdi_stats), self._may_fire),
            ("wb", self._wbs.read, self._may_fire),
            ("cgroup", self._cgroup_files.read, 1),
            ("zoneinfo", (self._proc / "zoneinfo").read_text, _SELDOM),
        ]
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
            # A run of a day has ten times the samples of one of ten minutes, not 144 times.
            if number % _AT_A_RATE == 0:
                interval *= 2
            due = max(due + interval, time.monotonic())
            self._ended.wait(due - time.monotonic())

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
