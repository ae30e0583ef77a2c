# SPDX-License-Identifier: Apache-2.0
"""Which runs a folder holds, at any depth."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from wbscope.base.errors import UsageError, WbscopeError
from wbscope.run.source import STDIN, find_source

__all__ = ["DATASET_MARK", "ENDS", "is_run", "sources_in"]

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
