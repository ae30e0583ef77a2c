# SPDX-License-Identifier: Apache-2.0
"""The advice of a verdict as files, and whether its numbers stand in the queries that it names."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wbscope.base.errors import EvidenceError
from wbscope.base.result import Result
from wbscope.base.system import join
from wbscope.explain.verdict import Verdict
from wbscope.library.finding import Finding, Proof, no_label
from wbscope.library.rules import Check, Term
from wbscope.run.filters import Filters, parse_filters
from wbscope.run.run import Run

_SYSCTL = "vm."
_SYSFS = "/sys/"
# Names of cgroups and devices are those of a trace, which may be a stranger's: in a file they are
# lines of their own, in a command words.
_PLAIN = re.compile(r"[\w./:@+=-][\w./:@+= -]*")


def sysctl_text(verdict: Verdict) -> str:
    """Lines for /etc/sysctl.d/90-wbscope.conf, each setting with the finding that it is for.

    Raises: EvidenceError when no advice sets a sysctl.
    """
    lines = [f"# {_head(verdict)}: try it before you keep it."]
    settings = list(_settings(verdict, _SYSCTL))
    if not settings:
        raise _nothing(verdict, "a sysctl")
    for finding, knob, value in settings:
        lines += [f"# {finding.id}: {finding.title}", f"{knob} = {value}"]
    return "\n".join(lines) + "\n"


def tuned_text(verdict: Verdict) -> str:
    """A profile for /etc/tuned/wbscope/tuned.conf.

    Raises: EvidenceError when no advice sets anything that tuned can.
    """
    sysctls = list(_settings(verdict, _SYSCTL))
    files = list(_settings(verdict, _SYSFS))
    if not sysctls and not files:
        raise _nothing(verdict, "a sysctl or a file of /sys")
    lines = ["[main]", f"summary={_head(verdict)}"]
    for section, settings in (("sysctl", sysctls), ("sysfs", files)):
        if settings:
            lines += ["", f"[{section}]"]
        for finding, knob, value in settings:
            lines += [f"# {finding.id}: {finding.title}", f"{knob}={value}"]
    return "\n".join(lines) + "\n"


def trial_of(finding: Finding, run: str) -> tuple[str, ...]:
    """Commands that try the advice of a finding; none where it sets nothing that a command can."""
    if finding.advice is None:
        return ()
    sysctls = [f"{knob}={value}" for knob, value in finding.advice.settings if _is_sysctl(knob)]
    files = [
        _echo(knob, value) for knob, value in finding.advice.settings if knob.startswith(_SYSFS)
    ]
    if not sysctls and not files:
        return ()
    words = [word for one in sysctls for word in ("--sysctl", one)]
    record = shlex.join(["wbscope", "record", *words, "-o", "TRIAL"]) + " -- COMMAND"
    return (*files, record, join(["wbscope", "compare", "TRIAL", "--against", run]))


def undo_of(finding: Finding) -> tuple[str, ...]:
    """Commands that put back what the advice of a finding changes, as far as it is known."""
    if finding.advice is None:
        return ()
    # What is only the default is said so in brackets.
    before = [one.partition(" (the default")[0].rpartition(" = ") for one in finding.advice.now]
    return tuple(
        shlex.join(["sysctl", "-w", f"{knob}={value}"]) if _is_sysctl(knob) else _echo(knob, value)
        for knob, _, value in before
        if _is_sysctl(knob) or knob.startswith(_SYSFS)
    )


def _head(verdict: Verdict) -> str:
    """One line, whatever the run is called: what follows a line feed would be a setting."""
    return f"Advice of wbscope explain for {join([verdict.run])}"


def _echo(knob: str, value: str) -> str:
    return f"echo {shlex.quote(value)} > {shlex.quote(knob)}"


def _is_sysctl(knob: str) -> bool:
    return knob.startswith(_SYSCTL)


def _settings(verdict: Verdict, begin: str) -> Iterator[tuple[Finding, str, str]]:
    """Each knob once: as the finding wants it that matters most."""
    seen = set()
    for finding in _advising(verdict):
        assert finding.advice is not None
        for knob, value in finding.advice.settings:
            is_plain = _PLAIN.fullmatch(knob) and _PLAIN.fullmatch(value)
            if knob.startswith(begin) and is_plain and knob not in seen:
                seen.add(knob)
                yield finding, knob, value


def _advising(verdict: Verdict) -> Iterable[Finding]:
    return (one for one in verdict.findings if one.advice is not None and one.severity != "note")


def _nothing(verdict: Verdict, what: str) -> EvidenceError:
    return EvidenceError(
        "no-advice",
        verdict.run,
        f"has no finding whose advice sets {what}",
        have=", ".join(one.id for one in verdict.findings) or None,
        fix=f"wbscope explain {verdict.run}",
    )


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
