# SPDX-License-Identifier: Apache-2.0
"""Simulated gates that record until they decide: verdicts, and how many runs that took.

Shared by the tests of the suite and by tools/validate_gate.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from wbscope.compare.comparison import Side
from wbscope.compare.gate import judge
from wbscope.compare.pass_rate import LEAST_RUNS, until_decided
from wbscope.stats.tests import Spending

from support.gatenoise import POLICY, TIME, Noise
from support.rundata import side


def sequential(
    noise: Noise,
    change: float,
    most: int,
    trials: int,
    spending: Spending | None = "pocock",
) -> tuple[Counter[str], float]:
    """Verdicts and runs a side on average; without spending, each look has all of alpha.

    "ever" counts runs of which any look said FAIL.
    """
    random = np.random.default_rng([most, round(change * 1000), trials])
    found: Counter[str] = Counter()
    runs = 0
    for _ in range(trials):
        a, b = noise.runs(random, most, change), noise.runs(random, most, 0)

        def make(n: int, a: object = a, b: object = b) -> tuple[Side, Side]:
            return side("A", {TIME: list(a[:n])}), side("B", {TIME: list(b[:n])})  # type: ignore[index]

        if spending is None:
            n = LEAST_RUNS
            while (status := judge(*make(n), POLICY, []).status) not in ("PASS", "FAIL"):
                if n == most:
                    break
                n = min(n + 1, most)
        else:
            result = until_decided(make, replace(POLICY), [], most, spending=spending)
            status, n = result.status, len(result.side.runs)
        found[status] += 1
        runs += n
    return found, runs / trials
