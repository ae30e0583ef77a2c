# SPDX-License-Identifier: Apache-2.0
"""What a bisection walks along: the names of one axis of a matrix, or commits."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import UsageError
from wbscope.base.outputs import write_whole
from wbscope.lab.matrix import Cell, Matrix
from wbscope.lab.setup import Kernel
from wbscope.lab.store import LAB_FILE, read_lab

__all__ = ["add_cell", "axis_cells", "commit_cell", "note_search", "of_cells", "only_cell"]

_COMMIT_DIGITS = 12


def axis_cells(matrix: Matrix, axis: str, good: str | None, bad: str | None) -> list[Cell]:
    """The cells from the good end to the bad one, in the order of the file or against it.

    An end that is not named is the first or the last name of the axis.
    Raises: UsageError where the two do not differ in this axis alone.
    """
    if axis not in matrix.axes:
        _refuse("no-axis", axis, "is no axis of the matrix", " ".join(matrix.axes), "axis",
                next(iter(matrix.axes), "kernel"))  # fmt: skip
    names = matrix.axes[axis]
    by_name = {cell.name: cell for cell in matrix.cells}
    for argument, name in (("good", good), ("bad", bad)):
        if name is not None and name not in by_name:
            told = "is no cell of the matrix"
            _refuse("no-cell", name, told, " ".join(by_name), argument, next(iter(by_name)))
    known = by_name.get(str(good or bad))
    others = {key: value for key, value in known.values.items() if key != axis} if known else {}
    several = [key for key, found in matrix.axes.items() if key != axis and len(found) > 1]
    if several and known is None:
        told = f"could be any name of {', '.join(several)}, wanted a cell"
        _refuse("no-end", "the good end", told, " ".join(by_name), "good", next(iter(by_name)))
    others |= {key: found[0] for key, found in matrix.axes.items() if key not in (axis, *others)}
    series = [
        cell
        for name in names
        for cell in matrix.cells
        if cell.values == {key: others.get(key, name) for key in matrix.axes}
    ]
    places = {cell.name: place for place, cell in enumerate(series)}
    first = places.get(good, -1) if good else 0
    last = places.get(bad, -1) if bad else len(series) - 1
    if min(first, last) < 0 or first == last:
        told = f"and {bad or series[-1].name} do not differ in {axis} alone"
        _refuse("no-series", str(good or series[0].name), told, " ".join(by_name), "bad",
                series[-1].name)  # fmt: skip
    return series[first : last + 1] if first < last else series[last : first + 1][::-1]


def only_cell(matrix: Matrix) -> Cell:
    """Of a matrix whose kernel is built.  Raises: UsageError."""
    (cell, *others) = matrix.cells
    kernel = cell.setup.kernel
    if others or (kernel.image is None and kernel.folder is None):
        have = f"{len(matrix.cells)} cells, the kernel is {kernel}"
        raise UsageError(
            "no-build", str(matrix.path), "wanted one cell, with a kernel that is built",
            have=have, fix='kernel.image = "linux/arch/x86/boot/bzImage"    # and no axis',
        )  # fmt: skip
    return cell


def commit_cell(cell: Cell, commit: str, kernel: Kernel) -> Cell:
    """The cell with the kernel of a commit."""
    return Cell({"commit": commit[:_COMMIT_DIGITS]}, replace(cell.setup, kernel=kernel))


def of_cells(matrix: Matrix, axis: str, cells: Sequence[Cell], more: str = "") -> Matrix:
    """A matrix of these cells, for their folder; `more` makes it another experiment."""
    axes = {
        key: tuple(dict.fromkeys(cell.values[key] for cell in cells)) for key in cells[0].values
    }
    told = json.dumps([matrix.digest, axis, [cell.name for cell in cells], more])
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]
    return replace(matrix, axes=axes, cells=tuple(cells), digest=digest)


def add_cell(folder: Path, cell: Cell) -> None:
    """A commit that nobody knew of at the start, so that a report has it."""
    lab = read_lab(folder)
    if any(known["name"] == cell.name for known in lab["cells"]):
        return
    lab["cells"].append({"name": cell.name, "values": cell.values})
    for axis, names in lab["axes"].items():
        if cell.values[axis] not in names:
            names.append(cell.values[axis])
    write_whole(folder / LAB_FILE, json.dumps(lab, indent=1) + "\n")


def note_search(folder: Path, command: Sequence[str]) -> None:
    """How this folder came to be: not as many runs of each cell, but as many as it took."""
    lab = read_lab(folder)
    lab["searched"] = shlex.join(command)
    write_whole(folder / LAB_FILE, json.dumps(lab, indent=1) + "\n")


def _refuse(slug: str, subject: str, told: str, have: str, argument: str, value: str) -> NoReturn:
    raise UsageError(slug, subject, told, have=have, fix=Phrase(Argument(argument, value)))
