# SPDX-License-Identifier: Apache-2.0
"""One text, two engines: every query and timeline of every example, in SQLite and in Perfetto.

SQLite has the run as trace-cmd recorded it. Trace processor has what `wbscope convert` made of it,
with the samples that Perfetto's recorder would have taken, and nothing else: the package's modules
and what the trace itself holds. See test_session.py for a run folder, whose files make up for what
a trace lacks, and test_tables.py for traces as the recorder writes them.
"""

from __future__ import annotations

import contextlib
import math
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.parity import Rows, assert_same
from support.pftrace import PerfettoEngine
from support.runs import REPOSITORY, RecordedRun, example
from support.sidecars import is_carried, samples_of
from support.twins import add_samples
from wbscope.base.errors import EvidenceError
from wbscope.perfetto.package import PACKAGE, modules
from wbscope.perfetto.perfetto_library import perfetto_library
from wbscope.run.run import Run, open_run

EXAMPLES = sorted(path.parent.name for path in REPOSITORY.glob("examples/*/trace.dat"))
LIBRARY = perfetto_library(REPOSITORY / "sql")
QUERIES = [query.name for query in LIBRARY.queries()]
TIMELINES = [timeline.name for timeline in LIBRARY.timelines()]
# What a Perfetto trace cannot carry, by query and column, and what is there instead.
_WRITES = "Writeback/Reclaim/vmscan_write"
_ZONE = re.compile(r"Writeback/Reclaim/(?:vmscan_write|write\\/s) (?P<zone>\w+)")
NO_ZONE = "no data source has /proc/zoneinfo, so page frames cannot be put into zones"
WITHOUT_ZONES = {
    "reclaim_writes": ("kind", "reclaimer"),
    "reclaim_dirty_state": ("kind", "reclaimer"),
}
NO_COUNTER = "VmstatCounters has no pgscan_khugepaged and pgsteal_khugepaged, of 6.12 and later"
WITHOUT_COUNTERS = {
    "reclaim_efficiency": {
        "vmstat_scanned_count",
        "vmstat_reclaimed_count",
        "vmstat_efficiency_ratio",
        "vmstat_velocity_pages_per_s",
    }
}
KHUGEPAGED_SINCE_6_12 = {"deep", "four-equal-writers-7.2", "rate-limited-writers"}
MANY_COUNTERS = 20
NO_SOURCE = "a trace does not know its file name"
OTHER_FACTS = {"source": None, "format": "perfetto", "clock": "boot"}
FILES_ONLY = ("fio.json", "ls-files", "block stat")
WITHIN = {
    "the samples lie within the trace, so they may count less": (
        "the files enclose the trace, so they may count more"
    )
}
NEW_WARNINGS = {"reclaim_writes": {"no-zoneinfo"}}


@dataclass(frozen=True)
class Pair:
    """One run, or a part of it, in both engines."""

    name: str
    is_part: bool
    sqlite: Run
    perfetto: PerfettoEngine

    def warnings(self, query: str) -> Rows:
        files = (LIBRARY.files["wb_warning"], LIBRARY.files[query])
        return [row for file in files if file.warns for row in self.perfetto.table(file.warns)[1]]


@pytest.fixture(scope="module", params=EXAMPLES)
def pair(
    request: pytest.FixtureRequest,
    short_example: Callable[[str], RecordedRun],
    converted: Callable[[RecordedRun], Path],
    every_event: Callable[[RecordedRun], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pair]:
    recorded = short_example(request.param)
    folder = tmp_path_factory.mktemp("parity")
    database = Path(shutil.copy(every_event(recorded), folder / "run.db"))
    with contextlib.closing(sqlite3.connect(database)) as db, db:
        db.execute("DELETE FROM sidecar_fio")  # a trace has no such file
        give_times(db)
    trace = folder / "trace.pftrace"
    shutil.copy(converted(recorded), trace)
    add_samples(trace, database)
    with open_run(database) as run, PerfettoEngine() as engine:
        engine.load(trace)
        engine.register(PACKAGE, modules(LIBRARY))
        engine.query(f"INCLUDE PERFETTO MODULE {PACKAGE}.library")
        yield Pair(request.param, recorded != example(request.param), run, engine)


def test_every_example_is_compared() -> None:
    assert len(EXAMPLES) >= 5
    assert len(QUERIES) >= 26
    assert len(TIMELINES) >= 7


@pytest.mark.parametrize("name", QUERIES)
def test_query(pair: Pair, name: str) -> None:
    columns, ours = pair.perfetto.table(f"SELECT * FROM wbscope_{name}")
    try:
        result = pair.sqlite.query(name)
    except EvidenceError:
        assert ours == []
        assert_missing_is_told(pair, name)
        return
    assert tuple(columns) == result.columns
    theirs = result.rows
    if name in WITHOUT_ZONES:
        ours, theirs = in_no_zone(name, result.columns, ours), summed(name, result.columns, theirs)
        assert_same(("key", "count"), ours, theirs)
    elif name in WITHOUT_COUNTERS and pair.name in KHUGEPAGED_SINCE_6_12:
        assert_same(result.columns, ours, without_counters(name, result.columns, ours, theirs))
    elif name == "dirty_domains":
        # A trace knows cgroups by their inodes only.
        path = result.columns.index("cgroup_path")
        theirs = [(*row[:path], None, *row[path + 1 :]) for row in theirs]
        assert_same(result.columns, ours, theirs)
    elif name == "samples":
        source, counter = (columns.index(part) for part in ("source", "name"))
        carried = [row for row in theirs if is_carried(row[source], row[counter])]
        assert len(carried) < len(theirs) or pair.is_part, "its enums lack some"
        assert len(carried) > MANY_COUNTERS
        assert_same(result.columns, ours, carried)
    elif name == "run_summary":
        assert_same(result.columns, ours, with_other_facts(theirs))
    elif name == "findings":
        assert ours == [], "sentences are made by wbscope; test_session compares them"
    elif name == "check":
        assert_same(result.columns, of_the_trace(ours), of_the_trace(theirs))
        assert {row[0] for row in ours} >= set(FILES_ONLY), "a trace has no such files"
        verdict = columns.index("verdict")
        assert {row[verdict] for row in ours if row[0] in FILES_ONLY} == {"not recorded"}
    else:
        assert_same(result.columns, ours, theirs)
    known = [(notice.slug, notice.message) for notice in result.warnings]
    more = NEW_WARNINGS.get(name, set()) if ours else set()
    assert [row for row in pair.warnings(name) if row[0] not in more] == known


@pytest.mark.parametrize("name", TIMELINES)
def test_timeline(pair: Pair, name: str) -> None:
    """A timeline has no order: the exporter sorts."""
    columns, ours = pair.perfetto.table(f"SELECT * FROM {name}")
    result = pair.sqlite.sql(f"SELECT * FROM {name}")
    assert tuple(columns) == result.columns
    assert len(ours) > 0 or result.rows == [] or name == "tl_verdict"
    if name == "tl_verdict":
        assert ours == [], "sentences are made by wbscope; test_session compares them"
        assert result.rows
        return
    if name == "tl_reclaim_writes":
        assert {_ZONE.match(row[2])["zone"] for row in ours} <= {"unknown"}, NO_ZONE  # type: ignore[index]
        assert folios(ours) == folios(result.rows)
        return
    if "flows" in columns:
        flows = columns.index("flows")
        ours, theirs = counted_flows(ours, flows), counted_flows(result.rows, flows)
    elif name == "tl_look":
        # What to change is in the sentences, too.
        advice = columns.index("arg_advice")
        theirs = [(*row[:advice], None, *row[advice + 1 :]) for row in result.rows]
    elif name == "tl_memcg":
        track = columns.index("track")
        theirs = without_cgroup_paths(result.rows, track)
    else:
        theirs = result.rows
    ts, track, slice_name = (columns.index(part) for part in ("ts", "track", "name"))

    def place(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return row[ts], row[track], str(row[slice_name])

    assert_same(result.columns, sorted(ours, key=place), sorted(theirs, key=place))


def give_times(db: sqlite3.Connection) -> None:
    """What is sampled into the trace has the times of add_samples()."""
    meta = dict(db.execute("SELECT key, value FROM meta"))
    samples = samples_of(db, meta["first_ts"], meta["last_ts"])
    for table in ("sidecar_vmstat", "sidecar_meminfo"):
        for when, sample in zip(("before", "after"), samples, strict=True):
            db.execute(f"UPDATE {table} SET ts = ? WHERE sample = ?", (sample.ts, when))


def counted_flows(rows: Rows, flows: int) -> Rows:
    """The numbers of arrows are made of those of events, which differ: how many there are."""
    return [
        (*row[:flows], None if row[flows] is None else len(row[flows].split()), *row[flows + 1 :])
        for row in rows
    ]


def without_cgroup_paths(rows: Rows, track: int) -> Rows:
    """A trace knows cgroups by their inodes only."""
    return [
        (
            *row[:track],
            re.sub(r"(/cgroup \d+)(?: (?:\\/|[^/])*)?/", r"\1/", row[track]),
            *row[track + 1 :],
        )
        for row in rows
    ]


def folios(rows: Rows) -> float:
    """All that reclaim wrote: the last value of each counter that sums up a zone."""
    totals = {row[2]: row[4] for row in sorted(rows, key=lambda row: (row[0], row[4])) if row[4]}
    return math.fsum(v for track, v in totals.items() if track.startswith(f"{_WRITES} "))


@pytest.mark.parametrize(
    ("name", "least", "of_a_part"),
    [
        ("throttle_windows", 6, 2),
        ("stalls", 100, 100),
        ("bdi_dirty", 6, 2),
        ("writeback_work", 1, 1),
    ],
)
def test_the_rows_are_many(pair: Pair, name: str, least: int, of_a_part: int) -> None:
    """No comparison of nothing with nothing."""
    rows = pair.perfetto.table(f"SELECT 1 FROM wbscope_{name}")[1]
    assert len(rows) >= (of_a_part if pair.is_part else least)


def assert_missing_is_told(pair: Pair, name: str) -> None:
    """raw_event_format says the same of what was recorded as the run database does."""
    events = {row[0] for row in pair.perfetto.table("SELECT event FROM raw_event_format")[1]}
    groups = LIBRARY.query(name).events
    assert any(not events & set(group) for group in groups)
    with pytest.raises(EvidenceError) as told:
        pair.sqlite.query(name)
    assert told.value.slug == "missing-event"


def summed(name: str, columns: tuple[str, ...], rows: Rows) -> Rows:
    """Events by what is not the zone."""
    count = columns.index("events_count")
    sums: dict[str, int] = {}
    for row in rows:
        key = " ".join(str(row[columns.index(part)]) for part in WITHOUT_ZONES[name])
        sums[key] = sums.get(key, 0) + row[count]
    return sorted(sums.items())


def in_no_zone(name: str, columns: tuple[str, ...], rows: Rows) -> Rows:
    """As summed(), of rows that have no zone at all."""
    node, zone = columns.index("node"), columns.index("zone")
    assert {(row[node], row[zone]) for row in rows} <= {(None, "unknown")}, NO_ZONE
    return summed(name, columns, rows)


def without_counters(name: str, columns: tuple[str, ...], ours: Rows, theirs: Rows) -> Rows:
    """The other engine's rows with NULL where the counters do not reach a Perfetto trace."""
    lacking = [columns.index(column) for column in WITHOUT_COUNTERS[name]]
    reclaimer = columns.index("reclaimer")
    assert all(row[i] is None for row in ours if row[reclaimer] == "other" for i in lacking), (
        NO_COUNTER
    )
    return [
        tuple(None if i in lacking else value for i, value in enumerate(row))
        if row[reclaimer] == "other"
        else row
        for row in theirs
    ]


def of_the_trace(rows: Rows) -> Rows:
    """Without comparisons with files that only a run folder has; why is the last column."""
    kept = (row for row in rows if row[0] not in FILES_ONLY)
    return [(*row[:-1], WITHIN.get(row[-1], row[-1])) for row in kept]


def with_other_facts(rows: Rows) -> Rows:
    """run_summary as of a Perfetto trace; see NO_SOURCE."""
    replaced = [(key, OTHER_FACTS.get(key, value)) for key, value in rows]
    return [row for row in replaced if row[1] is not None]
