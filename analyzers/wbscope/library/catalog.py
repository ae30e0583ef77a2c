# SPDX-License-Identifier: Apache-2.0
"""The catalog of events, sql/catalog/events.toml: their names, fields, units and older names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wbscope.library.sqlfile import Column, SqlFile, broken_library, empty_file

__all__ = [
    "PREVIOUS",
    "Catalog",
    "Event",
    "Field",
    "lead_columns",
    "op_of",
    "raw_view",
    "read_catalog",
]

# Field names that SQL would read as keywords.
_KEYWORDS = {"index", "limit", "order", "transaction", "unique"}
_UNIT_WORDS = {
    "pages": "pages",
    "KiB/s": "KiB/s, as the kernel records",
    "bytes/s": "bytes/s, as the kernel records",
    "ns": "ns",
    "ms": "ms, as the kernel records",
    "us": "us",
    "jiffies": "jiffies",
    "sectors": "sectors of 512 bytes",
    "bytes": "bytes",
    "count": "count",
    "inode": "inode number",
    "pfn": "page frame number",
    "id": "number",
    "code": "coded; see enum_label",
    "text": "text",
    "rwbs": "kind of request, as the kernel prints it",
    "ret": "result; negative = errno",
    "fd": "file descriptor",
    "bool": "0 or 1",
    "dev": "device",
}
# What prev_seq tells, by the key `previous` of an event.
PREVIOUS = {"tid": "the thread's record before this one", "any": "the record before this one"}


def op_of(rwbs: str, nr_sector: str) -> str:
    """SQL for the kind of a request: the first letter of rwbs that is no REQ_PREFLUSH.

    Writes with REQ_FUA have an F behind it, readahead an A, a zone append is ZA; to reset (ZR),
    finish (ZF), open or close a zone moves no data. Older kernels print N for all of Z.
    Source: kernel/trace/blktrace.c blk_fill_rwbs().
    """
    return (
        "CASE\n"
        f"    WHEN {nr_sector} = 0 AND {rwbs} GLOB '*F*' AND {rwbs} NOT GLOB '*Z*' THEN 'flush'\n"
        f"    ELSE CASE substr(ltrim({rwbs}, 'F'), 1, 1)\n"
        "      WHEN 'R' THEN 'read'\n"
        "      WHEN 'W' THEN 'write'\n"
        "      WHEN 'D' THEN 'discard'\n"
        f"      WHEN 'Z' THEN CASE WHEN {rwbs} GLOB '*ZA*' THEN 'write' ELSE 'other' END\n"
        "      ELSE 'other'\n"
        "    END\n"
        "  END"
    )


@dataclass(frozen=True)
class Field:
    """One field of an event: newest name, unit, older names."""

    name: str
    unit: str
    aliases: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Each once: a field can be an alias of another one, too."""
        return tuple(dict.fromkeys((self.name, *self.aliases)))

    @property
    def sql_name(self) -> str:
        """As SQL wants it."""
        return f'"{self.name}"' if self.name in _KEYWORDS else self.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """What the adapters of every engine make of it."""
        if self.unit == "dev":
            return (
                Column("dev_major", "INTEGER", "major number of the device"),
                Column("dev_minor", "INTEGER", "minor number of the device"),
            )
        if self.unit == "rwbs":
            return (
                Column(self.name, "TEXT", _UNIT_WORDS[self.unit]),
                Column("op", "TEXT", "read, write, discard, flush or other"),
            )
        kind = "TEXT" if self.unit == "text" else "INTEGER"
        return (Column(self.name, kind, _UNIT_WORDS[self.unit]),)


@dataclass(frozen=True)
class Event:
    """One event under its newest name, the first."""

    names: tuple[str, ...]
    summary: str
    source: str
    fields: tuple[Field, ...]
    extra: bool = False
    previous: str = ""
    indexes: tuple[str, ...] = ()
    notable: str = ""
    repeats: tuple[str, ...] = ()
    context: tuple[tuple[str, ...], ...] = ()
    group: str = ""

    @property
    def short(self) -> str:
        """Without its system."""
        return self.names[0].partition(":")[2]


@dataclass(frozen=True)
class Catalog:
    """Events, and the tables that are no events as the file has them."""

    path: Path
    events: tuple[Event, ...]
    tables: tuple[dict[str, Any], ...]


def read_catalog(path: Path) -> Catalog:
    """System calls are written out.

    Raises: SetupError when the file is not as agreed.
    """
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
        events = [_event(entry) for entry in read.get("event", [])]
        events += [event for group in read.get("syscalls", []) for event in _calls(group)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise broken_library(path, f"cannot be read: {error!r}") from error
    return Catalog(path, tuple(events), tuple(read.get("table", [])))


def raw_view(name: str, select: str, columns: Iterable[Column], **facts: Any) -> SqlFile:
    """An adapter, the view raw_NAME."""
    return empty_file(
        kind="raw", name=f"raw_{name}", select=select, columns=tuple(columns), **facts
    )


def lead_columns(event: Event) -> list[Column]:
    """Those that every event has."""
    columns = [
        Column("seq", "INTEGER", "order of all records, also where ts is equal"),
        Column("ts", "INTEGER", "ns, trace clock"),
        Column("cpu", "INTEGER", "number"),
        Column("tid", "INTEGER", "the thread that the event fired in"),
    ]
    if event.previous:
        told = f"seq of {told_before(event)}; NULL = none"
        columns.append(Column("prev_seq", "INTEGER", told))
    return columns


def told_before(event: Event) -> str:
    """Which record prev_seq is of."""
    told = PREVIOUS[event.previous]
    return f"{told}, of either end of {event.group}" if event.group else told


def repeat_columns(event: Event) -> list[Column]:
    """The one that tells which records say nothing new, of an event that has it."""
    if not event.repeats:
        return []
    told = f"records in a row before this one with its {', '.join(event.repeats)}"
    for name, *fields in event.context:
        short = name.partition(":")[2]
        if fields:
            told += f", and {', '.join(fields)} of its call's {short}"
        else:
            told += f", and no {short} in between"
    told += "; 0 = none, so it is new; NULL = not known"
    return [Column("repeats_count", "INTEGER", told)]


def _event(entry: dict[str, Any]) -> Event:
    return Event(
        (entry["name"], *entry.get("aliases", [])),
        entry["summary"],
        f"{entry['source']}; since {entry['since']}",
        tuple(_field(text) for text in entry["fields"]),
        not entry.get("profile", True),
        entry.get("previous", ""),
        tuple(entry.get("indexes", [])),
        entry.get("notable", ""),
        tuple(entry.get("repeats", "").split()),
        tuple(tuple(text.split()) for text in entry.get("context", [])),
    )


def _calls(group: dict[str, Any]) -> Iterable[Event]:
    for call in group["names"]:
        for side in ("enter", "exit"):
            yield Event(
                (f"syscalls:sys_{side}_{call}",),
                f"System call {call}() {side}s; {group['summary']}.",
                "kernel/trace/trace_syscalls.c",
                tuple(_field(text) for text in group[f"{side}_fields"]),
                previous=group.get("previous", ""),
                group=call if "previous" in group else "",
            )


def _field(text: str) -> Field:
    """Read "name unit < alias < alias"."""
    first, *aliases = (part.strip() for part in text.split("<"))
    name, unit = first.split()
    if unit not in _UNIT_WORDS:
        raise ValueError(f"field {name!r} has unit {unit!r}, wanted one of {sorted(_UNIT_WORDS)}")
    return Field(name, unit, tuple(aliases))
