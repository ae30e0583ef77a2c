# SPDX-License-Identifier: Apache-2.0
"""Completion at the prompt: tables and views after FROM, columns elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from wbscope.cli.shell.commands import COMMANDS
from wbscope.cli.shell.objects import Objects

__all__ = ["SqlCompleter"]


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_KEYWORDS = _split(
    "ALL AND AS ASC BETWEEN BY CASE CAST COLLATE CROSS DESC DISTINCT ELSE END EXCEPT EXISTS FROM"
    " GLOB GROUP HAVING IN INNER INTERSECT IS ISNULL JOIN LEFT LIKE LIMIT MATERIALIZED NOT NOTNULL"
    " NULL OFFSET ON OR ORDER OVER PARTITION RECURSIVE SELECT THEN UNION USING VALUES WHEN WHERE"
    " WINDOW WITH"
)
_FUNCTIONS = _split(
    "abs avg coalesce count group_concat iif instr lag lead length lower max min nullif printf"
    " rank replace round row_number substr sum total upper"
)
_WORD = re.compile(r"\.?\w*\Z")
_QUALIFIER = re.compile(r"(\w+)\.\w*\Z")
_WANTS_TABLE = re.compile(r"\b(?:FROM|JOIN)\s+\w*\Z", re.IGNORECASE)
_TABLES = re.compile(
    rf"\b(?:FROM|JOIN)\s+(\w+)(?:\s+(?:AS\s+)?(?!(?:{'|'.join(_KEYWORDS)})\b)(\w+))?",
    re.IGNORECASE,
)


class SqlCompleter(Completer):
    """Knows the statement as far as words go; it does not parse SQL."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """What may follow the text before the cursor."""
        before = document.text_before_cursor
        if before.lstrip().startswith("."):
            yield from self._dot(before.lstrip())
            return
        word = _WORD.search(before)
        typed = word[0].lstrip(".") if word else ""
        for text, kind in self._words(before, document.text, typed):
            yield Completion(text, start_position=-len(typed), display_meta=kind)

    def _dot(self, line: str) -> Iterator[Completion]:
        command, space, argument = line.partition(" ")
        if not space:
            yield from _matching(COMMANDS, command, "command")
        elif command == ".schema":
            yield from _matching(self._objects.names(), argument, "name")

    def _words(self, before: str, whole: str, typed: str) -> list[tuple[str, str]]:
        tables = self._tables(whole)
        qualifier = _QUALIFIER.search(before)
        if qualifier is not None:
            names = self._objects.columns(tables.get(qualifier[1], qualifier[1]))
            return _starting(names, typed, "column")
        if _WANTS_TABLE.search(before):
            return _starting(self._objects.names(), typed, "table")
        columns = dict.fromkeys(c for t in tables.values() for c in self._objects.columns(t))
        if not typed:
            return _starting(columns, typed, "column")
        found = _starting(columns, typed, "column")
        # A word in small letters stays in small letters.
        small = typed.islower()
        found += _starting([k.lower() if small else k for k in _KEYWORDS], typed, "keyword")
        found += _starting(_FUNCTIONS, typed, "function")
        return found + _starting(self._objects.names(), typed, "table")

    def _tables(self, text: str) -> dict[str, str]:
        """Tables that the statement names so far, by alias and by name."""
        tables: dict[str, str] = {}
        for match in _TABLES.finditer(text):
            tables[match[1]] = match[1]
            if match[2]:
                tables[match[2]] = match[1]
        return tables


def _starting(names: Iterable[str], typed: str, kind: str) -> list[tuple[str, str]]:
    return [(name, kind) for name in names if name.lower().startswith(typed.lower())]


def _matching(names: Iterable[str], typed: str, kind: str) -> Iterator[Completion]:
    for name, meta in _starting(names, typed, kind):
        yield Completion(name, start_position=-len(typed), display_meta=meta)
