# SPDX-License-Identifier: Apache-2.0
"""How often a job would end without a verdict though nothing changed, and what would decide."""

from __future__ import annotations

from dataclasses import replace

from wbscope.compare.gate import GateResult
from wbscope.compare.passrate import pass_rate

__all__ = ["expected_text"]

# Verdicts that leave open what the margin asks.
_OPEN = ("INCONCLUSIVE", "WORSE")


def expected_text(result: GateResult) -> str | None:
    """One line for an open verdict, from the spread of the base; None for any other.

    It takes a second: gates of runs that are drawn from the base are judged.
    """
    if result.base is None or result.status not in _OPEN:
        return None
    # The first runs are dropped already.
    policy = replace(result.policy, drop_first=0)
    left = [one for one in result.verdicts if one.status in _OPEN and one.delta]
    methods = {one.shift.method for one in result.verdicts if one.shift is not None}
    in_turns = any(method.startswith("blocks") for method in methods)
    names = [one.metric.name for one in result.verdicts]
    rate = pass_rate(result.base, policy, names, in_turns=in_turns)
    if rate is None:
        return None
    needed = [one.runs_needed for one in left]
    told = f"expected: {rate.told()}"
    if any(one.shift is not None and one.shift.method == "sessions" for one in left):
        return f"{told}; more sessions decide, not more runs: or record both sides in turns"
    if not needed:
        return told
    if None in needed:
        return f"{told}; more than 200 runs a side would decide: make them steadier or longer"
    most = max(one for one in needed if one is not None)
    return f"{told}; with {most} runs a side each metric would pass 8 of 10 times"
