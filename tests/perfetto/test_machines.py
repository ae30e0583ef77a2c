# SPDX-License-Identifier: Apache-2.0
"""A trace with two machines, or of two tracing instances: the first is read, and that is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.archives import unpacked
from support.cli import Wbscope
from support.pftrace import Event, TraceBuilder
from support.runs import RecordedRun, example
from support.twins import builder_of

pytestmark = pytest.mark.usefixtures("engine_is_there")

SAMPLES = unpacked("data") / "traces"
ENGINES = pytest.mark.parametrize("engine", ["sqlite", "perfetto"])


@pytest.fixture(scope="module")
def host(
    few_events: list[Event],
    every_event: Callable[[RecordedRun], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    trace = tmp_path_factory.mktemp("host") / "run.pftrace"
    builder_of(every_event(example("four-equal-writers"))).write(trace, few_events[:3000])
    return trace


@pytest.fixture(scope="module")
def both(host: Path, few_events: list[Event], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host's trace, and behind it a guest's with threads and CPUs of the same numbers."""
    guest = TraceBuilder(
        machine_id=1234,
        system_info={
            "sysname": "Linux",
            "release": "5.10.0",
            "version": "#2",
            "machine": "aarch64",
            "page_size": 16384,
            "num_cpus": 64,
        },
        configured=("writeback/*", "vmscan/*"),
        failed=("writeback/global_dirty_state",),
        threads={few_events[0].tid: (few_events[0].tid, "guest")},
    )
    folder = tmp_path_factory.mktemp("both")
    moved = (replace(event, ts=event.ts + 777) for event in few_events[:2000])
    guest.write(folder / "guest", moved)
    trace = folder / "run.pftrace"
    trace.write_bytes(host.read_bytes() + (folder / "guest").read_bytes())
    (folder / "guest").unlink()
    return trace


@ENGINES
@pytest.mark.parametrize(
    "query",
    ["dirty_position", "throttle_by_task", "fairness", "event_counts", "bdi_bandwidth"],
)
def test_answers_are_those_of_the_host(
    wbscope: Wbscope, host: Path, both: Path, query: str, engine: str
) -> None:
    alone = wbscope.query(query, host, "--engine", engine)
    assert alone
    assert wbscope.query(query, both, "--engine", engine) == alone


def test_what_is_left_out_is_told(wbscope: Wbscope, host: Path, both: Path) -> None:
    for trace, told in ((both, True), (host, False)):
        report = wbscope.run("report", trace)
        assert report.returncode == 0, report.stderr
        text = " ".join(report.stdout.split())
        words = "events of 2 machines or tracing instances; those of the first were read, and 2000"
        assert (words in text.partition("To do:")[0]) is told


def test_what_the_host_lacks_is_missing(wbscope: Wbscope, both: Path) -> None:
    """The configuration of vmscan was the guest's."""
    done = wbscope.run("query", "reclaim_writes", both)
    assert done.returncode == 4
    assert "missing-event" in done.stderr
    facts = {r["key"]: r["value"] for r in wbscope.sql(both, "SELECT key, value FROM raw_meta")}
    assert facts["page_bytes"] == 4096
    assert facts["kernel_release"].startswith("6.")
    assert "refused_events" not in facts


def test_two_traces_in_one(wbscope: Wbscope, tmp_path: Path) -> None:
    """As convert writes a host and its guest."""
    trace = tmp_path / "trace.pftrace"
    pair = [SAMPLES / f"6.1-amd64-v7-{name}/trace.dat" for name in ("host", "guest")]
    assert wbscope.run("convert", *pair, "-o", trace).returncode == 0
    document = wbscope.document("query", "event_counts", trace)
    (message,) = (w["message"] for w in document["warnings"] if w["slug"] == "other-machines")
    ours = {row["event"]: row["count"] for row in document["rows"]}
    theirs = {row["event"]: row["count"] for row in wbscope.query("event_counts", pair[0])}
    assert ours.items() <= theirs.items()
    assert "of 2 machines" in message
