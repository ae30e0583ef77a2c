# SPDX-License-Identifier: Apache-2.0
"""Folders of tests whose recordings nobody reads as files: they are in an archive a kernel."""

from __future__ import annotations

import atexit
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from .once import Once

__all__ = ["SHARED", "packed", "sums", "unpacked"]

SHARED = "WBSCOPE_TESTS_UNPACKED"
"""Names the folder that all processes of a run of pytest share; conftest.py makes it."""

_TESTS = Path(__file__).parents[1]


@cache
def unpacked(name: str) -> Path:
    """The folder of tests/ with what its archives hold in their place. Nobody may change it."""
    return _once().made(name, lambda folder: _fill(folder, _TESTS / name))


def _once() -> Once:
    shared = os.environ.get(SHARED)
    if shared is None:  # a tool that reads them
        shared = tempfile.mkdtemp(prefix="wbscope-unpacked-")
        atexit.register(shutil.rmtree, shared)
    return Once(Path(shared))


def _fill(folder: Path, source: Path) -> None:
    archives = sorted(source.glob("*.tar*"))
    shutil.copytree(
        source, folder, dirs_exist_ok=True, ignore=lambda *_: {path.name for path in archives}
    )
    for path in archives:
        with tarfile.open(path) as archive:
            for member in archive.getmembers():
                name = Path(member.name)
                assert member.isreg(), name
                assert (folder / name).resolve().is_relative_to(folder.resolve()), name
                assert not (folder / name).exists(), f"{name} is there twice"
                archive.extract(member, folder)


def sums() -> str:
    """tests/SHA256SUMS: what stands in all archives of tests/data and tests/corpus."""
    lines = []
    for path in sorted(_TESTS.glob("data/*.tar*")) + sorted(_TESTS.glob("corpus/*.tar*")):
        with tarfile.open(path) as archive:
            for member in archive.getmembers():
                content = archive.extractfile(member)
                assert content is not None, member.name
                digest = hashlib.sha256(content.read()).hexdigest()
                lines.append(f"{digest}  {path.parent.name}/{member.name}\n")
    return "".join(lines)


def packed(folder: Path, files: Iterable[Path]) -> bytes:
    """A tar of files of the folder: the same bytes for the same files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:") as archive:
        for path in sorted(files):
            entry = tarfile.TarInfo(str(path.relative_to(folder)))
            entry.size = path.stat().st_size
            with path.open("rb") as file:
                archive.addfile(entry, file)
    return out.getvalue()
