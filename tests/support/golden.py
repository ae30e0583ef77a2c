# SPDX-License-Identifier: Apache-2.0
"""What a golden case states by hand: rows that a query or a statement has to answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .cli import Document

__all__ = ["Check", "Expected", "difference"]

Expected = Mapping[str, int | float | str | None]
_RELATIVE = 1e-9


def _every(_row: Document) -> bool:
    return True


@dataclass(frozen=True)
class Check:
    """The rows of one canned query, or of one SQL statement, worked out by hand.

    Only the columns that the rows name are compared; keep chooses among the answered rows. The
    order of rows is compared when ordered. Each word must be in a warning of the answer. The case
    may have made several runs: folder is the one that is asked.
    """

    rows: Sequence[Expected]
    query: str = ""
    sql: str = ""
    options: tuple[str, ...] = ()
    keep: Callable[[Document], bool] = _every
    ordered: bool = False
    warning_words: tuple[str, ...] = ()
    folder: str = ""

    def arguments(self, source: str) -> tuple[str, ...]:
        """The command line that answers the check."""
        source = str(Path(source) / self.folder)
        if self.query:
            return ("query", self.query, source, *self.options)
        return ("sql", source, self.sql, *self.options)


def difference(check: Check, document: Document) -> str:
    """What is wrong with an answer, empty when nothing is."""
    columns = list(check.rows[0]) if check.rows else []
    found = [[row.get(column) for column in columns] for row in document["rows"] if check.keep(row)]
    expected = [list(row.values()) for row in check.rows]
    if not check.ordered:
        found.sort(key=_sort_key)
        expected.sort(key=_sort_key)
    if len(found) != len(expected):
        return f"{len(found)} rows, expected {len(expected)}: {columns}\n{found}\n{expected}"
    for have, want in zip(found, expected, strict=True):
        for column, a, b in zip(columns, have, want, strict=True):
            if not _same(a, b):
                return (
                    f"{column} is {a!r}, expected {b!r}, in {dict(zip(columns, have, strict=True))}"
                )
    text = " ".join(f"{warning['slug']} {warning['message']}" for warning in document["warnings"])
    missing = [word for word in check.warning_words if word not in text]
    return f"no warning has {missing}; warnings: {text!r}" if missing else ""


def _same(a: object, b: object) -> bool:
    if isinstance(b, float) and isinstance(a, int | float):
        return math.isclose(a, b, rel_tol=_RELATIVE, abs_tol=1e-12)
    return type(a) is type(b) and a == b


def _sort_key(row: Sequence[object]) -> list[tuple[str, str]]:
    return [
        (type(value).__name__, f"{value:020}" if isinstance(value, int) else str(value))
        for value in row
        if not isinstance(value, float)
    ]
