# SPDX-License-Identifier: Apache-2.0
"""What a report asks a dataset: the files of sql/fleet, the same text for every engine."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Protocol

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import QueryError
from wbscope.base.result import Notice, Result, leading_names, typed_columns, unit_of
from wbscope.base.units import seconds
from wbscope.fleet.layout import ERRORS, WARNINGS
from wbscope.fleet.tables import table_names
from wbscope.library.engine import Rows
from wbscope.library.library import find_sql_dir, load_library
from wbscope.library.losses import is_damaged, is_lost
from wbscope.library.sqlfile import SqlFile, broken_library, read_sql_file

__all__ = [
    "SECTIONS",
    "FleetEngine",
    "Stored",
    "answer",
    "contents",
    "losses_of",
    "not_a_select",
    "plain_value",
    "report_query",
    "tables_in",
    "too_late",
]

_FOLDER = "fleet"
# In the order in which they are told; each is a file.
SECTIONS = (
    "overview",
    "problems",
    "worst_hosts",
    "trend",
    "pause_p99",
    "stalls_by_cause",
    "findings_by_kernel",
    "findings_by_device",
    "fairness_outliers",
    "errors",
)


class Stored(Protocol):
    """A dataset as engines read it, in a folder or on a file system of Hadoop."""

    @property
    def place(self) -> str:
        """Its URI, for Spark."""
        ...

    def manifests(self) -> dict[str, dict[str, Any]]:
        """What is told of each run, by its id."""
        ...

    def errors(self) -> dict[str, int]:
        """The files of ingest_errors below the dataset, and their bytes."""
        ...

    def readable(self, name: str) -> Any:
        """A file of it for pyarrow."""
        ...


class FleetEngine(Protocol):
    """What runs SQL over a dataset's tables."""

    @property
    def losses(self) -> tuple[Notice, ...]:
        """What holds for every answer: how many runs lost events, or were read in part."""
        ...

    def select(self, sql: str, tables: Sequence[str] | None = None) -> Rows:
        """Columns and rows of one SELECT over these tables; without, over those that it names.

        Numbers are int or float, all else text; NULL is None.
        Raises: QueryError.
        """
        ...


def report_query(name: str) -> SqlFile:
    """A file of sql/fleet; `needs` are the tables that it reads.

    Raises: SetupError.
    """
    path = find_sql_dir() / _FOLDER / f"{name}.sql"
    files = read_sql_file(path)
    if [file.name for file in files] != [name]:
        raise broken_library(path, f"defines {', '.join(file.name for file in files)}")
    return files[0]


def answer(engine: FleetEngine, name: str) -> Result:
    """The rows of a section, with units and meanings."""
    file = report_query(name)
    columns, rows = engine.select(file.select, file.needs)
    units = {column: unit for column in columns if (unit := unit_of(column))}
    return Result(
        name=name,
        columns=columns,
        units=units,
        rows=rows,
        fields=typed_columns(columns, rows, file.columns),
        keys=file.keys or leading_names(columns),
        first=file.first,
    )


def tables_in(sql: str, names: Iterable[str]) -> list[str]:
    """The tables whose names stand anywhere in a statement."""
    words = set(re.findall(r"\w+", sql.lower()))
    return [name for name in names if name.lower() in words]


def contents(dataset: Stored) -> tuple[list[tuple[str, int, int, int]], tuple[Notice, ...]]:
    """Each table: its name, runs that have rows there, rows and bytes of files; and losses_of().

    Raises: InputError for a dataset that cannot be read.
    """
    totals = {name: [0, 0, 0] for name in table_names(load_library())}
    manifests = dataset.manifests().values()
    for manifest in manifests:
        for told in manifest["files"].values():
            found = totals.setdefault(told["table"], [0, 0, 0])
            for place, count in enumerate((1, told["rows"], told["bytes"])):
                found[place] += count
    bad = dataset.errors()
    totals[ERRORS] = [len(bad), len(bad), sum(bad.values())]
    rows = [(name, *counts) for name, counts in totals.items()]
    return rows, losses_of(manifests)  # type: ignore[return-value]


def losses_of(manifests: Collection[Mapping[str, Any]]) -> tuple[Notice, ...]:
    """How many of these runs have numbers that are too small, by the warnings that each has."""
    slugs = [{str(slug) for slug, _ in one.get("warnings", ())} for one in manifests]
    lossy = sum(any(map(is_lost, one)) for one in slugs)
    damaged = sum(any(map(is_damaged, one)) for one in slugs)
    of, which = (
        f"of {len(slugs)} runs",
        f'which: wbscope fleet sql DATASET "SELECT * FROM {WARNINGS}"',
    )
    told = []
    if lossy:
        message = f"{lossy} {of} lost events: their numbers are lower bounds; {which}"
        told.append(Notice("lost-events", message))
    if damaged:
        message = f"{damaged} {of} could be read in part only; {which}"
        told.append(Notice("damaged-trace", message))
    return tuple(told)


def plain_value(value: Any) -> Any:
    """int, float, text or None, as the house's results have it."""
    if isinstance(value, bool):
        return int(value)
    if value is None or isinstance(value, int | float | str):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, date | datetime):
        return value.isoformat()
    return str(value)


def not_a_select(found: str) -> QueryError:
    """What was found instead of a statement that only reads."""
    return QueryError(
        "not-a-select",
        "fleet sql",
        f"the statement {found}, wanted one SELECT: a dataset is only read",
        fix='wbscope fleet sql DATASET "SELECT host, count(*) FROM runs GROUP BY host"',
    )


def too_late(limit_ns: int | None) -> QueryError:
    """One SELECT took more than it may."""
    limit = "" if limit_ns is None else f" of {seconds(limit_ns):g} s"
    return QueryError(
        "time-limit",
        "fleet sql",
        f"the question ran into its time limit{limit} and was stopped",
        fix=Phrase("give it more time with ", Argument("timeout"), ", or ask for less"),
    )
