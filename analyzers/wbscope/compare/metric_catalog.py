# SPDX-License-Identifier: Apache-2.0
"""What runs are compared by: sql/catalog/metrics.toml, checked against the queries."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wbscope.base.errors import SetupError
from wbscope.base.result import unit_of
from wbscope.library.library import Library, find_sql_dir
from wbscope.library.sqlfile import SqlFile
from wbscope.measure.metric import BETTER, Better

__all__ = ["TAKES", "Catalog", "Declared", "Row", "load_catalog"]

TAKES = ("only", "sum", "mean", "median", "min", "max")
_WINDOWS = ("", "whole")


@dataclass(frozen=True)
class Row:
    """What one number of a metric with `by` says, and from which kernel on another thing.

    None is what the metric says; not_across "" is the same thing on every kernel.
    """

    meaning: str = ""
    not_across: str | None = None

    def border(self, metric: str) -> str:
        """The kernel release, where the metric says `metric`."""
        return metric if self.not_across is None else self.not_across


@dataclass(frozen=True)
class Declared:
    """How the rows of a query become one number of a run, or one for each key.

    `none` is the number of a run that answered and has no such row.  `longest`
    names a column: a row with less than half of the largest value there, such as
    a last window that is cut short, is left out.  `better_in` and `unit_in` name
    columns that tell it row by row.
    """

    query: str
    name: str
    column: str
    take: str
    unit: str
    better: Better
    meaning: str
    weight: str = ""
    by: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    longest: str = ""
    window: str = ""
    none: float | None = None
    better_in: str = ""
    unit_in: str = ""
    not_across: str = ""

    @property
    def family(self) -> str:
        """The metric's name without keys."""
        return f"{self.query}.{self.name}"


@dataclass(frozen=True)
class Catalog:
    """All of them, in the order of the file, which is that of tables."""

    metrics: tuple[Declared, ...]
    rows: Mapping[str, Row]
    not_compared: Mapping[str, str]

    def units(self) -> dict[str, str]:
        """The unit of each family, but for those that tell it row by row."""
        return {metric.family: metric.unit for metric in self.metrics if not metric.unit_in}

    def of(self, query: str) -> list[Declared]:
        """Those that are made from this query."""
        return [metric for metric in self.metrics if metric.query == query]


def load_catalog(library: Library, folder: Path | None = None) -> Catalog:
    """Read and check it; SetupError when it does not fit the queries."""
    path = (find_sql_dir() if folder is None else folder) / "catalog" / "metrics.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _broken(path, f"cannot be read: {error}") from error
    metrics = tuple(_declared(path, library, entry) for entry in document.get("metric", []))
    seen: set[str] = set()
    for metric in metrics:
        if metric.family in seen:
            raise _broken(path, f"{metric.family} is there twice")
        seen.add(metric.family)
    rows = {name: Row(**entry) for name, entry in document.get("rows", {}).items()}
    return Catalog(metrics, rows, document.get("not_compared", {}))


def _declared(path: Path, library: Library, entry: dict[str, Any]) -> Declared:
    told = dict(entry)
    file = library.files.get(told.get("query", ""))
    if file is None or file.kind != "query":
        raise _broken(path, f"query {told.get('query')!r} is none of the library")
    name = told.get("name", "")
    column = told.setdefault("column", name)
    told["by"] = tuple(told.get("by", ()))
    if "none" in told:
        told["none"] = float(told["none"])
    known = next((metric for metric in file.metrics if metric.column == column), None)
    told.setdefault("better", known.better if known else "")
    told.setdefault("meaning", known.meaning if known else "")
    if note := told.pop("note", ""):
        told["meaning"] = f"{told['meaning']} ({note})"
    told["unit"] = unit_of(name) or ""
    try:
        declared = Declared(**told)
    except TypeError as error:
        raise _broken(path, f"{file.name}.{name}: {error}") from error
    _check(path, file, declared)
    return declared


def _check(path: Path, file: SqlFile, metric: Declared) -> None:
    columns = [column.name for column in file.columns]
    used = [metric.column, *metric.by, *metric.where, metric.weight]
    used += [metric.longest, metric.better_in, metric.unit_in]
    missing = [column for column in used if column and column not in columns]
    problems = {
        f"no column {', '.join(missing)}": bool(missing),
        f"take is {metric.take!r}, wanted one of {', '.join(TAKES)}": metric.take not in TAKES,
        f"better is {metric.better!r}": metric.better not in BETTER,
        "no meaning": not metric.meaning,
        f"window is {metric.window!r}": metric.window not in _WINDOWS,
        "window = whole, and the query has no windows": metric.window == "whole"
        and "window" not in file.filters,
        "a weight is for a mean": bool(metric.weight) and metric.take != "mean",
    }
    for problem, is_there in problems.items():
        if is_there:
            raise _broken(path, f"{metric.family}: {problem}")


def _broken(path: Path, message: str) -> SetupError:
    return SetupError(
        "broken-sql-library",
        str(path),
        message,
        fix="make setup    # or point WBSCOPE_SQL_DIR at a whole sql/ folder",
    )
