# SPDX-License-Identifier: Apache-2.0
"""A dataset on a file system of Hadoop: there are no links and locks, a rename is what is whole.

A run is in it exactly when its manifest is there, as in a folder. Before its files get their names
a claim in _intent names them by content. Whoever finds the same claim has the same files, and goes
on; whoever finds another one waits, and takes back what a writer that died had put there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wbscope.base.cache import scratch_folder
from wbscope.base.errors import InputError, SetupError, WbscopeError
from wbscope.fleet.dataset import (
    Dataset,
    cannot_write,
    make_dataset,
    open_dataset,
    write_synced,
)
from wbscope.fleet.hadoopfiles import HadoopFiles
from wbscope.fleet.layout import ERRORS, RUN_ID, is_data_path
from wbscope.fleet.runfiles import RunFiles

__all__ = ["HadoopDataset", "make_dataset_at", "open_dataset_at"]

_MARKER, _MANIFESTS, _INTENTS, _WORK = "_dataset.json", "_manifest", "_intent", "_work"
# A writer that has claimed a run needs seconds: its files are made by then.
_WAIT_SECONDS = 60.0
# What is older was left by one that died, whatever the clocks say.
_LEFT_SECONDS = 24 * 3600.0


@dataclass
class HadoopDataset:
    """Where it is, and by whom it is read and written; `redaction` as of a Dataset."""

    place: str
    redaction: str | None
    files: HadoopFiles
    wait_seconds: float = _WAIT_SECONDS
    _errors: dict[str, int] | None = field(default=None, repr=False)

    @contextmanager
    def room(self) -> Iterator[Path]:
        """Where files are made before they are put here: on the machine's own disk."""
        with scratch_folder() as folder:
            yield folder

    def has(self, run: str) -> bool:
        """Whether the run is in it."""
        return self.files.entry(self._manifest(run)) is not None

    def runs(self) -> list[str]:
        """Runs that are in it."""
        names = (one.name for one in self.files.inside(self._at(_MANIFESTS)))
        stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
        return sorted(stem for stem in stems if RUN_ID.fullmatch(stem))

    def manifests(self) -> dict[str, dict[str, Any]]:
        """What is told of each run, as Dataset.manifests()."""
        with _mirror(self.place) as mirror, _reading(self.place):
            mirror.mkdir()
            if self.files.entry(self._at(_MANIFESTS)) is not None:
                self.files.get(self._at(_MANIFESTS), mirror / _MANIFESTS)
            return Dataset(mirror, self.redaction).manifests()

    def errors(self) -> dict[str, int]:
        """The files of ingest_errors below the dataset, and their bytes."""
        if self._errors is None:
            start = len(self.place) + 1
            with _reading(self.place):
                found = list(self.files.files_below(self._at(ERRORS)))
            named = {one.uri[start:]: one.bytes for one in found}
            self._errors = {name: n for name, n in sorted(named.items()) if is_data_path(name)}
        return self._errors

    def readable(self, name: str) -> Any:
        """A file of it for pyarrow."""
        import pyarrow

        with _reading(self.place):
            return pyarrow.BufferReader(self.files.read(self._at(name)))

    def publish(self, made: RunFiles, folder: Path) -> bool:
        """Add a run whose files are in `folder`; False if it is there.

        Raises: SetupError where it cannot be written, or something else has the place of a file.
        """
        claim = (json.dumps({"files": made.manifest["files"]}, indent=1) + "\n").encode()
        (folder / "intent.json").write_bytes(claim)
        write_synced(folder / "manifest.json", made.manifest)
        try:
            with self._work() as work:
                if not self._claim(made.run, folder / "intent.json", claim, work):
                    return False
                try:
                    self._place(made, folder, work)
                except OSError:
                    with contextlib.suppress(OSError):
                        self._take_back(made.run)
                    raise
        except FileExistsError as error:
            raise _not_ours(error) from error
        except OSError as error:
            raise cannot_write(self.place, error) from error
        return True

    def publish_error(self, name: str, local: Path) -> None:
        """Add a row of ingest_errors, unless there is one of this name."""
        own = name.rpartition("/")[2]
        if any(one.rpartition("/")[2] == own for one in self.errors()):
            return
        try:
            with self._work() as work, contextlib.suppress(FileExistsError):
                self.files.put(local, self._at(name), work)
        except OSError as error:
            raise cannot_write(self._at(name), error) from error

    def forget_error(self, run: str) -> None:
        """A later wbscope has read what an earlier one could not."""
        for name in self.errors():
            if name.endswith(f"/{run}.parquet"):
                with contextlib.suppress(OSError):
                    self.files.delete(self._at(name))

    def recover(self) -> None:
        """Take back what a writer left that died long ago.

        Raises: SetupError.
        """
        before = time.time() - _LEFT_SECONDS
        try:
            for one in self.files.inside(self._at(_INTENTS)):
                run = one.name.removesuffix(".json")
                if RUN_ID.fullmatch(run) and self.has(run):
                    self.files.delete(one.uri)
                elif RUN_ID.fullmatch(run) and one.modified_s < before:
                    self._take_back(run)
            for one in self.files.inside(self._at(_WORK)):
                if one.modified_s < before:
                    self.files.delete(one.uri, whole=True)
        except OSError as error:
            raise cannot_write(self.place, error) from error

    def _at(self, name: str) -> str:
        return f"{self.place}/{name}"

    def _manifest(self, run: str) -> str:
        return self._at(f"{_MANIFESTS}/{run}.json")

    def _intent(self, run: str) -> str:
        return self._at(f"{_INTENTS}/{run}.json")

    @contextmanager
    def _work(self) -> Iterator[str]:
        work = self._at(f"{_WORK}/{uuid.uuid4().hex}")
        self.files.make_folder(work)
        try:
            yield work
        finally:
            with contextlib.suppress(OSError):
                self.files.delete(work, whole=True)

    def _claim(self, run: str, local: Path, claim: bytes, work: str) -> bool:
        """Have the run for this writer; False when another one has added it."""
        end, last = time.monotonic() + self.wait_seconds, b""
        while not self.has(run):
            try:
                self.files.put(local, self._intent(run), work)
            except FileExistsError:
                try:
                    found = self.files.read(self._intent(run))
                except FileNotFoundError:
                    continue
                if found == claim:
                    return True  # of an attempt before this one: the same files
                if found != last:
                    end, last = time.monotonic() + self.wait_seconds, found
                if time.monotonic() > end:
                    self._take_back(run)
                else:
                    time.sleep(0.5)
            else:
                return True
        return False

    def _place(self, made: RunFiles, folder: Path, work: str) -> None:
        for table, name in made.paths().items():
            try:
                self.files.put(folder / f"{table}.parquet", self._at(name), work)
            except FileExistsError:
                if not self._is_as_told(name, made.files[table].sha256):
                    raise
        with contextlib.suppress(FileExistsError):  # of an attempt that was not dead
            self.files.put(folder / "manifest.json", self._manifest(made.run), work)
        with contextlib.suppress(OSError):
            self.files.delete(self._intent(made.run))

    def _take_back(self, run: str) -> None:
        """Remove the files that a claim names, if they are what it says; then the claim."""
        if self.has(run):
            return
        try:
            files = json.loads(self.files.read(self._intent(run)))["files"]
            told = {name: one["sha256"] for name, one in files.items()}
        except FileNotFoundError:
            return
        except (ValueError, LookupError, TypeError, AttributeError):
            told = {}
        for name, sha256 in told.items():
            is_of_run = is_data_path(name) and name.endswith(f"/{run}.parquet")
            if is_of_run and self._is_as_told(name, sha256):
                self.files.delete(self._at(name))
        self.files.delete(self._intent(run))

    def _is_as_told(self, name: str, sha256: Any) -> bool:
        try:
            found = hashlib.sha256(self.files.read(self._at(name))).hexdigest()
        except FileNotFoundError:
            return False
        return bool(found == sha256)


def open_dataset_at(files: HadoopFiles, uri: str) -> HadoopDataset:
    """One that is there, with the errors of open_dataset()."""
    place = uri.rstrip("/")
    with _mirror(place) as mirror, _reading(place):
        _reflect(files, place, mirror)
        return HadoopDataset(place, open_dataset(mirror).redaction, files)


def make_dataset_at(files: HadoopFiles, uri: str, redaction: str | None) -> HadoopDataset:
    """One to write to, with the errors of make_dataset()."""
    place = uri.rstrip("/")
    with _mirror(place) as mirror:
        with _reading(place):
            _reflect(files, place, mirror)
        is_new = not (mirror / _MARKER).exists()
        made = HadoopDataset(place, make_dataset(mirror, redaction).redaction, files)
        if is_new:
            try:
                with made._work() as work, contextlib.suppress(FileExistsError):
                    files.put(mirror / _MARKER, f"{place}/{_MARKER}", work)
            except OSError as error:
                raise cannot_write(place, error) from error
    return made


def _reflect(files: HadoopFiles, place: str, mirror: Path) -> None:
    """A local folder with the same names in it, and the same marker."""
    entry = files.entry(place)
    if entry is None:
        return
    if not entry.is_folder:
        mirror.touch()
        return
    mirror.mkdir()
    for one in files.inside(place):
        if one.name == _MARKER and not one.is_folder:
            (mirror / _MARKER).write_bytes(files.read(one.uri))
        elif one.is_folder:
            (mirror / one.name).mkdir()
        else:
            (mirror / one.name).touch()


@contextmanager
def _mirror(place: str) -> Iterator[Path]:
    """What a folder's own code looks at; its errors name the place."""
    with scratch_folder() as scratch:
        mirror = scratch / "dataset"
        try:
            yield mirror
        except WbscopeError as error:
            raise error.with_path(str(mirror), place) from None


@contextmanager
def _reading(place: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            "cannot-read",
            place,
            f"cannot be read: {error.strerror or error}",
            fix=f"hadoop fs -ls {place}    # by the same user",
        ) from error


def _not_ours(error: OSError) -> SetupError:
    return SetupError(
        "foreign-file",
        str(error.filename or error),
        "exists, and no manifest names it",
        effect="it was left as it is, and the run was not added",
        fix="move it elsewhere, and start the same command again",
    )
