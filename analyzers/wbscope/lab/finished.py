# SPDX-License-Identifier: Apache-2.0
"""The folder of a lab as it is read back: what was tried, which runs are there, which are not."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wbscope.base.errors import InputError
from wbscope.base.smallfile import read_small
from wbscope.compare.rundata import RunData
from wbscope.lab.matrix import MOST_RUNS
from wbscope.lab.store import FAILED, read_lab

__all__ = ["CellRuns", "Finished", "read_finished"]

_MATRIX = "matrix.toml"
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
