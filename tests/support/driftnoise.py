# SPDX-License-Identifier: Apache-2.0
"""Simulated runs of several sessions: what sessions differ by, and noise that remembers.

Shared by the tests of the suite and by tools/validate_gate.py, which takes its time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from wbscope.compare.comparison import Side
from wbscope.compare.gate import judge
from wbscope.compare.policy import Policy
from wbscope.compare.rundata import RunData, Session
from wbscope.measure.metric import Scalars

from .gatenoise import POLICY, TIME

Array = NDArray[np.float64]
LEVEL = 100.0
IGNORE = replace(POLICY, sessions="ignore")


@dataclass(frozen=True)
class Machine:
    """drift: s.d. of what a session has in common; noise: of runs; memory: AR(1) of the noise."""

    drift: float = 0.0
    noise: float = 0.02
    memory: float = 0.0

    def series(self, random: np.random.Generator, n: int) -> Array:
        """n runs of a session, one after the other, as factors."""
        one = random.standard_normal(n)
        one[1:] *= (1 - self.memory**2) ** 0.5
        noise = lfilter([1.0], [1.0, -self.memory], one)
        return np.asarray((1 + self.drift * random.standard_normal()) * (1 + self.noise * noise))


@dataclass(frozen=True)
class Layout:
    """How the runs of two sides are made.

    apart     sessions of A and of B that have one side only, and runs of each
    together  sessions in which both are run in turns (A B B A), and runs of a side in each
    """

    name: str
    apart: tuple[int, int, int] = (0, 0, 0)
    together: tuple[int, int] = (0, 0)

    def sides(
        self, random: np.random.Generator, machine: Machine, change: float
    ) -> tuple[Side, Side]:
        """A takes longer by this share."""
        made: tuple[list[RunData], list[RunData]] = ([], [])

        def put(place: int, session: int, values: Sequence[float]) -> None:
            for value in values:
                name = f"{'AB'[place]}{len(made[place])}"
                value = max(value * LEVEL * (1 + change * (place == 0)), 1e-3)
                scalars = Scalars()
                scalars.add(TIME, value)
                made[place].append(RunData(name, name, scalars, session=Session(f"s{session}")))

        numbers = count(1)
        for place in (0, 1):
            for _ in range(self.apart[place]):
                put(place, next(numbers), machine.series(random, self.apart[2]).tolist())
        for _ in range(self.together[0]):
            number = next(numbers)
            values = machine.series(random, 2 * self.together[1])
            is_a = np.resize([True, False, False, True], values.size)
            put(0, number, values[is_a].tolist())
            put(1, number, values[~is_a].tolist())
        return Side("A", tuple(made[0])), Side("B", tuple(made[1]))


ONE_EACH = Layout("1 + 1 sessions of 10", apart=(1, 1, 10))
LAYOUTS = (
    ONE_EACH,
    Layout("1 + 3 sessions of 10", apart=(1, 3, 10)),
    Layout("1 + 6 sessions of 10", apart=(1, 6, 10)),
    Layout("3 + 1 sessions of 10", apart=(3, 1, 10)),
    Layout("3 + 3 sessions of 5", apart=(3, 3, 5)),
    Layout("6 + 6 sessions of 3", apart=(6, 6, 3)),
    Layout("in turns, 1 session of 10 + 10", together=(1, 10)),
    Layout("in turns, 2 sessions of 5 + 5", together=(2, 5)),
)


def counts(
    layout: Layout, machine: Machine, policy: Policy, change: float, trials: int
) -> Counter[str]:
    """Verdicts; the same ones each time."""
    random = np.random.default_rng(
        [round(1000 * machine.drift), round(10 * machine.memory), round(100 * change), trials]
    )
    found: Counter[str] = Counter()
    for _ in range(trials):
        a, b = layout.sides(random, machine, change)
        found[judge(a, b, policy, []).status] += 1
    return found
