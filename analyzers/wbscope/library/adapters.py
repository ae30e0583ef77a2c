# SPDX-License-Identifier: Apache-2.0
"""The adapters over a run database, made of the catalog: raw_<event>, the newest kernel's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from wbscope.library.catalog import (
    Catalog,
    Event,
    Field,
    lead_columns,
    op_of,
    raw_view,
    repeat_columns,
)
from wbscope.library.engine import EVENTS
from wbscope.library.params import quote
from wbscope.library.sqlfile import Column, SqlFile, empty_file

__all__ = ["events_select", "sqlite_adapters", "table_columns"]

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
        yield _event(event, catalog)
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


def _event(event: Event, catalog: Catalog) -> SqlFile:
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
