# SPDX-License-Identifier: Apache-2.0
"""The progress bar of an ingest: on stderr, and on a terminal only."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["ProgressBar"]


class ProgressBar:
    """Draws bytes read of bytes to read; leaves the terminal clean.

    Nothing is drawn before the first news: a run that is in the cache has none.
    """

    def __init__(self, stream: TextIO | None, title: str, enabled: bool) -> None:
        self._stream = stream
        self._title = title
        self._enabled = enabled and stream is not None and stream.isatty()
        self._progress: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            with contextlib.suppress(OSError):  # a terminal that has gone changes no exit code
                self._progress.stop()

    def advance(self, done_bytes: int, total_bytes: int) -> None:
        """Show how far the ingester is."""
        if not self._enabled:
            return
        try:
            if self._progress is None:
                self._progress = self._start()
            for task in self._progress.task_ids:
                self._progress.update(task, completed=done_bytes, total=total_bytes)
        except OSError:
            self._enabled = False

    def _start(self) -> Progress:
        # Imported here: most commands never draw.
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(binary_units=True),
            console=Console(file=self._stream),
            transient=True,
        )
        progress.add_task(self._title)
        progress.start()
        return progress
