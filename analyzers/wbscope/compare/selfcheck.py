# SPDX-License-Identifier: Apache-2.0
"""A against A: could this policy pass at all with runs like these, and did the machine drift?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from wbscope.compare.comparison import Side
from wbscope.compare.gate import GateResult, Status, judge
from wbscope.compare.passrate import PassRate, pass_rate
from wbscope.compare.policy import Policy

__all__ = ["SelfCheck", "self_check"]


@dataclass(frozen=True)
class SelfCheck:
    """Three questions about runs of one thing.

    same    the runs against themselves: nothing differs, so what is not PASS is a
            margin that runs of such a spread can never keep
    halves  the second half of the runs against the first; where it got better by
            more than the margin, the first against the second: FAIL is a machine
            that drifted, whichever way; None when there are too few runs
    predicted  how often two new sides of such runs would pass; None when there are too few,
            or no margin
    """

    same: GateResult
    halves: GateResult | None
    predicted: PassRate | None = None

    @property
    def status(self) -> Status:
        """FAIL when the halves differ; else what the runs say against themselves."""
        if self.halves is not None and self.halves.status == "FAIL":
            return "FAIL"
        return self.same.status

    @property
    def decisive(self) -> GateResult:
        """The one that the status is from."""
        if self.halves is not None and self.halves.status == "FAIL":
            return self.halves
        return self.same

    def told(self) -> str:
        """All answers in one line."""
        runs = len(self.same.side.runs)
        text = f"self-check: {runs} runs against themselves: {self.same.status}"
        if self.predicted is not None:
            text = f"self-check: {self.predicted.told()}; {text.removeprefix('self-check: ')}"
        if self.halves is None:
            return f"{text}; too few for a first and a second half, or no margin"
        later, earlier = (s.name.partition(", ")[2] for s in (self.halves.side, _base(self.halves)))
        return f"{text}; {later} against {earlier}: {self.halves.status}"

    def exit_code(self) -> int:
        """As of a gate."""
        return self.decisive.exit_code()


def self_check(
    side: Side, policy: Policy, families: Iterable[str], *, predict: bool = True
) -> SelfCheck:
    """Judge the runs against themselves, and their first half against their second.

    The halves are in the order given, which should be that of recording.  What is predicted
    takes a second or more.

    Raises: UsageError as judge().
    """
    listed = list(families)
    same = judge(side, Side(f"{side.name} again", side.runs), policy, listed, itself=True)
    predicted = pass_rate(side, policy, listed) if predict and not same.refusals else None
    # The first runs warm up once, not once for each half.
    runs = side.runs[policy.drop_first :]
    half = len(runs) // 2
    if not policy.compares or half < policy.min_runs:
        return SelfCheck(same, None, predicted)
    first = Side(f"{side.name}, first half", runs[:half])
    second = Side(f"{side.name}, second half", runs[half:])
    # Budgets are kept by all runs or not, whichever half they are in.
    margins = tuple(
        replace(rule, budget=None, each_run=None) for rule in policy.rules if rule.margin
    )
    asked = replace(policy, rules=margins, drop_first=0, expect_runs=None)
    halves = judge(second, first, asked, listed)
    if halves.status != "FAIL" and (back := judge(first, second, asked, listed)).status == "FAIL":
        halves = back
    return SelfCheck(same, halves, predicted)


def _base(result: GateResult) -> Side:
    assert result.base is not None
    return result.base
