# SPDX-License-Identifier: Apache-2.0
"""A dataset on a file system of Hadoop: the same files, read and written by Hadoop's client."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wbscope.base.cache import scratch_folder
from wbscope.base.errors import InputError, WbscopeError
from wbscope.base.outputs import private_name
from wbscope.fleet.cluster.hadoop_files import HadoopFiles, is_store
from wbscope.fleet.cluster.hadoop_publish import MANIFESTS, Publisher
from wbscope.fleet.dataset import (
    Dataset,
    cannot_write,
    ingest_fix,
    make_dataset,
    open_dataset,
    place_for,
)
from wbscope.fleet.layout import ERRORS, RUN_ID, is_data_path
from wbscope.fleet.runfiles import RunFiles

_MARKER = "_dataset.json"


@dataclass
class HadoopDataset:
    """Where it is, and by whom it is read and written; `redaction` as of a Dataset."""

    place: str
    redaction: str | None
    files: HadoopFiles
    _errors: dict[str, int] | None = field(default=None, repr=False)

    def room(self) -> AbstractContextManager[Path]:
        """Where files are made before they are put here: on the machine's own disk."""
        return scratch_folder()

    def has(self, run: str) -> bool:
        """Whether the run is in it."""
        return self._publisher.has(run)

    def runs(self) -> list[str]:
        """Runs that are in it."""
        names = (one.name for one in self.files.inside(self._at(MANIFESTS)))
        stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
        return sorted(stem for stem in stems if RUN_ID.fullmatch(stem))

    def manifests(self) -> dict[str, dict[str, Any]]:
        """What is told of each run, as Dataset.manifests()."""
        with _mirror(self.place) as mirror, _reading(self.place):
            mirror.mkdir()
            if self.files.entry(self._at(MANIFESTS)) is not None:
                self.files.get(self._at(MANIFESTS), mirror / MANIFESTS)
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
        return self._publisher.publish(made, folder)

    def publish_error(self, name: str, local: Path) -> None:
        """Add a row of ingest_errors, unless there is one of this name."""
        own = name.rpartition("/")[2]
        if any(one.rpartition("/")[2] == own for one in self.errors()):
            return
        try:
            with self._publisher.work() as work, contextlib.suppress(FileExistsError):
                work.add(local, self._at(name))
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
        self._publisher.recover()

    @property
    def _publisher(self) -> Publisher:
        return Publisher(self.files, self.place)

    def _at(self, name: str) -> str:
        return f"{self.place}/{name}"


def open_dataset_at(files: HadoopFiles, uri: str, master: str | None = None) -> HadoopDataset:
    """One that is there, with the errors of open_dataset(); `master` is for their remedy."""
    place = uri.rstrip("/")
    with _mirror(place, master) as mirror, _reading(place):
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
        if not is_new:
            return made
        try:
            if _mark(files, place, mirror / _MARKER):
                return made
        except OSError as error:
            raise cannot_write(place, error) from error
    # Another writer was faster, perhaps with another key.
    return make_dataset_at(files, uri, redaction)


def _mark(files: HadoopFiles, place: str, marker: Path) -> bool:
    """Make it a dataset; False where it has become one.

    Until then there is nothing in it but what _check_empty() knows.
    """
    private = f"{place}/{private_name(_MARKER)}"
    try:
        files.make_folder(place)
        if is_store(place):
            files.put(marker, f"{place}/{_MARKER}")
        else:
            files.put(marker, private)
            files.move(private, f"{place}/{_MARKER}")
    except FileExistsError:
        return False
    finally:
        with contextlib.suppress(OSError):
            files.delete(private)
    return True


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
def _mirror(place: str, master: str | None = None) -> Iterator[Path]:
    """What a folder's own code looks at; its errors name the place."""
    with scratch_folder() as scratch:
        mirror = scratch / "dataset"
        try:
            yield mirror
        except WbscopeError as error:
            told = error.with_path(str(mirror), place)
            if error.slug == "not-a-dataset" and isinstance(error, InputError):
                told.fix = ingest_fix(place_for(mirror, place), master)
            elif told.subject == f"{place}/{_MARKER}" and error.slug == "damaged-dataset":
                told.fix = ingest_fix(f"{place}-new", master)
            elif error.slug == "damaged-dataset":
                aside = f"{place}-damaged-{told.subject.rpartition('/')[2]}"
                told.fix = (
                    f"{shlex.join(['hadoop', 'fs', '-mv', told.subject, aside])}, and "
                    "ingest the run again"
                )
            raise told from None


@contextmanager
def _reading(place: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            "cannot-read",
            place,
            f"cannot be read: {error.strerror or error}",
            fix=f"hadoop fs -ls {shlex.quote(place)}    # by the same user",
        ) from error
