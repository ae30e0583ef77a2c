# SPDX-License-Identifier: Apache-2.0
"""Series of each cgroup that writes: its writeback on each bdi, and files of its folder.

A machine has thousands of cgroups: sampled are a few, found by debugfs wb_stats (Linux 6.10 and
later), by where the workload's processes are, and by dirty pages in memory.stat.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from wbscope.base.procfiles import entries_of, text_of
from wbscope.record.machine_facts import memory_hierarchy
from wbscope.record.workload import descendants

__all__ = ["CgroupFiles", "WbStats"]

_BDI = Path("/sys/kernel/debug/bdi")
_PROC = Path("/proc")
_ROOT = 1  # WbCgIno of what no cgroup owns
_MOST_WBS = 16  # of a bdi
_MOST_CGROUPS = 8
_MOST_LOOKED_AT = 256
_FILES = (
    "memory.stat",
    "memory.events",
    "memory.current",
    "memory.high",
    "memory.max",
    "memory.pressure",
    "io.stat",
    "io.pressure",
)
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
            for name in _FILES:
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
