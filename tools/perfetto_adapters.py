# SPDX-License-Identifier: Apache-2.0
"""The adapters over Perfetto's trace processor; tools/gen_adapters.py writes them.

An event is a filter of one relation of all records, whose fields are arguments of Perfetto's own.
Tables that are not events are the SELECTs of sql/catalog/perfetto.toml. Words for codes come from
the captured event formats: a Perfetto trace has none.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from adapter_text import PREVIOUS, UNIT_WORDS, Event, Field, head, sql_name, tag, unique, view
from wbscope.perfetto.references import Label, References, load_references

__all__ = ["perfetto_adapters"]

CATALOG = Path(__file__).resolve().parent.parent / "sql" / "catalog" / "perfetto.toml"
RECORDS = "raw_ftrace_event"
SYSTEMS = "raw_event_system"

LABELS = """\
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


def perfetto_adapters(events: Sequence[Event], tables: Sequence[dict[str, Any]]) -> dict[str, str]:
    """File name: text."""
    catalog = tomllib.loads(CATALOG.read_text())
    made = {f"raw_{event.short}.sql": _event(event) for event in events}
    made |= {f"raw_{event.short}_link.sql": _links(event) for event in events if event.previous}
    made[f"{SYSTEMS}.sql"] = _systems(events)
    for entry in catalog["base"]:
        made[f"raw_{entry['name']}.sql"] = _relation(entry, entry)
    for table in tables:
        made[f"raw_{table['name']}.sql"] = _table(table, catalog, events)
    return made


def _table(table: dict[str, Any], catalog: dict[str, Any], events: Sequence[Event]) -> str:
    name = table["name"]
    if name == "enum_label":
        return _relation(table, {"select": _labels(events), "needs": [], "materialize": True})
    if name in catalog["absent"]:
        nulls = ",\n  ".join(
            f"CAST(NULL AS {column.split()[1]}) AS {column.split()[0]}"
            for column in table["columns"]
        )
        select = f"SELECT\n  {nulls}\nWHERE 0"
        summary = f"{table['summary']} A Perfetto trace has none."
        return _relation({**table, "summary": summary}, {"select": select, "needs": []})
    return _relation(table, catalog["from"][name])


def _relation(entry: dict[str, Any], source: dict[str, Any]) -> str:
    """A view of a SELECT that the catalog spells out."""
    name = f"raw_{entry['name']}"
    header = [
        *head(name, entry["summary"], "row"),
        *([tag("table", entry["from"])] if "from" in entry else []),
        *needs(source["needs"]),
        *(tag("column", column) for column in entry["columns"]),
        *(tag("index", index) for index in entry.get("indexes", [])),
        *(["-- @materialize"] if source.get("materialize") else []),
    ]
    return "\n".join(header) + f"\nCREATE VIEW {name} AS\n{source['select'].strip()};\n"


def needs(names: Iterable[str]) -> list[str]:
    text = ", ".join(names)
    return [tag("needs", text)] if text else []


def _systems(events: Sequence[Event]) -> str:
    """Perfetto keeps the names of events, not their systems."""
    pairs = sorted({tuple(reversed(name.split(":"))) for event in events for name in event.names})
    rows = ",\n".join(f"    ('{name}', '{system}')" for name, system in pairs)
    entry = {
        "name": SYSTEMS.removeprefix("raw_"),
        "summary": "The system of each event that wbscope knows.",
        "columns": ["name TEXT event", "system TEXT its system"],
    }
    select = (
        f"WITH\n  known(name, system) AS (\n    VALUES\n{rows}\n  )\n"
        "SELECT k.name, k.system\nFROM known AS k"
    )
    return _relation(entry, {"select": select, "needs": [], "materialize": True})


def _event(event: Event) -> str:
    """The records of one event, fields under the newest kernel's names."""
    name = f"raw_{event.short}"
    header = [
        *head(name, event.summary, "event; order seq"),
        tag("event", "|".join(event.names)),
        tag("needs", f"{name}_link" if event.previous else RECORDS),
        tag("column", "seq INTEGER order of all records, also where ts is equal"),
        tag("column", "ts INTEGER ns, trace clock"),
        tag("column", "cpu INTEGER number"),
        tag("column", "tid INTEGER the thread that the event fired in"),
    ]
    columns = ["e.seq", "e.ts", "e.cpu", "e.tid"]
    if event.previous:
        columns.append("e.prev_seq")
        header.append(tag("column", _previous(event)))
    for field in event.fields:
        if field.unit == "dev":
            header.append(tag("column", "dev_major INTEGER major number of the device"))
            header.append(tag("column", "dev_minor INTEGER minor number of the device"))
            columns += _device(field)
            continue
        kind = "TEXT" if field.unit == "text" else "INTEGER"
        header.append(tag("column", f"{field.name} {kind} {UNIT_WORDS[field.unit]}"))
        columns.append(_named(_value(field), sql_name(field.name)))
    header.append(tag("source", event.source))
    if event.previous:
        return view(name, header, columns, f"{name}_link AS e")
    return view(name, header, columns, f"{RECORDS} AS e\nWHERE {_is_named(event)}")


def _links(event: Event) -> str:
    """The records of an event that are looked up one by one: a table in the order of seq.

    The fields stay out of it: no table of Perfetto has a column called limit.
    """
    within = "PARTITION BY e.tid " if event.previous == "tid" else ""
    select = (
        "SELECT\n  e.seq,\n  e.ts,\n  e.cpu,\n  e.tid,\n"
        f"  lag(e.seq) OVER ({within}ORDER BY e.seq) AS prev_seq,\n  e.arg_set_id\n"
        f"FROM {RECORDS} AS e\nWHERE {_is_named(event)}\nORDER BY e.seq"
    )
    entry: dict[str, Any] = {
        "name": f"{event.short}_link",
        "summary": f"The records of {event.short}, each with the one before it.",
        "columns": [
            "seq INTEGER order of all records, also where ts is equal",
            "ts INTEGER ns, trace clock",
            "cpu INTEGER number",
            "tid INTEGER the thread that the event fired in",
            _previous(event),
            "arg_set_id INTEGER fields of the record, for EXTRACT_ARG",
        ],
    }
    columns = {column.split()[0] for column in entry["columns"]}
    # Of an index over fields, what comes before them.
    heads = (list(takewhile(columns.__contains__, index.split())) for index in event.indexes)
    entry["indexes"] = [" ".join(names) for names in heads if names]
    return _relation(entry, {"select": select, "needs": [RECORDS], "materialize": True})


def _previous(event: Event) -> str:
    return f"prev_seq INTEGER seq of {PREVIOUS[event.previous]}; NULL = none"


def _is_named(event: Event) -> str:
    names = unique([name.partition(":")[2] for name in event.names])
    quoted = ", ".join(f"'{name}'" for name in names)
    return f"e.name = {quoted}" if len(names) == 1 else f"e.name IN ({quoted})"


def _argument(name: str) -> str:
    return f"EXTRACT_ARG(e.arg_set_id, '{name}')"


def _value(field: Field) -> str:
    """The field under the first of its names that the record has."""
    names = unique(list(field.names))
    if len(names) == 1:
        return _argument(names[0])
    options = ",\n    ".join(map(_argument, names))
    return f"coalesce(\n    {options}\n  )"


def _named(value: str, name: str) -> str:
    """With the name on the same line where it fits."""
    last = value.rpartition("\n")[2]
    return f"{value} AS {name}" if len(last) + len(name) + 7 <= 80 else f"{value}\n    AS {name}"


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
    rows = []
    for event in events:
        coded = {name for field in event.fields if field.unit == "code" for name in field.names}
        for name in event.names:
            rows += _label_rows(name, coded, references)
    return LABELS.format(rows=",\n".join(rows))


def _label_rows(event: str, coded: set[str], references: References) -> list[str]:
    """A row for each stretch of kernels whose formats agree on a word."""
    system, _, name = event.partition(":")
    captured = sorted(references.labels_by_version(system, name).items())
    if not captured:
        return []
    labels = {label for _, having in captured for label in having}
    rows = []
    for label in sorted(labels, key=lambda item: (item.field, item.value, item.label)):
        if label.field in coded and not label.is_flag:
            rows += [_label_row(event, label, *ends) for ends in _stretches(captured, label)]
    return rows


def _label_row(event: str, label: Label, since: int | None, until: int | None) -> str:
    word = label.label.replace("'", "''")
    ends = ", ".join("NULL" if end is None else str(end) for end in (since, until))
    return f"      ('{event}', '{label.field}', {label.value},\n        '{word}', {ends})"


def _stretches(
    captured: Sequence[tuple[tuple[int, int], frozenset[Label]]], label: Label
) -> list[tuple[int | None, int | None]]:
    """First and last version of each run of captured kernels that have the label."""
    found: list[tuple[int | None, int | None]] = []
    has = [label in having for _, having in captured]
    numbers = [major * 1000 + minor for (major, minor), _ in captured]
    last = len(has) - 1
    for i, here in enumerate(has):
        if here and (i == 0 or not has[i - 1]):
            end = next(j for j in range(i, len(has)) if j == last or not has[j + 1])
            found.append((None if i == 0 else numbers[i], None if end == last else numbers[end]))
    return found
