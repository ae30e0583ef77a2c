# SPDX-License-Identifier: Apache-2.0
"""How a dataset lies on disk, and the columns of its tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from wbscope.base.errors import InternalError, SetupError
from wbscope.base.result import Column, Result, unit_of
from wbscope.base.version import __version__
from wbscope.library.database import SCHEMA_VERSION
from wbscope.library.library import Library
from wbscope.render.frames import arrow_table

if TYPE_CHECKING:
    import pyarrow


# The layout of tables and of manifests. A reader refuses a higher one.
FLEET_SCHEMA = 1
# What is beside the tables of the canned queries.
RUNS, METRICS, FACTS = "runs", "run_metrics", "run_facts"
DEVICES, WARNINGS, ERRORS = "run_devices", "run_warnings", "ingest_errors"
PARTITIONS = ("date", "host", "kernel")
UNKNOWN = "unknown"
RUN_ID = re.compile(r"[0-9a-f]{32}")

_MOST_CHARACTERS = 100
_SAFE = re.compile(r"[A-Za-z0-9._+~-]")
_DATA = re.compile(
    r"[a-z][a-z0-9_]*/date=[\w.+~%-]{1,300}/host=[\w.+~%-]{1,300}/kernel=[\w.+~%-]{1,300}"
    r"/[0-9a-f]{32}\.parquet",
    re.ASCII,
)


@dataclass(frozen=True)
class Partition:
    """Where the rows of a run are; values as they stand in paths."""

    date: str
    host: str
    kernel: str


def partition_value(text: str | None) -> str:
    """A name as a part of a path, as Hive writes it; what is no ASCII is an underscore.

    Readers undo %XX in ways of their own for other characters. The exact name is in `runs`.
    """
    name = (text or "").strip()[:_MOST_CHARACTERS]
    if not name.strip("._"):
        return UNKNOWN
    return "".join(_character(one) for one in name)


def data_path(table: str, partition: Partition, run: str) -> str:
    """The file of a run in a table, below the dataset's folder."""
    values = (partition.date, partition.host, partition.kernel)
    folders = [f"{key}={value}" for key, value in zip(PARTITIONS, values, strict=True)]
    return str(PurePosixPath(table, *folders, f"{run}.parquet"))


def is_data_path(path: str) -> bool:
    """Whether a path below the dataset is one that data_path() gives."""
    return _DATA.fullmatch(path) is not None


def _character(one: str) -> str:
    if _SAFE.fullmatch(one):
        return one
    return f"%{ord(one):02X}" if " " <= one <= "~" else "_"


_RUN = Column("run", "TEXT", "the run: a hash of all that it was read from")

# What no canned query has; each row begins with the run.
OWN_TABLES: dict[str, tuple[Column, ...]] = {
    RUNS: (
        _RUN,
        Column("recording", "TEXT", "what tells that two runs are the same recording"),
        Column("name", "TEXT", "what the run folder or trace is called"),
        Column("source", "TEXT", "where it was read from"),
        Column("host_name", "TEXT", "name of the machine; NULL = not known"),
        Column("host_basis", "TEXT", "meta.json or uname; none"),
        Column("kernel_release", "TEXT", "release of its kernel; NULL = not known"),
        Column("machine", "TEXT", "architecture, as uname -m prints it"),
        Column("recorded_unix_s", "INTEGER", "s since 1970 of the recording, by date_basis"),
        Column("date_basis", "TEXT", "meta.json, mtime (of the trace) or none"),
        Column("session", "TEXT", "boot or start of the recording that it is of"),
        Column("events_count", "INTEGER", "events of the trace"),
        Column("loaded_count", "INTEGER", "of them, those that were loaded"),
        Column("lost_events_count", "INTEGER", "events that the ring buffer lost; NULL = not told"),
        Column("duration_ns", "INTEGER", "ns, from the first to the last event"),
        Column("damaged", "INTEGER", "1 = only a part of the trace could be read"),
        Column("checks_agree_count", "INTEGER", "comparisons of `check` that agree"),
        Column("checks_differ_count", "INTEGER", "comparisons that differ"),
        Column("faults_count", "INTEGER", "of these, those that must not; NULL = nothing to check"),
        Column("database_schema", "INTEGER", "schema_version of its tables of events"),
        Column("fleet_schema", "INTEGER", "version of the dataset's tables"),
        Column("wbscope_version", "TEXT", "what wrote it"),
        Column("about", "TEXT", "JSON, wbscope.baseline/1 without metrics: what a gate asks"),
    ),
    METRICS: (
        _RUN,
        Column("place", "INTEGER", "its place in the catalogue"),
        Column("metric", "TEXT", "name, as compare and gate have it"),
        Column("family", "TEXT", "name without what is in brackets"),
        Column("unit", "TEXT", "unit of value"),
        Column("better", "TEXT", "lower, higher or neutral"),
        Column("meaning", "TEXT", "what it says"),
        Column("source", "TEXT", "query or file that it is from"),
        Column("not_across", "TEXT", "release from which on it means another thing"),
        Column("value", "REAL", "the number; NULL = not known"),
        Column("sd", "REAL", "of a mean: s.d. of what it is the mean of"),
        Column("n", "INTEGER", "of how many"),
    ),
    FACTS: (
        _RUN,
        Column("fact", "TEXT", "fact of machine and recording"),
        Column("value", "TEXT", "as text; NULL = not known"),
    ),
    DEVICES: (
        _RUN,
        Column("bdi", "TEXT", "backing device, major:minor, as events call it"),
        Column("device", "TEXT", "its name: vda"),
        Column("mounts", "TEXT", "where it is mounted, separated by spaces"),
        Column("model", "TEXT", "vendor and model of the disk; NULL = not told"),
    ),
    WARNINGS: (
        _RUN,
        Column("slug", "TEXT", "kind of warning"),
        Column("message", "TEXT", "what holds for all numbers of the run"),
    ),
    ERRORS: (
        Column("id", "TEXT", "name of the row's file"),
        Column("source", "TEXT", "what could not be read"),
        Column("slug", "TEXT", "kind of error"),
        Column("message", "TEXT", "what was found and wanted"),
        Column("exit_code", "INTEGER", "that of a command on this run alone"),
        Column("content", "TEXT", "hash of what was there; NULL = not even that was read"),
        Column("unix_s", "INTEGER", "s since 1970 of the attempt"),
        Column("wbscope_version", "TEXT", "what tried"),
        Column("fleet_schema", "INTEGER", "version of the dataset's tables"),
    ),
}


def table_names(library: Library) -> list[str]:
    """All tables: canned queries by name, and the dataset's own."""
    return [*OWN_TABLES, *(query.name for query in library.queries())]


def columns_of_table(library: Library, table: str) -> tuple[Column, ...]:
    """The columns of a table as they are declared, without those of its path."""
    if table in OWN_TABLES:
        return OWN_TABLES[table]
    return (_RUN, *library.query(table).columns)


def table_of(
    table: str, columns: tuple[Column, ...], rows: Iterable[tuple[Any, ...]]
) -> pyarrow.Table:
    """Rows with the declared types, units and meanings.

    Raises: InternalError for a value that its column cannot have.
    """
    names = tuple(column.name for column in columns)
    units = {name: unit for name in names if (unit := unit_of(name))}
    try:
        arrow = arrow_table(Result(table, names, units, list(rows), fields=columns))
    except (TypeError, OverflowError) as error:
        raise InternalError("column-type", table, f"{error} (a bug in sql/)") from error
    about = {
        "schema": f"wbscope.fleet/{FLEET_SCHEMA}",
        "fleet_schema": str(FLEET_SCHEMA),
        "table": table,
        "database_schema": str(SCHEMA_VERSION),
        "wbscope_version": __version__,
    }
    return arrow.replace_schema_metadata(about)


def of_run(run: str, result: Result) -> tuple[tuple[Column, ...], list[tuple[Any, ...]]]:
    """The columns and rows of an answer, with the run in front."""
    return (_RUN, *result.fields), [(run, *row) for row in result.rows]


def is_file_of(file: Any, run: str, table: str) -> bool:
    """Whether this is a file of Parquet that a wbscope wrote for this run and table."""
    from pyarrow import ArrowException, parquet

    try:
        found = parquet.read_table(file, columns=["run"])
        about = found.schema.metadata or {}
        of_runs = found["run"].unique().to_pylist()
    except (ArrowException, LookupError, OSError):
        return False
    return bool(about.get(b"table") == table.encode() and of_runs == [run])


def write_table(table: pyarrow.Table, path: Path) -> None:
    """A Parquet file that is on the disk when this returns.

    Raises: SetupError for what only Arrow knows; OSError such as a full disk.
    """
    import pyarrow
    from pyarrow import parquet

    try:
        with path.open("xb") as file:
            parquet.write_table(table, file, compression="zstd")
    except pyarrow.ArrowException as error:
        raise SetupError("cannot-write", str(path), f"Arrow cannot write it: {error}") from error
