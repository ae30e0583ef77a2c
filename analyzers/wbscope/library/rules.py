# SPDX-License-Identifier: Apache-2.0
"""Headers of findings and warnings, and the templates of their sentences.

{name} is a fact, written for people; {name:raw} as it is; {name:path} only by its name, such as
the path of a cgroup, which not every run knows; {count:task} with its noun, "3 tasks".
What stands in [ ] is left out when a fact in it is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wbscope.base.result import unit_of
from wbscope.base.units import format_value

Label = Callable[[str, Any], str | None]
"""What people call the value of a column, where it has a name: vda (/data)."""

_TOKEN = re.compile(r"\{(\w+)(?::(\w+))?\}|\[|\]|[^{}\[\]]+")
_RAW, _PATH = "raw", "path"


@dataclass(frozen=True)
class Hole:
    """A fact, and how it is told."""

    name: str
    how: str

    def fill(self, facts: Mapping[str, Any], label: Label) -> str | None:
        """Its text; None where it is not known."""
        value = facts.get(self.name)
        if value is None:
            return None
        if self.how == _RAW:
            return str(value)
        if self.how == _PATH:
            return label(self.name, value)
        if self.how:
            return f"{value} {self.how}{'' if value == 1 else 's'}"
        return label(self.name, value) or format_value(self.name, unit_of(self.name), value)


_Part = str | Hole


@dataclass(frozen=True)
class Template:
    """Pieces one behind the other; a piece that is optional may be left out."""

    source: str
    pieces: tuple[tuple[bool, tuple[_Part, ...]], ...]

    def fill(self, facts: Mapping[str, Any], label: Label) -> str | None:
        """The text; None where a fact that it cannot do without is not known."""
        out = []
        for is_optional, parts in self.pieces:
            texts = [one if isinstance(one, str) else one.fill(facts, label) for one in parts]
            if None not in texts:
                out += [text for text in texts if text is not None]
            elif not is_optional:
                return None
        return "".join(out)

    def sql(self, alias: str) -> str:
        """An expression for the text, of a row's columns as they are; NULL where it is None."""
        texts = []
        for is_optional, parts in self.pieces:
            terms = [f"{alias}.{p.name}" if isinstance(p, Hole) else _literal(p) for p in parts]
            text = "\n    || ".join(terms)
            texts.append(f"coalesce({text}, '')" if is_optional else text)
        return "\n    || ".join(texts)

    def names(self) -> list[str]:
        """The facts that it names."""
        return [p.name for _, parts in self.pieces for p in parts if isinstance(p, Hole)]

    def told(self, facts: Mapping[str, Any]) -> list[str]:
        """The facts that stand in the text when it is filled with these."""
        return [
            hole.name
            for _, parts in self.pieces
            for hole in parts
            if isinstance(hole, Hole)
            and all(facts.get(p.name) is not None for p in parts if isinstance(p, Hole))
        ]


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def read_template(text: str) -> Template:
    """Raises: ValueError for brackets that do not match."""
    pieces: list[tuple[bool, tuple[_Part, ...]]] = []
    parts: list[_Part] = []
    is_optional = False
    at = 0
    for match in _TOKEN.finditer(text):
        if match.start() != at:
            break
        at = match.end()
        if match[0] in "[]":
            if (match[0] == "[") == is_optional:
                raise ValueError(f"'{match[0]}' at {match.start()} has no other half")
            pieces.append((is_optional, tuple(parts)))
            parts, is_optional = [], match[0] == "["
        else:
            parts.append(Hole(match[1], match[2] or "") if match[1] else match[0])
    if at != len(text) or is_optional:
        raise ValueError(f"what stands at {at} is no text, no {{fact}} and no [piece]")
    pieces.append((False, tuple(parts)))
    return Template(text, tuple(piece for piece in pieces if piece[1]))


# From what has to be told first.
SEVERITIES = ("severe", "warning", "note", "ok", "fact")
CONFIDENCES = ("measured", "inferred", "cannot tell")

_EVIDENCE = re.compile(r"(\w+)((?: --[\w-]+ \S+)*)(?:: (.+))?")
_CHECK = re.compile(r"(\w+) = (.+)")
_TERM = re.compile(r"(sum|max|min|mean|count)\(([^()]+)\)|(\d+)|(\w+)")


@dataclass(frozen=True)
class Term:
    """A number made of the rows of a query, of another fact, or a constant.

    `aggregate` of `column` over the rows in which each column of `where` has its value; a mean is
    weighted by `weight`, a count is of different values. Without an aggregate `column` is a fact,
    or a whole number.
    """

    aggregate: str
    column: str
    weight: str
    where: tuple[tuple[str, Template], ...]


@dataclass(frozen=True)
class Check:
    """A fact is what the terms make, worked out from left to right."""

    fact: str
    first: Term
    steps: tuple[tuple[str, Term], ...]


@dataclass(frozen=True)
class Evidence:
    """A canned query with filters, and what its rows have to say of the facts."""

    query: str
    options: tuple[tuple[str, Template], ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Setting:
    """Something to set, and to what."""

    knob: Template
    value: Template


@dataclass(frozen=True)
class Rule:
    """The texts of a finding. `when` names the rule of wb_loss that must have waits."""

    severity: str
    confidence: str
    when: str
    sentence: Template
    evidence: tuple[Evidence, ...]
    advice: Template | None
    settings: tuple[Setting, ...]
    now: tuple[Setting, ...]
    costs: Template | None
    expect: Template | None


@dataclass(frozen=True)
class Caution:
    """What a warning says: of which queries, or `*`, under which stable name, in which words.

    Holes are columns of its statement.
    """

    scopes: tuple[str, ...]
    slug: Template
    sentence: Template

    def words(self, statement: str) -> str:
        """A SELECT of slug and message."""
        return self._rows("", f"(\n{statement}\n) AS w")

    def select(self, statement: str) -> str:
        """The rows of wb_warning that it makes."""
        if len(self.scopes) == 1:
            return self._rows(f"'{self.scopes[0]}' AS scope,\n  ", f"(\n{statement}\n) AS w")
        scopes = " UNION ALL ".join(f"SELECT '{scope}' AS scope" for scope in self.scopes)
        # Scopes first: where none is asked for, the statement is not run.
        source = f"({scopes}) AS q\nCROSS JOIN (\n{statement}\n) AS w"
        return self._rows("q.scope,\n  ", source)

    def _rows(self, scope: str, source: str) -> str:
        about = f"{self.slug.sql('w')} AS slug,\n  {self.sentence.sql('w')} AS message"
        return f"SELECT\n  {scope}{about}\nFROM {source}"


def read_caution(name: str, tags: Mapping[str, Sequence[str]], columns: Sequence[str]) -> Caution:
    """From the tags of a header; the slug is the name without @slug.

    Raises: ValueError with what is wrong.
    """
    slug = " ".join(tags.get("slug", [name.replace("_", "-")]))
    scopes = tuple(word for word in re.split(r"[, ]+", " ".join(tags.get("scope", []))) if word)
    sentence = " ".join(tags.get("sentence", []))
    caution = Caution(scopes, read_template(slug), read_template(sentence))
    if not scopes or not sentence:
        raise ValueError("has no @scope or no @sentence")
    for hole in (*caution.slug.names(), *caution.sentence.names()):
        if hole not in columns:
            raise ValueError(f"{{{hole}}} is no column")
    return caution


def read_rule(tags: Mapping[str, Sequence[str]], columns: Sequence[str]) -> Rule:
    """From the tags of a header.

    Raises: ValueError with what is wrong.
    """

    def text(tag: str) -> str:
        return " ".join(tags.get(tag, []))

    severity, confidence = text("severity"), text("confidence")
    if severity not in SEVERITIES:
        raise ValueError(f"@severity is '{severity}', wanted one of {', '.join(SEVERITIES)}")
    if confidence not in CONFIDENCES:
        raise ValueError(f"@confidence is '{confidence}', wanted one of {', '.join(CONFIDENCES)}")
    if not text("sentence"):
        raise ValueError("has no @sentence")
    rule = Rule(
        severity=severity,
        confidence=confidence,
        when=text("when"),
        sentence=read_template(text("sentence")),
        evidence=tuple(_evidence(line) for line in tags.get("evidence", [])),
        advice=read_template(text("advice")) if text("advice") else None,
        settings=tuple(_setting(line) for line in tags.get("set", [])),
        now=tuple(_setting(line) for line in tags.get("now", [])),
        costs=read_template(text("costs")) if text("costs") else None,
        expect=read_template(text("expect")) if text("expect") else None,
    )
    for template in _templates(rule):
        for name in template.names():
            if name not in columns:
                raise ValueError(f"{{{name}}} is no @column")
    return rule


def _templates(rule: Rule) -> list[Template]:
    others = (rule.advice, rule.costs, rule.expect)
    found = [rule.sentence, *(one for one in others if one is not None)]
    for setting in (*rule.settings, *rule.now):
        found += [setting.knob, setting.value]
    for evidence in rule.evidence:
        found += [template for _, template in evidence.options]
        for check in evidence.checks:
            terms = [check.first, *(term for _, term in check.steps)]
            found += [template for term in terms for _, template in term.where]
    return found


def _setting(line: str) -> Setting:
    # A piece may hold both: [vm.dirty_bytes = {bytes}]; it is told as a whole then.
    knob, found, value = line.partition(" = ")
    if not found:
        raise ValueError(f"'{line}' sets nothing, wanted KNOB = VALUE")
    if line.startswith("["):
        return Setting(read_template(line), read_template(""))
    return Setting(read_template(knob), read_template(value))


def _evidence(line: str) -> Evidence:
    match = _EVIDENCE.fullmatch(line)
    if match is None:
        raise ValueError(f"@evidence is '{line}', wanted QUERY [--option VALUE]: FACT = ...")
    words = match[2].split()
    options = tuple((words[i], read_template(words[i + 1])) for i in range(0, len(words), 2))
    checks = tuple(_check(one) for one in (match[3] or "").split("; ") if one)
    return Evidence(match[1], options, checks)


def _check(text: str) -> Check:
    match = _CHECK.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is no check, wanted FACT = sum(COLUMN, COLUMN=VALUE ...)")
    words = re.split(r" ([+\-/]) ", match[2])
    steps = tuple((words[i], _term(words[i + 1])) for i in range(1, len(words), 2))
    return Check(match[1], _term(words[0]), steps)


def _term(text: str) -> Term:
    match = _TERM.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is no number of a query, wanted sum(COLUMN, COLUMN=VALUE ...)")
    if not match[1]:
        return Term("", match[3] or match[4], "", ())
    words = [word.strip() for word in match[2].split(",")]
    names = [word for word in words if "=" not in word]
    where = tuple(
        (name.strip(), read_template(value))
        for name, _, value in (word.partition("=") for word in words if "=" in word)
    )
    return Term(match[1], names[0], names[1] if len(names) > 1 else "", where)
