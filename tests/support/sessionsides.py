# SPDX-License-Identifier: Apache-2.0
"""Sides of made-up runs in sessions, and the gate's word on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wbscope.compare.comparison import Side
from wbscope.compare.gate import GateResult, judge
from wbscope.compare.policy import Policy
from wbscope.compare.rundata import Session

from .gatenoise import POLICY, TIME
from .rundata import run

__all__ = ["judged", "side_of"]


def side_of(name: str, sessions: Sequence[tuple[str, Sequence[float]]]) -> Side:
    """One metric, TIME, in ns; a run for each value of each session."""
    runs = [
        replace(run(f"{name}{session}{place}", {TIME: value}), session=Session(session))
        for session, values in sessions
        for place, value in enumerate(values)
    ]
    return Side(name, tuple(runs))


def judged(side: Side, base: Side, policy: Policy = POLICY) -> GateResult:
    return judge(side, base, policy, [])
