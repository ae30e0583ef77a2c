# SPDX-License-Identifier: Apache-2.0
"""Every record is loaded: many CPUs, odd formats, killed recorders; what meta.json says."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.compression import Compression
from support.formats import EventFormat, build_format
from support.kernel_events import formats
from support.loaded import Ingested, refused
from support.memory import peak_kib
from support.progress import hang_guard
from support.tracedat import Buffer, Trace

# --all loads every record: of formats that do not parse, of no format, and short ones.

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


# Files with many CPUs, formats and pages: memory stays bounded, and nothing is lost.

_MAX_KIB = 256 * 1024


def _many_cpus(cpus: int, events: int, **settings: object) -> Trace:
    trace = Trace(formats("sys_exit_write"), cpus=cpus, **settings)  # type: ignore[arg-type]
    for cpu in range(cpus):
        for number in range(events):
            trace.event(cpu, 1_000 + number * cpus + cpu, cpu, "sys_exit_write", {"ret": number})
    return trace


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_thousand_cpus(compression: Compression, tmp_path: Path) -> None:
    cpus, events = 1100, 80
    source = _many_cpus(cpus, events, compression=compression).write(tmp_path / "trace.dat")
    assert peak_kib(source, tmp_path / "peak.db", "--all") < _MAX_KIB
    run = Ingested(source, tmp_path)
    # ts and seq have the same order, and every event of every CPU is there once
    assert run.rows(
        "SELECT count(*), count(DISTINCT ts), sum(ts - 1000 = seq - 1), sum(cpu = tid)"
        " FROM ev_sys_exit_write"
    ) == [(cpus * events,) * 4]


def test_pieces_larger_than_a_block_are_read_in_parts(tmp_path: Path) -> None:
    """One chunk has all pages of a CPU: more than a block of half a MiB may take at once."""
    cpus, events = 2, 40_000
    trace = _many_cpus(cpus, events, compression="zlib", pages_per_chunk=1000)
    source = trace.write(tmp_path / "trace.dat")
    run = Ingested(source, tmp_path)
    assert run.column("SELECT count(DISTINCT ts) FROM ev_sys_exit_write") == [cpus * events]
    assert run.column("SELECT max(abs(ts - 1000 - seq + 1)) FROM ev_sys_exit_write") == [0]
    assert run.meta("damaged") == 0


def test_many_cpus_and_many_formats(tmp_path: Path) -> None:
    """A count for each format of each CPU would take gigabytes."""
    many = [
        build_format("many", f"e{i}", 1000 + i, ("int x",), '"%d", REC->x') for i in range(8000)
    ]
    trace = Trace(many, cpus=4000, page_bytes=512)
    for cpu in range(trace.cpus):
        trace.event(cpu, 1 + cpu, 1, f"e{cpu}", {"x": cpu})
    source = trace.write(tmp_path / "trace.dat")
    assert peak_kib(source, tmp_path / "run.db", "--events", "many:e7") < _MAX_KIB


def test_formats_that_hang_the_parser_take_bounded_time(tmp_path: Path) -> None:
    """Each format is hard on libtraceevent; the program gives all of them together some seconds."""
    nested = '"%d", ' + "(" * 200_000
    bad = [EventFormat("bad", f"b{i}", 500 + i, _deep(i, nested), ()) for i in range(40)]
    trace = Trace([*formats("sys_exit_write"), *bad])
    trace.event(0, 1, 1, "sys_exit_write", {"ret": 5})
    with hang_guard():
        run = Ingested(trace, tmp_path)
    assert run.column("SELECT count(*) FROM ev_sys_exit_write") == [1]


def _deep(number: int, print_fmt: str) -> str:
    return build_format("bad", f"b{number}", 500 + number, ("int x",), print_fmt).text


# What a recorder leaves that was killed, or whose disk was full.

_PER_CPU = 6
_NAMES = ("", "second")


def _killed_trace(cpus: int = 3, buffers: int = 1, **settings: Any) -> Trace:
    """Six events on two pages of each CPU and instance, all in the same time."""
    trace = Trace(
        formats("sys_exit_write"),
        cpus=cpus,
        buffers=[Buffer(name) for name in _NAMES[:buffers]],
        **settings,
    )
    for buffer in range(buffers):
        for cpu in range(cpus):
            for number in range(_PER_CPU):
                if number == _PER_CPU // 2:
                    trace.page_break(cpu, buffer=buffer)
                ts = 1_000 + 10 * number + cpu
                values = {"ret": 100 * buffer + 10 * cpu + number}
                trace.event(cpu, ts, 7, "sys_exit_write", values, buffer=buffer)
    return trace


def _leftovers(trace: Trace, folder: Path) -> None:
    """The pages of each CPU in files of their own, as trace-cmd record keeps them."""
    for buffer in trace.buffers:
        name = f".{buffer.name}" if buffer.name else ""
        for cpu in range(trace.cpus):
            path = folder / f"trace.dat{name}.cpu{cpu}"
            path.write_bytes(trace.cpu_pages(buffer, cpu))


def _without_options(trace: Trace) -> bytes:
    """A version 7 file whose recorder never wrote its options: 0 where their offset belongs."""
    data = trace.encode()
    compression = f"{trace.compression}\0".encode()
    at = data.index(compression) + len(compression)
    at = data.index(b"\0", at) + 1
    return data[:at] + bytes(8) + data[at + 8 :]


@pytest.mark.parametrize("compression", ["none", "zstd", "zlib"])
@pytest.mark.parametrize("buffers", [1, 2])
def test_files_of_each_cpu_beside_the_trace(compression: Any, buffers: int, tmp_path: Path) -> None:
    trace = _killed_trace(buffers=buffers, compression=compression)
    (tmp_path / "trace.dat").write_bytes(_without_options(trace))
    _leftovers(trace, tmp_path)
    run = Ingested(tmp_path / "trace.dat", tmp_path)
    assert run.meta("damaged") == 1
    assert "trace.dat*.cpu*" in run.meta("damage")
    found = run.rows(
        "SELECT name, cpu, count(*), min(ret) FROM ev_sys_exit_write e"
        " JOIN buffer b ON b.id = e.buffer GROUP BY 1, 2"
    )
    assert found == [
        (name, cpu, _PER_CPU, 100 * index + 10 * cpu)
        for index, name in enumerate(_NAMES[:buffers])
        for cpu in range(3)
    ]


@pytest.mark.parametrize("version", [6, 7])
def test_such_files_replace_records_that_were_cut_off(version: int, tmp_path: Path) -> None:
    trace = _killed_trace(version=version)
    data = trace.encode()
    place = data.rindex(struct.pack("<Q", 1_000 + 2)) + 8  # in the last CPU's first page
    (tmp_path / "trace.dat").write_bytes(data[:place])
    _leftovers(trace, tmp_path)
    run = Ingested(tmp_path / "trace.dat", tmp_path)
    assert run.meta("loaded_count") == 3 * _PER_CPU
    assert run.meta("damaged") == 1


def test_such_files_are_left_alone_beside_a_whole_trace(tmp_path: Path) -> None:
    trace = _killed_trace()
    _leftovers(_killed_trace(cpus=9), tmp_path)
    run = Ingested(trace, tmp_path)
    assert run.meta("loaded_count") == 3 * _PER_CPU
    assert run.meta("damaged") == 0


def test_they_are_no_sidecars(tmp_path: Path) -> None:
    trace = _killed_trace()
    folder = tmp_path / "run"
    folder.mkdir()
    trace.write(folder / "trace.dat")
    _leftovers(trace, folder)
    assert Ingested(folder, tmp_path).rows("SELECT name FROM sidecar_file") == []


def test_a_folder_with_nothing_else_says_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    _leftovers(_killed_trace(), folder)
    error = refused(folder, tmp_path)
    assert error["slug"] == "killed-recorder"
    assert "trace-cmd restore -c" in error["fix"]


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_the_table_of_cpus_is_cut_off(compression: Any, tmp_path: Path) -> None:
    """CPUs of a version 7 file are told apart all the same."""
    trace = _killed_trace(compression=compression)
    data = trace.encode()
    option_bytes = 8 + len("\0mono\0") + 4 + 4 + 3 * 20
    option = data.rindex(trace.pack("HI", 3, option_bytes))  # the BUFFER option
    (tmp_path / "trace.dat").write_bytes(data[: option - 16])
    run = Ingested(tmp_path / "trace.dat", tmp_path)
    found = run.rows("SELECT cpu, count(*), min(ret) FROM ev_sys_exit_write GROUP BY cpu")
    assert found == [(cpu, _PER_CPU, 10 * cpu) for cpu in range(3)]
    assert run.meta("damaged") == 1
    assert ("guesses" in run.meta("damage")) == (compression == "none")


def test_no_option_names_the_records(tmp_path: Path) -> None:
    """A full disk: the options are whole, and none is a BUFFER."""
    trace = _killed_trace(buffers=1)
    trace.buffers = []
    (tmp_path / "trace.dat").write_bytes(trace.encode())
    error = refused(tmp_path / "trace.dat", tmp_path)
    assert error["slug"] == "unfinished-trace"


def test_a_cpu_without_a_place_was_not_written(tmp_path: Path) -> None:
    """Version 6: the table of CPUs is filled in as their data are written."""
    data = _killed_trace(version=6).encode()
    table = data.index(b"flyrecord\0") + 10
    data = data[: table + 16] + bytes(32) + data[table + 48 :]
    (tmp_path / "trace.dat").write_bytes(data)
    run = Ingested(tmp_path / "trace.dat", tmp_path)
    assert run.meta("loaded_count") == _PER_CPU
    assert run.meta("damaged") == 1
    assert "cpu 2 were never written" in run.meta("damage")


@pytest.mark.parametrize("version", [6, 7])
def test_latency_traces_are_refused(version: int, tmp_path: Path) -> None:
    trace = _killed_trace(version=version)
    if version == 6:
        data = trace.encode().replace(b"flyrecord\0", b"latency  \0", 1)
    else:
        trace.buffers = []
        trace.more_options = [(22, trace.pack("Q", 64) + b"\0local\0")]
        data = trace.encode()
    (tmp_path / "trace.dat").write_bytes(data)
    error = refused(tmp_path / "trace.dat", tmp_path)
    assert error["slug"] == "latency-trace"
    assert "trace-cmd report" in error["fix"]


# What wbscope record says of a run in meta.json: rows of table meta, and a warning.

_WHOLE = {
    "schema": "wbscope.record/1",
    "ended": "complete",
    "problems": [],
    "command_exit_code": 0,
    "command_signal": None,
    "machine": {"hz": 250},
}
_KEYS = ("record_ended", "record_problems", "command_exit_code", "command_signal", "hz")


def _run(folder: Path, text: str) -> Path:
    trace = Trace(formats("sys_exit_write"), cpus=1)
    trace.event(0, 1_000, 7, "sys_exit_write", {"ret": 1})
    run = folder / "run"
    run.mkdir()
    trace.write(run / "trace.dat")
    (run / "meta.json").write_text(text)
    return run


def _facts(ingested: Ingested) -> list[Any]:
    return [ingested.meta(key) for key in _KEYS]


def test_facts_of_a_whole_run(tmp_path: Path) -> None:
    assert _facts(Ingested(_run(tmp_path, json.dumps(_WHOLE)), tmp_path)) == [
        "complete", None, 0, None, 250,
    ]  # fmt: skip


def test_facts_of_a_run_cut_short(tmp_path: Path) -> None:
    cut = {
        "ended": "recorder killed",
        "problems": ["cpu 0: No space left", "b"],
        "command_exit_code": None,
        "command_signal": 9,
    }
    assert _facts(Ingested(_run(tmp_path, json.dumps(_WHOLE | cut)), tmp_path)) == [
        "recorder killed", "cpu 0: No space left; b", None, 9, 250,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        json.dumps(_WHOLE | {"schema": "another/1"}),
        json.dumps(
            {
                "schema": "wbscope.record/1",
                "ended": 5,
                "problems": "none",
                "command_exit_code": "0",
                "command_signal": [9],
                "machine": [250],
            }
        ),
    ],
)
def test_what_is_no_such_fact_is_left_out(tmp_path: Path, text: str) -> None:
    assert _facts(Ingested(_run(tmp_path, text), tmp_path)) == [None] * len(_KEYS)


def test_no_json_is_told(tmp_path: Path) -> None:
    ingested = Ingested(_run(tmp_path, '{"ended": '), tmp_path)
    assert _facts(ingested) == [None] * len(_KEYS)
    assert ingested.rows("SELECT status FROM sidecar_file WHERE name = 'meta.json'") == [
        ("partial",)
    ]


@pytest.mark.parametrize(
    ("facts", "slugs"),
    [
        ({}, set()),
        ({"ended": "wbscope record killed"}, {"recording-cut-short"}),
        ({"ended": "interrupted", "problems": ["x"]}, {"recording-cut-short"}),
        ({"problems": ["vm.x is not as it was"]}, {"recording-problems"}),
        ({"command_exit_code": 3}, {"command-failed"}),
        ({"command_exit_code": None, "command_signal": 11}, {"command-failed"}),
    ],
)
def test_answers_have_the_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], slugs: set[str]
) -> None:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    with wbscope.open(str(_run(tmp_path, json.dumps(_WHOLE | facts)))) as run:
        found = {notice.slug: notice.message for notice in run.query("event_counts").warnings}
    told = {"recording-cut-short", "recording-problems", "command-failed"}
    assert found.keys() & told == slugs
    for problem in facts.get("problems", []):
        assert any(problem in message for message in found.values())
