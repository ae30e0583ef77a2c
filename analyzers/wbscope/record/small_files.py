# SPDX-License-Identifier: Apache-2.0
"""Small files that grow while a trace is recorded, written by a thread of their own.

Who has something to tell never waits for a disk: it stays in memory up to a limit until it is
written.  What could not be written is tried again with what comes next.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

from wbscope.record.past_cache import DirectFile

__all__ = ["SmallFiles"]

_MOST_BYTES = 32 << 20
# What comes soon after is written with it: a kill loses no more than this.
_GATHER_SECONDS = 0.25


class SmallFiles:
    """Files of one folder; written whole at finish().

    left_out  how often there was no room in memory
    """

    def __init__(self, folder: Path) -> None:
        self.left_out = 0
        self._folder = folder
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._ended = threading.Event()
        self._texts: dict[str, list[bytes]] = {}
        self._bytes = 0
        self._calls: dict[str, Callable[[], None]] = {}
        self._files: dict[str, DirectFile] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def create(self, name: str) -> None:
        """Before start(), to know whether it can be written.  Raises: OSError."""
        self._files[name] = DirectFile(self._folder / name, is_new=False)

    def append(self, name: str, text: str) -> bool:
        """From any thread.  False: there was no room in memory, and it is left out."""
        data = text.encode(errors="surrogateescape")
        with self._lock:
            if self._bytes + len(data) > _MOST_BYTES:
                self.left_out += 1
                return False
            self._bytes += len(data)
            self._texts.setdefault(name, []).append(data)
        self._woken.set()
        return True

    def put(self, name: str, write: Callable[[], None]) -> None:
        """To be called in the thread that writes; a later one of this name stands for it."""
        with self._lock:
            self._calls[name] = write
        self._woken.set()

    def finish(self) -> None:
        """Everything is written, or there is no room for it."""
        self._ended.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._write()
        for name, file in self._files.items():
            with contextlib.suppress(OSError):
                file.close()
                if file.size == 0:
                    (self._folder / name).unlink()
        self._files.clear()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._woken.wait()
            self._woken.clear()
            self._ended.wait(_GATHER_SECONDS)
            self._write()

    def _write(self) -> None:
        with self._lock:
            texts, self._texts = self._texts, {}
            calls, self._calls = self._calls, {}
        for name, parts in texts.items():
            data = b"".join(parts)
            try:
                if name not in self._files:
                    self._files[name] = DirectFile(self._folder / name, is_new=False)
                self._files[name].append(data)
            except OSError:  # a disk that is full: the trace matters more
                with self._lock:
                    self._texts[name] = [data, *self._texts.get(name, ())]
                continue
            with self._lock:
                self._bytes -= len(data)
        for name, write in calls.items():
            try:
                write()
            except OSError:
                with self._lock:
                    self._calls.setdefault(name, write)
