# SPDX-License-Identifier: Apache-2.0
"""The catalog of events and profiles, and the adapters that are made of it."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import Any

from wbscope.base.errors import SetupError
from wbscope.base.result import Column
from wbscope.library.engine import EVENTS
from wbscope.library.params import quote
from wbscope.library.sqlfile import SqlFile, broken_library, empty_file

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


_EVENT_COLUMNS = (
    Column("ts", "INTEGER", "ns, trace clock"),
    Column("cpu", "INTEGER", "number"),
    Column("tid", "INTEGER", "the thread that the event fired in"),
    Column("name", "TEXT", "subsystem:event"),
    Column("table", "TEXT", "the table that has its fields"),
)
_MOST_TERMS = 400  # SQLite takes 500


def sqlite_adapters(catalog: Catalog) -> Iterator[SqlFile]:
    """A view for each event and each table that is no event, and one of the events of all."""
    for event in catalog.events:
        yield _adapter_event(event, catalog)
    for entry in catalog.tables:
        yield _table(entry, catalog)
    yield empty_file(
        kind="raw",
        name=EVENTS,
        path=catalog.path,
        summary="The events of all tables.",
        grain="event",
        select=events_select([]),
        columns=_EVENT_COLUMNS,
    )


def events_select(tables: Iterable[tuple[str, str, str]]) -> str:
    """The view of all events: of each its name, its table, and what reads that."""
    selects = [
        f'SELECT ts, cpu, tid, {quote(name)} AS name, {quote(table)} AS "table" {source}'
        for name, table, source in tables
    ]
    while len(selects) > _MOST_TERMS:
        parts = [selects[at : at + _MOST_TERMS] for at in range(0, len(selects), _MOST_TERMS)]
        selects = [f"SELECT * FROM ({' UNION ALL '.join(part)})" for part in parts]
    nothing = ", ".join(f'NULL AS "{column.name}"' for column in _EVENT_COLUMNS)
    return "\nUNION ALL ".join(selects) or f"SELECT {nothing} WHERE 0"


def table_columns(entry: dict[str, Any]) -> tuple[Column, ...]:
    """Of "name TYPE description"."""
    return tuple(Column(*text.split(maxsplit=2)) for text in entry["columns"])


def _adapter_event(event: Event, catalog: Catalog) -> SqlFile:
    source = f"_ev_{event.short}"
    columns = [*lead_columns(event), *repeat_columns(event)]
    selected = [f"e.{column.name}" for column in columns]
    selected += [_value(field) for field in event.fields]
    names = [name for field in event.fields for name in field.names]
    # The ingester makes these columns; the others of the lead are those of every table.
    made = [column.name for column in columns if column.name in ("prev_seq", "repeats_count")]
    return raw_view(
        event.short,
        "SELECT\n  " + ",\n  ".join(selected) + f"\nFROM {source} AS e",
        [*columns, *(column for field in event.fields for column in field.columns)],
        path=catalog.path,
        summary=event.summary,
        grain="event; order seq",
        source=event.source,
        source_events=event.names,
        source_view=source,
        fields=tuple(dict.fromkeys(["seq", *made, *names])),
        extra=event.extra,
        previous=event.previous,
        group=event.group,
        indexes=tuple(tuple(columns.split()) for columns in event.indexes),
        notable=event.notable,
        repeats=_kernel_names(event, event.repeats),
        context=tuple(
            (name, _kernel_names(other, fields))
            for named, *fields in event.context
            for other in catalog.events
            if other.names[0] == named
            for name in other.names
        ),
    )


def _kernel_names(event: Event, fields: Sequence[str]) -> tuple[str, ...]:
    """All names that these fields have had."""
    return tuple(name for f in event.fields if f.name in fields for name in f.names)


def _value(field: Field) -> str:
    if field.unit == "dev":
        # dev_t inside the kernel: 12 bits of major above 20 bits of minor.
        return f"e.{field.name} >> 20 AS dev_major,\n  e.{field.name} & 1048575 AS dev_minor"
    if field.unit == "rwbs":
        value = f"e.{field.name}"
        return f"{value},\n  {op_of(value, 'e.nr_sector')} AS op"
    if len(field.names) == 1:
        return f"e.{field.sql_name}"
    options = ", ".join(f"e.{Field(name, field.unit, ()).sql_name}" for name in field.names)
    return f"coalesce({options}) AS {field.sql_name}"


def _table(entry: dict[str, Any], catalog: Catalog) -> SqlFile:
    source = f"_{entry['from']}"
    columns = table_columns(entry)
    names = tuple(column.name for column in columns)
    selected = ",\n  ".join(f"e.{name}" for name in names)
    return raw_view(
        entry["name"],
        f"SELECT\n  {selected}\nFROM {source} AS e",
        columns,
        path=catalog.path,
        summary=entry["summary"],
        grain="row",
        source_table=entry["from"],
        source_view=source,
        fields=names,
    )


# In meta.json, of probes that somebody did not want: the kernel may take them.
NOT_ASKED_FOR = "not asked for"
# Shorter than this, what two names have in common says nothing.
_COMMON = 6


@dataclass(frozen=True)
class Profile:
    """Its events with those of the profiles that it has; `names` has the older ones and probes too.

    `options` are for `trace-cmd record`; those of a file system are in `file_systems`.
    `probes` are made by `wbscope record` where the kernel lets it.
    """

    name: str
    summary: str
    events: tuple[tuple[str, ...], ...]
    options: tuple[str, ...]
    file_systems: tuple[str, ...]
    probes: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        return frozenset([*self.probes, *(name for names in self.events for name in names)])

    @property
    def has_blocked(self) -> bool:
        """Whether it wants the synthetic event of blocked tasks: not where all switches tell it."""
        return "wbscope:blocked" in self.probes and ("sched:sched_switch",) not in self.events


def read_profiles(path: Path) -> tuple[Profile, ...]:
    """The profiles of a catalog, the smallest first; none when there is no such file."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))["profile"]
        return _cumulated(entries)
    except FileNotFoundError:
        return ()
    except (OSError, KeyError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SetupError(
            "broken-sql-library",
            str(path),
            f"is no list of profiles: {error!r}",
            fix="make setup    # or point WBSCOPE_SQL_DIR at a whole sql/ folder",
        ) from error


def profile_of(groups: Iterable[tuple[str, ...]], profiles: Sequence[Profile]) -> Profile | None:
    """The smallest profile that has one event of each group."""
    wanted = [set(group) for group in groups]
    for profile in profiles:
        if all(group & profile.names for group in wanted):
            return profile
    return None


def event_options(groups: Iterable[tuple[str, ...]], profiles: Sequence[Profile]) -> str:
    """Options of `trace-cmd record` for one event of each group.

    An event that was renamed is asked for by what its names have in common: trace-cmd
    refuses a name that its kernel does not have.
    """
    known = {name: names for profile in profiles for names in profile.events for name in names}
    options: dict[str, None] = {}
    for group in groups:
        chosen = next((event for event in group if event in known), group[0])
        options[f"-e {shlex.quote(_pattern(known.get(chosen, (chosen,))))}"] = None
    return " ".join(options)


def pattern_options(profile: Profile, events: Iterable[str]) -> str:
    """Those options of a profile that record one of the events, and what goes with it.

    An event that starts something is of no use without the one that ends it: the
    patterns of a profile have both.
    """
    wanted = list(events)
    found = _matching((profile.options,), wanted)
    if not found:
        # Of one file system only: trace-cmd refuses events of those that are not there.
        named = (text.partition(": ")[2] for text in profile.file_systems)
        found = _matching((_split(text) for text in named), wanted)
    return " ".join(found)


def _matching(lists: Iterable[Sequence[str]], events: Sequence[str]) -> list[str]:
    """The options of the first list that has one for any of the events."""
    for options in lists:
        found = []
        for option in options:
            pattern = shlex.split(option)[-1]
            whole = pattern if ":" in pattern else f"{pattern}:*"
            if any(fnmatchcase(event, whole) for event in events):
                found.append(option)
        if found:
            return found
    return []


def _split(text: str) -> list[str]:
    """Options one by one."""
    words = shlex.split(text)
    return [shlex.join(pair) for pair in zip(words[::2], words[1::2], strict=True)]


def _pattern(names: tuple[str, ...]) -> str:
    system, _, first = names[0].partition(":")
    shorts = [name.partition(":")[2] for name in names]
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*shorts, strict=False))
    common = "".join(letters[0] for letters in same)
    if len(names) == 1 or len(common) < _COMMON:
        return names[0]
    return f"{system}:{common}*" if common != first else names[0]


def _cumulated(entries: list[dict[str, Any]]) -> tuple[Profile, ...]:
    profiles: dict[str, Profile] = {}
    for entry in entries:
        below = [profiles[name] for name in entry.get("has", ())]
        own = [tuple(names.split("|")) for names in entry["events"]]
        profiles[entry["name"]] = Profile(
            name=entry["name"],
            summary=entry["summary"],
            events=_joined((one.events for one in below), own),
            options=_joined((one.options for one in below), entry["options"]),
            file_systems=_joined(
                (one.file_systems for one in below), entry.get("file_systems", ())
            ),
            probes=_joined((one.probes for one in below), entry.get("probes", ())),
        )
    return tuple(profiles.values())


def _joined(lists: Iterable[Sequence[Any]], own: Iterable[Any]) -> tuple[Any, ...]:
    """Each once, in the order of the first."""
    return tuple(dict.fromkeys([*(one for items in lists for one in items), *own]))
