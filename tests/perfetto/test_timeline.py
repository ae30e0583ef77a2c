# SPDX-License-Identifier: Apache-2.0
"""The exported timeline in the real Perfetto trace processor equals the rows of the database."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.perfetto_engine import PerfettoEngine
from support.runs import REPOSITORY, RecordedRun, all_runs
from support.timeline import (
    CounterSample,
    Slice,
    engine_counters,
    engine_slices,
    expected_tracks,
    timeline_rows,
    timeline_views,
)
from support.tools import missing


@dataclass(frozen=True)
class Exported:
    """One run's timeline: the file, the engine that loaded it, and what it should show."""

    file: Path
    engine: PerfettoEngine
    slices: list[Slice]
    counters: list[CounterSample]
    found_counters: list[CounterSample]


@pytest.fixture(scope="module", params=all_runs() or (None,), ids=str)
def exported(
    request: pytest.FixtureRequest, wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Exported]:
    if request.param is None:
        missing("there is no recorded run in examples/ nor in $WBSCOPE_RUNS")
    assert isinstance(request.param, RecordedRun)
    folder = request.param.folder
    file = tmp_path_factory.mktemp("timeline") / "run.pftrace"
    result = wbscope.run("timeline", folder, "-o", file)
    assert result.returncode == 0, result.stderr
    slices, counters = expected_tracks(
        timeline_rows(wbscope, folder, timeline_views(REPOSITORY / "sql"))
    )
    with PerfettoEngine() as engine:
        engine.load(file)
        yield Exported(file, engine, slices, counters, engine_counters(engine))


def test_the_engine_has_nothing_to_complain_of(exported: Exported) -> None:
    rows = exported.engine.query(
        "SELECT name, severity, value FROM stats "
        "WHERE severity IN ('error', 'data_loss') AND value > 0"
    )
    assert rows == []


def test_slices_equal_the_rows(exported: Exported) -> None:
    assert exported.slices, "the views have no slice"
    assert engine_slices(exported.engine) == exported.slices


def test_counters_equal_the_rows(exported: Exported) -> None:
    assert exported.counters, "the views have no counter"
    assert len(exported.found_counters) == len(exported.counters)
    for found, expected in zip(exported.found_counters, exported.counters, strict=True):
        assert (found.track, found.ts) == (expected.track, expected.ts)
        assert math.isclose(found.value, expected.value, rel_tol=1e-9), (found, expected)


def test_every_counter_has_its_unit(exported: Exported) -> None:
    units = {row.track: row.unit for row in exported.counters}
    assert all(units.values()), units
    assert {row.track: row.unit for row in exported.found_counters} == units


def test_all_tracks_are_in_one_group(exported: Exported) -> None:
    roots = exported.engine.query("SELECT DISTINCT name FROM track WHERE parent_id IS NULL")
    assert roots == [{"name": "Writeback"}]


def test_the_clock_is_declared(exported: Exported) -> None:
    """The file says what its times are: a clock snapshot, and a clock for the packets."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    trace: Any = protos.Trace()
    trace.ParseFromString(exported.file.read_bytes())
    snapshots = [
        packet.clock_snapshot for packet in trace.packet if packet.HasField("clock_snapshot")
    ]
    assert snapshots
    declared = {clock.clock_id for snapshot in snapshots for clock in snapshot.clocks}
    used = {packet.timestamp_clock_id for packet in trace.packet if packet.timestamp_clock_id}
    used |= {
        packet.trace_packet_defaults.timestamp_clock_id
        for packet in trace.packet
        if packet.trace_packet_defaults.timestamp_clock_id
    }
    primary = {snapshot.primary_trace_clock for snapshot in snapshots} - {0}
    assert (used | primary) <= declared
