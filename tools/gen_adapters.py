#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make sql/adapters/ from sql/catalog/.

usage: gen_adapters.py [--check]     --check writes nothing and exits 1 when a
                                     file is missing, stale or left over
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

from adapter_text import PREVIOUS, UNIT_WORDS, Event, Field, head, sql_name, tag, unique, view
from perfetto_adapters import perfetto_adapters

ROOT = Path(__file__).resolve().parent.parent
CATALOG = ROOT / "sql" / "catalog" / "events.toml"
ADAPTERS = ROOT / "sql" / "adapters"


def parse_field(text: str) -> Field:
    """Read "name unit < alias < alias"."""
    first, *aliases = (part.strip() for part in text.split("<"))
    name, unit = first.split()
    if unit != "dev" and unit not in UNIT_WORDS:
        raise SystemExit(
            f"{CATALOG}: field {name!r} has unit {unit!r}, wanted one of {sorted(UNIT_WORDS)}"
        )
    return Field(name, unit, tuple(aliases))


def read_events(catalog: dict[str, Any]) -> list[Event]:
    """All events of the catalog, system calls written out."""
    events = [
        Event(
            (entry["name"], *entry.get("aliases", [])),
            entry["summary"],
            f"{entry['source']}; since {entry['since']}",
            tuple(parse_field(f) for f in entry["fields"]),
            not entry.get("profile", True),
            entry.get("previous", ""),
            tuple(entry.get("indexes", [])),
        )
        for entry in catalog["event"]
    ]
    for group in catalog["syscalls"]:
        for call in group["names"]:
            for side in ("enter", "exit"):
                events.append(
                    Event(
                        (f"syscalls:sys_{side}_{call}",),
                        f"System call {call}() {side}s; {group['summary']}.",
                        "kernel/trace/trace_syscalls.c",
                        tuple(parse_field(f) for f in group[f"{side}_fields"]),
                    )
                )
    return events


def event_adapter(event: Event) -> str:
    """The SQLite adapter of one event."""
    source = f"_ev_{event.short}"
    lead = ["seq", "prev_seq"] if event.previous else ["seq"]
    header = [
        *head(f"raw_{event.short}", event.summary, "event; order seq"),
        tag("event", "|".join(event.names)),
        *([tag("extra", "loaded only by ingest --events")] if event.extra else []),
        *([tag("previous", event.previous)] if event.previous else []),
        *(tag("index", columns) for columns in event.indexes),
        tag("from", source),
        tag("fields", ", ".join(unique([*lead, *(n for f in event.fields for n in f.names)]))),
        tag("column", "seq INTEGER order of all records, also where ts is equal"),
        tag("column", "ts INTEGER ns, trace clock"),
        tag("column", "cpu INTEGER number"),
        tag("column", "tid INTEGER the thread that the event fired in"),
    ]
    columns = ["e.seq", "e.ts", "e.cpu", "e.tid"]
    if event.previous:
        columns.append("e.prev_seq")
        before = PREVIOUS[event.previous]
        header.append(tag("column", f"prev_seq INTEGER seq of {before}; NULL = none"))
    for field in event.fields:
        if field.unit == "dev":
            # dev_t inside the kernel: 12 bits of major above 20 bits of minor.
            columns += [
                f"e.{field.name} >> 20 AS dev_major",
                f"e.{field.name} & 1048575 AS dev_minor",
            ]
            header.append(tag("column", "dev_major INTEGER major number of the device"))
            header.append(tag("column", "dev_minor INTEGER minor number of the device"))
            continue
        kind = "TEXT" if field.unit == "text" else "INTEGER"
        header.append(tag("column", f"{field.name} {kind} {UNIT_WORDS[field.unit]}"))
        if field.aliases:
            options = ", ".join(f"e.{sql_name(name)}" for name in field.names)
            columns.append(f"coalesce({options}) AS {sql_name(field.name)}")
        else:
            columns.append(f"e.{sql_name(field.name)}")
    header.append(tag("source", event.source))
    return view(f"raw_{event.short}", header, columns, f"{source} AS e")


def table_adapter(entry: dict[str, Any]) -> str:
    """The SQLite adapter of a table that is not an event."""
    source = f"_{entry['from']}"
    names = [column.split()[0] for column in entry["columns"]]
    header = [
        *head(f"raw_{entry['name']}", entry["summary"], "row"),
        tag("table", entry["from"]),
        tag("from", source),
        tag("fields", ", ".join(names)),
        *(tag("column", column) for column in entry["columns"]),
    ]
    return view(f"raw_{entry['name']}", header, [f"e.{name}" for name in names], f"{source} AS e")


def main() -> int:
    catalog = tomllib.loads(CATALOG.read_text())
    events, tables = read_events(catalog), catalog["table"]
    texts = {f"sqlite/raw_{event.short}.sql": event_adapter(event) for event in events}
    texts |= {f"sqlite/raw_{entry['name']}.sql": table_adapter(entry) for entry in tables}
    made = perfetto_adapters(events, tables)
    texts |= {f"perfetto/{name}": text for name, text in made.items()}
    stale = [
        name
        for name, text in texts.items()
        if not (ADAPTERS / name).is_file() or (ADAPTERS / name).read_text() != text
    ]
    there = (path.relative_to(ADAPTERS).as_posix() for path in ADAPTERS.glob("*/*.sql"))
    extra = [name for name in there if name not in texts]
    if "--check" in sys.argv[1:]:
        for name in stale + extra:
            print(f"sql/adapters/{name} is not current; run tools/gen_adapters.py")
        return 1 if stale or extra else 0
    for name in stale:
        (ADAPTERS / name).parent.mkdir(parents=True, exist_ok=True)
        (ADAPTERS / name).write_text(texts[name])
    for name in extra:
        (ADAPTERS / name).unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
