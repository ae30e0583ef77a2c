# SPDX-License-Identifier: Apache-2.0
"""Texts of SQL taken apart: statements at their semicolons, as SQLite sees them; what a SELECT of
the library reads, and where its columns come from."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

__all__ = ["Macro", "Select", "Statement", "is_complete", "read_macros", "split_statements"]

# White space and comments; one that is not closed goes on to the end of the text.
_BLANK = re.compile(r"(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))*", re.DOTALL)
_COMMAND = re.compile(r"\.[^\n]*")
# What SQLite's lexer does not take: NUL, and bytes that are no UTF-8, as Python has them.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")

_MACRO = re.compile(r"^(\w+)!\(([^()]*)\) =\s+([^;]*);", re.MULTILINE)
_QUIET = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
_JSON_ROWS = "json_each"  # a table of one value
# Not a macro: that reads what it is made of.
_READ = re.compile(r"(?<!DISTINCT )\b(?:FROM|JOIN)\s+([A-Za-z_]\w*)\b(?!!)(?:\s+AS\s+(\w+))?")
_NEXT = re.compile(r"(?:\s+(?:AS\s+)?\w+)?\s*,\s*([A-Za-z_]\w*)")  # FROM a AS x, b
_CTE = re.compile(r"\b(\w+)(?:\s*\(([^()]*)\))?\s+AS\s+(?:(?:NOT\s+)?MATERIALIZED\s+)?\(")
_SELECTED = re.compile(r"\bSELECT\b(?:\s+DISTINCT\b)?(.*?)(?=\bFROM\b|\bWHERE\b|\Z)", re.DOTALL)
_COMPOUND = re.compile(r"\b(?:UNION|EXCEPT|INTERSECT)\b")
_PLAIN = re.compile(r"(?:(\w+)\.)?(\w+)")


@dataclass(frozen=True)
class Statement:
    """One statement without its semicolon, or a line with a command such as .tables.

    `line` is the one that it starts on.
    """

    text: str
    line: int

    @property
    def is_command(self) -> bool:
        """Whether it is a line for the program, not for SQLite."""
        return self.text.startswith(".")


def split_statements(text: str) -> list[Statement]:
    """The statements and commands of a text; comments alone are none."""
    statements = []
    seen = _lexed(text)
    start, line, counted = 0, 1, 0
    while start < len(text):
        blank = _BLANK.match(text, start)
        begin = blank.end() if blank else start
        command = _COMMAND.match(text, begin)
        end = command.end() if command else _end(seen, begin)
        line, counted = line + text.count("\n", counted, begin), begin
        if part := text[begin:end].rstrip():
            statements.append(Statement(part, line))
        start = end + 1
    return statements


def is_complete(text: str) -> bool:
    """Whether the last statement of the text has its semicolon."""
    seen = _lexed(text)
    return _BLANK.fullmatch(seen) is not None or sqlite3.complete_statement(seen)


def _lexed(text: str) -> str:
    """The same without what is no text; the statement that has it is refused later."""
    return _NO_TEXT.sub(" ", text)


def _end(text: str, start: int) -> int:
    """Where the statement that starts there has its semicolon; the end of the text without."""
    end = text.find(";", start)
    while end >= 0 and not sqlite3.complete_statement(text[start : end + 1]):
        end = text.find(";", end + 1)
    return end if end >= 0 else len(text)


@dataclass(frozen=True)
class Macro:
    """A name for an idiom: NAME!(ARGUMENTS) in a statement becomes the body, in parentheses."""

    name: str
    parameters: tuple[str, ...]
    body: str

    def expand(self, text: str) -> str:
        """The text with the body in each place of the name.

        Raises: ValueError for another number of arguments.
        """
        return re.sub(rf"\b{self.name}!\(([^()]*)\)", self._filled, text)

    def _filled(self, call: re.Match[str]) -> str:
        words = [word.strip() for word in call[1].split(",")]
        if len(words) != len(self.parameters):
            raise ValueError(f"{call[0]}: wanted {self.name}!({', '.join(self.parameters)})")
        values = dict(zip(self.parameters, words, strict=True))
        names = rf"(?<![.\w])({'|'.join(self.parameters)})\b"
        return f"({re.sub(names, lambda match: values[match[1]], self.body)})"


def read_macros(text: str) -> list[Macro]:
    """The macros of a file: NAME!(PARAMETERS) = BODY;"""
    return [
        Macro(match[1], tuple(word.strip() for word in match[2].split(",")), match[3].strip())
        for match in _MACRO.finditer(text)
    ]


class Select:
    """A SELECT of the library, as text: what it reads, and the columns that it gives.

    Columns are those of the first SELECT of a compound one. Subqueries in FROM have an alias.
    """

    def __init__(self, text: str, names: str | None = None) -> None:
        """`names` are those that a common table expression gives its columns: a, b."""
        self._names = names.replace(",", " ").split() if names else None
        # Comments and strings blanked, so that places stay.
        code = _QUIET.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        self._code = code.replace(";", " ")

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The views and tables that it names, each once, in the order of the text."""
        steps = {match[1] for match in _CTE.finditer(self._code)}
        named = []
        for match in _READ.finditer(self._code):
            named.append(match[1])
            end = match.end(1)
            while more := _NEXT.match(self._code, end):
                named.append(more[1])
                end = more.end()
        return tuple(dict.fromkeys(n for n in named if n not in steps and n != _JSON_ROWS))

    @property
    def columns(self) -> list[str]:
        """Their names, in order."""
        return [name for name, _ in self._selected]

    def passed(self, column: str) -> tuple[str, ...]:
        """What this column is passed through from, under its name: views that are read.

        More than one where a column without an alias can be of several; none where the statement
        computes or renames it.
        """
        return tuple(dict.fromkeys(self._origins(column, {})))

    def _origins(self, column: str, outer: dict[str, Select]) -> Iterator[str]:
        steps = {**outer, **self._steps}
        for name, item in self._selected:
            if name != column or (plain := _PLAIN.fullmatch(item)) is None or plain[2] != name:
                continue
            for alias, source in self._sources.items():
                if plain[1] not in (None, alias):
                    continue
                if isinstance(source, Select):
                    yield from source._origins(column, steps)
                elif source not in steps:
                    yield source
                elif steps[source] is not self:  # a recursive one begins elsewhere
                    inner = {key: step for key, step in steps.items() if key != source}
                    yield from steps[source]._origins(column, inner)

    @cached_property
    def top(self) -> str:
        """The code with all that stands in parentheses blanked."""
        depth, out = 0, []
        for piece in re.split(r"([()])", self._code):
            depth -= piece == ")"
            out.append(piece if depth == 0 else re.sub(r"[^\n]", " ", piece))
            depth += piece == "("
        return "".join(out)

    @cached_property
    def _first(self) -> tuple[int, int]:
        """Where the first SELECT that is in no parentheses begins and ends."""
        start = self.top.find("SELECT")
        end = _COMPOUND.search(self.top, max(start, 0))
        return max(start, 0), end.start() if end else len(self.top)

    @cached_property
    def _selected(self) -> list[tuple[str, str]]:
        """The name of each column, and the text that makes it, what is in parentheses blanked."""
        start, end = self._first
        match = _SELECTED.search(self.top, start, end)
        items = [" ".join(item.split()) for item in match[1].split(",")] if match else []
        items = [item for item in items if item]
        names = self._names or [re.split(r"[ .]", item)[-1].strip('"') for item in items]
        return list(zip(names, items, strict=False))

    @cached_property
    def _sources(self) -> dict[str, str | Select]:
        """What the first SELECT reads, by alias."""
        start, end = self._first
        found: dict[str, str | Select] = {}
        for match in _READ.finditer(self.top, start, end):
            found[match[2] or match[1]] = match[1]
        for match in re.finditer(r"\b(?:FROM|JOIN)\s+\(", self.top[:end]):
            if match.start() >= start:
                close = self._close(match.end())
                alias = re.match(r"\s*AS\s+(\w+)", self._code[close + 1 :])
                found[alias[1] if alias else ""] = Select(self._code[match.end() : close])
        return found

    @cached_property
    def _steps(self) -> dict[str, Select]:
        """The common table expressions, by name."""
        return {
            match[1]: Select(self._code[match.end() : self._close(match.end())], match[2])
            for match in _CTE.finditer(self._code[: self._first[0]])
            if self.top[match.start() : match.end() - 1].strip()
        }

    def _close(self, start: int) -> int:
        """The place of the parenthesis that ends what begins there."""
        depth = 1
        for place in range(start, len(self._code)):
            depth += {"(": 1, ")": -1}.get(self._code[place], 0)
            if depth == 0:
                return place
        return len(self._code)
