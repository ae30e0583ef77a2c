# SPDX-License-Identifier: Apache-2.0
"""`query --engine perfetto`, the macros of ui/, and the engine harness itself."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope, check_error
from support.parity import assert_same
from support.pftrace import PerfettoEngine, TraceProcessorError
from support.runs import REPOSITORY
from support.stdlib import SOURCE, Drawn, macros, run_macro, sql_modules
from support.timeline import CounterSample, Slice, engine_counters, engine_slices
from support.twins import Twin
from wbscope.base.errors import InputError, UsageError, WbscopeError
from wbscope.base.result import Result
from wbscope.library.library import load_library
from wbscope.perfetto.package import PACKAGE
from wbscope.perfetto.trace_processor import wasm_engine
from wbscope.run.run import Run, open_run

# `query --engine perfetto`: the answers of the engine sqlite, for the same run folder.

EXAMPLES = sorted(path.parent.name for path in REPOSITORY.glob("examples/*/trace.dat"))
QUERIES = [query.name for query in load_library(REPOSITORY / "sql").queries()]
# Query, filters, and whether they leave any row. The run has one bdi and one cgroup.
FILTERS: tuple[tuple[str, dict[str, Any], bool], ...] = (
    ("throughput", {"window": "500ms"}, True),
    ("throttle_windows", {"window": "1s", "start": "2s", "end": "5s"}, True),
    ("throttle_by_task", {"tid": 123}, True),
    ("throttle_by_task", {"bdi": "8:0"}, False),
    ("stalls", {"tid": 123, "end": "4s"}, True),
    ("stalls", {"task": "d?"}, True),
    ("throttle_by_task", {"task": "no such"}, False),
    ("fairness", {"cgroup": 23}, False),
    ("fairness", {"window": "2s"}, True),
    ("dirty_position", {"window": "3s", "start": "1s"}, True),
    ("stalls", {"task": "[!d]*"}, True),
    ("throttle_by_task", {"task": "nobody"}, False),
    ("throttle_windows", {"task": "d[^d]"}, False),
)


@pytest.fixture(scope="session")
def the_engine_of_the_tests(engine_is_there: None) -> Iterator[None]:
    """Every machine tests with the same engine, whatever else is installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wbscope.perfetto.trace_processor.find_engine", wasm_engine)
        yield


@dataclass(frozen=True)
class Both:
    """A run folder with a Perfetto trace, open in both engines."""

    twin: Twin
    perfetto: Run
    sqlite: Run


@pytest.fixture(scope="module", params=EXAMPLES)
def both(request: pytest.FixtureRequest, twin_of: Callable[[str], Twin]) -> Iterator[Both]:
    twin = twin_of(request.param)
    with open_run(twin.folder, engine="perfetto") as ours, open_run(twin.perfetto_db) as theirs:
        yield Both(twin, ours, theirs)


@pytest.fixture(scope="module")
def few(twin_of: Callable[[str], Twin]) -> Iterator[Both]:
    twin = twin_of("four-equal-writers")
    with open_run(twin.folder, engine="perfetto") as ours, open_run(twin.perfetto_db) as theirs:
        yield Both(twin, ours, theirs)


def told(error: WbscopeError, run: Run) -> tuple[Any, ...]:
    """All that an error says, without the name of the run."""
    texts = (error.subject, error.message, error.have, error.fix)
    return (error.slug, *(text and text.replace(run.name, "RUN") for text in texts))


def answer(run: Run, name: str, **filters: Any) -> Result | tuple[Any, ...]:
    try:
        return run.query(name, **filters)
    except WbscopeError as error:
        return told(error, run)


def assert_equal(ours: Result | tuple[Any, ...], theirs: Result | tuple[Any, ...]) -> None:
    if isinstance(ours, tuple) or isinstance(theirs, tuple):
        assert ours == theirs
        return
    assert ours.columns == theirs.columns
    assert ours.units == theirs.units
    assert ours.warnings == theirs.warnings
    assert_same(ours.columns, ours.rows, theirs.rows)


@pytest.mark.usefixtures("the_engine_of_the_tests")
@pytest.mark.parametrize("name", QUERIES)
def test_query(both: Both, name: str) -> None:
    ours, theirs = answer(both.perfetto, name), answer(both.sqlite, name)
    if name == "findings":  # with commands that name the run
        assert isinstance(ours, Result)
        assert isinstance(theirs, Result)
        assert ours.rows
        ours, theirs = without_name(ours, both.perfetto), without_name(theirs, both.sqlite)
    assert_equal(ours, theirs)


def without_name(result: Result, run: Run) -> Result:
    place = result.columns.index("evidence")
    rows = [
        (*row[:place], row[place] and row[place].replace(run.name, "RUN"), *row[place + 1 :])
        for row in result.rows
    ]
    return replace(result, rows=rows)


@pytest.mark.usefixtures("the_engine_of_the_tests")
@pytest.mark.parametrize(("name", "filters", "any_row"), FILTERS)
def test_filters(few: Both, name: str, filters: dict[str, Any], any_row: bool) -> None:
    ours = few.perfetto.query(name, **filters)
    assert_equal(ours, few.sqlite.query(name, **filters))
    assert bool(ours.rows) == any_row
    assert ours.rows != few.perfetto.query(name).rows


@pytest.mark.usefixtures("the_engine_of_the_tests")
def test_a_filter_that_does_not_fit(few: Both) -> None:
    ours = answer(few.perfetto, "throughput", tid=1)
    assert isinstance(ours, tuple)
    assert ours[0] == "no-such-filter"
    assert ours == answer(few.sqlite, "throughput", tid=1)


@pytest.mark.usefixtures("the_engine_of_the_tests")
def test_the_command(few: Both, wbscope: Wbscope) -> None:
    """The whole document, but for the name that the command was given."""
    words = ("throttle_by_task", "--from", "1s", "--to", "6s")
    ours = wbscope.document("query", *words, few.twin.folder, "--engine", "perfetto")
    theirs = wbscope.document("query", *words, few.twin.perfetto_db)
    ours.pop("run"), theirs.pop("run")
    assert ours == theirs
    assert len(ours["rows"]) == 4


@pytest.mark.usefixtures("the_engine_of_the_tests")
@pytest.mark.parametrize("kind", ["folder", "database"])
def test_other_runs_are_refused(few: Both, wbscope: Wbscope, kind: str) -> None:
    run = few.twin.recorded if kind == "folder" else few.twin.recorded_db
    done = wbscope.run("query", "fairness", run, "--engine", "perfetto")
    assert done.returncode == 2
    assert done.stdout == ""
    check_error(done.stderr, "not-for-engine", run, fix=f"wbscope report {run}")


@pytest.mark.usefixtures("the_engine_of_the_tests")
def test_a_packed_trace_is_asked_without_the_engine(
    few: Both, wbscope: Wbscope, tmp_path: Path
) -> None:
    """Trace processor unpacks gz and zip; the fix reads any other."""
    trace = few.twin.trace
    packed = tmp_path / "run.pftrace.xz"
    packed.write_bytes(lzma.compress(trace.read_bytes(), preset=0))
    done = wbscope.run("query", "fairness", packed, "--engine", "perfetto")
    assert (done.returncode, done.stdout) == (2, "")
    check_error(done.stderr, "not-for-engine", packed, fix=f"wbscope report {packed} ")
    assert wbscope.run("report", packed).returncode == 0
    packed.with_suffix(".gz").write_bytes(gzip.compress(trace.read_bytes(), 1))
    words = ("query", "fairness", packed.with_suffix(".gz"), "--engine", "perfetto")
    assert wbscope.run(*words).returncode == 0


@pytest.mark.usefixtures("the_engine_of_the_tests")
def test_what_is_no_trace(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pftrace"
    wrong.write_bytes(b"\n\0\1\2 no packet" * 30)
    with pytest.raises(InputError) as told:
        open_run(wrong, engine="perfetto")
    assert told.value.slug == "perfetto-refused"
    assert os.listdir(tmp_path) == ["wrong.pftrace"]


@pytest.mark.usefixtures("the_engine_of_the_tests")
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("sql", ("SELECT 1",)),
        ("tables", ()),
        ("columns", ("meta",)),
        ("texts", (["fio.json"],)),
    ],
)
def test_what_only_a_database_can_answer(few: Both, what: str, words: tuple[Any, ...]) -> None:
    with pytest.raises(UsageError) as told:
        getattr(few.perfetto, what)(*words)
    assert (told.value.slug, told.value.subject) == ("sqlite-only", what)
    assert getattr(few.sqlite, what)(*words) is not None


@pytest.mark.usefixtures("the_engine_of_the_tests")
def test_a_cut_trace_is_said_to_be_damaged(few: Both, tmp_path: Path) -> None:
    trace = tmp_path / "cut.pftrace"
    shutil.copy(few.twin.trace, trace)
    os.truncate(trace, trace.stat().st_size - 5)
    with open_run(trace, engine="perfetto") as run:
        assert "damaged-trace" in {notice.slug for notice in run.query("fairness").warnings}


# The engine harness itself: a small trace made here gives the rows that were put into it.


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


# Every macro of ui/ on traces as Perfetto's recorder writes them, in the real engine.
#
# What a macro draws is compared with the same SQL over the run's SQLite database.

MACROS = macros()
LIBRARY = load_library(REPOSITORY / "sql")
MACRO_EXAMPLES = ("deep", "reclaim-writes")
# What must be there to see in some example.
WITHOUT_TRACKS = {f"{PACKAGE}.Doubts"}
OWN_NAME = re.compile(rf"\b{PACKAGE}_(\w+)\b")


@dataclass(frozen=True)
class Recorded:
    """A trace by Perfetto in the engine, with the extension server's modules."""

    engine: PerfettoEngine
    sqlite: Run
    drawn: dict[str, list[Drawn]]


@pytest.fixture(scope="module", params=MACRO_EXAMPLES)
def recorded(request: pytest.FixtureRequest, twin_of: Callable[[str], Twin]) -> Iterator[Recorded]:
    twin = twin_of(request.param)
    with open_run(twin.recorded_db) as run, PerfettoEngine() as engine:
        engine.load(twin.trace)
        engine.register(PACKAGE, sql_modules())
        yield Recorded(engine, run, {id: run_macro(engine, MACROS[id]) for id in MACROS})


def sources(name: str) -> list[dict[str, Any]]:
    """The steps of a macro's source."""
    (entry,) = (entry for entry in SOURCE["macro"] if f"{PACKAGE}.{entry['id']}" == name)
    steps: list[dict[str, Any]] = entry["steps"]
    return steps


def portable(sql: str) -> str:
    """For SQLite: the queries and the macros' own views are made of their SELECTs."""
    needed: dict[str, str] = {}
    waiting = OWN_NAME.findall(sql)
    while waiting:
        name = waiting.pop()
        select = own_select(name)
        if name not in needed:
            needed[name] = select
            waiting += OWN_NAME.findall(select)
    if not needed:
        return sql.strip()
    made = ",\n".join(f"{PACKAGE}_{name} AS ({needed[name]})" for name in reversed(needed))
    return f"WITH {made}\n{sql.strip()}"


def own_select(name: str) -> str:
    if name in LIBRARY.files:
        return LIBRARY.files[name].select
    for module in SOURCE["module"]:
        head = rf"CREATE PERFETTO (?:VIEW|TABLE) {PACKAGE}_{name}\(.*?\n\) AS\n(.*);"
        if found := re.search(head, module["sql"], re.DOTALL):
            return found[1]
    raise AssertionError(f"{PACKAGE}_{name} is no query and no view of a macro")


@pytest.mark.parametrize("name", MACROS)
def test_draws_what_sqlite_answers(recorded: Recorded, name: str) -> None:
    for step, drawn in zip(sources(name), recorded.drawn[name], strict=True):
        if "table" in step:
            assert drawn.title == step["table"]
            continue
        columns = "ts, dur, name" if "slices" in step else "ts, value"
        sql = f"SELECT {columns}, {step['each']} FROM (\n{portable(step['sql'])}\n)"
        theirs = sorted(recorded.sqlite.sql(sql).rows)
        assert_same(drawn.columns, sorted(drawn.rows), theirs)


@pytest.mark.parametrize("name", MACROS)
def test_tables_are_the_queries(recorded: Recorded, name: str) -> None:
    """Their rows are compared in test_parity.py."""
    tables = [drawn for drawn in recorded.drawn[name] if drawn.command == "RunQueryAndShowTab"]
    assert tables
    assert all(table.columns for table in tables)


@pytest.mark.parametrize("name", MACROS)
def test_tracks_have_names_and_times(recorded: Recorded, name: str) -> None:
    for drawn in recorded.drawn[name]:
        if drawn.command == "RunQueryAndShowTab":
            continue
        for row in drawn.rows:
            assert isinstance(row[0], int)
            assert row[-1], "a track without a name stops the UI"
            if drawn.command.startswith("AddDebugSlice"):
                assert row[1] >= 0
                assert row[2]
            else:
                assert isinstance(row[1], float)


def test_there_is_something_to_see(recorded: Recorded) -> None:
    """Each macro draws something, but what this run has not."""
    empty = {
        name
        for name, drawn in recorded.drawn.items()
        if not any(d.rows for d in drawn if d.command != "RunQueryAndShowTab")
    }
    assert empty - WITHOUT_TRACKS <= {f"{PACKAGE}.{n}" for n in ("Reclaim", "BlockRequests")}
