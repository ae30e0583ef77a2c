# SPDX-License-Identifier: Apache-2.0
"""What a report asks a dataset: the files of sql/fleet, the same text for every engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from wbscope.base.result import Result, leading_names, typed_columns, unit_of
from wbscope.library.engine import Rows
from wbscope.library.library import find_sql_dir
from wbscope.library.sqlfile import SqlFile, broken_library, read_sql_file

__all__ = ["SECTIONS", "FleetEngine", "answer", "report_query", "tables_in"]

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


class FleetEngine(Protocol):
    """What runs SQL over a dataset's tables."""

    def select(self, sql: str, tables: Sequence[str]) -> Rows:
        """Columns and rows of one SELECT that reads these tables.

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
