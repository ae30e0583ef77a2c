# SPDX-License-Identifier: Apache-2.0
"""A dataset on disk: its marker, and the manifests that say which runs are in it.

All files are written and synced elsewhere. Under the dataset's lock an intent names them, each is
linked to its place, and the manifest makes the run part of the dataset. Of a writer that died in
between, the next one takes back the files that its intent names by their content.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wbscope.base.errors import Argument, InputError, Phrase, SetupError, UsageError
from wbscope.base.outputs import check_parent, free_name, is_private_name, private_folder
from wbscope.fleet.layout import ERRORS, FLEET_SCHEMA, PARTITIONS, RUN_ID, is_data_path, is_file_of
from wbscope.fleet.runfiles import MANIFEST_SCHEMA, RunFiles

DATASET_SCHEMA = "wbscope.dataset/1"

_MARKER = "_dataset.json"
# Names that begin so are of no reader of Parquet.
_MANIFESTS, _INTENTS, _WORK, _LOCK = "_manifest", "_intent", "_work", "_lock"
_MOST_BYTES = 16 << 20
_ERROR_FILES = "/".join([ERRORS, *(f"{key}=*" for key in PARTITIONS), "*.parquet"])


@dataclass(frozen=True)
class Dataset:
    """A folder that is a dataset; `redaction` is the id of the key of its names, None: plain."""

    path: Path
    redaction: str | None

    @property
    def place(self) -> str:
        """For Spark."""
        return f"file:{self.path.absolute()}"

    @property
    def work(self) -> Path:
        """Where writers have their private folders, each under this name."""
        return self.path / _WORK / "ingest"

    def manifest_path(self, run: str) -> Path:
        """What makes a run part of the dataset when it is there."""
        return self.path / _MANIFESTS / f"{run}.json"

    def intent_path(self, run: str) -> Path:
        """What names the files of a run while they get their places."""
        return self.path / _INTENTS / f"{run}.json"

    def has(self, run: str) -> bool:
        """Whether the run is in it."""
        return self.manifest_path(run).exists()

    def intents(self) -> list[str]:
        """Runs that somebody has begun to publish."""
        return self._ids(_INTENTS)

    def runs(self) -> list[str]:
        """Runs that are in it."""
        return self._ids(_MANIFESTS)

    def manifests(self) -> dict[str, dict[str, Any]]:
        """What is told of each run, by its id.

        Raises: InputError for one of a newer wbscope, or that is not as it was written.
        """
        return {run: read_manifest(self.manifest_path(run)) for run in self.runs()}

    def error_files(self) -> list[Path]:
        """The rows of ingest_errors, a file each."""
        found = self.path.glob(_ERROR_FILES)
        return sorted(p for p in found if is_data_path(str(p.relative_to(self.path))))

    def errors(self) -> dict[str, int]:
        """The files of ingest_errors below the dataset, and their bytes."""
        files = self.error_files()
        return {str(path.relative_to(self.path)): path.stat().st_size for path in files}

    def readable(self, name: str) -> Any:
        """A file of it for pyarrow."""
        return self.path / name

    @contextmanager
    def locked(self) -> Iterator[None]:
        """While files get their names: the next writer waits some milliseconds."""
        lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # Where there are no locks, names from the content and links still hold.
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _ids(self, folder: str) -> list[str]:
        try:
            names = os.listdir(self.path / folder)
        except FileNotFoundError:
            return []
        stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
        return sorted(stem for stem in stems if RUN_ID.fullmatch(stem))


def open_dataset(path: Path) -> Dataset:
    """One that is there.

    Raises: InputError for a folder that is none, or is of a newer wbscope.
    """
    try:
        document = _document(path / _MARKER)
    except (FileNotFoundError, NotADirectoryError):
        what = "is a folder without _dataset.json" if path.is_dir() else "does not exist"
        what = "is a file" if path.is_file() else what
        raise InputError(
            "not-a-dataset",
            str(path),
            f"{what}, wanted a dataset",
            fix=ingest_fix(place_for(path)),
        ) from None
    if document.get("schema") != DATASET_SCHEMA:
        raise _damaged(path / _MARKER, f"has schema {document.get('schema')!r}")
    _check_version(path / _MARKER, document)
    redaction = document.get("redaction")
    return Dataset(path, None if redaction is None else str(redaction))


def make_dataset(path: Path, redaction: str | None, argument: str = "output") -> Dataset:
    """One to write to: made in a new or empty folder, else the one that is there.

    `argument` is the one that names it, for the remedy.
    Raises: UsageError for a folder with other things in it, and for another key.
    """
    if str(path) == "-":
        fix = Phrase(Argument(argument, str(free_name(Path("dataset")))))
        raise UsageError("output-is-stdout", "-", "is stdout, wanted a folder", fix=fix)
    check_parent(path, argument)
    try:
        path.mkdir(exist_ok=True)
        if not (path / _MARKER).exists():
            _check_empty(path, argument)
            _mark(path, redaction)
        for name in (_MANIFESTS, _INTENTS, _WORK):
            (path / name).mkdir(exist_ok=True)
    except FileExistsError as error:
        raise UsageError(
            "output-is-file",
            str(path),
            "is a file, wanted a folder",
            fix=Phrase(Argument(argument, str(free_name(Path(place_for(path)))))),
        ) from error
    except OSError as error:
        raise cannot_write(path, error) from error
    found = open_dataset(path)
    if found.redaction != redaction:
        raise _other_key(found, redaction)
    return found


def ingest_fix(place: str, master: str | None = None) -> str:
    """How to make the dataset, or to add to it; a URI needs the `master`."""
    fix = f"wbscope fleet ingest RUN... -o {shlex.quote(place)}"
    return fix if master is None else Phrase(f"{fix} ", Argument("master", master))


def place_for(path: Path, called: str | None = None) -> str:
    """Where `fleet ingest` makes a dataset for who named this `path`, which is none.

    `called` is its name for the reader.
    """
    called = str(path) if called is None else called
    if path.is_file():
        return f"{called}-dataset"
    try:
        is_taken = path.is_dir() and bool(os.listdir(path))
    except OSError:
        is_taken = True
    return f"{called.rstrip('/')}/dataset" if is_taken else called


def read_manifest(path: Path) -> dict[str, Any]:
    """What is told of one run."""
    document = _document(path)
    if document.get("schema") != MANIFEST_SCHEMA:
        raise _damaged(path, f"has schema {document.get('schema')!r}, wanted {MANIFEST_SCHEMA!r}")
    _check_version(path, document)
    files = document.get("files")
    if document.get("run") != path.stem or not isinstance(files, dict):
        raise _damaged(path, "is not of the run that it is named after")
    for place_of, told in files.items():
        named = Path(place_of)
        is_ours = is_data_path(place_of) and named.stem == path.stem
        if not is_ours or not isinstance(told, dict) or told.get("table") != named.parts[0]:
            raise _damaged(path, f"names {place_of!r}, which is no file of a dataset")
    if not _are_pairs(document.get("warnings", [])):
        raise _damaged(path, "has other things than pairs of texts for warnings")
    return document


def files_by_table(manifests: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """Table -> its files below the dataset."""
    found: dict[str, list[str]] = {}
    for manifest in manifests:
        for name, told in manifest["files"].items():
            found.setdefault(told["table"], []).append(name)
    return found


def place(source: Path, target: Path) -> None:
    """Give a whole file its name, which nothing else has.

    Raises: FileExistsError; OSError.
    """
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:
        # A file system without links; the lock is what keeps others away.
        if os.path.lexists(target):
            raise FileExistsError(f"{target} exists") from None
        os.rename(source, target)


def write_synced(path: Path, document: dict[str, Any]) -> None:
    """A file of JSON that is on the disk when this returns."""
    with path.open("x", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=1) + "\n")
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Names in a folder, too, are lost with the power until this."""
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some file systems sync no folders
            os.fsync(opened)
    finally:
        os.close(opened)


def cannot_write(path: Path | str, error: OSError) -> SetupError:
    """A full disk, no permission."""
    return SetupError(
        "cannot-write",
        str(path),
        f"cannot be written: {error.strerror or error}",
        effect="runs that are in the dataset stay; what was begun of another is taken back",
        fix="make room, and start the same command again: it goes on where it was",
    )


def _mark(path: Path, redaction: str | None) -> None:
    document = {"schema": DATASET_SCHEMA, "fleet_schema": FLEET_SCHEMA, "redaction": redaction}
    with private_folder(path / _MARKER, held=True) as private:
        write_synced(private / "marker", document)
        with contextlib.suppress(FileExistsError):  # another writer begins, too
            place(private / "marker", path / _MARKER)
    sync_folder(path)


def _check_empty(path: Path, argument: str) -> None:
    others = [name for name in os.listdir(path) if not is_private_name(name, _MARKER)]
    if others and not (path / _MARKER).exists():  # another writer may have begun
        raise UsageError(
            "not-a-dataset",
            str(path),
            f"is a folder with {len(others)} other things in it, wanted a new or empty one",
            have=", ".join(sorted(others)[:8]),
            effect="nothing was written",
            fix=Phrase(Argument(argument, str(free_name(path / "dataset")))),
        )


def _are_pairs(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(e, list) and len(e) == 2 for e in found)


def _document(path: Path) -> dict[str, Any]:
    """Raises: FileNotFoundError, NotADirectoryError; InputError for what is no JSON object."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_MOST_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, f"cannot be read as JSON: {error}") from error
    if not isinstance(found, dict):
        raise _damaged(path, "holds no JSON object")
    return found


def _check_version(path: Path, document: dict[str, Any]) -> None:
    version = document.get("fleet_schema")
    if not isinstance(version, int):
        raise _damaged(path, f"has fleet_schema {version!r}, wanted a number")
    if version > FLEET_SCHEMA:
        by = re.sub(r"[^\w.+-]", "", str(document.get("wbscope_version") or "")) or "a newer one"
        raise InputError(
            "dataset-version",
            str(path),
            f"has fleet_schema {version}, this wbscope reads up to {FLEET_SCHEMA}",
            have=f"written by wbscope {by}",
            fix="pipx upgrade wbscope",
        )


def _other_key(found: Dataset, asked: str | None) -> UsageError:
    plain = "names as they are"
    have = plain if found.redaction is None else f"names hashed with key {found.redaction}"
    would = plain if asked is None else f"some with key {asked}"
    return UsageError(
        "other-redaction",
        str(found.path),
        f"has {have}, and would get {would}",
        effect="nothing was written: a name would not be the same one in all runs",
        fix=Phrase("the same ", Argument("redact"), " as before, or another dataset"),
    )


def _damaged(path: Path, message: str) -> InputError:
    """Without its marker a folder would not be taken for a dataset; runs can be added again."""
    if path.name == _MARKER:
        fix = f"{ingest_fix(f'{path.parent}-new')}    # makes another one"
    else:
        fix = f"mv {shlex.quote(str(path))} /tmp, and ingest the run again"
    return InputError(
        "damaged-dataset",
        str(path),
        message,
        effect="no number was made of the rest",
        fix=fix,
    )


def publish(dataset: Dataset, made: RunFiles, folder: Path) -> bool:
    """Add a run whose files are in `folder`, on the same file system; False if it is there.

    Raises: SetupError for a full disk, and where something else has the place of a file.
    """
    with dataset.locked():
        if dataset.has(made.run):
            return False
        intent = dataset.intent_path(made.run)
        try:
            if intent.exists():
                _take_back(dataset, made.run)
            write_synced(folder / "intent.json", {"files": made.manifest["files"]})
            place(folder / "intent.json", intent)
            sync_folder(intent.parent)
            _place_files(dataset, made, folder)
            write_synced(folder / "manifest.json", made.manifest)
            place(folder / "manifest.json", dataset.manifest_path(made.run))
            sync_folder(dataset.manifest_path(made.run).parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                _take_back(dataset, made.run)
            if isinstance(error, FileExistsError):
                raise _not_ours(error) from error
            raise cannot_write(dataset.path, error) from error
        with contextlib.suppress(OSError):
            intent.unlink()
    return True


def recover(dataset: Dataset) -> int:
    """Take back what writers that died had begun; how many runs that were.

    Raises: SetupError.
    """
    if not dataset.intents():
        return 0
    taken = 0
    with dataset.locked():
        for run in dataset.intents():
            try:
                if dataset.has(run):
                    dataset.intent_path(run).unlink(missing_ok=True)
                else:
                    _take_back(dataset, run)
                    taken += 1
            except OSError as error:
                raise cannot_write(dataset.intent_path(run), error) from error
    return taken


def _place_files(dataset: Dataset, made: RunFiles, folder: Path) -> None:
    parents = []
    for table, name in made.paths().items():
        target = dataset.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            place(folder / f"{table}.parquet", target)
        except FileExistsError:
            # Of a manifest that has gone: who holds the lock is the only one that adds this run.
            if target.is_symlink() or not is_file_of(target, made.run, table):
                raise
            target.unlink()
            place(folder / f"{table}.parquet", target)
        parents.append(target.parent)
    for parent in parents:
        sync_folder(parent)


def _take_back(dataset: Dataset, run: str) -> None:
    """Remove the files that an intent names, if they are what it says; then the intent."""
    intent = dataset.intent_path(run)
    if not intent.exists():
        return
    for name, told in _files(intent).items():
        path = dataset.path / name
        if is_data_path(name) and path.stem == run and _is_as_told(path, told):
            path.unlink()
    intent.unlink()


def _files(intent: Path) -> Mapping[str, Any]:
    """It was whole when it got its name; one that is not is nobody's."""
    try:
        files = json.loads(intent.read_text(encoding="utf-8"))["files"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return files if isinstance(files, dict) else {}


def _is_as_told(path: Path, told: Any) -> bool:
    """By its content: what somebody else put there stays."""
    if path.is_symlink() or not path.is_file() or not isinstance(told, dict):
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == told.get("sha256")


def _not_ours(error: OSError) -> SetupError:
    return SetupError(
        "foreign-file",
        str(error.filename2 or error.filename or error),
        "exists, and no manifest names it",
        effect="it was left as it is, and the run was not added",
        fix="move it elsewhere, and start the same command again",
    )
