# SPDX-License-Identifier: Apache-2.0
"""Which way is good for a measurement, and what it is, from metrics.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from wbscope.base.errors import InternalError
from wbscope.measure.metric import Better, Metric, join_name

__all__ = ["TOOLS", "Told", "counters", "known", "metric", "names_of", "sampled", "told"]

# What a metric of another tool begins with.
TOOLS = ("fio", "time", "command", "perf", "vmstat", "procps", "hyperfine", "mmtests", "ops")

_SUFFIXES = {
    "ns": "_ns",
    "bytes": "_bytes",
    "bytes/s": "_bytes_per_s",
    "count": "_count",
    "ratio": "_ratio",
}


@dataclass(frozen=True)
class Told:
    """What the catalogue says of one value of one tool."""

    unit: str
    better: Better
    meaning: str


@cache
def _sections() -> dict[str, dict[str, Told]]:
    path = Path(__file__).with_name("metrics.toml")
    read: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        section: {name: Told(**entry) for name, entry in entries.items()}
        for section, entries in read.items()
    }


def told(section: str, name: str) -> Told | None:
    """What is known of this value; a pattern stands for names of one kind."""
    entries = _sections()[section]
    if name in entries:
        return entries[name]
    return next((entry for key, entry in entries.items() if fnmatchcase(name, key)), None)


def known(section: str, name: str) -> Told:
    """What is known of a value that the project itself names."""
    entry = told(section, name)
    if entry is None:
        raise InternalError("no-entry", f"{section}.{name}", "is not in metrics.toml")
    return entry


def names_of(section: str) -> Iterator[str]:
    """The names, or patterns, of a section."""
    yield from _sections()[section]


def counters() -> Iterator[tuple[str, Told]]:
    """The counters of /proc/vmstat that are compared; a name may be a pattern."""
    yield from _sections()["vmstat"].items()


def sampled() -> Iterator[tuple[str, Told]]:
    """The levels in /proc/vmstat that are compared when they were sampled."""
    yield from _sections()["vmstat_level"].items()


def metric(
    tool: str, name: str, entry: Told, source: str, keys: Mapping[str, str] | None = None
) -> Metric:
    """TOOL.NAME; the unit is written in the name, as it is in columns of queries."""
    suffix = _SUFFIXES.get(entry.unit, "")
    if name.endswith(suffix):
        suffix = ""
    family = join_name(f"{tool}.{_word(name)}{suffix}", keys or {})
    return Metric(family, entry.unit, entry.better, entry.meaning, source)


def _word(name: str) -> str:
    """Without the signs that end a metric's name, and those that are not shown."""
    return "".join("_" if char in "[] " or not char.isprintable() else char for char in name)
