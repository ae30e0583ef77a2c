# SPDX-License-Identifier: Apache-2.0
"""Runs on a file system of Hadoop: which there are, and one of them on this machine."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wbscope.base.cache import scratch_folder
from wbscope.base.errors import InputError, SetupError
from wbscope.fleet.cluster.hadoopfiles import Entry, HadoopFiles
from wbscope.fleet.findsources import DATASET_MARK, ENDS, is_run

__all__ = ["fetched", "sources_at"]

# Only these names tell whether a folder is a run.
_TELLS = ("trace.", "meta.json")


def sources_at(files: HadoopFiles, uri: str) -> list[str]:
    """As sources_in() of a folder.

    Raises: InputError for a name that is not there.
    """
    try:
        entry = files.entry(uri)
        if entry is None:
            raise InputError(
                "no-such-file",
                uri,
                "does not exist, wanted a run folder, a trace or a .db",
                fix=f"hadoop fs -ls {shlex.quote(uri.rstrip('/').rpartition('/')[0])}",
            )
        if not entry.is_folder:
            return [uri]
        place = uri.rstrip("/")
        inside = files.inside(place)
        return [place] if _is_run(inside) else list(_below(files, place, inside)) or [place]
    except OSError as error:
        raise _cannot_read(uri, error) from error


@contextmanager
def fetched(files: HadoopFiles, uri: str) -> Iterator[str]:
    """The run in a local folder or file of the same name and times, as long as it is needed.

    Raises: InputError for one that is not there or closed; SetupError where the copy fails.
    """
    with scratch_folder() as scratch:
        try:
            entry = files.entry(uri)
            if entry is None:
                raise FileNotFoundError(2, "No such file or directory", uri)
            local = scratch / entry.name
            if entry.is_folder:
                local.mkdir()
                for one in files.inside(uri):
                    # A run has no folders of its own.
                    if not one.is_folder:
                        _get(files, one, local / one.name)
            else:
                _get(files, entry, local)
        except (FileNotFoundError, PermissionError) as error:
            raise _cannot_read(uri, error) from error
        except OSError as error:
            # Of the network or a machine: the next run would meet it as well.
            raise SetupError(
                "cannot-fetch",
                uri,
                f"cannot be copied: {error.strerror or error}",
                effect="runs that are in the dataset stay",
                fix="start the same command again: it goes on where it was",
            ) from error
        yield str(local)


def _get(files: HadoopFiles, entry: Entry, local: Path) -> None:
    files.get(entry.uri, local)
    os.utime(local, (entry.modified_s, entry.modified_s))


def _below(files: HadoopFiles, folder: str, inside: list[Entry]) -> Iterator[str]:
    if not inside:
        yield folder
    for entry in inside:
        if entry.name.startswith("."):
            continue
        if entry.is_folder:
            within = files.inside(entry.uri)
            if _is_run(within):
                yield entry.uri
            elif not any(one.name == DATASET_MARK for one in within):
                yield from _below(files, entry.uri, within)
        elif entry.name.endswith(ENDS):
            yield entry.uri


def _is_run(inside: list[Entry]) -> bool:
    """By the rules for local folders, which look at names: at a folder of empty files."""
    names = [one.name for one in inside if one.name.startswith(_TELLS) and not one.is_folder]
    if not names:
        return False
    with scratch_folder() as scratch:
        for name in names:
            (scratch / name).touch()
        return is_run(str(scratch))


def _cannot_read(uri: str, error: OSError) -> InputError:
    return InputError(
        "cannot-read",
        uri,
        f"cannot be read: {error.strerror or error}",
        fix=f"hadoop fs -ls {shlex.quote(uri)}    # by the same user",
    )
