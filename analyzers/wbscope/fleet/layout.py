# SPDX-License-Identifier: Apache-2.0
"""How a dataset lies on disk: names of tables, partitions and files, the same for every writer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

__all__ = [
    "DEVICES",
    "ERRORS",
    "FACTS",
    "FLEET_SCHEMA",
    "METRICS",
    "PARTITIONS",
    "RUNS",
    "RUN_ID",
    "UNKNOWN",
    "WARNINGS",
    "Partition",
    "data_path",
    "is_data_path",
    "partition_value",
]

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
