# SPDX-License-Identifier: Apache-2.0
"""A converted trace holds every record, with the values that `ingest --all` has in its tables.

It is read here by support.pfread, which knows Perfetto's messages and none of the project's code.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from support.archives import unpacked
from support.loaded import Ingested, LoadedRun, recording
from support.once import Once
from support.pfread import FtraceRecord, PerfettoTrace, read_trace
from support.pftrace import userspace_dev
from support.runs import REPOSITORY
from support.tools import ingester_path, run

TRACES = sorted(path.parent for path in (unpacked("data") / "traces").glob("*/trace.dat"))
EXAMPLES = sorted(path.parent for path in (REPOSITORY / "examples").glob("*/trace.dat"))
# Examples are large: a part of the time, and of each event so many records, spread over all.
# test_converted.py counts the events of whole examples.
PARTS = {
    "deep": "+4000000000..+5000000000",
    "rate-limited-writers": "+3000000000..+4000000000",
    "reclaim-writes": "+4000000000..+5000000000",
}
MOST_RECORDS = 400
Rows = Ingested | LoadedRun


@dataclass(frozen=True)
class Both:
    """One trace.dat as a database and as a Perfetto trace."""

    run: Rows
    trace: PerfettoTrace
    said: list[dict[str, Any]]


def convert(source: Path, output: Path, *options: str) -> list[dict[str, Any]]:
    """Convert; what the program said without its progress."""
    command: list[str | Path] = [ingester_path(), "convert", source, "-o", output]
    done = run([*command, "--force", "--json-lines", *options])
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    return [line for line in lines if line["type"] != "progress"]


@pytest.fixture(scope="module", params=[*TRACES, *EXAMPLES], ids=lambda path: path.name)
def both(
    request: pytest.FixtureRequest, once: Once, tmp_path_factory: pytest.TempPathFactory
) -> Both:
    folder = tmp_path_factory.mktemp("both")
    trace = folder / "trace.pftrace"
    part = PARTS.get(request.param.name)
    options = [] if part is None else ["--time-range", part]
    said = convert(request.param / "trace.dat", trace, *options)
    run: Rows
    if part is None:
        run = recording(request.param, once)
    else:
        run = Ingested(request.param / "trace.dat", folder, "--all", *options)
    return Both(run, read_trace(trace), said)


def machines_of(run: Rows) -> dict[int, int]:
    """Buffers with records are machines, in their order; an empty one is none."""
    buffers = run.rows("SELECT id FROM buffer WHERE subbuf_bytes IS NOT NULL ORDER BY id")
    return {buffer: machine for machine, (buffer,) in enumerate(buffers)}


def rows_of(run: Rows, event: str, table: str) -> Iterator[tuple[dict[str, Any], ...]]:
    """Records of an event in their order: what leads them, and their fields with the kind."""
    fields = run.rows(
        f"SELECT field, column_name, type, kind FROM event_field WHERE event = '{event}'"
        " ORDER BY rowid"
    )
    if event == "unknown:unknown":
        columns = run.rows(f'PRAGMA table_info("{table}")')[5:]
        fields = [(name, name, "", kind.lower()) for _, name, kind, *_ in columns]
    names = "".join(f', "{column}"' for _, column, *_ in fields)
    machines = machines_of(run)
    for buffer, cpu, ts, tid, *values in run.rows(
        f'SELECT buffer, cpu, ts, tid{names} FROM "{table}" ORDER BY cpu, buffer, seq'
    ):
        lead = {"machine": machines[buffer], "cpu": cpu, "ts": ts, "tid": 0 if tid is None else tid}
        yield (
            lead,
            {
                name: shown(value, kind)
                for (name, _, kind, _), value in zip(fields, values, strict=True)
                if value is not None
            },
        )


def shown(value: Any, kind: str) -> Any:
    """A value of a table as it stands in a Perfetto trace; see docs/convert.md."""
    if isinstance(value, bytes):
        return value.hex()
    return userspace_dev(value) if kind.startswith("dev_t") and isinstance(value, int) else value


def by_event(trace: PerfettoTrace) -> dict[str, list[FtraceRecord]]:
    found: dict[str, list[FtraceRecord]] = defaultdict(list)
    for record in trace.records:
        found[record.name].append(record)
    return found


def test_every_record_with_every_value(both: Both) -> None:
    told = chain.from_iterable(
        line["message"].split("place for ")[1].split(", ")
        for line in both.said
        if line.get("slug") == "fields-left-out"
    )
    left_out = {tuple(each.split(".")) for each in told}
    ours = by_event(both.trace)
    expected: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for event, table in both.run.rows(
        "SELECT event, table_name FROM event_counts WHERE count > 0 ORDER BY event"
    ):
        for row in rows_of(both.run, event, table):
            expected[event.partition(":")[2]].append((event, row))
    assert Counter({name: len(records) for name, records in ours.items()}) == Counter(
        {name: len(rows) for name, rows in expected.items()}
    )
    for name, rows in expected.items():
        # Two systems can have an event of one name: compare in the order of both.
        records = sorted(ours[name], key=lambda r: (r.cpu, r.machine, r.ts))
        rows.sort(key=lambda item: (item[1][0]["cpu"], item[1][0]["machine"], item[1][0]["ts"]))
        step = -(-len(rows) // MOST_RECORDS)
        for record, (event, (lead, values)) in list(zip(records, rows, strict=True))[::step]:
            where = f"{event} {lead}"
            assert (record.machine, record.cpu, record.ts, record.tid) == tuple(lead.values()), (
                where
            )
            if record.group is not None:
                assert f"{record.group}:{name}" == event
            assert_values(record, values, {f for e, f in left_out if e == event}, where)


def assert_values(
    record: FtraceRecord, values: dict[str, Any], left_out: set[str], where: str
) -> None:
    ours = {name: value for name, value in record.values.items() if not name.endswith("_symbol")}
    theirs = {name: value for name, value in values.items() if name not in left_out}
    for name, value in ours.items():
        if isinstance(value, list):
            ours[name] = json.dumps(value, separators=(",", ":"))
            theirs[name] = signed_list(theirs[name])
    if record.form == "own":  # an empty list has no trace of its own
        theirs = {n: v for n, v in theirs.items() if v != "[]" or n in ours}
    assert ours == theirs, where


def signed_list(text: str) -> str:
    numbers = [n - (1 << 64) if n >= 1 << 63 else n for n in json.loads(text)]
    return json.dumps(numbers, separators=(",", ":"))


def test_gaps_stand_before_the_record_that_follows(both: Both) -> None:
    machines = machines_of(both.run)
    rows = both.run.rows("SELECT cpu, buffer FROM lost_events ORDER BY cpu, buffer, ts")
    gaps = [(cpu, machines[buffer]) for cpu, buffer in rows]
    marked = Counter((r.cpu, r.machine) for r in both.trace.records if r.lost_before)
    # Two gaps with no record between them are one; a gap behind the last record is none.
    for place, count in marked.items():
        assert count <= gaps.count(place)
    assert set(marked) == set(gaps)
    warned = [line for line in both.said if line.get("slug") == "lost-events"]
    assert bool(warned) == bool(gaps)
    if warned:
        assert both.said[0] == warned[0], "lost events come first"


def test_names_of_tasks(both: Both) -> None:
    """The saved names of all threads that have a record, told as long as the thread is seen."""
    ours: dict[int, set[str]] = defaultdict(set)
    for packet in both.trace.packets:
        if packet.HasField("generic_kernel_task_rename_event"):
            told = packet.generic_kernel_task_rename_event
            ours[told.tid].add(told.comm)
    theirs = dict(both.run.rows("SELECT tid, comm FROM task WHERE comm IS NOT NULL AND tid > 0"))
    # In 3 of these traces a saved name is older than the last one of sched_switch, which task has.
    for tid, names in ours.items():
        if names != {theirs[tid]}:
            (name,) = names
            seen = both.run.rows(
                f"SELECT CASE prev_pid WHEN {tid} THEN prev_comm ELSE next_comm END"
                f" FROM ev_sched_switch WHERE {tid} IN (prev_pid, next_pid) ORDER BY seq"
            )
            assert (name,) in seen[:-1]
            assert seen[-1] == (theirs[tid],)
            theirs[tid] = name
    assert {tid: {theirs[tid]} for tid in ours} == dict(ours)
    assert not ours or len(ours) > len(theirs) // 3
