# SPDX-License-Identifier: Apache-2.0
"""A run gets its place in a dataset whole, once, whoever else writes and whenever one is killed.

All files are written and synced elsewhere. Under the dataset's lock an intent names them, each is
linked to its place, and the manifest makes the run part of the dataset. Of a writer that died in
between, the next one takes back the files that its intent names by their content.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wbscope.base.errors import SetupError
from wbscope.fleet.dataset import Dataset, cannot_write, place, sync_folder, write_synced
from wbscope.fleet.layout import is_data_path
from wbscope.fleet.runfiles import RunFiles
from wbscope.fleet.tables import is_file_of

__all__ = ["publish", "recover"]


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
