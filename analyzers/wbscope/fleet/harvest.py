# SPDX-License-Identifier: Apache-2.0
"""Many runs into a dataset: what is there is skipped, what is bad is a row and stops nothing."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol

from wbscope.base.cache import scratch_folder
from wbscope.base.errors import InternalError, SetupError, UsageError, WbscopeError, missing_library
from wbscope.base.outputs import private_folder
from wbscope.base.result import Notice
from wbscope.base.system import as_utf8
from wbscope.base.version import __version__
from wbscope.fleet.dataset import Dataset, cannot_write, place, publish, recover
from wbscope.fleet.layout import (
    ERRORS,
    FLEET_SCHEMA,
    OWN_TABLES,
    UNKNOWN,
    Partition,
    data_path,
    table_of,
    write_table,
)
from wbscope.fleet.redact import Redaction
from wbscope.fleet.runfiles import RunFiles, write_run
from wbscope.library.database import of_losses
from wbscope.library.library import Library, load_library
from wbscope.source.source import STDIN, find_source

# A file in a folder that is no run itself; any file can be named.
ENDS = (
    ".dat", ".db", ".pftrace", ".perfetto-trace", ".tar", ".tgz", ".zip", ".gz", ".xz", ".zst",
    ".bz2",
)  # fmt: skip
DATASET_MARK = "_dataset.json"


def sources_in(text: str) -> Iterator[str]:
    """A run as it is; a folder of runs as these, in the order of their names.

    What is named and holds no run is given as it is: whoever reads it says why it is none. Below,
    that goes for empty folders and those with a part of a recording; others hold other things.
    Links to folders, hidden ones and datasets are not entered.

    Raises: UsageError.
    """
    if text == STDIN:
        raise UsageError("no-stdin", STDIN, "is stdin, wanted files or folders", fix="FOLDER")
    if not os.path.isdir(text) or is_run(text):
        yield text
        return
    found = False
    for inside in _inside(text):
        found = True
        yield inside
    if not found:
        yield text


def _inside(folder: str) -> Iterator[str]:
    """Without recursion: a stranger's folders may be thousands deep."""
    left: list[os.DirEntry[str]] = []
    while True:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name, reverse=True)
            left += [entry for entry in entries if not entry.name.startswith(".")]
            if not entries:
                yield folder
        except OSError:
            yield folder  # reading it tells why
        folder = ""
        while left and not folder:
            entry = left.pop()
            if entry.is_dir(follow_symlinks=False):
                if is_run(entry.path):
                    yield entry.path
                elif not os.path.exists(os.path.join(entry.path, DATASET_MARK)):
                    folder = entry.path
            elif entry.name.endswith(ENDS) and entry.is_file():
                yield entry.path
        if not folder:
            return


def is_run(folder: str) -> bool:
    """Also one that is to be told as bad: two traces, or what a killed recorder left."""
    try:
        find_source(folder)
    except WbscopeError as error:
        if error.slug != "no-trace":
            return True
        here = Path(folder)
        return (here / "meta.json").exists() or any(here.glob("trace.dat.cpu*"))
    return True


_DIGITS = 32


def write_error(
    source: str,
    error: WbscopeError,
    folder: Path,
    *,
    content: str | None = None,
    redaction: Redaction | None = None,
    written_s: float | None = None,
) -> tuple[str, Path]:
    """The row of a bad run: where it belongs below the dataset, and the file in `folder`.

    `written_s` is of a source that is not on this machine.
    The same content, or a source that cannot be read, has one row however often it is tried.
    """
    shown = source if redaction is None else redaction.path(source)
    message = error.message if redaction is None else error.slug
    told = f"{shown}\0{error.slug}"  # of a path, a hash without the key is a guess away
    name = content or hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]
    values = (
        name, shown, error.slug, message, error.exit_code, content, int(time.time()), __version__,
        FLEET_SCHEMA,
    )  # fmt: skip
    local = folder / f"{ERRORS}-{name}.parquet"
    texts = [as_utf8(value) if isinstance(value, str) else value for value in values]
    write_table(table_of(ERRORS, OWN_TABLES[ERRORS], [tuple(texts)]), local)
    return data_path(ERRORS, Partition(_date_of(source, written_s), UNKNOWN, UNKNOWN), name), local


def publish_error(dataset: Dataset, name: str, local: Path) -> None:
    """Add a row, unless there is one of this name."""
    target = dataset.path / name
    try:
        with dataset.locked():
            if any(path.name == target.name for path in dataset.error_files()):
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                place(local, target)
    except OSError as error:
        raise cannot_write(target, error) from error


def forget_error(dataset: Dataset, run: str) -> None:
    """A later wbscope has read what an earlier one could not."""
    for path in dataset.error_files():
        if path.stem == run:
            with contextlib.suppress(OSError):
                path.unlink()


def _date_of(source: str, written_s: float | None) -> str:
    """The day when what is there was written."""
    try:
        written_s = Path(source).stat().st_mtime if written_s is None else written_s
        return f"{datetime.fromtimestamp(written_s, UTC):%Y-%m-%d}"
    except (OSError, OverflowError, ValueError):
        return UNKNOWN


Outcome = Literal["added", "known", "failed"]

# What would meet the next run as well: the job ends, and goes on when that is put right.
_OF_THE_JOB = (
    "broken-sql-library",
    "cannot-fetch",
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


Each = Callable[[str, Outcome, str | None, WbscopeError | None, Sequence[Notice]], None]
"""What is told of each source: what came of it, its run if that is known, why it was not read.

Last, of a run that is new, why its numbers are lower bounds.
"""


Fetch = Callable[[str], AbstractContextManager[str]]
"""Has a source under a name that can be opened, for as long as it is read."""


class Target(Protocol):
    """A dataset as it is written to."""

    @property
    def place(self) -> str:
        """What errors call it."""
        ...

    def room(self) -> AbstractContextManager[Path]:
        """A folder for the files of a run until they are published."""
        ...

    def has(self, run: str) -> bool:
        """Whether the run is in it."""
        ...

    def publish(self, made: RunFiles, folder: Path) -> bool:
        """Add a run; False if it is there."""
        ...

    def publish_error(self, name: str, local: Path) -> None:
        """Add a row of ingest_errors, unless there is one of this name."""
        ...

    def forget_error(self, run: str) -> None:
        """A later wbscope has read what an earlier one could not."""
        ...


@dataclass(frozen=True)
class _Folder:
    """A dataset in a folder."""

    dataset: Dataset

    @property
    def place(self) -> str:
        return str(self.dataset.path)

    def room(self) -> AbstractContextManager[Path]:
        return private_folder(self.dataset.work, held=True)

    def has(self, run: str) -> bool:
        return self.dataset.has(run)

    def publish(self, made: RunFiles, folder: Path) -> bool:
        return publish(self.dataset, made, folder)

    def publish_error(self, name: str, local: Path) -> None:
        publish_error(self.dataset, name, local)

    def forget_error(self, run: str) -> None:
        forget_error(self.dataset, run)


@contextmanager
def as_named(source: str) -> Iterator[str]:
    """What is on this machine."""
    yield source


def ingest_sources(
    sources: Iterable[str],
    dataset: Dataset,
    each: Each,
    *,
    redaction: Redaction | None = None,
    strict: bool = False,
    tries: int = 1,
    fetch: Fetch = as_named,
) -> None:
    """Add the runs of all sources to a dataset in a folder, as ingest_into()."""
    recover(dataset)
    target = _Folder(dataset)
    ingest_into(target, sources, each, redaction=redaction, strict=strict, tries=tries, fetch=fetch)


def ingest_into(
    target: Target,
    sources: Iterable[str],
    each: Each,
    *,
    redaction: Redaction | None = None,
    strict: bool = False,
    tries: int = 1,
    fetch: Fetch = as_named,
) -> None:
    """Add the runs of all sources; `strict` ends at the first bad one.

    `tries` is for a run whose ingester is killed, which says nothing about its trace.

    Raises: SetupError for what is wrong with the dataset or this machine.
    """
    library = load_library()
    for source in sources:
        adding = _Adding(source, target, library, redaction, fetch)
        try:
            outcome = adding.add_in(tries)
        except WbscopeError as error:
            if strict or not is_of_the_run(error):
                raise
            adding.tell(error)
            each(source, "failed", adding.run, error, ())
        else:
            each(source, outcome, adding.run, None, adding.losses)


def is_of_the_run(error: WbscopeError) -> bool:
    """Whether another run may well be read after this."""
    return not isinstance(error, SetupError) or error.slug not in _OF_THE_JOB


@dataclass
class _Adding:
    """One source on its way into the dataset; `run` is known once its content is read."""

    source: str
    target: Target
    library: Library
    redaction: Redaction | None
    fetch: Fetch
    run: str | None = None
    written_s: float | None = None  # of a copy
    losses: tuple[Notice, ...] = ()

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
        with self.target.room() as folder, scratch_folder() as scratch:
            made = self._read(folder, scratch)
            if made is None or not self.target.publish(made, folder):
                return "known"
            self.target.forget_error(made.run)
            self.losses = of_losses(made.warnings)
            return "added"

    def tell(self, error: WbscopeError) -> None:
        """A row for the bad run."""
        with self.target.room() as folder:
            try:
                name, local = write_error(
                    self.source,
                    error,
                    folder,
                    content=self.run,
                    redaction=self.redaction,
                    written_s=self.written_s,
                )
            except OSError as full:
                raise cannot_write(self.target.place, full) from full
            self.target.publish_error(name, local)

    def _found(self, run: str) -> None:
        self.run = run

    def _read(self, folder: Path, scratch: Path) -> RunFiles | None:
        """What a strange trace brings out in our own code is an error of this run, too."""
        with self.fetch(self.source) as at_hand:
            try:
                return self._write(at_hand, folder, scratch)
            except ImportError as error:
                raise missing_library(error, self.source, "fleet") or error from error
            except OSError as error:
                raise cannot_write(self.target.place, error) from error
            except _BUGS as error:
                told = f"{type(error).__name__}: {error} (a bug, please report it)"
                raise InternalError("internal", self.source, told) from error
            except WbscopeError as error:
                if at_hand == self.source:
                    raise
                raise self._of_source(error, at_hand) from None

    def _of_source(self, error: WbscopeError, at_hand: str) -> WbscopeError:
        """What is said of a copy, of the URI: no command but Hadoop's own takes it."""
        told = error.with_path(at_hand, self.source)
        if error.fix is not None and at_hand in error.fix:
            told.fix = f"hadoop fs -get {shlex.quote(self.source)} .    # and look at it there"
        return told

    def _write(self, at_hand: str, folder: Path, scratch: Path) -> RunFiles | None:
        if at_hand != self.source:
            self.written_s = Path(at_hand).stat().st_mtime
        return write_run(
            at_hand,
            folder,
            scratch=scratch,
            redaction=self.redaction,
            library=self.library,
            known=self.target.has,
            found=self._found,
            called=self.source,
        )
