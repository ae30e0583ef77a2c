# SPDX-License-Identifier: Apache-2.0
"""Child processes that end when this one does, and what they are given: names and texts."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from wbscope.base.procfiles import require_proc

__all__ = ["dying_with_us", "file_word", "passed_text"]

_PR_SET_PDEATHSIG = 1


def dying_with_us(number: signal.Signals = signal.SIGTERM) -> Callable[[], None] | None:
    """For Popen's preexec_fn: the child gets this signal when we are gone, however we went.

    None outside the main thread: the kernel sends it when the thread ends that
    started the child (prctl(2)), and another thread may want the child longer.
    None, too, of a small Python that lacks ctypes.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    try:
        import ctypes
    except ImportError:
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # found before the fork
    parent = os.getpid()

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:  # gone in between
            os._exit(1)

    return prepare


def file_word(path: Path) -> str:
    """The file's name as a word of a command line, which no program takes for an option."""
    text = str(path)
    return f"./{text}" if text.startswith("-") else text


@contextmanager
def passed_text(text: str) -> Iterator[tuple[int, str]]:
    """A file in memory with this text: its descriptor, for pass_fds, and its name in a child.

    One with a name in a folder would stay there when we are killed.
    Raises: SetupError without /proc.
    """
    require_proc()
    fd = os.memfd_create("wbscope", os.MFD_CLOEXEC)
    try:
        data = memoryview(text.encode("utf-8"))
        while data:
            data = data[os.write(fd, data) :]
        yield fd, f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)
