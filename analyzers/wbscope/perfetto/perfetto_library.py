# SPDX-License-Identifier: Apache-2.0
"""The adapters over Perfetto's trace processor, made of the catalog.

An event is a filter of one relation of all records, whose fields are arguments of Perfetto's own.
Tables that are not events are the SELECTs of sql/catalog/perfetto.toml. Words for codes come from
the captured event formats: a Perfetto trace has none.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from textwrap import indent
from typing import Any

from wbscope.base.result import Column
from wbscope.ingest.program import find_formats_dir
from wbscope.library.catalog import (
    Catalog,
    Event,
    Field,
    lead_columns,
    op_of,
    raw_view,
    repeat_columns,
    table_columns,
    told_before,
)
from wbscope.library.library import Library, load_library
from wbscope.library.sqlfile import SqlFile
from wbscope.perfetto.stream import Label, References, load_references

# A query is a view of this and its name there.
QUERY_PREFIX = "wbscope_"
_RECORDS = "raw_ftrace_event"
_SYSTEMS = "event_system"

_LABELS = """\
WITH
  kernel AS (
    SELECT
      CAST(m.str_value AS INTEGER) * 1000
        + CAST(substr(m.str_value, instr(m.str_value, '.') + 1) AS INTEGER)
        AS version
    FROM metadata AS m
    WHERE m.name = 'system_release' AND m.str_value GLOB '[0-9]*.[0-9]*'
  ),
  known(event, field, value, label, since, until) AS (
    VALUES
{rows}
  )
SELECT n.event, n.field, n.value, n.label
FROM known AS n
-- NULL: at the end that no captured format is beyond.
WHERE (n.since IS NULL OR (SELECT k.version FROM kernel AS k) >= n.since)
  AND (n.until IS NULL OR (SELECT k.version FROM kernel AS k) <= n.until)"""


def perfetto_library(folder: Path | None = None) -> Library:
    """The library over trace processor.

    Raises: SetupError.
    """
    made_with = (Path(__file__).parent, find_formats_dir())
    return load_library(folder, "perfetto", _adapters, made_with, QUERY_PREFIX)


def _adapters(catalog: Catalog) -> Iterator[SqlFile]:
    path = catalog.path.with_name("perfetto.toml")
    sources = tomllib.loads(path.read_text(encoding="utf-8"))
    for event in catalog.events:
        yield _event(event, catalog)
        if event.previous:
            yield _links(event, catalog.events, path)
    yield _systems(catalog.events, path)
    for entry in sources["base"]:
        yield _relation(entry, entry, path)
    for table in catalog.tables:
        yield _table(table, sources, catalog.events, path)


def _table(
    table: dict[str, Any], sources: dict[str, Any], events: Sequence[Event], path: Path
) -> SqlFile:
    name = table["name"]
    if name == "enum_label":
        made = {"select": _labels(events), "needs": [], "materialize": True}
        return _relation(table, made, path)
    if name in sources["absent"]:
        nulls = ",\n  ".join(f"CAST(NULL AS {c.type}) AS {c.name}" for c in table_columns(table))
        summary = f"{table['summary']} A Perfetto trace has none."
        none = {"select": f"SELECT\n  {nulls}\nWHERE 0", "needs": []}
        return _relation({**table, "summary": summary}, none, path)
    return _relation(table, sources["from"][name], path)


def _relation(entry: dict[str, Any], source: dict[str, Any], path: Path) -> SqlFile:
    """A view of a SELECT that the catalog spells out."""
    return raw_view(
        entry["name"],
        source["select"].strip(),
        table_columns(entry),
        path=path,
        summary=entry["summary"],
        grain="row",
        source_table=entry.get("from", ""),
        needs=tuple(source["needs"]),
        indexes=tuple(tuple(columns.split()) for columns in entry.get("indexes", [])),
        materialize=bool(source.get("materialize")),
    )


def _systems(events: Sequence[Event], path: Path) -> SqlFile:
    """Perfetto keeps the names of events, not their systems."""
    pairs = sorted({tuple(reversed(name.split(":"))) for event in events for name in event.names})
    rows = ",\n".join(f"    ('{name}', '{system}')" for name, system in pairs)
    entry = {
        "name": _SYSTEMS,
        "summary": "The system of each event that wbscope knows.",
        "columns": ["name TEXT event", "system TEXT its system"],
    }
    select = (
        f"WITH\n  known(name, system) AS (\n    VALUES\n{rows}\n  )\n"
        "SELECT k.name, k.system\nFROM known AS k"
    )
    return _relation(entry, {"select": select, "needs": [], "materialize": True}, path)


def _event(event: Event, catalog: Catalog) -> SqlFile:
    """The records of one event, fields under the newest kernel's names."""
    lead = lead_columns(event)
    selected = [f"e.{column.name}" for column in lead]
    repeats = repeat_columns(event)
    selected += [f"CAST(NULL AS {column.type}) AS {column.name}" for column in repeats]
    for field in event.fields:
        selected += _device(field) if field.unit == "dev" else [_value(field)]
        if field.unit == "rwbs":
            op = op_of(_argument(field.name), _argument("nr_sector"))
            selected.append(f"{op} AS op")
    body = "SELECT\n  " + ",\n  ".join(selected)
    link = f"raw_{event.short}_link"
    body += f"\nFROM {link} AS e" if event.previous else f"\nFROM {_RECORDS} AS e\nWHERE "
    return raw_view(
        event.short,
        body if event.previous else body + _is_named(event),
        [*lead, *repeats, *(column for field in event.fields for column in field.columns)],
        path=catalog.path,
        summary=event.summary,
        grain="event; order seq",
        source=event.source,
        source_events=event.names,
        needs=(link if event.previous else _RECORDS,),
    )


def _links(event: Event, events: Sequence[Event], path: Path) -> SqlFile:
    """The records of an event that are looked up one by one: a table in the order of seq.

    The fields stay out of it: no table of Perfetto has a column called limit.
    """
    within = "PARTITION BY e.tid " if event.previous == "tid" else ""
    group = [other for other in events if other.group == event.group] if event.group else [event]
    lead = "SELECT\n  e.seq,\n  e.ts,\n  e.cpu,\n  e.tid,\n"
    link = f"  lag(e.seq) OVER ({within}ORDER BY e.seq) AS prev_seq,\n"
    found = f"FROM {_RECORDS} AS e\nWHERE {_is_named(*group)}"
    if event.group:
        linked = f"{lead}{link}  e.arg_set_id,\n  e.name\n{found}"
        select = f"{lead}  e.prev_seq,\n  e.arg_set_id\nFROM (\n{indent(linked, '  ')}\n) AS e\n"
        select += f"WHERE {_is_named(event)}\nORDER BY e.seq"
    else:
        select = f"{lead}{link}  e.arg_set_id\n{found}\nORDER BY e.seq"
    columns = [
        *lead_columns(event),
        Column("arg_set_id", "INTEGER", "fields of the record, for EXTRACT_ARG"),
    ]
    names = {column.name for column in columns}
    # Of an index over fields, what comes before them.
    heads = (tuple(takewhile(names.__contains__, index.split())) for index in event.indexes)
    return raw_view(
        f"{event.short}_link",
        select,
        columns,
        path=path,
        summary=f"The records of {event.short}, each with {told_before(event)}.",
        grain="row",
        needs=(_RECORDS,),
        indexes=tuple(head for head in heads if head),
        materialize=True,
    )


def _is_named(*events: Event) -> str:
    names = dict.fromkeys(name.partition(":")[2] for event in events for name in event.names)
    quoted = ", ".join(f"'{name}'" for name in names)
    return f"e.name = {quoted}" if len(names) == 1 else f"e.name IN ({quoted})"


def _argument(name: str) -> str:
    return f"EXTRACT_ARG(e.arg_set_id, '{name}')"


def _value(field: Field) -> str:
    """The field under the first of its names that the record has."""
    if len(field.names) == 1:
        return f"{_argument(field.name)} AS {field.sql_name}"
    options = ",\n    ".join(map(_argument, field.names))
    return f"coalesce(\n    {options}\n  ) AS {field.sql_name}"


def _device(field: Field) -> list[str]:
    """makedev() of user space, which Perfetto's recorder writes: the low 12 bits of the major
    number from bit 8 on, the low byte of the minor below them, the rest of it from bit 20 on."""
    value = _argument(field.name)
    return [
        f"(({value} >> 8) & 4095)\n    | (({value} >> 44) << 12) AS dev_major",
        f"({value} & 255)\n    | ((({value} >> 20) & 4095) << 8) AS dev_minor",
    ]


def _labels(events: Sequence[Event]) -> str:
    references = load_references("")
    rows: list[str] = []
    for event in events:
        coded = {name for field in event.fields if field.unit == "code" for name in field.names}
        for name in event.names if coded else ():
            rows += _label_rows(name, coded, references)
    return _LABELS.format(rows=",\n".join(rows))


def _label_rows(event: str, coded: set[str], references: References) -> Iterable[str]:
    """A row for each stretch of kernels whose formats agree on a word."""
    system, _, name = event.partition(":")
    captured = sorted(references.labels_by_version(system, name).items())
    labels = {label for _, having in captured for label in having}
    for label in sorted(labels, key=lambda item: (item.field, item.value, item.label)):
        if label.field in coded and not label.is_flag:
            yield from (_label_row(event, label, *ends) for ends in _stretches(captured, label))


def _label_row(event: str, label: Label, since: int | None, until: int | None) -> str:
    word = label.label.replace("'", "''")
    ends = ", ".join("NULL" if end is None else str(end) for end in (since, until))
    return f"      ('{event}', '{label.field}', {label.value},\n        '{word}', {ends})"


def _stretches(
    captured: Sequence[tuple[tuple[int, int], frozenset[Label]]], label: Label
) -> Iterator[tuple[int | None, int | None]]:
    """First and last version of each run of captured kernels that have the label."""
    has = [label in having for _, having in captured]
    numbers = [major * 1000 + minor for (major, minor), _ in captured]
    last = len(has) - 1
    for i, here in enumerate(has):
        if here and (i == 0 or not has[i - 1]):
            end = next(j for j in range(i, len(has)) if j == last or not has[j + 1])
            yield None if i == 0 else numbers[i], None if end == last else numbers[end]
