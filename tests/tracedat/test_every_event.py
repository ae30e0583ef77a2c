# SPDX-License-Identifier: Apache-2.0
"""--all loads every record: of formats that do not parse, of no format, and short ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.formats import EventFormat, build_format
from support.ingested import Ingested
from support.kernel_events import formats
from support.tracedat import Trace

_KINDS: list[dict[str, Any]] = [
    {},
    {"compression": "zstd"},
    {"version": 6},
    {"version": 6, "endian": "big", "long_bytes": 4},
    {"endian": "big"},
    {"page_bytes": 65536, "compression": "zlib"},
]
_BROKEN = EventFormat("test", "broken", 900, "name: broken\nID: 900\nformat:\n\tfield junk\n", ())
_SHORT_FIELDS = ("int first", "char comm[8]", "int last", "__data_loc char[] path")


def _record(trace: Trace, ident: int, body: bytes, tid: int = 7, flags: int = 3) -> bytes:
    return trace.pack("HBBi", ident, flags, 1, tid) + body


def _trace(settings: dict[str, Any]) -> Trace:
    long_bytes = settings.get("long_bytes", 8)
    short = build_format("test", "short", 901, _SHORT_FIELDS, '"%d", REC->first')
    usual = formats("sys_exit_write", long_bytes=long_bytes)
    trace = Trace([*usual, _BROKEN, short], cpus=2, cmdlines={7: "dd"}, **settings)
    trace.event(0, 1000, 7, "sys_exit_write", {"ret": 1})
    trace.raw(0, 1001, _record(trace, 900, b"payload!"))
    trace.raw(0, 1002, _record(trace, 999, b"whatever"))
    trace.raw(
        1, 1003, _record(trace, 901, trace.pack("i", 5) + b"dd\0\0\0\0\0\0" + trace.pack("i", 6))
    )
    trace.raw(1, 1004, _record(trace, 901, trace.pack("i", 5) + b"wri\0"))
    trace.raw(1, 1005, _record(trace, 901, b""))
    trace.raw(1, 1006, trace.pack("HBB", 901, 0, 0))  # too short to tell its thread
    return trace


@pytest.mark.parametrize("settings", _KINDS, ids=str)
def test_every_record_is_in_a_table(settings: dict[str, Any], tmp_path: Path) -> None:
    run = Ingested(_trace(settings), tmp_path)
    counts = run.rows("SELECT event, id, count, loaded_count, table_name FROM event_counts")
    assert sorted(counts) == [
        ("syscalls:sys_exit_write", counts[0][1], 1, 1, "ev_sys_exit_write"),
        ("test:broken", 900, 1, 1, "ev_broken"),
        ("test:short", 901, 3, 3, "ev_short"),
        ("unknown:unknown", None, 2, 2, "ev_unknown"),
    ]
    for _, _, _, loaded, table in counts:
        assert run.column(f"SELECT count(*) FROM {table}") == [loaded]
    assert run.meta("events_count") == run.meta("loaded_count") == 7
    assert (run.counter("unknown_events"), run.counter("short_records")) == (2, 3 + 1)
    assert run.counter("formats_not_parsed") == 1
    assert run.meta("damaged") == 0


@pytest.mark.parametrize("settings", _KINDS, ids=str)
def test_what_such_records_hold(settings: dict[str, Any], tmp_path: Path) -> None:
    run = Ingested(_trace(settings), tmp_path)
    columns = "ts, cpu, tid, common_flags, common_preempt_count, payload"
    assert run.rows(f"SELECT {columns} FROM ev_broken") == [(1001, 0, 7, 3, 1, b"payload!")]
    assert run.rows(f"SELECT event_id, {columns} FROM ev_unknown ORDER BY seq") == [
        (999, 1002, 0, 7, 3, 1, b"whatever"),
        (901, 1006, 1, None, 0, 0, None),
    ]
    assert run.rows("SELECT first, comm, last, path FROM ev_short ORDER BY seq") == [
        (5, "dd", 6, None),
        (5, "wri", None, None),
        (None, None, None, None),
    ]


def test_unknown_records_are_counted_when_they_are_not_loaded(tmp_path: Path) -> None:
    run = Ingested(_trace({}), tmp_path, "--events", "test:short")
    unknown = run.rows("SELECT count, loaded_count, table_name FROM event_counts WHERE id IS NULL")
    assert unknown == [(2, 0, None)]
    assert run.rows("SELECT name FROM sqlite_schema WHERE name = 'ev_unknown'") == []
    assert run.meta("loaded_count") == 3


def test_an_event_called_unknown_keeps_its_table(tmp_path: Path) -> None:
    own = build_format("mine", "unknown", 902, ("int x",), '"%d", REC->x')
    trace = Trace([own])
    trace.event(0, 10, 1, "unknown", {"x": 4})
    trace.raw(0, 11, _record(trace, 5000, b""))
    run = Ingested(trace, tmp_path)
    assert run.column("SELECT x FROM ev_unknown") == [4]
    assert run.column("SELECT event_id FROM ev_unknown__unknown") == [5000]


def test_memory_does_not_grow_with_the_number_of_formats(tmp_path: Path) -> None:
    """Statements are prepared for events that occur, not for all formats."""
    from support.memory import peak_kib

    fields = tuple(f"int field_{i}" for i in range(20))
    many = [
        build_format("many", f"e{i}", 1000 + i, fields, '"%d", REC->field_0') for i in range(2000)
    ]
    trace = Trace(many)
    trace.event(0, 1, 1, "e7", {"field_3": 9})
    peak = peak_kib(trace.write(tmp_path / "trace.dat"), tmp_path / "run.db", "--all")
    assert peak < 90 * 1024
