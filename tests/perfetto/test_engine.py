# SPDX-License-Identifier: Apache-2.0
"""The engine harness itself: a small trace made here gives the rows that were put into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.perfetto_engine import PerfettoEngine, TraceProcessorError
from support.timeline import CounterSample, Slice, engine_counters, engine_slices


def _packet(trace: Any, ts: int = 100) -> Any:
    return trace.packet.add(timestamp=ts, trusted_packet_sequence_id=23, timestamp_clock_id=6)


def _small_trace(folder: Path) -> Path:
    """A group with a slice track, holding one slice and one instant, and a counter in bytes."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    trace: Any = protos.Trace()
    for uuid, parent, name in ((1, 0, "Writeback"), (2, 1, "dd 11"), (3, 1, "dirty")):
        track = _packet(trace).track_descriptor
        track.uuid, track.name = uuid, name
        if parent:
            track.parent_uuid = parent
        if name == "dirty":
            track.counter.unit = protos.CounterDescriptor.UNIT_SIZE_BYTES
    for ts, kind in ((1000, "SLICE_BEGIN"), (1500, "SLICE_END"), (1700, "INSTANT")):
        event = _packet(trace, ts).track_event
        event.type, event.track_uuid = protos.TrackEvent.Type.Value(f"TYPE_{kind}"), 2
        if kind != "SLICE_END":
            event.name = kind.lower()
        if kind == "SLICE_BEGIN":
            event.debug_annotations.add(name="bdi", string_value="8:0")
            event.debug_annotations.add(name="pause_ms", int_value=-4)
    for ts, value in ((1200, 4096.0), (1300, 1.5)):
        event = _packet(trace, ts).track_event
        event.type, event.track_uuid = protos.TrackEvent.TYPE_COUNTER, 3
        event.double_counter_value = value
    path = folder / "small.pftrace"
    path.write_bytes(trace.SerializeToString())
    return path


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PerfettoEngine]:
    with PerfettoEngine() as started:
        started.load(_small_trace(tmp_path_factory.mktemp("engine")))
        yield started


def test_slices_and_counters_come_back(engine: PerfettoEngine) -> None:
    assert engine_slices(engine) == [
        Slice(0, "Writeback/dd 11", 1000, 500, "slice_begin", (("bdi", "8:0"), ("pause_ms", -4))),
        Slice(0, "Writeback/dd 11", 1700, 0, "instant", ()),
    ]
    assert engine_counters(engine) == [
        CounterSample("Writeback/dirty", 1200, 4096.0, "bytes"),
        CounterSample("Writeback/dirty", 1300, 1.5, "bytes"),
    ]


def test_cells_have_the_engine_s_types(engine: PerfettoEngine) -> None:
    rows = engine.query("SELECT 23 AS whole, 0.5 AS real, 'a' AS text, NULL AS absent, -1 AS minus")
    assert rows == [{"whole": 23, "real": 0.5, "text": "a", "absent": None, "minus": -1}]
    assert [type(value) for value in rows[0].values()] == [int, float, str, type(None), int]
    assert engine.query("SELECT 1 AS one WHERE 0") == []


def test_a_table_keeps_columns_of_one_name(engine: PerfettoEngine) -> None:
    sql = "SELECT 1 AS a, 'x' AS a, X'0023' AS b, '' AS c UNION ALL SELECT NULL, 'y', NULL, 'z'"
    assert engine.table(sql) == (
        ["a", "a", "b", "c"],
        [(1, "x", b"\0\x23", ""), (None, "y", None, "z")],
    )
    assert engine.table("SELECT 1 AS a, 2 AS b WHERE 0") == (["a", "b"], [])
    # A task name is any 15 bytes.
    assert engine.query("SELECT CAST(X'41FF42' AS TEXT) AS comm") == [{"comm": "A\ufffdB"}]


def test_facts_can_be_many(engine: PerfettoEngine) -> None:
    rows = ",".join(f"({i}, 'name {i}')" for i in range(5000))
    sql = f"WITH facts(a, b) AS (VALUES {rows}) SELECT a, b FROM facts"
    engine.query(f"CREATE OR REPLACE PERFETTO TABLE many(a LONG, b STRING) AS {sql}")
    assert engine.query("SELECT COUNT(*) AS n, MAX(a) AS last FROM many") == [
        {"n": 5000, "last": 4999}
    ]


def test_a_package_is_registered_once(engine: PerfettoEngine) -> None:
    engine.register("one", {"one.two": "CREATE PERFETTO VIEW one_v AS SELECT 23 AS n"})
    engine.query("INCLUDE PERFETTO MODULE one.two")
    assert engine.query("SELECT n FROM one_v") == [{"n": 23}]
    with pytest.raises(TraceProcessorError, match="one"):
        engine.register("one", {"one.two": "SELECT 1"})


def test_a_wrong_query_is_an_error_and_the_engine_goes_on(engine: PerfettoEngine) -> None:
    with pytest.raises(TraceProcessorError, match="no such column"):
        engine.query("SELECT nonsense FROM slice")
    assert engine.query("SELECT COUNT(*) AS slices_count FROM slice") == [{"slices_count": 2}]


def test_a_file_that_is_no_trace_is_an_error(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pftrace"
    wrong.write_bytes(b"this is no trace\n" * 23)
    with PerfettoEngine() as engine, pytest.raises(TraceProcessorError, match="Unknown trace type"):
        engine.load(wrong)
