# SPDX-License-Identifier: Apache-2.0
"""Datasets of many runs, and the runs that they are made of."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from .cli import Wbscope
from .corpus import cases
from .corpus import unpack as unpack_case
from .layout import layout_of
from .mutate import _places

__all__ = ["HOSTS", "Base", "bases", "check_same", "files", "manifests", "rows"]


# That two datasets are the same, file by file, but for what tells where a run was read.

# Of a run, what says where it was read from; of an error, when.
_ITS_SOURCE = ("runs/", "ingest_errors/")


def files(dataset: Path) -> dict[str, str]:
    """All files of tables by their content; of those that tell a source or a time, the names."""
    found = {}
    for path in dataset.rglob("*"):
        name = str(path.relative_to(dataset))
        if path.is_file() and not name.startswith("_"):
            told = name.startswith(_ITS_SOURCE)
            found[name] = "" if told else hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def manifests(dataset: Path) -> dict[str, Any]:
    """All that they say, but for the source and the file that has it."""
    found = {}
    for path in (dataset / "_manifest").iterdir():
        document = json.loads(path.read_text())
        assert document.pop("source")
        kept = {k: v for k, v in document["files"].items() if v["table"] != "runs"}
        found[path.name] = document | {"files": kept}
    return found


def rows(wbscope: Wbscope, dataset: Path) -> list[Any]:
    """What tells a source, and all else of these tables but when an error was."""
    return [
        wbscope.document("fleet", "sql", dataset, question)["rows"]
        for question in (
            "SELECT * FROM runs ORDER BY run",
            "SELECT source, slug, message, exit_code, content FROM ingest_errors",
        )
    ]


def check_same(wbscope: Wbscope, copy: Path, local: Path, source: str, traces: str | Path) -> None:
    """A copy of one that was made of `source`, and one made of `traces`; nothing is begun in it."""
    assert files(copy) == files(local)
    assert manifests(copy) == manifests(local)
    assert manifests(copy)
    for path in (copy / "_manifest").iterdir():
        for name, about in json.loads(path.read_text())["files"].items():
            assert hashlib.sha256((copy / name).read_bytes()).hexdigest() == about["sha256"], name
    for ours, theirs in zip(rows(wbscope, copy), rows(wbscope, local), strict=True):
        assert ours
        assert json.dumps(ours).replace(source, str(traces)) == json.dumps(theirs)
    # An object store has no folder without something in it.
    for folder in ("_intent", "_work"):
        assert not (copy / folder).exists() or not list((copy / folder).iterdir())


# Many runs made of a few real ones: other machines, days and durations, traces that stay whole.
#
# All times of a trace are moved, and shrunk by up to 4 %: every duration that a query gives is
# another one. Values that the kernel wrote into events stay as they are.

HOSTS = 40
_FIRST_UNIX_S = 1_790_000_000
_EVERY_S = 600
_STEPS = 41  # durations of 1.000, 0.999 ... 0.960 of what they were
_EXTEND = 30
_LOW_BITS = 27
_TRACE = "trace.dat"


class Base:
    """A real run that replicas are made of; its trace is unpacked once."""

    def __init__(self, folder: Path) -> None:
        data = (folder / _TRACE).read_bytes()
        assert layout_of(data).compression == "none", folder
        places = _places(data)
        assert places.order == "<", folder
        self.name = folder.name
        self._data = data
        self._pages = numpy.array(places.pages, dtype=numpy.int64)
        self._heads = numpy.array(places.heads, dtype=numpy.int64)
        self._extends = numpy.array(places.extends, dtype=numpy.int64)
        self._others = [path for path in folder.iterdir() if path.name != _TRACE]

    def replica(self, number: int, folder: Path) -> Path:
        """Run `number` in a folder of its own below `folder`."""
        made = folder / f"{number:05d}-{self.name}"
        made.mkdir()
        for path in self._others:
            shutil.copyfile(path, made / path.name)
        host = f"db{number % HOSTS:02d}"
        unix_s = _FIRST_UNIX_S + _EVERY_S * number
        meta = made / "meta.json"
        told = json.loads(meta.read_text())
        told["machine"] = {**(told.get("machine") or {}), "hostname": host}
        meta.write_text(json.dumps(told | {"written_unix_s": unix_s}))
        (made / _TRACE).write_bytes(self._trace(number))
        return made

    def _trace(self, number: int) -> bytes:
        """Each duration is cut to whole ns, so that no record gets behind the next page."""
        data = numpy.frombuffer(bytearray(self._data), dtype=numpy.uint8)
        part = 1000 - number % _STEPS
        stamps = _read(data, self._pages, 8)
        first = stamps.min()
        moved = numpy.uint64(3_600_000_000_000 * number)
        _write(data, self._pages, first + moved + _shrunk(stamps - first, part))
        heads = _read(data, self._heads, 4)
        kinds = heads & numpy.uint64(31)
        _write(data, self._heads, _shrunk(heads >> numpy.uint64(5), part) << 5 | kinds, 4)
        low = _read(data, self._extends, 4)
        kinds = low & numpy.uint64(31)
        wide = _read(data, self._extends + 4, 4) << numpy.uint64(_LOW_BITS)
        wide |= low >> numpy.uint64(5)
        stamped = first + moved + _shrunk(numpy.maximum(wide, first) - first, part)
        wide = numpy.where(kinds == _EXTEND, _shrunk(wide, part), stamped)
        mask = numpy.uint64((1 << _LOW_BITS) - 1)
        _write(data, self._extends, (wide & mask) << 5 | kinds, 4)
        _write(data, self._extends + 4, wide >> numpy.uint64(_LOW_BITS), 4)
        return data.tobytes()


def bases(scratch: Path) -> list[Base]:
    """The runs of the labelled corpus: 44 of kernels 6.1, 6.12 and 7.2, of a few seconds each."""
    return [Base(unpack_case(case, scratch)) for case in cases()]


def _shrunk(values: NDArray[numpy.uint64], part: int) -> NDArray[numpy.uint64]:
    return values * numpy.uint64(part) // numpy.uint64(1000)


def _read(
    data: NDArray[numpy.uint8], places: NDArray[numpy.int64], width: int
) -> NDArray[numpy.uint64]:
    found = numpy.zeros(len(places), dtype=numpy.uint64)
    for byte in range(width):
        found |= data[places + byte].astype(numpy.uint64) << numpy.uint64(8 * byte)
    return found


def _write(
    data: NDArray[numpy.uint8],
    places: NDArray[numpy.int64],
    values: NDArray[numpy.uint64],
    width: int = 8,
) -> None:
    for byte in range(width):
        data[places + byte] = (values >> numpy.uint64(8 * byte) & numpy.uint64(255)).astype(
            numpy.uint8
        )
