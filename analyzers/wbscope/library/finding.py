# SPDX-License-Identifier: Apache-2.0
"""Findings: rows of sql/findings as sentences, and the events that an answer needs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wbscope.base.errors import EvidenceError
from wbscope.base.span import WHOLE, Span
from wbscope.base.system import join
from wbscope.library.catalog import Profile, event_options, pattern_options, profile_of
from wbscope.library.database import Recorded
from wbscope.library.engine import Engine
from wbscope.library.library import Library
from wbscope.library.params import Params, quote_any
from wbscope.library.rules import SEVERITIES, Check, Label, Rule
from wbscope.library.sqlfile import SqlFile

_SHOWN = 8
# More alternatives than this are for `wbscope queries NAME`.
_NAMED = 5


def require_events(
    file: SqlFile,
    recorded: Recorded,
    shown: str,
    profiles: Sequence[Profile],
    instead: Sequence[SqlFile] = (),
) -> None:
    """EvidenceError when an event was not recorded, or recorded but not loaded.

    An event that was recorded and never happened is no error: the answer is then
    an honest zero. The error names the first query of `instead` that the run can answer.
    """
    missing = [group for group in file.events if not any(e in recorded.tables for e in group)]
    if missing:
        other = next((other for other in instead if is_recorded(other, recorded)), None)
        raise _missing(file, missing, recorded, shown, profiles, other)
    for group in file.events:
        counted = [e for e in group if recorded.counts.get(e, (0, 0))[0] > 0]
        if counted and recorded.first_table(group) is None:
            raise _not_loaded(file, counted[0], recorded, shown)


def is_recorded(file: SqlFile, recorded: Recorded) -> bool:
    """Whether require_events() has nothing to say."""
    try:
        require_events(file, recorded, "", ())
    except EvidenceError:
        return False
    return True


def any_of(group: Sequence[str]) -> str:
    """Events of which one is enough; of many, the first."""
    if len(group) <= _NAMED:
        return " or ".join(group)
    first = " or ".join(group[: _NAMED - 1])
    return f"{first} or one of {len(group) - _NAMED + 1} more"


def _missing(
    file: SqlFile,
    missing: list[tuple[str, ...]],
    recorded: Recorded,
    shown: str,
    profiles: Sequence[Profile],
    other: SqlFile | None,
) -> EvidenceError:
    profile = profile_of(missing, profiles)
    if profile is not None:
        records = f" (record profile {profile.name})"
    else:
        records = " (in no record profile)" if profiles else ""
    if other is not None:
        fix = f"wbscope query {other.name} {shlex.quote(shown)}"
    elif profile or not profiles:
        # Recorded anew, the run must have all that the question needs.
        fix = f"trace-cmd record {_options(file, profiles)} -o trace.dat COMMAND"
    else:
        fix = f"wbscope queries {file.name}"
    return EvidenceError(
        "missing-event",
        file.name,
        f"needs {', '.join(any_of(group) for group in missing)}{records}; {shown} has none",
        have=_nearest(missing[0][0], recorded),
        fix=fix,
    )


def _options(file: SqlFile, profiles: Sequence[Profile]) -> str:
    """For one event of each group; for all of them where each tells of something else."""
    profile = profile_of(file.events, profiles)
    if profile is not None:
        for group in file.events:
            if sum(not set(names).isdisjoint(group) for names in profile.events) > 1:
                events = [name for group in file.events for name in group]
                alternatives = (name for group in file.optional for name in group.split("|"))
                # Of the events each of which is enough, the smallest profile may have a part.
                rest = profiles[-1].names.intersection(group) - profile.names
                return pattern_options(profiles[-1] if rest else profile, [*events, *alternatives])
    return event_options(file.events, profiles)


def _not_loaded(file: SqlFile, event: str, recorded: Recorded, shown: str) -> EvidenceError:
    count = recorded.counts[event][0]
    return EvidenceError(
        "event-not-loaded",
        file.name,
        f"needs {event}; {shown} counts {count} of them and has no table",
        effect="the trace was ingested without this event",
        fix=f"wbscope ingest {recorded.source()} -o RUN.db --events {event} --force",
    )


def _nearest(event: str, recorded: Recorded) -> str:
    """Recorded events, those of the same subsystem first."""
    system = event.split(":")[0] + ":"
    names = sorted(recorded.counts, key=lambda name: (not name.startswith(system), name))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(names[:_SHOWN]) + more) or "no events"


# The one that is told when no other is more than a note, and the one that forbids all advice.
NOTHING_WRONG, NO_VERDICT = "nothing_wrong", "no_verdict"
# The kernel decides by a wrong number, which no setting changes.
_IMPOSSIBLE = "impossible_count"
_CANNOT_TELL = "cannot tell"
# What says nothing about waits that began in the part that is asked for.
_BEFORE = "began_before"
_QUIET = ("note", "ok", "fact")
# Which rules have waits.
_TOTALS = "wb_loss_total"


@dataclass(frozen=True)
class Advice:
    """What to change. `settings` are pairs of knob and value, `now` what they are, as far as known.

    `expect` says what should change then, and which way; empty: not predicted.
    """

    text: str
    settings: tuple[tuple[str, str], ...]
    now: tuple[str, ...]
    costs: str
    expect: str


@dataclass(frozen=True)
class Proof:
    """A canned query with its filters, and which facts its rows have to give."""

    query: str
    options: tuple[tuple[str, str], ...]
    checks: tuple[Check, ...]

    def command(self, shown: str) -> str:
        """What a user types to see the numbers."""
        words = [word for option in self.options for word in option]
        return join(["wbscope", "query", self.query, shown, *words])


@dataclass(frozen=True)
class Finding:
    """One thing worth telling.

    `id` is the rule; `facts` are the columns of its row; times are those of the trace clock, None
    where it is not about a part of the time. `told` are the facts that stand in the text.
    """

    id: str
    title: str
    severity: str
    confidence: str
    cost_task_ns: int
    text: str
    evidence: tuple[Proof, ...]
    advice: Advice | None
    facts: Mapping[str, Any]
    told: tuple[str, ...]
    first_ts: int | None
    last_ts: int | None

    def __repr__(self) -> str:
        return f"<wbscope finding {self.id!r}, {self.severity}: {self.text!r}>"


def no_label(_column: str, _value: Any) -> None:
    """Values as they are."""


def find_all(
    engine: Engine,
    library: Library,
    params: Params,
    label: Label,
    part: Span = WHOLE,
) -> list[Finding]:
    """What is worth telling of a run: by severity, then by what it cost.

    `part` is how the part of the time was written that `params` ask for.
    A rule whose events were not recorded is not asked.
    """
    engine.use(params)
    rules = {f.name: f for f in library.findings() if is_recorded(f, engine.recorded)}
    totals = {_TOTALS: [_TOTALS]} if _TOTALS in library.files else {}
    at_once = {name: file.needs for name, file in rules.items() if not _rule_of(file).when}
    engine.expect({**at_once, **totals})
    has_waits = _rules_with_waits(engine) if totals else set()
    needs = {n: f.needs for n, f in rules.items() if _rule_of(f).when in ("", *has_waits)}
    found: list[Finding] = []
    for name in engine.expect(needs):
        file = rules[name]
        rule = _rule_of(file)
        ((columns, rows),) = engine.answer(file.name, file.needs, file.needs, [file.select])
        for row in rows:
            facts = dict(zip(columns, row, strict=True))
            one = _finding(file, facts, label, _proofs(rule, facts, library, part))
            if one is not None:
                found.append(one)
    if wrong := {one.id for one in found if one.severity not in _QUIET}:
        found = [
            one
            for one in found
            if one.id != NOTHING_WRONG
            or (wrong == {_BEFORE} and one.severity != "ok" and one.confidence != _CANNOT_TELL)
        ]
    if any(one.id == _IMPOSSIBLE for one in found):
        found = [one if one.id == _IMPOSSIBLE else replace(one, advice=None) for one in found]
    if (doubt := next((one for one in found if one.id == NO_VERDICT), None)) is not None:
        # Nobody changes a setting because of events that are missing; without times, or without
        # any event, all that rules tell of them is wrong.
        is_told = doubt.facts["ticks_clock"] is None and not doubt.facts["is_empty"]
        found = [doubt] + [
            replace(one, advice=None) for one in found if is_told and one.id != NO_VERDICT
        ]
    return sorted(found, key=_place)


def _place(one: Finding) -> tuple[bool, int, bool, int, str]:
    """What says whether to read on at all comes first, then severity, then cost."""
    is_first = one.id == NO_VERDICT or (one.id == NOTHING_WRONG and one.severity == "ok")
    severity = SEVERITIES.index(one.severity)
    return (not is_first, severity, one.id != NOTHING_WRONG, -one.cost_task_ns, one.id)


def _rules_with_waits(engine: Engine) -> set[str]:
    select = f"SELECT DISTINCT finding FROM {_TOTALS}"
    ((_, rows),) = engine.answer(_TOTALS, [_TOTALS], [_TOTALS], [select])
    return {str(name) for (name,) in rows}


def _rule_of(file: SqlFile) -> Rule:
    assert file.rule is not None  # read with the file
    return file.rule


def _finding(
    file: SqlFile, facts: dict[str, Any], label: Label, evidence: Iterable[Proof]
) -> Finding | None:
    rule = _rule_of(file)
    text = rule.sentence.fill(facts, label)
    if text is None:
        return None
    return Finding(
        id=file.name,
        title=facts.get("title") or file.title,
        severity=facts.get("severity") or rule.severity,
        confidence=facts.get("confidence") or rule.confidence,
        cost_task_ns=facts.get("cost_task_ns") or 0,
        text=text,
        evidence=tuple(evidence),
        advice=_advice(rule, facts, label),
        facts=facts,
        told=tuple(dict.fromkeys(rule.sentence.told(facts))),
        first_ts=facts.get("first_ts"),
        last_ts=facts.get("last_ts"),
    )


def _proofs(rule: Rule, facts: Mapping[str, Any], library: Library, part: Span) -> Sequence[Proof]:
    """With filters as they are written on the command line; without one whose fact is missing.

    What proves nothing that is told is left out: the run may not have its events.
    """
    return [
        Proof(
            one.query,
            tuple(
                (option, value)
                for option, template in one.options
                if (value := template.fill(facts, no_label)) is not None
            )
            + (part.options() if library.query(one.query).takes_range() else ()),
            one.checks,
        )
        for one in rule.evidence
        if not one.checks or any(facts.get(check.fact) is not None for check in one.checks)
    ]


def _advice(rule: Rule, facts: Mapping[str, Any], label: Label) -> Advice | None:
    text = rule.advice.fill(facts, label) if rule.advice is not None else None
    if not text:  # all of it was optional, and of what is not known
        return None
    settings = []
    for setting in rule.settings:
        # A path and a number for the machine; a cgroup has its path there.
        knob, value = (one.fill(facts, label) for one in (setting.knob, setting.value))
        if knob and value:
            settings.append((knob, value))
    pieces = (one.knob.fill(facts, label) for one in rule.now)
    values = (one.value.fill(facts, label) for one in rule.now)
    # What it would change is of no use where it cannot say to what.
    is_open = bool(rule.settings) and not settings
    told = zip(pieces, values, strict=True) if not is_open else ()
    now = [f"{k} = {v}" if v else k for k, v in told if k]
    # What is set already is no advice.
    settings = [(knob, value) for knob, value in settings if f"{knob} = {value}" not in now]
    costs, expect = (
        (one.fill(facts, label) if one is not None else None) or ""
        for one in (rule.costs, rule.expect)
    )
    return Advice(text, tuple(settings), tuple(now), costs, expect)


def findings_select(found: Iterable[Finding], shown: str) -> str:
    """The rows of wb_finding."""
    names = (
        "place", "id", "title", "severity", "confidence", "cost_task_ns", "text", "evidence",
        "advice", "first_ts", "last_ts",
    )  # fmt: skip
    rows = []
    for place, one in enumerate(found, 1):
        evidence = "; ".join(proof.command(shown) for proof in one.evidence) or None
        values = (
            place, one.id, one.title, one.severity, one.confidence, one.cost_task_ns, one.text,
            evidence, one.advice and _advice_text(one.advice), one.first_ts, one.last_ts,
        )  # fmt: skip
        told = (f"{quote_any(v)} AS {name}" for v, name in zip(values, names, strict=True))
        rows.append(f"SELECT {', '.join(told)}")
    return (
        "\nUNION ALL\n".join(rows) or f"SELECT {', '.join(f'NULL AS {n}' for n in names)} WHERE 0"
    )


def _advice_text(advice: Advice) -> str:
    """In one line, for tables."""
    settings = "; ".join(f"{knob} = {value}" for knob, value in advice.settings)
    return f"{advice.text} {settings}".strip()
