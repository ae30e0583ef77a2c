# SPDX-License-Identifier: Apache-2.0
"""Does a run's trace agree with every independent source beside it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wbscope.base.errors import EvidenceError
from wbscope.base.result import Result
from wbscope.run.filters import Filters
from wbscope.run.run import Run

AGREES, DIFFERS = COMPARED = ("agrees", "differs")

_QUERY = "check"
# What a trace says of itself is no other source.
_OWN = ("ring buffer", "trace file")


@dataclass(frozen=True)
class Agreement:
    """The rows of the query `check`, and what follows from them."""

    run: str
    result: Result

    def rows(self, verdict: str) -> list[dict[str, Any]]:
        """The comparisons with this verdict."""
        return [row for row in self.result.records() if row["verdict"] == verdict]

    @property
    def is_compared(self) -> bool:
        """Whether anything independent of the trace was there."""
        return any(
            row["verdict"] in COMPARED and row["source"] not in _OWN
            for row in self.result.records()
        )

    @property
    def faults(self) -> tuple[str, ...]:
        """What the trace of a whole run has to agree with, and does not; in words."""
        return tuple(
            f"{row['source']} {row['what']}: {row['why']}"
            for row in self.rows(DIFFERS)
            if row["is_binding"]
        )

    def told(self) -> str:
        """The verdict in words."""
        agree, differ = (len(self.rows(verdict)) for verdict in COMPARED)
        missing = len(self.result.rows) - agree - differ
        parts = [f"{agree} of {agree + differ} comparisons agree"]
        if differ:
            binding = len(self.faults)
            must = f", {binding} of them must not" if binding else ", which a workload can explain"
            parts.append(f"{differ} {'differs' if differ == 1 else 'differ'}{must}")
        if missing:
            parts.append(f"{missing} cannot be made")
        return "; ".join(parts)


def agreement_of(run: Run) -> Agreement:
    """Compare the trace with what is beside it.

    Raises: EvidenceError when nothing is.
    """
    found = Agreement(run.name, run.ask(_QUERY, Filters()))
    if not found.is_compared:
        raise EvidenceError(
            "nothing-to-check",
            run.name,
            "has nothing that its trace can be compared with",
            have="no vmstat files, no fio.json, no throttled task with its thresholds",
            fix="wbscope record -o RUN -- COMMAND",
        )
    return found
