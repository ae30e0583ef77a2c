# SPDX-License-Identifier: Apache-2.0
"""The filters of a query: the one-row view wb_params and how values are quoted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from wbscope.base.errors import UsageError
from wbscope.library.sqlfile import SqlFile

# More windows than anybody reads, and few enough to answer at once; wb_window makes no more.
MOST_WINDOWS = 100_000
DEFAULT_WINDOW_NS = 2 * 10**9
_FEW_WINDOWS = 10_000

_INT64_MAX = 2**63 - 1


# What a query calls a column of wb_params in its @filters.
_FILTERS = {
    "t0_ns": "range",
    "t1_ns": "range",
    "window_ns": "window",
    "by_window": "window",
    "bdi": "bdi",
    "tid": "tid",
    "comm_glob": "task",
    "cgroup_ino": "cgroup",
}


@dataclass(frozen=True)
class Params:
    """Columns of wb_params; None keeps the default that the library states."""

    t0_ns: int | None = None
    t1_ns: int | None = None
    window_ns: int | None = None
    bdi: str | None = None
    tid: int | None = None
    comm_glob: str | None = None
    cgroup_ino: int | None = None

    def filters(self) -> list[str]:
        """The filters in force, as queries name them in @filters."""
        return list(dict.fromkeys(_FILTERS[name] for name in self.given()))

    def given(self) -> dict[str, int | str]:
        """The columns that were set, and by_window, which says that window_ns was."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["by_window"] = None if self.window_ns is None else 1
        return {name: value for name, value in values.items() if value is not None}


def windows_in(start_ns: int, end_ns: int, window_ns: int) -> int:
    """How many windows of this length it takes."""
    return max(-(-(end_ns - start_ns) // window_ns), 0)


def wide_enough(values: dict[str, Any], meta: Mapping[str, Any]) -> dict[str, Any]:
    """The row of wb_params; where it takes more than MOST_WINDOWS, a few long windows.

    What is asked without windows has the same answer whatever their length is.
    """
    first, last = meta.get("first_ts"), meta.get("last_ts")
    start = first if values["t0_ns"] is None else values["t0_ns"]
    end = last if values["t1_ns"] is None else values["t1_ns"]
    if start is None or end is None:
        return values
    if windows_in(start, end + 1, values["window_ns"]) <= MOST_WINDOWS:
        return values
    return values | {"window_ns": -(-(end + 1 - start) // _FEW_WINDOWS)}


def check_filters(file: SqlFile, given: Iterable[str]) -> None:
    """UsageError for a filter that a query never looks at: it would silently change nothing."""
    ignored = [name for name in given if name not in file.filters]
    if ignored:
        raise UsageError(
            "no-such-filter",
            file.name,
            f"does not take {', '.join(ignored)}",
            have=", ".join(file.filters) or "no filter: it covers the whole run",
            fix=f"wbscope query {file.name} RUN",
        )


def quote(value: int | str | None) -> str:
    """A value as an SQL literal; the only place where one is pasted into SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, int):
        if abs(value) > _INT64_MAX:
            raise UsageError("out-of-range", str(value), f"is beyond the 64-bit limit {_INT64_MAX}")
        return str(int(value))
    if "\0" in value or not value.isprintable():
        raise UsageError("unprintable-text", repr(value), "holds characters that no name can have")
    return "'" + value.replace("'", "''") + "'"


def quote_any(value: Any) -> str:
    """A value of a run as an SQL literal: its texts may hold any character."""
    if isinstance(value, str):
        return "'" + value.replace("\0", "").replace("'", "''") + "'"
    return repr(value) if isinstance(value, float) else quote(value)
