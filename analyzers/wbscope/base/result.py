# SPDX-License-Identifier: Apache-2.0
"""What a query gives back: columns, units, rows and warnings, all raw values."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from wbscope.base.errors import Argument, Phrase
from wbscope.base.units import counted, is_instant

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


# Longest suffix first: _bytes_per_s before anything that ends in _s.
_SUFFIXES = (
    ("_bytes_per_s", "bytes/s"),
    ("_pages_per_s", "pages/s"),
    ("_bytes", "bytes"),
    ("_ns", "ns"),
    ("_count", "count"),
    ("_ratio", "ratio"),
    ("_ts", "ns"),
)
_WINDOW = "window_start_ns"
# Of the names of columns in repr().
_SHOWN_LETTERS = 60

# Arrow, pandas, HTML: by the layers above, which this one must not import.
_CONVERTERS: dict[str, Callable[[Any], Any]] = {}


@dataclass(frozen=True)
class Column:
    """One documented result column."""

    name: str
    type: str
    description: str


class Amount(str):
    """A number in words, with its unit: tables have it on the right, as they have numbers."""


@dataclass(frozen=True)
class Notice:
    """One reason to read the rows with care; `run` is set when there are several."""

    slug: str
    message: str
    run: str | None = None

    def spoken(self, say: Callable[[Argument], str]) -> Notice:
        """The same with other words for arguments: options, on a command line."""
        if not isinstance(self.message, Phrase):
            return self
        return replace(self, message=self.message.spoken(say))


@dataclass(frozen=True)
class Result:
    """The rows of one query; `units` has the columns that have a unit.

    `fields` has each column's type and meaning: from the query's header, and for
    SQL of the user's own from the values. `start_ns` is the first event of the run on
    the trace clock, which the times of the rows are of; 0: they count from it already.
    `labels` are names that tables show in place of values: by column, or by the end of
    its name (bdi: also of holder_bdi). `keys` are the columns that tell rows apart,
    `first` those that matter most: what tables for people begin with.
    """

    name: str
    columns: tuple[str, ...]
    units: dict[str, str]
    rows: list[tuple[Any, ...]]
    warnings: tuple[Notice, ...] = ()
    fields: tuple[Column, ...] = ()
    start_ns: int | None = None
    labels: Mapping[str, Mapping[str | int, str]] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    first: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """What it is of, not all that is in it."""
        names = textwrap.shorten(", ".join(self.columns), _SHOWN_LETTERS, placeholder=" ...")
        counts = f"{counted(len(self.rows), 'row')}, {counted(len(self.columns), 'column')}"
        told = f", {counted(len(self.warnings), 'warning')}" if self.warnings else ""
        return f"<wbscope result {self.name!r}: {counts} ({names}){told}>"

    def spoken(self, say: Callable[[Argument], str]) -> Result:
        """The same with other words for arguments in its warnings."""
        return replace(self, warnings=tuple(notice.spoken(say) for notice in self.warnings))

    def label(self, column: str, value: Any) -> str | None:
        """The name of a value that has one."""
        return self.names_in(column).get(value) if isinstance(value, str | int) else None

    def names_in(self, column: str) -> Mapping[str | int, str]:
        """What the values of a column are called."""
        if not self.labels or column in self.labels:
            return self.labels.get(column, {})
        ends = (end for end in self.labels if column.endswith(f"_{end}"))
        return self.labels.get(next(ends, ""), {})

    def is_text(self, column: str, value: Any) -> bool:
        """Whether a table shows it as words, which stand on the left."""
        if isinstance(value, Amount):
            return False
        return isinstance(value, str | bytes) or self.label(column, value) is not None

    def from_start(self) -> Result:
        """With times that count from the run's first event, as those of filters do."""
        places = [i for i, column in enumerate(self.columns) if is_instant(column)]
        if not self.start_ns or not places:
            return self
        rows = []
        for row in self.rows:
            cells = list(row)
            for place in places:
                if isinstance(cells[place], int):
                    cells[place] -= self.start_ns
            rows.append(tuple(cells))
        return replace(self, rows=rows, start_ns=0)

    def only(self, columns: Sequence[str]) -> Result:
        """These of its columns, in this order."""
        if tuple(columns) == self.columns:
            return self
        places = [self.columns.index(name) for name in columns]
        fields = {field.name: field for field in self.fields}
        return replace(
            self,
            columns=tuple(columns),
            units={name: self.units[name] for name in columns if name in self.units},
            rows=[tuple(row[place] for place in places) for row in self.rows],
            fields=tuple(fields[name] for name in columns if name in fields),
        )

    def records(self) -> list[dict[str, Any]]:
        """The rows as dictionaries by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def descriptions(self) -> dict[str, str]:
        """What each column means, in the order of the columns."""
        return {field.name: field.description for field in self.fields if field.description}

    def to_arrow(self) -> pyarrow.Table:
        """A pyarrow.Table: INTEGER is int64, REAL float64, TEXT string, NULL null."""
        table: pyarrow.Table = _CONVERTERS["arrow_table"](self)
        return table

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas.DataFrame of Int64, Float64 and string columns; needs pandas."""
        frame: pandas.DataFrame = _CONVERTERS["pandas_frame"](self)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A polars.DataFrame; needs polars."""
        frame: polars.DataFrame = _CONVERTERS["polars_frame"](self)
        return frame

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records())

    def _repr_html_(self) -> str:
        """What a notebook shows: warnings, then the table with units for people."""
        text: str = _CONVERTERS["html_table"](self)
        return text


def converter(make: Callable[[Result], Any]) -> Callable[[Result], Any]:
    """Decorates what a result is turned into by the layers above, under the function's name."""
    _CONVERTERS[make.__name__] = make
    return make


def leading_names(columns: Sequence[str]) -> tuple[str, ...]:
    """What a row is about where nobody says so: the window, and columns before any number."""
    count = 0
    while count < len(columns) and (columns[count] == _WINDOW or not unit_of(columns[count])):
        count += 1
    return tuple(columns[: max(1, count)])


def typed_columns(
    names: Sequence[str], rows: Sequence[tuple[Any, ...]], header: Sequence[Column] = ()
) -> tuple[Column, ...]:
    """Type and meaning of each column: the header's, else what the values are."""
    known = {column.name: column for column in header}
    return tuple(
        known.get(name) or Column(name, _type_of(row[index] for row in rows), "")
        for index, name in enumerate(names)
    )


def _type_of(values: Iterator[Any]) -> str:
    """SQLite has no types of columns: the narrowest that holds all values."""
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return "NULL"
    if kinds <= {int, float}:
        return "INTEGER" if kinds == {int} else "REAL"
    return "BLOB" if kinds == {bytes} else "TEXT"


def unit_of(column: str) -> str | None:
    """The unit that a column's name states, if any."""
    if column in ("ts", "dur"):
        return "ns"
    if column in ("bytes", "count"):
        return column
    for suffix, unit in _SUFFIXES:
        if column.endswith(suffix):
            return unit
    return None


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Column names made distinct as SQLite does it: a, a:1, a:2."""
    unique: list[str] = []
    for name in names:
        candidate, number = name, 0
        while candidate in unique:
            number += 1
            candidate = f"{name}:{number}"
        unique.append(candidate)
    return tuple(unique)
