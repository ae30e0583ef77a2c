# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, a plain kill, a closed terminal: the first one is raised, the others are counted."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Self

from wbscope.base.watch import hold

__all__ = ["Interrupts"]

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# timeout(1) and a shell that ends tell a process, and then its group: that is one.
_SAME_SECONDS = 0.3


class Interrupts:
    """In force inside `with`.  What cannot be begun again is done while they are held.

    count  how often the user has asked for the end
    """

    def __init__(self, same_seconds: float = _SAME_SECONDS) -> None:
        self.count = 0
        self._same_seconds = same_seconds
        self._last = float("-inf")
        self._is_held = False
        self._was_raised = False
        self._before: dict[signal.Signals, Any] = {}
        self._unforced = ExitStack()

    def __enter__(self) -> Self:
        self._unforced.enter_context(hold())
        for number in _ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup, a job of a script
                self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._unforced.close()

    def hold(self) -> None:
        """To the end."""
        self._is_held = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """One that comes meanwhile is raised afterwards."""
        before, self._is_held = self._is_held, True
        try:
            yield
        finally:
            self._is_held = before
        self._raise_first()

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last > self._same_seconds:
            self.count += 1
        self._last = now
        self._raise_first()

    def _raise_first(self) -> None:
        if self.count and not self._is_held and not self._was_raised:
            self._was_raised = True
            raise KeyboardInterrupt
