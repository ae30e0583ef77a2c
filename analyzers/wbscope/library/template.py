# SPDX-License-Identifier: Apache-2.0
"""Sentences with holes: the text of a finding, filled with the facts of one row.

{name} is a fact, written for people; {name:raw} as it is; {name:path} only by its name, such as
the path of a cgroup, which not every run knows; {count:task} with its noun, "3 tasks".
What stands in [ ] is left out when a fact in it is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wbscope.base.result import unit_of
from wbscope.base.units import format_value

__all__ = ["Hole", "Label", "Template", "read_template"]

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
