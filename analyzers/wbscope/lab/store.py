# SPDX-License-Identifier: Apache-2.0
"""Runs of a lab on disk, and which of them are finished.

    DIR/matrix.toml           as it was read
    DIR/lab.json              digest of the matrix, versions
    DIR/CELL/run-1/           a run folder; its meta.json has `lab`
    DIR/CELL/run-2.failed/    why.json, the console, what the workload said

A run takes its name when it is whole, so a kill at any moment loses only the run that was made.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wbscope.base.errors import Argument, InputError, Phrase, SetupError, UsageError
from wbscope.base.outputs import private_folder, write_whole
from wbscope.base.system import read_small
from wbscope.base.version import __version__
from wbscope.compare.rundata import RunData
from wbscope.lab.matrix import MOST_RUNS, Job, Matrix

LAB_FILE = "lab.json"
FAILED = ".failed"
_MATRIX = "matrix.toml"
_LOCK = ".lab.lock"
_WHY = "why.json"
_SCHEMA = 1
# Names of axes as a matrix may have them, with commas: no folder but those of runs.
_CELL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+,-]*")


class Store:
    """What has been made, and where the next run goes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, job: Job) -> Path:
        """Of the finished run."""
        return self.folder / job.cell.name / f"run-{job.number}"

    def is_done(self, job: Job) -> bool:
        return (self.path(job) / "meta.json").is_file()

    def failure(self, job: Job) -> str | None:
        """Why it failed, the last time that it was tried; None = it did not."""
        try:
            why = json.loads((self._failed(job) / _WHY).read_text(encoding="utf-8"))
            return str(why["why"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    @contextmanager
    def place(self, job: Job) -> Iterator[Path]:
        """A folder that is gone afterwards, on the same file system; the run is made in it."""
        target = self.path(job)
        target.parent.mkdir(exist_ok=True)
        with private_folder(target) as folder:
            yield folder

    def keep(self, job: Job, run: Path, about: Mapping[str, Any]) -> Path:
        """A whole run takes its name; `about` goes into its meta.json.

        So does the workload, in place of the command that ran it with folders of one run.
        """
        meta_file = run / "meta.json"
        meta = json.loads(meta_file.read_text(encoding="utf-8"))
        meta |= {"command": ["sh", "-c", job.cell.setup.workload], "lab": dict(about)}
        meta_file.write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
        target = self.path(job)
        os.replace(run, target)
        self._forget_failure(job)
        return target

    def keep_failure(self, job: Job, why: str, left: Path) -> None:
        """What a failed run left, instead of what the try before it did."""
        (left / _WHY).write_text(json.dumps({"why": why}) + "\n", encoding="utf-8")
        self._forget_failure(job)
        os.replace(left, self._failed(job))

    def _forget_failure(self, job: Job) -> None:
        """Out of the way at once: a kill while it is removed would leave a part of it there."""
        failed = self._failed(job)
        with private_folder(failed) as aside, suppress(FileNotFoundError):
            os.replace(failed, aside / "older")

    def _failed(self, job: Job) -> Path:
        return self.path(job).with_name(f"run-{job.number}{FAILED}")


@contextmanager
def opened(folder: Path, matrix: Matrix, resume: bool) -> Iterator[Store]:
    """The folder of this matrix, for this command alone.

    Raises: UsageError where there is something else, or a lab and `resume` is not given;
    SetupError where another command writes to it or it cannot be written.
    """
    try:
        _check(folder, matrix, resume)
        folder.mkdir(exist_ok=True)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise SetupError(
            "cannot-write", str(folder), f"cannot be written: {error.strerror or error}",
            fix=Phrase("choose another folder with ", Argument("output")),
        ) from error  # fmt: skip
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SetupError(
                "lab-in-use", str(folder), "another command is making runs there",
                fix="wait for its end, or stop it",
            ) from None  # fmt: skip
        # The cells are the same; the number of runs, the title and comments may not be.
        write_whole(folder / _MATRIX, matrix.path.read_text(encoding="utf-8"))
        if not (folder / LAB_FILE).exists():
            lab = {
                "schema": _SCHEMA,
                "wbscope_version": __version__,
                "title": matrix.title,
                "digest": matrix.digest,
                "axes": matrix.axes,
                "cells": [{"name": cell.name, "values": cell.values} for cell in matrix.cells],
            }
            write_whole(folder / LAB_FILE, json.dumps(lab, indent=1) + "\n")
        yield Store(folder)
    finally:
        os.close(lock)


def read_lab(folder: Path) -> dict[str, Any]:
    """What lab.json says.

    Raises: InputError where there is none, or one that nobody here wrote.
    """
    try:
        lab = json.loads(read_small(folder / LAB_FILE))
        if lab["schema"] != _SCHEMA or not isinstance(lab["cells"], list):
            raise ValueError("of another version")
        for cell in lab["cells"]:
            if _CELL.fullmatch(cell["name"]) is None or not isinstance(cell["values"], dict):
                raise ValueError("a cell without a name")
        return dict(lab)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        what = error.strerror if isinstance(error, OSError) else error
        raise InputError(
            "no-lab", str(folder), f"is no folder of a lab: {LAB_FILE}: {what}",
            fix="wbscope lab MATRIX.toml -o DIR    # makes one",
        ) from error  # fmt: skip


def _check(folder: Path, matrix: Matrix, resume: bool) -> None:
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise UsageError(
            "output-exists", str(folder), "is no folder", fix=Phrase(Argument("output", "lab"))
        )
    if not any(folder.iterdir()):
        return
    if not (folder / LAB_FILE).exists():
        # A kill before the first file was whole leaves these.
        if {path.name for path in folder.iterdir()} <= {_LOCK, _MATRIX}:
            return
        raise UsageError(
            "output-exists", str(folder), "has files in it that no lab wrote",
            fix=Phrase("choose a new folder with ", Argument("output")),
        )  # fmt: skip
    there = read_lab(folder)
    if there.get("digest") != matrix.digest:
        raise UsageError(
            "other-matrix", str(folder), "holds runs of another matrix (or this one was changed)",
            fix=Phrase("choose a new folder with ", Argument("output")),
        )  # fmt: skip
    if not resume:
        raise UsageError(
            "output-exists", str(folder), "holds runs of this matrix",
            fix=Phrase("go on with ", Argument("resume", True)),
        )  # fmt: skip


_RUN = re.compile(r"run-([1-9][0-9]{0,3})")
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class CellRuns:
    """One cell: finished runs, the reason of each failed one, the numbers of those never made.

    kept  what is left of the runs where only their numbers were kept
    """

    name: str
    values: Mapping[str, str]
    runs: tuple[Path, ...]
    failed: Mapping[int, str]
    missing: tuple[int, ...]
    kept: tuple[RunData, ...] = ()


@dataclass(frozen=True)
class Finished:
    """A lab with what is finished in it.

    wanted   runs of each cell, at most
    searched the command, where it made as many runs as its answer took
    metrics  those that the matrix is about; none = the usual ones
    matrix   the file as it was read
    """

    folder: Path
    title: str
    digest: str
    version: str
    axes: Mapping[str, tuple[str, ...]]
    wanted: int
    seed: int
    matrix: str
    metrics: tuple[str, ...]
    cells: tuple[CellRuns, ...]
    searched: str = ""

    @property
    def made(self) -> int:
        """Finished runs of all cells."""
        return sum(len(cell.runs) for cell in self.cells)

    def neighbours(self) -> Iterator[tuple[str, CellRuns, CellRuns]]:
        """(axis, later, earlier): all pairs of cells that differ in this axis alone."""
        order = {axis: {name: place for place, name in enumerate(names)}
                 for axis, names in self.axes.items()}  # fmt: skip
        for axis in self.axes:
            for base in self.cells:
                for cell in self.cells:
                    others = {key for key in self.axes if cell.values[key] != base.values[key]}
                    if others == {axis} and (
                        order[axis][base.values[axis]] < order[axis][cell.values[axis]]
                    ):
                        yield axis, cell, base


def read_finished(folder: Path) -> Finished:
    """Raises: InputError where it is no folder of a lab, or its files do not fit together."""
    lab = read_lab(folder)
    matrix, told = _matrix(folder)
    try:
        axes = {str(axis): tuple(map(str, names)) for axis, names in lab["axes"].items()}
        for cell in lab["cells"]:
            if any(cell["values"][axis] not in names for axis, names in axes.items()):
                raise ValueError(f"cell {cell['name']} has values that no axis has")
        made = {cell["name"]: _runs(folder / cell["name"]) for cell in lab["cells"]}
        searched = str(lab.get("searched", ""))
        planned = 0 if searched else min(max(int(told.get("runs", 1)), 0), MOST_RUNS)
        last = {name: max([planned, *runs]) for name, runs in made.items()}
        return Finished(
            folder=folder,
            title=str(lab["title"]),
            digest=str(lab["digest"]),
            version=str(lab["wbscope_version"]),
            axes=axes,
            wanted=max(last.values(), default=0),
            seed=int(told.get("seed", 0)),
            matrix=matrix,
            metrics=tuple(map(str, told.get("metrics", ()))),
            cells=tuple(
                _cell(folder, cell, made[cell["name"]], last[cell["name"]]) for cell in lab["cells"]
            ),
            searched=searched,
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(
            "no-lab", str(folder), f"lab.json does not fit: {error}",
            fix="wbscope lab MATRIX.toml -o DIR    # makes one",
        ) from error  # fmt: skip


def _matrix(folder: Path) -> tuple[str, Mapping[str, Any]]:
    """Text and content; who lost the file still has the runs."""
    try:
        text = read_small(folder / _MATRIX, _MOST_BYTES).decode("utf-8")
        return text, tomllib.loads(text)
    except (OSError, ValueError, RecursionError):
        return "", {}


def _runs(cell: Path) -> dict[int, Path]:
    """Finished ones by number; a link is none, it may lead anywhere."""
    found: dict[int, Path] = {}
    if cell.is_symlink():
        return found
    for path in sorted(cell.glob("run-*")):
        match = _RUN.fullmatch(path.name)
        if match is None or int(match[1]) > MOST_RUNS or path.is_symlink():
            continue
        if (path / "meta.json").is_file():
            found[int(match[1])] = path
    return found


def _cell(folder: Path, cell: Mapping[str, Any], runs: Mapping[int, Path], wanted: int) -> CellRuns:
    place = folder / cell["name"]
    failed = {}
    for number in range(1, wanted + 1):
        why = None if number in runs else _why(place / f"run-{number}{FAILED}")
        if why is not None:
            failed[number] = why
    return CellRuns(
        name=cell["name"],
        values={str(axis): str(value) for axis, value in cell["values"].items()},
        runs=tuple(runs[number] for number in sorted(runs)),
        failed=failed,
        missing=tuple(n for n in range(1, wanted + 1) if n not in runs and n not in failed),
    )


def _why(folder: Path) -> str | None:
    try:
        return str(json.loads((folder / "why.json").read_text(encoding="utf-8"))["why"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
