# SPDX-License-Identifier: Apache-2.0
"""Small tables that another thread makes on a connection of its own before they are asked for."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wbscope.base.errors import WbscopeError
from wbscope.library.database import open_database
from wbscope.library.guard import stoppable

__all__ = ["Ahead", "Ready", "has_second_cpu"]


@dataclass(frozen=True)
class Ready:
    """All rows of a view, and how long they took."""

    rows: list[tuple[Any, ...]]
    elapsed_ns: int


class Ahead:
    """Rows of views of one run, in the making.

    Whatever goes wrong, there are none: who asks for them makes them and meets the error.
    """

    def __init__(
        self, database: Path, shown: str, statements: Iterable[str], names: Sequence[str]
    ) -> None:
        self._place = database, shown
        self._statements = tuple(statements)
        self._names = tuple(names)
        self._connection: sqlite3.Connection | None = None
        self._is_stopped = False
        self._ready: dict[str, Ready] = {}
        self._thread = threading.Thread(target=self._work, name="wbscope-ahead", daemon=True)
        with contextlib.suppress(RuntimeError):  # no more threads
            self._thread.start()

    def rows(self, name: str) -> Ready | None:
        """Those of this view, once they are there."""
        if name not in self._names or self._is_stopped or self._thread.ident is None:
            return None
        self._thread.join()
        return self._ready.get(name)

    def stop(self) -> None:
        """Let go of what is being made."""
        self._is_stopped = True
        while self._thread.is_alive():
            if (connection := self._connection) is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.interrupt()
            self._thread.join(0.01)  # it may have been between two statements

    def _work(self) -> None:
        # KeyboardInterrupt: a signal has stopped the statement; the main thread hears of it, too.
        with contextlib.suppress(sqlite3.Error, WbscopeError, KeyboardInterrupt):
            connection, _ = open_database(*self._place)
            with contextlib.closing(connection), stoppable(connection):
                self._connection = connection
                try:
                    self._make(connection)
                finally:
                    self._connection = None

    def _make(self, connection: sqlite3.Connection) -> None:
        for statement in self._statements:
            if self._is_stopped:
                return
            connection.execute(statement)
        for name in self._names:
            started = time.monotonic_ns()
            rows = connection.execute(f"SELECT * FROM {name}").fetchall()
            self._ready[name] = Ready(rows, time.monotonic_ns() - started)


def has_second_cpu() -> bool:
    """Whether two threads of this process can run at the same time."""
    return len(os.sched_getaffinity(0)) > 1
