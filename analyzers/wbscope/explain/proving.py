# SPDX-License-Identifier: Apache-2.0
"""Do the numbers of a finding stand in the rows of the queries that it names?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wbscope.base.result import Result
from wbscope.library.finding import Finding, Proof, no_label
from wbscope.library.rule import Check, Term
from wbscope.run.filters import Filters, parse_filters
from wbscope.run.run import Run

__all__ = ["Proven", "prove"]

# Sums of floats depend on the order of their terms.
_SAME = 1e-9
_AGGREGATES: dict[str, Callable[[Iterable[float]], float]] = {"sum": sum, "max": max, "min": min}


@dataclass(frozen=True)
class Proven:
    """One fact of a finding, and what the rows of a query make of it."""

    finding: str
    fact: str
    told: Any
    query: str
    found: float | None

    @property
    def holds(self) -> bool:
        """Whether both are the same; where nothing is told, nothing can be wrong."""
        if self.told is None:
            return True
        if self.found is None:  # no rows add up to nothing
            return not self.told
        # Columns of whole numbers are cut off.
        least = 1.0 if isinstance(self.told, int) else 0.0
        return bool(abs(self.found - self.told) <= max(least, _SAME * abs(self.told)))


def prove(run: Run, finding: Finding, filters: Filters | None = None) -> list[Proven]:
    """Ask every query that a finding names, and compare.

    Raises: WbscopeError, as the queries do.
    """
    asked = filters or Filters()
    proven = []
    for proof in finding.evidence:
        rows = _rows(run, proof, asked)
        for check in proof.checks:
            told = finding.facts.get(check.fact)
            found = _value(check, rows, finding.facts)
            proven.append(Proven(finding.id, check.fact, told, proof.query, found))
    return proven


def _rows(run: Run, proof: Proof, asked: Filters) -> Result:
    file = run.library.query(proof.query)
    if not file.takes_range():
        asked = Filters()
    given = {option.removeprefix("--"): value for option, value in proof.options}
    named = parse_filters(
        bdi=given.get("bdi"),
        task=given.get("task") or given.get("tid"),
        cgroup=given.get("cgroup"),
    )
    return run.ask(proof.query, replace(named, span=asked.span))


def _value(check: Check, rows: Result, facts: Mapping[str, Any]) -> float | None:
    value = _term(check.first, rows, facts)
    for operator, term in check.steps:
        other = _term(term, rows, facts)
        if other is None and term.aggregate == "sum" and operator == "-":
            continue
        if value is None or other is None:
            # Sums may have no part.
            value = (value or 0.0) + (other or 0.0) if operator == "+" else None
        elif operator == "+":
            value += other
        elif operator == "-":
            value -= other
        else:
            value = value / other if other else None
    return value


def _term(term: Term, rows: Result, facts: Mapping[str, Any]) -> float | None:
    if not term.aggregate:
        return float(term.column) if term.column.isdecimal() else facts.get(term.column)
    chosen = [row for row in rows.records() if _fits(row, term, facts)]
    if term.aggregate == "mean":
        return _mean([(row[term.column], row[term.weight]) for row in chosen])
    values = [row[term.column] for row in chosen if row[term.column] is not None]
    if term.aggregate == "count":
        return float(len(set(values)))
    if not values:
        return None
    return float(_AGGREGATES[term.aggregate](values))


def _mean(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    known = [(value, weight) for value, weight in pairs if value is not None]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else None


def _fits(row: Mapping[str, Any], term: Term, facts: Mapping[str, Any]) -> bool:
    for column, template in term.where:
        wanted = template.fill(facts, no_label)
        if not wanted:
            if row[column] is not None:
                return False
        elif str(row[column]) != wanted:
            return False
    return True
