# SPDX-License-Identifier: Apache-2.0
"""Every number of a verdict beside what the named query says, as text."""

from __future__ import annotations

from wbscope.base.result import unit_of
from wbscope.base.span import Span
from wbscope.base.units import format_value
from wbscope.explain.proving import prove
from wbscope.explain.verdict import verdict_of
from wbscope.run.filters import Filters
from wbscope.run.run import Run

__all__ = ["proof_text"]


def proof_text(run: Run, span: Span, width: int) -> str:
    """A line for each number; the last one says how many agree."""
    verdict = verdict_of(run, span)
    lines, count, wrong = [], 0, 0
    for one in (*verdict.findings, *verdict.facts):
        for proven in prove(run, one, Filters(span=span)):
            if proven.told is None:
                continue
            count += 1
            wrong += not proven.holds
            told = format_value(proven.fact, unit_of(proven.fact), proven.told)
            verb = "agrees" if proven.holds else f"differs: {proven.found}"
            line = f"{one.id:22} {proven.fact:26} {told:>12}  {proven.query:18} {verb}"
            lines.append(line if len(line) <= width else line.replace("  ", " "))
    lines.append(
        f"{count - wrong} of {count} numbers agree with the queries that are named for them"
    )
    return "\n".join(lines) + "\n"
