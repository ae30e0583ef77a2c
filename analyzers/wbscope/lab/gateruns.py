# SPDX-License-Identifier: Apache-2.0
"""The runs of a gate that records them itself: two cells of a matrix, made in turns."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import SetupError, UsageError
from wbscope.base.units import counted
from wbscope.compare.comparison import Side
from wbscope.compare.load import Loader
from wbscope.lab.execute import Progress, make_runs
from wbscope.lab.matrix import Cell, Matrix
from wbscope.lab.places import Places
from wbscope.lab.store import Store

__all__ = ["GateRuns", "two_cells"]


def two_cells(matrix: Matrix, base: str | None) -> tuple[Cell, Cell]:
    """The cell that is judged, and the base: the first one, unless it is named.

    Raises: UsageError.
    """
    names = [cell.name for cell in matrix.cells]
    if len(names) != 2:
        raise UsageError(
            "not-two-cells", str(matrix.path),
            f"has {len(names)} cells, wanted two: the base and what is judged",
            have=", ".join(names[:8]), fix="[axis.kernel]    # with two names, in the matrix",
        )  # fmt: skip
    if base not in (None, *names):
        raise UsageError(
            "unknown-cell", str(matrix.path), f"has no cell {base}", have=", ".join(names),
            fix=Phrase(Argument("against", names[0])),
        )  # fmt: skip
    first, second = matrix.cells
    return (first, second) if base == second.name else (second, first)


@dataclass
class GateRuns:
    """Makes what is missing of so many runs of each cell; finished runs are taken as they are."""

    matrix: Matrix
    store: Store
    places: Places
    loader: Loader
    told: Callable[[Progress], None]
    base: str | None = None
    _session: str = field(default_factory=lambda: str(uuid.uuid4()))

    def __call__(self, runs: int) -> tuple[Side, Side]:
        """The side that is judged, and the base.

        Raises: SetupError for a run that failed: fewer runs would be other evidence.
        """
        matrix = replace(self.matrix, runs=runs)
        made = make_runs(matrix, self.store, self.places, self.told, self._session)
        if made.failed:
            name, why = next(iter(made.failed.items()))
            raise SetupError(
                "runs-failed", str(self.store.folder),
                f"{counted(len(made.failed), 'run')} failed, so nothing is judged; {name}: {why}",
                fix=Phrase("make them again with ", Argument("resume", True)),
            )  # fmt: skip
        side, base = two_cells(self.matrix, self.base)
        return self._side(side, runs), self._side(base, runs)

    def _side(self, cell: Cell, runs: int) -> Side:
        paths = [self.store.folder / cell.name / f"run-{n}" for n in range(1, runs + 1)]
        return self.loader.side(cell.name, [str(path) for path in paths])
