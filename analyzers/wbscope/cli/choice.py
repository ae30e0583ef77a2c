# SPDX-License-Identifier: Apache-2.0
"""Which columns and rows of an answer are shown: --columns, --sort and --limit."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from wbscope.base.errors import UsageError
from wbscope.base.result import Result
from wbscope.base.units import parse_count

__all__ = ["ALL", "Choice", "parse_choice", "parse_width"]

# A narrower table has no room for a time and a number.
_LEAST_WIDTH = 20


@dataclass(frozen=True)
class Choice:
    """Nothing in it: all columns and rows, in the order of the answer.

    `sort` has names of columns; one with a '-' in front sorts from the largest down.
    """

    columns: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    limit: int | None = None

    def check(self, asked: str, columns: Sequence[str], command: str) -> None:
        """Refuse names that are no columns.

        asked     what the columns are of, as errors call it
        command   that would work with other names
        """
        for option, names in (("--columns", self.columns), ("--sort", self.sort)):
            for name in names:
                plain = name if option == "--columns" else _column(name, columns)
                if plain not in columns:
                    raise self._unknown(option, name, asked, columns, command)

    def names(self, column: str) -> bool:
        """Whether one of the options names it."""
        return column in self.columns or column in [name.removeprefix("-") for name in self.sort]

    @property
    def most_rows(self) -> int | None:
        """More rows than that are not shown, whatever they are."""
        return None if self.sort else self.limit

    def rows_of(self, result: Result) -> Result:
        """Sorted, and the first of them; values that were not recorded come last."""
        rows = list(result.rows)
        for name in reversed(self.sort):
            column = _column(name, result.columns)
            place = result.columns.index(column)
            known = [row for row in rows if row[place] is not None]
            known.sort(key=lambda row: _rank(row[place]), reverse=name != column)
            rows = known + [row for row in rows if row[place] is None]
        return replace(result, rows=rows[: self.limit])

    def of(self, result: Result) -> Result:
        """Both."""
        return self.columns_of(self.rows_of(result))

    def columns_of(self, result: Result) -> Result:
        """Those that were asked for, in that order: what is said of keys holds while they lead."""
        if not self.columns:
            return result
        keys = []
        for name in self.columns:
            if name not in result.keys:
                break
            keys.append(name)
        return replace(result.only(self.columns), keys=tuple(keys), first=())

    def _unknown(
        self, option: str, name: str, asked: str, columns: Sequence[str], command: str
    ) -> UsageError:
        close = _like(name, columns)
        meant = f"; did you mean {' or '.join(close)}?" if close else ""
        return UsageError(
            "unknown-column",
            f"{option} {name}",
            f"is no column of {asked}{meant}",
            have=", ".join(columns),
            fix=f"{command} {self._mended(columns)}",
        )

    def _mended(self, columns: Sequence[str]) -> str:
        """The options again, with the column that is most like each wrong one."""
        words = []
        for option, names in (("--columns", self.columns), ("--sort", self.sort)):
            good = []
            for name in names:
                plain = name if option == "--columns" else _column(name, columns)
                near = [plain] if plain in columns else _like(name, columns)
                sign = "-" if option == "--sort" and plain != name else ""
                good += [f"{sign}{one}" for one in near[:1]]
            if names:
                sign = "-" if option == "--sort" and names[0].startswith("-") else ""
                words.append(f"{option} {','.join(dict.fromkeys(good)) or sign + columns[0]}")
        return " ".join(words + ([] if self.limit is None else [f"--limit {self.limit}"]))


ALL = Choice()


def parse_choice(columns: str | None, sort: str | None, limit: str | None) -> Choice:
    """From the texts of the options. Raises: UsageError."""
    return Choice(
        columns=_listed("columns", columns),
        sort=_listed("sort", sort),
        limit=None if limit is None else parse_count("limit", limit, "--limit 20"),
    )


def parse_width(text: str | None) -> int | None:
    """The width of a page. Raises: UsageError."""
    if text is None:
        return None
    width = parse_count("width", text, "--width 120")
    if width < _LEAST_WIDTH:
        told = f"found {width}, wanted {_LEAST_WIDTH} or more"
        raise UsageError("bad-number", "--width", told, fix="--width 120")
    return width


def _listed(option: str, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        told = f'found "{text}", wanted names with a comma between them'
        raise UsageError("no-columns", f"--{option}", told, fix=f"--{option} tid,comm")
    return tuple(dict.fromkeys(names))


def _column(name: str, columns: Sequence[str]) -> str:
    """The column that a word of --sort names."""
    return name if name in columns else name.removeprefix("-")


def _like(name: str, columns: Sequence[str]) -> list[str]:
    return difflib.get_close_matches(name.removeprefix("-"), columns, n=3, cutoff=0.5)


def _rank(value: Any) -> tuple[int, Any]:
    """Numbers before texts before bytes, as SQLite sorts them."""
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (2, value)
