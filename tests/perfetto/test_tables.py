# SPDX-License-Identifier: Apache-2.0
"""A Perfetto trace gives the tables and the answers that the same run's trace.dat gives."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import wbscope as package
from support.cli import Wbscope
from support.parity import NUMBERS
from support.pftrace import events_of
from support.sidecars import Sample
from support.twins import Twin, builder_of
from wbscope.base.errors import EvidenceError

pytestmark = pytest.mark.dealt

# Perfetto's own messages for these events have no such field, and convert writes no flags.
NOT_IN_PERFETTO = {
    ("sched:sched_waking", "common_flags"),
    ("block:block_rq_complete", "ioprio"),
    ("block:block_rq_insert", "ioprio"),
    ("block:block_rq_issue", "ioprio"),
}
HIDDEN = ("void *", "const char *")
TWINS = ("four_writers", "deep", "reclaim")


def rows(database: Path, sql: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        return db.execute(sql).fetchall()


def tables(database: Path) -> dict[str, str]:
    return dict(rows(database, "SELECT event, table_name FROM event_counts"))


def columns(database: Path, table: str) -> list[str]:
    return [row[1] for row in rows(database, f'PRAGMA table_info("{table}")')]


def types(database: Path, event: str) -> dict[str, str]:
    sql = f"SELECT column_name, type FROM event_field WHERE event = '{event}'"
    return dict(rows(database, sql))


@pytest.fixture(params=TWINS)
def twin(request: pytest.FixtureRequest) -> Twin:
    found: Twin = request.getfixturevalue(request.param)
    return found


def test_every_event_is_there_under_its_system(twin: Twin) -> None:
    counts = "SELECT event, count, loaded_count, table_name FROM event_counts ORDER BY event"
    assert rows(twin.perfetto_db, counts) == rows(twin.recorded_db, counts)
    assert len(rows(twin.perfetto_db, counts)) > 10


def test_every_value_is_the_kernel_s(twin: Twin) -> None:
    compared = set()
    for event, table in tables(twin.recorded_db).items():
        kinds = types(twin.recorded_db, event)
        ours, theirs = columns(twin.perfetto_db, table), columns(twin.recorded_db, table)
        absent = {(event, column) for column in theirs if column not in ours}
        assert absent <= NOT_IN_PERFETTO
        assert [c for c in theirs if c in ours] == ours, f"{event}: order of columns"
        # Addresses are not in a Perfetto trace; see test_pointers.
        same = [c for c in ours if c != "seq" and not kinds.get(c, "").startswith(HIDDEN)]
        if event == "writeback:balance_dirty_pages":
            # It is about other events too, and these come one kind after the other.
            same.remove("repeats_count")
            found = rows(twin.perfetto_db, f'SELECT DISTINCT repeats_count FROM "{table}"')
            assert found == [(0,)]
        names = ", ".join(f'"{c}"' for c in same)
        sql = f'SELECT {names} FROM "{table}" ORDER BY seq'
        assert rows(twin.perfetto_db, sql) == rows(twin.recorded_db, sql), event
        compared.add(event)
    assert "writeback:balance_dirty_pages" in compared
    assert "block:block_rq_issue" in compared  # with a dev_t


def test_seq_is_one_order_over_all_tables(twin: Twin) -> None:
    seqs = sorted(
        row
        for table in tables(twin.perfetto_db).values()
        for row in rows(twin.perfetto_db, f'SELECT seq, ts FROM "{table}"')
    )
    assert len({seq for seq, _ in seqs}) == len(seqs)
    assert [ts for _, ts in seqs] == sorted(ts for _, ts in seqs)


def test_pointers_are_numbers_of_first_use(four_writers: Twin) -> None:
    """The recorder hides addresses: equal ones stay equal, that is all (ReadSymbolAddr)."""
    sql = "SELECT shrink FROM ev_mm_shrink_slab_start ORDER BY cpu, seq"
    ours, theirs = rows(four_writers.perfetto_db, sql), rows(four_writers.recorded_db, sql)
    pairs = set(zip(ours, theirs, strict=True))
    assert len(pairs) == len({ours for ours, _ in pairs}) == len({theirs for _, theirs in pairs})
    assert len(pairs) > 1


def test_tasks(twin: Twin) -> None:
    sql = "SELECT tid, comm, first_ts, last_ts, events_count FROM task ORDER BY tid"
    assert rows(twin.perfetto_db, sql) == rows(twin.recorded_db, sql)


def test_what_is_known_of_the_machine(four_writers: Twin) -> None:
    meta = dict(rows(four_writers.perfetto_db, "SELECT key, value FROM meta"))
    recorded = dict(rows(four_writers.recorded_db, "SELECT key, value FROM meta"))
    same = (
        "kernel_release",
        "page_bytes",
        "long_bytes",
        "cpus_count",
        "first_ts",
        "last_ts",
        "events_count",
    )
    assert {key: meta[key] for key in same} == {key: recorded[key] for key in same}
    assert meta["format"] == "perfetto"
    assert (meta["clock"], meta["clock_unit"], meta["machine"]) == ("boot", "ns", "x86_64")
    assert meta["source_name"] == "trace.pftrace"
    assert (meta["damaged"], meta["lost_gaps_count"]) == (0, 0)
    statuses = rows(four_writers.perfetto_db, "SELECT DISTINCT status FROM event_format")
    assert statuses == [("perfetto",)]


def test_counters_in_the_trace_stand_for_files(
    deep: Twin, wbscope: Wbscope, tmp_path: Path
) -> None:
    """A lone trace: /proc/vmstat and /proc/meminfo are its first and last samples."""
    done = wbscope.run("ingest", deep.trace, "-o", tmp_path / "lone.db")
    assert done.returncode == 0, done.stderr
    for table, count, columns in (
        ("sidecar_vmstat", 280, "sample, name, value"),
        ("sidecar_meminfo", 15, "sample, name, value, unit"),
    ):
        ours = set(rows(tmp_path / "lone.db", f"SELECT {columns} FROM {table}"))
        assert ours <= set(rows(deep.recorded_db, f"SELECT {columns} FROM {table}"))
        assert len(ours) > count


def test_counters_of_the_trace_are_samples(deep: Twin, wbscope: Wbscope, tmp_path: Path) -> None:
    """The first and the last one of them, too."""
    (first_ts,) = rows(deep.recorded_db, "SELECT value FROM meta WHERE key = 'first_ts'")[0]
    samples = [
        # Before the end of the part, which is not whole seconds long.
        Sample(first_ts + 10**6 * ms, {"nr_dirty": pages}, {"Dirty": 4 * pages})
        for ms, pages in ((1000, 23), (2000, 29), (2900, 13))
    ]
    trace = tmp_path / "trace.pftrace"
    builder_of(deep.recorded_db, samples=samples).write(trace, events_of(deep.recorded_db))
    done = wbscope.run("ingest", trace, "-o", tmp_path / "lone.db")
    assert done.returncode == 0, done.stderr
    for table, scale in (("sidecar_vmstat", 1), ("sidecar_meminfo", 4)):
        found = rows(tmp_path / "lone.db", f"SELECT sample, ts, value FROM {table} ORDER BY ts")
        assert found == [
            (name, sample.ts, sample.vmstat["nr_dirty"] * scale)
            for name, sample in zip(("before", "sampled", "after"), samples, strict=True)
        ]
    wanted = [("Dirty", "bytes", 3, 52 << 10, 116 << 10), ("nr_dirty", "pages", 3, 13, 29)]
    names = ("name", "unit", "samples_count", "least_value", "most_value")
    for options in ([], ["--engine", "perfetto"]):
        answer = wbscope.document("query", "samples", trace, *options)
        assert [tuple(row[name] for name in names) for row in answer["rows"]] == wanted, options


def test_velocities_are_of_the_time_between_the_samples(
    deep: Twin, wbscope: Wbscope, tmp_path: Path
) -> None:
    """The trace is longer, and another counter has samples all through it: these say nothing."""
    (first_ts,) = rows(deep.recorded_db, "SELECT value FROM meta WHERE key = 'first_ts'")[0]
    samples = [
        Sample(first_ts + ms * 10**6, {"pgscan_kswapd": pages, "pgsteal_kswapd": pages}, {})
        for ms, pages in ((700, 1000), (1700, 1100), (1900, 1600))
    ]
    samples.insert(0, Sample(first_ts, {"nr_dirty": 1}, {}))
    samples.append(Sample(first_ts + 2900 * 10**6, {"nr_dirty": 2}, {}))
    trace = tmp_path / "trace.pftrace"
    builder_of(deep.recorded_db, samples=samples).write(trace, events_of(deep.recorded_db))
    for options in ([], ["--engine", "perfetto"]):
        answer = wbscope.document("query", "reclaim_efficiency", trace, *options)
        told = {row["reclaimer"]: row["vmstat_velocity_pages_per_s"] for row in answer["rows"]}
        assert told["kswapd"] == pytest.approx(600 / 1.2), options
        answer = wbscope.document("query", "mmtests_vmstat", trace, *options)
        told = {row["name"]: row["value"] for row in answer["rows"]}
        assert told["Kswapd velocity"] == pytest.approx(600 / 1.2), options


def test_files_go_before_counters_in_the_trace(
    deep: Twin, wbscope: Wbscope, tmp_path: Path
) -> None:
    shutil.copyfile(deep.trace, tmp_path / "trace.pftrace")
    (tmp_path / "vmstat.before").write_text("nr_dirty 23\n")
    done = wbscope.run("ingest", tmp_path, "-o", tmp_path / "run.db")
    assert done.returncode == 0, done.stderr
    vmstat = rows(tmp_path / "run.db", "SELECT sample, name, value FROM sidecar_vmstat")
    assert vmstat == [("before", "nr_dirty", 23)]
    assert len(rows(tmp_path / "run.db", "SELECT 1 FROM sidecar_meminfo")) > 15


def test_labels_come_from_the_formats_of_near_kernels(four_writers: Twin) -> None:
    sql = (
        "SELECT field, value, label, kind FROM enum_label"
        " WHERE event = 'writeback:writeback_start' ORDER BY value"
    )
    assert rows(four_writers.perfetto_db, sql) == rows(four_writers.recorded_db, sql)
    assert len(rows(four_writers.perfetto_db, sql)) > 4


def test_canned_queries_answer_the_same(twin: Twin) -> None:
    answered = set()
    with package.open(str(twin.folder)) as ours, package.open(str(twin.recorded)) as theirs:
        for query in ours.library.queries():
            # These tell the file and its clock, and where samples lie.
            if query.name in ("run_summary", "check"):
                continue
            answer = _answer(ours, query.name)
            assert answer == _answer(theirs, query.name), query.name
            if answer is not None:
                answered.add(query.name)
    assert {"throttle_by_task", "fairness", "reclaim_writes", "throughput"} <= answered


def _answer(run: package.Run, query: str) -> list[dict[str, Any]] | None:
    """None where the trace has no evidence for it; without what names or numbers the file's."""
    try:
        return [
            {name: value for name, value in row.items() if name not in {"evidence", *NUMBERS}}
            for row in run.query(query).records()
        ]
    except EvidenceError:
        return None


def test_compact_sched_switch(
    engine_is_there: None, deep: Twin, wbscope: Wbscope, tmp_path: Path
) -> None:
    """The recorder's compact form tells the next task only; the first switch of a CPU is lost,
    because nothing says which task was on it."""
    trace = tmp_path / "compact.pftrace"
    builder_of(deep.recorded_db, compact=True).write(trace, events_of(deep.recorded_db))
    done = wbscope.run("ingest", trace, "-o", tmp_path / "compact.db", "--events", "sched:*")
    assert done.returncode == 0, done.stderr
    sql = (
        "SELECT ts, cpu, tid, prev_pid, prev_prio, prev_state, next_comm, next_pid, next_prio"
        " FROM ev_sched_switch WHERE seq NOT IN ({}) ORDER BY cpu, seq"
    )
    ours = rows(tmp_path / "compact.db", sql.format(""))
    first = "SELECT min(seq) FROM ev_sched_switch GROUP BY cpu"
    assert ours == rows(deep.recorded_db, sql.format(first))
    assert len(ours) > 4000
