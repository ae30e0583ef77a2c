# SPDX-License-Identifier: Apache-2.0
"""A against A: could this policy pass at all with runs like these, and did the machine drift?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from wbscope.compare.comparison import Side
from wbscope.compare.gate import GateResult, Status, judge
from wbscope.compare.policy import Policy

__all__ = ["SelfCheck", "self_check"]


@dataclass(frozen=True)
class SelfCheck:
    """Two questions about runs of one thing.

    same    the runs against themselves: nothing differs, so what is not PASS is a
            margin that runs of such a spread can never keep
    halves  the first half against the second: FAIL is a machine that drifted;
            None when there are too few runs
    """

    same: GateResult
    halves: GateResult | None

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
        """Both answers in one line."""
        runs = len(self.same.side.runs)
        text = f"self-check: {runs} runs against themselves: {self.same.status}"
        if self.halves is None:
            return f"{text}; too few for a first and a second half, or no margin"
        return f"{text}; second half against first half: {self.halves.status}"

    def exit_code(self) -> int:
        """As of a gate."""
        return self.decisive.exit_code()


def self_check(side: Side, policy: Policy, families: Iterable[str]) -> SelfCheck:
    """Judge the runs against themselves, and their first half against their second.

    The halves are in the order given, which should be that of recording.

    Raises: UsageError as judge().
    """
    listed = list(families)
    same = judge(side, Side(f"{side.name} again", side.runs), policy, listed, itself=True)
    # The first runs warm up once, not once for each half.
    runs = side.runs[policy.drop_first :]
    half = len(runs) // 2
    if not policy.compares or half < policy.min_runs:
        return SelfCheck(same, None)
    first = Side(f"{side.name}, first half", runs[:half])
    second = Side(f"{side.name}, second half", runs[half:])
    return SelfCheck(same, judge(second, first, replace(policy, drop_first=0), listed))
