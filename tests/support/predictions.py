# SPDX-License-Identifier: Apache-2.0
"""What `gate --self-check` predicts of simulated runs, and how often new ones really pass.

Shared by the test of the suite and by tools/validate_gate.py.
"""

from __future__ import annotations

import numpy as np
from wbscope.compare.comparison import Side
from wbscope.compare.gate import judge
from wbscope.compare.pass_rate import pass_rate

from support.driftnoise import Layout, Machine
from support.gatenoise import POLICY, TIME, Noise
from support.rundata import side

Kind = Noise | Machine


def predicted(noise: Kind, size: int | Layout, baselines: int) -> tuple[float, float]:
    """Mean and s.d. over baselines."""
    random = np.random.default_rng(11)
    told = []
    for _ in range(baselines):
        found = pass_rate(_sides(noise, size, random)[1], POLICY, [])
        assert found is not None
        told.append(found.passed / found.trials)
    return float(np.mean(told)), float(np.std(told))


def real(noise: Kind, size: int | Layout, trials: int) -> float:
    """The share of new sides that pass against a new base."""
    random = np.random.default_rng(12)
    sides = (_sides(noise, size, random) for _ in range(trials))
    return sum(judge(a, b, POLICY, []).status == "PASS" for a, b in sides) / trials


def _sides(noise: Kind, size: int | Layout, random: np.random.Generator) -> tuple[Side, Side]:
    if isinstance(noise, Machine):
        assert isinstance(size, Layout)
        return size.sides(random, noise, 0.0)
    assert isinstance(size, int)
    a, b = (side(name, {TIME: list(noise.runs(random, size, 0.0))}) for name in "AB")
    return a, b
