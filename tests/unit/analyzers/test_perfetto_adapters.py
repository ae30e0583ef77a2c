# SPDX-License-Identifier: Apache-2.0
"""The adapters over trace processor, on tables like its own: their SQL is SQLite's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

import pytest
from support.pftrace import userspace_dev
from support.runs import REPOSITORY
from wbscope.library.engine import EVENTS
from wbscope.library.library import load_library
from wbscope.perfetto.perfetto_library import perfetto_library
from wbscope.perfetto.stream import load_references

LIBRARY = perfetto_library(REPOSITORY / "sql")
TABLES = """
CREATE TABLE metadata(name, str_value, int_value);
CREATE TABLE ftrace_event(id, ts, ucpu, utid, name, arg_set_id);
CREATE TABLE thread(utid, tid, name, upid, machine_id);
CREATE TABLE process(upid, pid, name);
CREATE TABLE cpu(ucpu, cpu);
CREATE TABLE stats(name, idx, severity, value);
CREATE TABLE counter_track(id, name, type, machine_id);
CREATE TABLE counter(track_id, ts, value);
"""


class Trace:
    """Trace processor's tables, as far as the adapters read them."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.executescript(TABLES)
        self.args: dict[tuple[int, str], Any] = {}
        self.db.create_function(
            "EXTRACT_ARG", 2, lambda arg_set, key: self.args.get((arg_set, key))
        )
        self._events = 0

    def put(self, table: str, *rows: Iterable[Any]) -> None:
        for row in rows:
            values = tuple(row)
            columns = [name for _, name, *_ in self.db.execute(f"PRAGMA table_info({table})")]
            into = f"{table}({', '.join(columns[: len(values)])})"
            self.db.execute(f"INSERT INTO {into} VALUES ({', '.join('?' * len(values))})", values)

    def event(self, name: str, ts: int, ucpu: int = 0, utid: int = 1, **fields: Any) -> None:
        self._events += 1
        self.put("ftrace_event", (self._events, ts, ucpu, utid, name, self._events))
        self.args |= {(self._events, key): value for key, value in fields.items()}

    def rows(self, adapter: str, columns: str = "*") -> list[tuple[Any, ...]]:
        for name in LIBRARY.closure([adapter]):
            self.db.execute(f"CREATE VIEW IF NOT EXISTS {name} AS {LIBRARY.files[name].select}")
        return self.db.execute(f"SELECT {columns} FROM {adapter}").fetchall()


@pytest.fixture
def trace() -> Trace:
    made = Trace()
    made.put("cpu", (0, 0), (1, 1))
    made.put("thread", (0, 0, "swapper", 0), (1, 23, "dd", 1))
    made.put("process", (0, 0, None), (1, 23, "dd"))
    return made


def test_fields_under_older_names(trace: Trace) -> None:
    trace.event("balance_dirty_pages", 10, bdi="8:0", bdi_setpoint=7, pages_dirtied=4, limit=9)
    trace.event("balance_dirty_pages", 20, wb_setpoint=8, bdi_setpoint=1)
    columns = 'ts, tid, bdi, wb_setpoint, dirtied, "limit", pause'
    assert trace.rows("raw_balance_dirty_pages", columns) == [
        (10, 23, "8:0", 7, 4, 9, None),
        (20, 23, None, 8, None, None, None),
    ]


def test_an_event_under_its_older_name(trace: Trace) -> None:
    trace.event("mm_vmscan_writepage", 10, pfn=23)
    trace.event("mm_vmscan_write_folio", 20, pfn=42)
    assert trace.rows("raw_mm_vmscan_write_folio", "ts, pfn") == [(10, 23), (20, 42)]


def test_seq_is_time_then_cpu(trace: Trace) -> None:
    trace.event("writeback_start", 20, ucpu=1)
    trace.event("writeback_start", 20, ucpu=0)
    trace.event("writeback_written", 10, ucpu=1)
    trace.event("kmalloc", 5)  # an event that no query reads
    assert trace.rows("raw_writeback_start", "seq, ts, cpu") == [(2, 20, 0), (3, 20, 1)]
    assert trace.rows("raw_writeback_written", "seq") == [(1,)]


def test_the_record_before(trace: Trace) -> None:
    """By the same thread, as prev_seq of a run database; NULL for the first."""
    trace.put("thread", (2, 42, "cp", 2))
    for ts, utid in ((10, 1), (20, 2), (30, 1), (40, 2)):
        trace.event("balance_dirty_pages", ts, utid=utid, pause=ts)
        trace.event("global_dirty_state", ts + 1, utid=utid)
    rows = trace.rows("raw_balance_dirty_pages", "seq, tid, prev_seq, pause")
    assert rows == [(1, 23, None, 10), (3, 42, None, 20), (5, 23, 1, 30), (7, 42, 3, 40)]
    states = trace.rows("raw_global_dirty_state", "seq, prev_seq")
    assert states == [(2, None), (4, 2), (6, 4), (8, 6)]


@pytest.mark.parametrize(
    ("major", "minor"), [(8, 0), (8, 17), (254, 3), (259, 256), (4095, 1048575), (7, 70000)]
)
def test_devices_are_numbered_as_in_user_space(trace: Trace, major: int, minor: int) -> None:
    trace.event("block_rq_issue", 10, dev=userspace_dev(major << 20 | minor))
    assert trace.rows("raw_block_rq_issue", "dev_major, dev_minor") == [(major, minor)]


@pytest.mark.parametrize(
    "release",
    ["6.1.0-56-cloud-amd64", "4.4.1", "4.19.0", "5.15.1", "6.6.0", "6.18.44", "7.3.0", "3.1", ""],
)
def test_labels_are_those_of_near_kernels(trace: Trace, release: str) -> None:
    """As the database of a Perfetto trace has them."""
    if release:
        trace.put("metadata", ("system_release", release, None))
    events = [
        f"writeback:writeback_{part}" for part in ("queue", "exec", "start", "written", "wait")
    ]
    expected = {
        (event, label.field, label.value, label.label)
        for event in events
        for label in load_references(release).labels(*event.split(":"))
        if not label.is_flag
    }
    found = {row for row in trace.rows("raw_enum_label") if row[0] in events}
    assert found == expected
    assert len(found) > 5 or release in ("3.1", "")


CONFIG = """data_sources {
  config {
    ftrace_config {
      ftrace_events: "writeback/balance_dirty_pages"
      ftrace_events: "sched_switch"
      ftrace_events: "jbd2/*"
      ftrace_events: "vendor/odd"
      ftrace_events: "kmem/kmalloc*"
      buffer_size_kb: 10
"""


def test_what_could_be_recorded(trace: Trace) -> None:
    trace.put("metadata", ("trace_config_pbtxt", CONFIG, None))
    trace.event("odd", 10)
    trace.event("sys_enter", 20)
    events = {row[0] for row in trace.rows("raw_event_format", "event")}
    assert events == {
        "writeback:balance_dirty_pages",
        "sched:sched_switch",
        "vendor:odd",
        "sys_enter",
        *(f"jbd2:{name}" for name in JBD2),
    }
    assert trace.rows("raw_event_counts") == [("vendor:odd", 1, 1), ("sys_enter", 1, 1)]


def test_what_could_not_be_enabled(trace: Trace) -> None:
    """Trace processor has these lines, in one row or in several; a prefix is no match."""
    trace.put(
        "metadata",
        ("trace_config_pbtxt", CONFIG, None),
        (
            "ftrace_setup_errors",
            "Ftrace event failed: writeback/balance_dirty_pages\n"
            "Ftrace event failed: jbd2/jbd2_start_commit\nFtrace event failed: x/sched_sw\n",
            None,
        ),
        ("ftrace_setup_errors", "Ftrace event unknown: vendor/odd\n", None),
    )
    trace.event("jbd2_start_commit", 10)
    assert {row[0] for row in trace.rows("raw_event_format", "event")} == {
        "sched:sched_switch",
        *(f"jbd2:{name}" for name in JBD2),
    }
    assert dict(trace.rows("raw_meta"))["refused_events"] == "writeback:balance_dirty_pages"


def test_only_the_first_machine_is_read(trace: Trace) -> None:
    """Thread and CPU numbers of two are the same; NULL is the host."""
    trace.put("thread", (7, 23, "guest", 1, 2))
    trace.put("cpu", (4096, 0))
    trace.put("counter_track", (1, "nr_dirty", "vmstat"), (2, "nr_dirty", "vmstat", 2))
    trace.put("counter", (1, 10, 5), (2, 5, 7), (2, 90, 8))
    trace.put("metadata", ("trace_config_pbtxt", CONFIG, None))
    trace.put("metadata", ("system_release", "of the last", None))
    trace.event("writeback_start", 20)
    trace.event("writeback_start", 10, ucpu=4096, utid=7)
    trace.event("writeback_exec", 30, ucpu=4096, utid=7)
    assert trace.rows("raw_writeback_start", "seq, ts, tid") == [(1, 20, 23)]
    assert trace.rows("raw_event_format", "event") == [("writeback:writeback_start",)]
    assert trace.rows("raw_event_counts", "event, count") == [("writeback:writeback_start", 1)]
    assert trace.rows("raw_task", "tid, comm, first_ts, events_count") == [(23, "dd", 20, 1)]
    assert trace.rows("raw_vmstat") == [("before", 10, "nr_dirty", 5)]
    facts = dict(trace.rows("raw_meta"))
    assert (facts["first_ts"], facts["last_ts"], facts["events_count"]) == (20, 20, 1)
    assert (facts["machines_count"], facts["other_machines_events_count"]) == (2, 2)
    assert "kernel_release" not in facts


JBD2 = sorted(name.removeprefix("raw_") for name in LIBRARY.files if name.startswith("raw_jbd2_"))


def test_no_configuration(trace: Trace) -> None:
    trace.event("writeback_start", 10)
    assert trace.rows("raw_event_format") == [("writeback:writeback_start", "perfetto")]


def test_tasks_by_tid(trace: Trace) -> None:
    """A thread number that is used again is one task with the last name."""
    trace.put("thread", (2, 40, "first", 2), (3, 40, "second", 3), (4, 50, None, 4))
    trace.put("process", (2, 9, None), (3, 9, None), (4, 50, "named as its process"))
    trace.event("x", 10, utid=0)
    trace.event("x", 20, utid=2)
    trace.event("x", 30, utid=3)
    trace.event("x", 40, utid=3)
    trace.event("x", 50, utid=4)
    assert trace.rows("raw_task") == [
        (0, "<idle>", 10, 10, 1),
        (40, "second", 20, 40, 3),
        (50, "named as its process", 50, 50, 1),
    ]


def test_names_of_processes(trace: Trace) -> None:
    """For threads without a name of their own; a path is no name."""
    names = ["/usr/bin/fio", "./dd", "kworker/0:1", "/bin/", "a b", None]
    for i, name in enumerate(names):
        trace.put("process", (10 + i, 100 + i, name))
        trace.put("thread", (10 + i, 200 + i, None, 10 + i))
        trace.event("x", 10 + i, utid=10 + i)
    trace.put("thread", (20, 300, "/opt/named", 10))
    trace.event("x", 30, utid=20)
    found = [row[0] for row in trace.rows("raw_task", "comm")]
    assert found == ["fio", "dd", "kworker/0:1", "/bin/", "a b", None, "named"]


def test_lost_events(trace: Trace) -> None:
    trace.event("x", 10)
    trace.event("x", 90)
    trace.put(
        "stats",
        ("ftrace_cpu_overrun_delta", 0, "info", 5),
        ("ftrace_cpu_dropped_events_delta", 0, "error", 2),
        ("ftrace_cpu_has_data_loss", 0, "data_loss", 1),
        ("ftrace_cpu_has_data_loss", 1, "data_loss", 1),
        ("ftrace_cpu_overrun_delta", 1, "info", 0),
        ("traced_buf_patches_failed", 0, "data_loss", 1),
    )
    assert sorted(trace.rows("raw_lost_events"), key=str) == [
        (10, 1, None),
        (10, None, None),
        (90, 0, 7),
    ]
    facts = dict(trace.rows("raw_meta"))
    assert (facts["lost_gaps_count"], facts["lost_events_count"]) == (3, 7)
    assert (facts["first_ts"], facts["last_ts"], facts["events_count"]) == (10, 90, 2)
    counted = {row[0]: row[2] for row in trace.rows("raw_ingest_stats")}
    assert counted["perfetto_ftrace_cpu_has_data_loss"] == 2
    assert "perfetto_ftrace_cpu_overrun_delta" not in counted  # for information


@pytest.mark.parametrize(
    ("machine", "page_bytes", "long_bytes"),
    [("x86_64", 4096, 8), ("aarch64", None, 8), ("i686", 4096, 4), ("armv7l", None, 4)],
)
def test_machines(trace: Trace, machine: str, page_bytes: int | None, long_bytes: int) -> None:
    trace.put("metadata", ("system_machine", machine, None), ("system_release", "6.1.0", None))
    facts = dict(trace.rows("raw_meta"))
    assert facts.get("page_bytes") == page_bytes
    assert facts["long_bytes"] == long_bytes
    assert facts["kernel_release"] == "6.1.0"


def test_counters_before_and_after(trace: Trace) -> None:
    trace.put("counter_track", (1, "nr_dirty", "vmstat"), (2, "pgpgin", "vmstat"))
    trace.put("counter_track", (3, "MemTotal", "meminfo"), (4, "nr_dirty", "other"))
    trace.put("counter", (1, 10, 5.0), (1, 20, 9.0), (1, 30, 7.0), (2, 10, 23.0), (4, 1, 1.0))
    trace.put("counter", (3, 10, 2048.0))
    assert sorted(trace.rows("raw_vmstat"), key=repr) == [
        ("after", 30, "nr_dirty", 7),
        ("before", 10, "nr_dirty", 5),
        ("before", 10, "pgpgin", 23),
        ("sampled", 20, "nr_dirty", 9),
    ]
    assert trace.rows("raw_meminfo") == [("before", 10, "MemTotal", 2, "kB")]


@pytest.mark.parametrize("name", ["raw_zone", "raw_cgroup", "raw_sidecar_file"])
def test_what_no_trace_has_is_empty(trace: Trace, name: str) -> None:
    assert trace.rows(name) == []
    columns = [row[1] for row in trace.db.execute(f"PRAGMA table_info({name})")]
    assert columns == [column.name for column in LIBRARY.files[name].columns]


def test_both_engines_have_the_same_columns() -> None:
    sqlite = load_library(REPOSITORY / "sql").files
    # Trace processor has a table of all events of its own.
    raw = {name: file for name, file in sqlite.items() if file.kind == "raw" and name != EVENTS}
    assert len(raw) > 80
    for name, file in raw.items():
        assert LIBRARY.files[name].columns == file.columns, name
        assert LIBRARY.files[name].source_events == file.source_events
        assert LIBRARY.files[name].source_table == file.source_table
