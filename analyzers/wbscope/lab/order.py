# SPDX-License-Identifier: Apache-2.0
"""In which order runs are made: whatever changes with time meets all cells alike."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from wbscope.lab.matrix import Cell, Matrix

__all__ = ["Job", "interleaved"]


@dataclass(frozen=True)
class Job:
    """One run: its cell, and its number in the cell from 1 on."""

    cell: Cell
    number: int

    @property
    def name(self) -> str:
        """As its folder is called below the lab's."""
        return f"{self.cell.name}/run-{self.number}"


def interleaved(matrix: Matrix) -> Iterator[Job]:
    """A B C, C B A, and so on: each round is shuffled and the next one is its reverse.

    Every cell is as early in two rounds together as any other, so a drift that is
    steady falls out of a difference of two cells.  The seed makes it the same again.
    """
    chance = random.Random(matrix.seed)
    order: list[Cell] = []
    for number in range(1, matrix.runs + 1):
        if number % 2:
            order = list(matrix.cells)
            chance.shuffle(order)
        else:
            order.reverse()
        for cell in order:
            yield Job(cell, number)
