# SPDX-License-Identifier: Apache-2.0
"""Many runs into a dataset: what is there is skipped, what is bad is a row and stops nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wbscope.base.cache import scratch_folder
from wbscope.base.errors import InternalError, SetupError, WbscopeError
from wbscope.base.extras import missing_library
from wbscope.base.outputs import private_folder
from wbscope.fleet.badruns import forget_error, publish_error, write_error
from wbscope.fleet.dataset import Dataset, cannot_write
from wbscope.fleet.publish import publish, recover
from wbscope.fleet.redact import Redaction
from wbscope.fleet.runfiles import RunFiles, write_run
from wbscope.library.library import Library, load_library

__all__ = ["Each", "Outcome", "ingest_sources", "is_of_the_run"]

Outcome = Literal["added", "known", "failed"]

# What would meet the next run as well: the job ends, and goes on when that is put right.
_OF_THE_JOB = (
    "broken-sql-library",
    "cannot-open",
    "cannot-write",
    "foreign-file",
    "no-cache",
    "no-ingester",
    "no-output-folder",
    "no-room",
)
_KILLED = "ingester-killed"
# Mistakes of ours that only some trace can bring out.
_BUGS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError,
         ValueError)  # fmt: skip


Each = Callable[[str, Outcome, str | None, WbscopeError | None], None]
"""What is told of each source: what came of it, its run if that is known, why it was not read."""


def ingest_sources(
    sources: Iterable[str],
    dataset: Dataset,
    each: Each,
    *,
    redaction: Redaction | None = None,
    strict: bool = False,
    tries: int = 1,
) -> None:
    """Add the runs of all sources; `strict` ends at the first bad one.

    `tries` is for a run whose ingester is killed, which says nothing about its trace.

    Raises: SetupError for what is wrong with the dataset or this machine.
    """
    library = load_library()
    recover(dataset)
    for source in sources:
        adding = _Adding(source, dataset, library, redaction)
        try:
            outcome = adding.add_in(tries)
        except WbscopeError as error:
            if strict or not is_of_the_run(error):
                raise
            adding.tell(error)
            each(source, "failed", adding.run, error)
        else:
            each(source, outcome, adding.run, None)


def is_of_the_run(error: WbscopeError) -> bool:
    """Whether another run may well be read after this."""
    return not isinstance(error, SetupError) or error.slug not in _OF_THE_JOB


@dataclass
class _Adding:
    """One source on its way into the dataset; `run` is known once its content is read."""

    source: str
    dataset: Dataset
    library: Library
    redaction: Redaction | None
    run: str | None = None

    def add_in(self, tries: int) -> Outcome:
        """Raises: WbscopeError."""
        for _ in range(tries - 1):
            try:
                return self.add()
            except SetupError as error:
                if error.slug != _KILLED:
                    raise
        return self.add()

    def add(self) -> Outcome:
        """Raises: WbscopeError."""
        with private_folder(self.dataset.work) as folder, scratch_folder() as scratch:
            made = self._read(folder, scratch)
            if made is None or not publish(self.dataset, made, folder):
                return "known"
            forget_error(self.dataset, made.run)
            return "added"

    def tell(self, error: WbscopeError) -> None:
        """A row for the bad run."""
        with private_folder(self.dataset.work) as folder:
            try:
                name, local = write_error(
                    self.source, error, folder, content=self.run, redaction=self.redaction
                )
            except OSError as full:
                raise cannot_write(self.dataset.path, full) from full
            publish_error(self.dataset, name, local)

    def _found(self, run: str) -> None:
        self.run = run

    def _read(self, folder: Path, scratch: Path) -> RunFiles | None:
        """What a strange trace brings out in our own code is an error of this run, too."""
        try:
            return write_run(
                self.source,
                folder,
                scratch=scratch,
                redaction=self.redaction,
                library=self.library,
                known=self.dataset.has,
                found=self._found,
            )
        except ImportError as error:
            raise missing_library(error, self.source) or error from error
        except OSError as error:
            raise cannot_write(self.dataset.path, error) from error
        except _BUGS as error:
            told = f"{type(error).__name__}: {error} (a bug, please report it)"
            raise InternalError("internal", self.source, told) from error
