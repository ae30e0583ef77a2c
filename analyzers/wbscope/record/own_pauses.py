# SPDX-License-Identifier: Apache-2.0
"""How long the recorder itself was held in balance_dirty_pages().

Its own events of that name, in a small trace instance beside that of the run: so they are
counted whatever the run records, and up to the moment when its files are written.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wbscope.base.errors import SetupError
from wbscope.record.tracefs import Instance, pauses_name

__all__ = ["OwnPauses", "remove_pauses"]

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
