# SPDX-License-Identifier: Apache-2.0
"""Converted traces in the real trace processor: all events are there, its own tables are filled.

That every value is the recorded one, test_converted_values.py shows without the engine; here is
what the engine makes of them.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.archives import unpacked
from support.cli import Wbscope
from support.pfread import read_trace
from support.pftrace import PerfettoEngine, read_clocks, userspace_dev
from support.report import count_events, report_lines
from support.runs import REPOSITORY, RecordedRun, example

EXAMPLES = sorted(path.parent.name for path in REPOSITORY.glob("examples/*/trace.dat"))
SAMPLES = unpacked("data") / "traces"
INSTANCES = sorted(
    path.parent.name
    for glob in ("*-instances/trace.dat", "*-instance/trace.dat")
    for path in SAMPLES.glob(glob)
)
ROWS_OF_AN_EVENT = 300
COUNTS = "SELECT name, COUNT(*) AS n FROM ftrace_event GROUP BY name"
COMPLAINTS = (
    "SELECT name, idx, severity, value FROM stats"
    " WHERE severity IN ('error', 'data_loss') AND value > 0 ORDER BY name, idx"
)
# prev_state of 4.14 and later: the bits that sched_switch reports, as letters.
STATES = {0: "R", 1: "S", 2: "D", 4: "T", 8: "t", 16: "X", 32: "Z", 64: "P", 128: "I", 256: "R+"}


@dataclass(frozen=True)
class Loaded:
    """An example as a database with every event, and in the engine."""

    name: str
    database: sqlite3.Connection
    engine: PerfettoEngine

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.database.execute(sql).fetchall()

    def has(self, event: str) -> bool:
        return bool(self.rows(f"SELECT 1 FROM event_counts WHERE event = '{event}'"))


def convert(wbscope: Wbscope, output: Path, *words: str | Path) -> list[dict[str, Any]]:
    """Convert; the warnings."""
    done: list[dict[str, Any]] = wbscope.document("convert", *words, "-o", output)["warnings"]
    return done


def machine_names(trace: Path) -> dict[int, str]:
    """Machines that the trace tells of, and what it calls them."""
    heads = [packet for packet in read_trace(trace).packets if packet.HasField("system_info")]
    return {head.machine_id: head.system_info.machine_name for head in heads}


def counts(engine: PerfettoEngine) -> dict[str, int]:
    return {str(row["name"]): int(str(row["n"])) for row in engine.query(COUNTS)}


@pytest.fixture(scope="module", params=EXAMPLES)
def loaded(
    request: pytest.FixtureRequest,
    converted: Callable[[RecordedRun], Path],
    every_event: Callable[[RecordedRun], Path],
) -> Iterator[Loaded]:
    run = example(request.param)
    with PerfettoEngine() as engine, sqlite3.connect(every_event(run)) as database:
        engine.load(converted(run))
        yield Loaded(request.param, database, engine)


def test_there_are_enough() -> None:
    assert len(EXAMPLES) >= 5


def test_counts_are_those_of_the_report(loaded: Loaded) -> None:
    trace = example(loaded.name).trace
    assert counts(loaded.engine) == count_events(report_lines(trace))


def test_the_engine_has_nothing_to_complain_of(loaded: Loaded) -> None:
    assert loaded.engine.query(COMPLAINTS) == []


def test_arguments_are_the_fields(loaded: Loaded) -> None:
    """Of every event, as SQL reads them; the last element only of arrays with their own message."""
    compared = 0
    for event, table in loaded.rows("SELECT event, table_name FROM event_counts WHERE count > 0"):
        name = event.partition(":")[2]
        fields = loaded.rows(
            "SELECT field, column_name, type FROM event_field"
            f" WHERE event = '{event}' AND kind IN ('integer', 'text') ORDER BY rowid"
        )
        ours = loaded.engine.table(
            "SELECT f.ts, c.cpu, t.tid"
            + "".join(f", EXTRACT_ARG(f.arg_set_id, '{field}')" for field, *_ in fields)
            + " FROM ftrace_event AS f JOIN thread AS t USING (utid) JOIN cpu AS c USING (ucpu)"
            f" WHERE f.name = '{name}' ORDER BY f.ts, c.cpu, f.id LIMIT {ROWS_OF_AN_EVENT}"
        )[1]
        theirs = loaded.rows(
            "SELECT ts, cpu, tid"
            + "".join(f', "{column}"' for _, column, _ in fields)
            + f' FROM "{table}" ORDER BY ts, cpu, seq LIMIT {ROWS_OF_AN_EVENT}'
        )
        for our, their in zip(ours, theirs, strict=True):
            for (field, _, kind), a, b in zip(fields, our[3:], their[3:], strict=True):
                if a is None and field in no_place(event):
                    continue
                assert a == as_shown(loaded, b, kind, a), f"{event}.{field} at {our[:3]}"
            assert our[:3] == their[:3], event
        compared += len(ours)
    assert compared > 1000


def no_place(event: str) -> set[str]:
    """Fields of the header, and what Perfetto's messages lack: a warning tells that."""
    is_left_out = event.startswith(("vmscan:mm_vmscan_direct_reclaim", "vmscan:mm_shrink_slab"))
    return {"common_flags", "memcg_id"} if is_left_out else {"common_flags"}  # 7.2


def as_shown(loaded: Loaded, value: Any, kind: str, ours: Any) -> Any:
    if kind.startswith("dev_t"):
        return userspace_dev(value)
    if isinstance(value, int) and isinstance(ours, str):  # an address with a saved name
        found = loaded.rows(
            "SELECT name || CASE WHEN \"offset\" > 0 THEN printf('+0x%x', \"offset\") ELSE '' END"
            f" FROM symbol WHERE address = {value}"
        )
        return found[0][0] if found else value
    return value


def test_scheduling_fills_its_tables(loaded: Loaded) -> None:
    """sched_slice and thread_state say what SQL over the recorded switches says."""
    if not loaded.has("sched:sched_switch"):
        assert loaded.engine.query("SELECT 1 FROM sched_slice LIMIT 1") == []
        return
    switches = (
        "SELECT ts, cpu, next_pid, next_prio, prev_pid, prev_state,"
        " LEAD(ts) OVER w AS next_ts, LEAD(prev_pid) OVER w AS then_prev,"
        " LEAD(prev_state) OVER w AS end_state"
        " FROM ev_sched_switch WINDOW w AS (PARTITION BY cpu ORDER BY seq)"
    )
    theirs = loaded.rows(
        "SELECT ts, cpu, next_pid, next_prio, next_ts - ts, end_state"
        f" FROM ({switches}) WHERE next_ts IS NOT NULL ORDER BY ts, cpu"
    )
    ours = loaded.engine.table(
        "SELECT s.ts, c.cpu, t.tid, s.priority, s.dur, s.end_state FROM sched_slice AS s"
        " JOIN thread AS t USING (utid) JOIN cpu AS c USING (ucpu)"
        " WHERE s.end_state IS NOT NULL ORDER BY s.ts, c.cpu"
    )[1]
    assert ours == [(*row[:5], STATES[row[5]]) for row in theirs]
    running = loaded.engine.table(
        "SELECT st.ts, c.cpu, t.tid FROM thread_state AS st JOIN thread AS t USING (utid)"
        " JOIN cpu AS c USING (ucpu)"
        " WHERE st.state = 'Running' AND t.tid > 0 ORDER BY st.ts, c.cpu"
    )[1]
    started = Counter((row[0], row[1], row[2]) for row in theirs if row[2] > 0)
    # The task that runs when the trace begins has no switch to itself, the last ones no end.
    assert len(theirs) > 500
    assert sum((started - Counter(running)).values()) == 0
    sleeps = loaded.engine.query("SELECT COUNT(*) AS n FROM thread_state WHERE state = 'D'")
    assert int(str(sleeps[0]["n"])) > 0


def test_threads_have_their_names(loaded: Loaded) -> None:
    named = dict(loaded.rows("SELECT tid, comm FROM task WHERE comm IS NOT NULL AND tid > 0"))
    rows = loaded.engine.query(
        "SELECT DISTINCT t.tid, t.name FROM ftrace_event JOIN thread AS t USING (utid)"
        " WHERE t.tid > 0"
    )
    ours = {row["tid"]: row["name"] for row in rows}
    assert {tid: ours[tid] for tid in named} == named
    assert loaded.engine.query("SELECT pid FROM process WHERE pid > 0") == []  # none is told


def test_the_machine_is_told(loaded: Loaded) -> None:
    meta = dict(loaded.rows("SELECT key, value FROM meta"))
    rows = loaded.engine.query("SELECT name, str_value FROM metadata")
    told = {row["name"]: row["str_value"] for row in rows}
    assert told["system_release"] == meta["kernel_release"]
    assert told["system_machine"] == "x86_64"


# One example in the older form; recorded samples of what examples do not have.


def test_compat_has_the_same_content(wbscope: Wbscope, tmp_path: Path) -> None:
    folder = example("four-equal-writers").folder
    both = []
    for options in ((), ("--compat",)):
        trace = tmp_path / f"{len(options)}.pftrace"
        convert(wbscope, trace, folder, *options)
        with PerfettoEngine() as engine:
            engine.load(trace)
            assert engine.query(COMPLAINTS) == []
            both.append(
                engine.table(
                    "SELECT f.ts, f.name, c.cpu, t.tid, a.key, a.int_value, a.string_value"
                    " FROM ftrace_event AS f JOIN thread AS t USING (utid)"
                    " JOIN cpu AS c USING (ucpu) LEFT JOIN args AS a USING (arg_set_id)"
                    " ORDER BY f.ts, c.cpu, f.id, a.id"
                )[1]
            )
    assert both[0] == both[1]
    assert len(both[0]) > 50_000
    assert (tmp_path / "1.pftrace").stat().st_size > (tmp_path / "0.pftrace").stat().st_size
    data = (tmp_path / "1.pftrace").read_bytes()
    assert b"balance_dirty_pages" in data.replace(b"writeback/balance_dirty_pages", b"")


@pytest.mark.parametrize(
    ("sample", "clock"),
    [
        ("6.1-amd64-v7-clock-boot", 6),
        ("6.1-amd64-v7-clock-mono", 3),
        ("6.1-amd64-v7-clock-mono_raw", 5),
        ("6.1-amd64-v7-clock-local", 6),
        ("6.1-amd64-v7-clock-tai", 6),
        ("6.1-amd64-v7-clock-perf", 10),
        ("6.1-amd64-v7-clock-x86-tsc", 9),
        ("6.1-amd64-v6-clock-tsc2nsec", 6),
    ],
)
def test_clocks(wbscope: Wbscope, tmp_path: Path, sample: str, clock: int) -> None:
    """Times are what they were; the trace says which clock they are of."""
    trace, database = tmp_path / "trace.pftrace", tmp_path / "run.db"
    warnings = convert(wbscope, trace, SAMPLES / sample / "trace.dat")
    assert [w["slug"] for w in warnings] == (["clock-in-ticks"] if clock == 9 else [])
    done = wbscope.run("ingest", SAMPLES / sample / "trace.dat", "-o", database, "--all")
    assert done.returncode == 0
    with PerfettoEngine() as engine, sqlite3.connect(database) as db:
        engine.load(trace)
        meta = dict(db.execute("SELECT key, value FROM meta"))
        found = engine.query("SELECT MIN(ts) AS first, MAX(ts) AS last FROM ftrace_event")[0]
        assert found == {"first": meta["first_ts"], "last": meta["last_ts"]}
        assert engine.query(COMPLAINTS) == []
        told = engine.query("SELECT int_value FROM metadata WHERE name = 'trace_time_clock_id'")
        assert told == [{"int_value": clock}]


@pytest.mark.parametrize("sample", ["6.1-amd64-v7-lost-counted", "6.1-s390x-v7-lost"])
def test_lost_events(wbscope: Wbscope, tmp_path: Path, sample: str) -> None:
    trace, database = tmp_path / "trace.pftrace", tmp_path / "run.db"
    warnings = convert(wbscope, trace, SAMPLES / sample / "trace.dat")
    assert warnings[0]["slug"] == "lost-events"
    wbscope.run("ingest", SAMPLES / sample / "trace.dat", "-o", database)
    with PerfettoEngine() as engine, sqlite3.connect(database) as db:
        engine.load(trace)
        cpus = db.execute("SELECT DISTINCT cpu FROM lost_events ORDER BY cpu").fetchall()
        stats = engine.query(COMPLAINTS)
        lossy = [(s["idx"],) for s in stats if s["name"] == "ftrace_cpu_has_data_loss"]
        assert lossy == cpus
        # A gap can lie between two switches that do not follow each other; Perfetto says so.
        assert {s["name"] for s in stats} <= {
            "ftrace_cpu_has_data_loss",
            "mismatched_sched_switch_tids",
        }
        known = db.execute("SELECT TOTAL(count) FROM lost_events").fetchone()[0]
        rows = engine.query(
            "SELECT TOTAL(value) AS n FROM stats WHERE name = 'ftrace_cpu_overrun_delta'"
        )
        assert float(str(rows[0]["n"])) >= known


def test_instances_are_machines(wbscope: Wbscope, tmp_path: Path) -> None:
    source = SAMPLES / "6.1-amd64-v7-instances/trace.dat"
    trace, database = tmp_path / "trace.pftrace", tmp_path / "run.db"
    convert(wbscope, trace, source)
    wbscope.run("ingest", source, "-o", database, "--all")
    with PerfettoEngine() as engine, sqlite3.connect(database) as db:
        engine.load(trace)
        assert engine.query(COMPLAINTS) == []
        ours = engine.table(
            "SELECT COALESCE(m.raw_id, 0) AS machine, f.name, COUNT(*) FROM ftrace_event AS f"
            " JOIN cpu AS c USING (ucpu) LEFT JOIN machine AS m ON m.id = c.machine_id"
            " GROUP BY 1, 2 ORDER BY 1, 2"
        )[1]
        theirs = []
        for event, table in db.execute("SELECT event, table_name FROM event_counts").fetchall():
            for buffer, count in db.execute(
                f'SELECT buffer, COUNT(*) FROM "{table}" GROUP BY buffer'
            ):
                theirs.append((buffer, event.partition(":")[2], count))
        assert ours == sorted(theirs)
        assert len({machine for machine, *_ in ours}) == 3


@pytest.mark.parametrize("sample", INSTANCES)
def test_times_of_all_machines_are_placed(wbscope: Wbscope, tmp_path: Path, sample: str) -> None:
    """In the engine, and by the rules that newer ones have of clocks."""
    trace = tmp_path / "trace.pftrace"
    convert(wbscope, trace, SAMPLES / sample / "trace.dat")
    recorded = sorted((record.machine, record.ts) for record in read_trace(trace).records)
    assert len({machine for machine, _ in recorded}) > 1
    graph = read_clocks(trace)
    assert dict(graph.lost) == {}
    assert graph.placed.total() > len(recorded)
    with PerfettoEngine() as engine:
        engine.load(trace)
        shown = engine.table(
            "SELECT COALESCE(m.raw_id, 0), f.ts FROM ftrace_event AS f"
            " JOIN cpu AS c USING (ucpu) LEFT JOIN machine AS m ON m.id = c.machine_id"
            " ORDER BY 1, 2"
        )[1]
        assert shown == recorded


@pytest.mark.parametrize("sample", ["6.1-amd64-v6-instances-only", "6.1-amd64-v7-instances-only"])
def test_an_empty_buffer_is_no_machine(wbscope: Wbscope, tmp_path: Path, sample: str) -> None:
    """With `trace-cmd record -B` the top buffer has no records: the instance is what was traced."""
    trace = tmp_path / "trace.pftrace"
    convert(wbscope, trace, SAMPLES / sample / "trace.dat")
    assert machine_names(trace) == {0: ""}
    records = read_trace(trace).records
    assert records
    assert {record.machine for record in records} == {0}


def test_a_host_and_its_guest(wbscope: Wbscope, tmp_path: Path) -> None:
    pair = [SAMPLES / f"6.1-amd64-v7-{name}/trace.dat" for name in ("host", "guest")]
    trace = tmp_path / "trace.pftrace"
    assert convert(wbscope, trace, *pair) == []  # the files know each other
    expected: Counter[str] = Counter()
    for path in pair:
        rows = wbscope.query("event_counts", path)
        expected.update({row["event"].partition(":")[2]: row["count"] for row in rows})
    with PerfettoEngine() as engine:
        engine.load(trace)
        assert engine.query(COMPLAINTS) == []
        assert counts(engine) == expected
        assert len(engine.query("SELECT id FROM machine")) == 2
    assert machine_names(trace) == {0: "", 1: "guest guest"}
    assert dict(read_clocks(trace).lost) == {}
    other = SAMPLES / "7.2-amd64-v7-guest/trace.dat"
    warnings = convert(wbscope, tmp_path / "other.pftrace", pair[0], other)
    assert [w["slug"] for w in warnings] == ["clocks-not-related"]


def test_fields_left_out_are_told_of_their_file(wbscope: Wbscope, tmp_path: Path) -> None:
    """Kernel 6.1 has no memcg_id of reclaim, 7.2 has."""
    older, newer = (example(name) for name in ("four-equal-writers", "four-equal-writers-7.2"))
    warnings = convert(wbscope, tmp_path / "both.pftrace", older.folder, newer.folder)
    told = [w["message"] for w in warnings if w["slug"] == "fields-left-out"]
    assert len(told) == 1
    assert told[0].startswith(f"{newer.trace}: ")
    assert "memcg_id" in told[0]


def test_function_graph(wbscope: Wbscope, tmp_path: Path) -> None:
    """Slices with the names that the trace saved."""
    trace, database = tmp_path / "trace.pftrace", tmp_path / "run.db"
    source = SAMPLES / "6.1-amd64-v7-graph/trace.dat"
    convert(wbscope, trace, source)
    wbscope.run("ingest", source, "-o", database, "--all")
    with PerfettoEngine() as engine, sqlite3.connect(database) as db:
        engine.load(trace)
        assert engine.query(COMPLAINTS) == []
        slices = engine.query("SELECT DISTINCT name FROM slice")
        names = {row[0] for row in db.execute("SELECT name FROM symbol")}
        assert {str(row["name"]).partition("+")[0] for row in slices} <= names
        assert len(slices) >= 5


def test_marks(wbscope: Wbscope, tmp_path: Path) -> None:
    """Text that no atrace wrote is an event like others, not an error."""
    trace = tmp_path / "trace.pftrace"
    convert(wbscope, trace, SAMPLES / "6.1-s390x-v7-marks/trace.dat")
    with PerfettoEngine() as engine:
        engine.load(trace)
        assert engine.query(COMPLAINTS) == []
        assert counts(engine)["print"] > 0
