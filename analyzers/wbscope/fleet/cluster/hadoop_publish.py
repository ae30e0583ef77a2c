# SPDX-License-Identifier: Apache-2.0
"""A run gets its place on a file system of Hadoop, where there are no links and no locks.

A rename is what is whole there. All files of a run are first in a folder of the writer's own below
_work. A claim in _intent names them by content, and that folder; then each is renamed to its place,
the manifest last. Whoever takes over from a writer that died, or that stands still, removes that
folder first: a writer without it can rename nothing more, neither into the dataset nor out of it.
So nobody has to know whether it is dead, and nothing is taken back that somebody still adds.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wbscope.base.cache import scratch_folder
from wbscope.base.errors import SetupError
from wbscope.fleet.cluster.hadoop_files import Entry, HadoopFiles, is_store
from wbscope.fleet.dataset import cannot_write, write_synced
from wbscope.fleet.layout import RUN_ID, is_data_path, is_file_of
from wbscope.fleet.runfiles import RunFiles

MANIFESTS, INTENTS, WORK = "_manifest", "_intent", "_work"
# A writer that has claimed a run needs seconds: its files are made and copied by then.
_WAIT_SECONDS = 60.0
# What is older was left by one that died, whatever the clocks say.
LEFT_SECONDS = 24 * 3600.0
# RUN.json is the claim of who may write the run, RUN.ID.json of one that it was taken from.
_CLAIM = re.compile(rf"({RUN_ID.pattern})(\.[0-9a-f]{{32}})?\.json")
_OWN = re.compile(r"[0-9a-f]{32}")


class _TakenOver(Exception):
    """The folder of this writer has gone."""


@dataclass(frozen=True)
class Work:
    """A writer's own folder. All that is changed in the dataset goes through it."""

    files: HadoopFiles
    uri: str

    @property
    def id(self) -> str:
        """What a claim calls it."""
        return self.uri.rpartition("/")[2]

    def upload(self, local: Path) -> None:
        """Have a file ready; an object store has no use for it."""
        if not is_store(self.uri):
            self.files.put(local, f"{self.uri}/{local.name}")

    def give(self, local: Path, target: str) -> None:
        """Give a file that was uploaded its name, which nothing else has.

        Raises: FileExistsError; OSError without the folder.
        """
        if is_store(self.uri):
            self._check()
            self.files.put(local, target)
            return
        self.files.make_folder(target.rpartition("/")[0])
        self.files.move(f"{self.uri}/{local.name}", target)

    def add(self, local: Path, target: str) -> None:
        """Both."""
        self.upload(local)
        self.give(local, target)

    def take(self, target: str) -> None:
        """Remove a file of the dataset.

        Raises: OSError without the folder.
        """
        if is_store(self.uri):
            self._check()
            self.files.delete(target)
            return
        with contextlib.suppress(FileNotFoundError):
            self.files.move(target, f"{self.uri}/{uuid.uuid4().hex}")
            return
        self._check()

    def is_there(self) -> bool:
        """Whether nobody has taken over."""
        return self.files.entry(self.uri) is not None

    def _check(self) -> None:
        """On an object store a look before is all there is."""
        if not self.is_there():
            raise FileNotFoundError(2, "has gone", self.uri)


@dataclass(frozen=True)
class _Claim:
    """What a writer said that it adds: `told` is name -> sha256."""

    work: str | None
    told: dict[str, Any]


@dataclass(frozen=True)
class Publisher:
    """A dataset as its writers see it."""

    files: HadoopFiles
    place: str
    wait_seconds: float = _WAIT_SECONDS

    @contextmanager
    def work(self) -> Iterator[Work]:
        """A folder of one writer's own, which goes with it."""
        work = Work(self.files, self.at(f"{WORK}/{uuid.uuid4().hex}"))
        self.files.make_folder(work.uri)
        try:
            yield work
        finally:
            with contextlib.suppress(OSError):
                self.files.delete(work.uri, whole=True)

    def publish(self, made: RunFiles, folder: Path) -> bool:
        """Add a run whose files are in `folder`; False if it is there.

        Raises: SetupError where it cannot be written, or something else has the place of a file.
        """
        manifest = folder / "manifest.json"
        write_synced(manifest, made.manifest)
        # One that was taken over from was not dead: once more, with patience.
        for is_hurried in (True, False):
            try:
                with self.work() as work:
                    return self._add(made, folder, manifest, work, is_hurried)
            except _TakenOver:
                continue
            except FileExistsError as error:
                raise _not_ours(error) from error
            except OSError as error:
                raise cannot_write(self.place, error) from error
        stolen = OSError(11, "other writers take this run over again and again", made.run)
        raise cannot_write(self.place, stolen)

    def has(self, run: str) -> bool:
        """Whether the run is in the dataset."""
        return self.files.entry(self.at(f"{MANIFESTS}/{run}.json")) is not None

    def recover(self, left_seconds: float = LEFT_SECONDS) -> None:
        """Take back what a writer left that died so long ago.

        Raises: SetupError.
        """
        before = time.time() - left_seconds
        try:
            for one in self.files.inside(self.at(INTENTS)):
                if (found := _CLAIM.fullmatch(one.name)) is None:
                    continue
                if self.has(found[1]):
                    self.files.delete(one.uri)
                elif one.modified_s < before:
                    self._abandon(found[1])
            for one in self.files.inside(self.at(WORK)):
                if _OWN.fullmatch(one.name) and one.modified_s < before:
                    self.files.delete(one.uri, whole=True)
        except OSError as error:
            raise cannot_write(self.place, error) from error

    def at(self, name: str) -> str:
        """What is below the dataset."""
        return f"{self.place}/{name}"

    def _add(
        self, made: RunFiles, folder: Path, manifest: Path, work: Work, is_hurried: bool
    ) -> bool:
        claim = _write_claim(folder, work, made.manifest["files"])
        named = {folder / f"{table}.parquet": name for table, name in made.paths().items()}
        for local in (*named, manifest, claim):
            work.upload(local)
        if not self._claim(made.run, claim, work, is_hurried):
            return False
        placed: list[str] = []
        try:
            if not self._settle(made.run, work):
                return False
            for local, name in named.items():
                if self._give(made.run, work, local, name):
                    placed.append(self.at(name))
            work.give(manifest, self.at(f"{MANIFESTS}/{made.run}.json"))
        except OSError as error:
            if not work.is_there():
                raise _TakenOver from error
            if self.has(made.run):
                return True  # the answer was lost, not the rename
            with contextlib.suppress(OSError):
                for uri in (*placed, self._intent(made.run)):
                    work.take(uri)
            raise
        with contextlib.suppress(OSError):
            work.take(self._intent(made.run))
        return True

    def _give(self, run: str, work: Work, local: Path, name: str) -> bool:
        """By who has claimed the run: a file gets its place; False where it is there.

        Raises: FileExistsError where something else is there.
        """
        target = self.at(name)
        try:
            work.give(local, target)
            return True
        except FileExistsError:
            # Of a manifest that has gone, or of the other one of two on an object store.
            there = self.files.read(target)
            if there == local.read_bytes():
                return False
            if not is_file_of(io.BytesIO(there), run, name.partition("/")[0]):
                raise
        work.take(target)
        work.give(local, target)
        return True

    def _claim(self, run: str, local: Path, work: Work, is_hurried: bool) -> bool:
        """Have the run for this writer; False when another one has added it."""
        own = _claim_of(local.read_bytes())
        end, last, has_taken = time.monotonic() + self.wait_seconds, None, False
        while not self.has(run):
            try:
                work.give(local, self._intent(run))
                return True
            except FileExistsError:
                found = self._read_claim(self._intent(run))
            if found is None:
                continue
            if found != last:
                end, last = time.monotonic() + self.wait_seconds, found
            # The same files are those of an attempt before this one.
            if (is_hurried and found.told == own.told) or time.monotonic() > end:
                self._take_over(run)
                has_taken = True
            else:
                time.sleep(min(0.5, self.wait_seconds / 10))
        if has_taken:
            self._forget_claims(run)
        return False

    def _take_over(self, run: str) -> None:
        """The claim's place is free; what it says is kept for who claims the run next."""
        with contextlib.suppress(FileNotFoundError):
            kept = self.at(f"{INTENTS}/{run}.{uuid.uuid4().hex}.json")
            self.files.move(self._intent(run), kept)

    def _settle(self, run: str, work: Work) -> bool:
        """By who has claimed it: take back what others left; False when one of them was done."""
        left = {one.uri: self._read_claim(one.uri) for one in self._claims(run)}
        for claim in left.values():
            if claim is not None and claim.work is not None:
                self.files.delete(self.at(f"{WORK}/{claim.work}"), whole=True)
        if self.has(run):
            self._forget_claims(run)
            with contextlib.suppress(OSError):
                work.take(self._intent(run))
            return False
        for uri, claim in left.items():
            for name, sha256 in (claim.told if claim is not None else {}).items():
                is_of_run = is_data_path(name) and name.endswith(f"/{run}.parquet")
                if is_of_run and self._is_as_told(name, sha256):
                    work.take(self.at(name))
            work.take(uri)
        return True

    def _abandon(self, run: str) -> None:
        """Take back what was begun of a run, unless somebody else goes on with it."""
        with self.work() as work, scratch_folder() as folder:
            local = _write_claim(folder, work, {})
            work.upload(local)
            self._take_over(run)
            try:
                work.give(local, self._intent(run))
            except FileExistsError:
                return
            if self._settle(run, work):
                work.take(self._intent(run))

    def _claims(self, run: str) -> list[Entry]:
        """Those that the run was taken from."""
        found = self.files.inside(self.at(INTENTS))
        return [one for one in found if (m := _CLAIM.fullmatch(one.name)) and m[1] == run and m[2]]

    def _forget_claims(self, run: str) -> None:
        """The run is there whole."""
        with contextlib.suppress(OSError):
            for one in self._claims(run):
                self.files.delete(one.uri)

    def _read_claim(self, uri: str) -> _Claim | None:
        try:
            return _claim_of(self.files.read(uri))
        except FileNotFoundError:
            return None

    def _intent(self, run: str) -> str:
        return self.at(f"{INTENTS}/{run}.json")

    def _is_as_told(self, name: str, sha256: Any) -> bool:
        """By its content: what somebody else put there stays."""
        try:
            found = hashlib.sha256(self.files.read(self.at(name))).hexdigest()
        except FileNotFoundError:
            return False
        return bool(found == sha256)


def _write_claim(folder: Path, work: Work, files: dict[str, Any]) -> Path:
    local = folder / f"claim-{work.id}.json"
    write_synced(local, {"work": work.id, "files": files})
    return local


def _claim_of(data: bytes) -> _Claim:
    """It was whole when it got its name; one that is not names nothing."""
    try:
        document = json.loads(data)
        told = {name: one["sha256"] for name, one in document["files"].items()}
        work = document.get("work")
    except (ValueError, LookupError, TypeError, AttributeError):
        return _Claim(None, {})
    is_own = isinstance(work, str) and _OWN.fullmatch(work)
    return _Claim(work if is_own else None, told)


def _not_ours(error: OSError) -> SetupError:
    return SetupError(
        "foreign-file",
        str(error.filename or error),
        "exists, and no manifest names it",
        effect="it was left as it is, and the run was not added",
        fix="move it elsewhere, and start the same command again",
    )
