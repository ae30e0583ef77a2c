# SPDX-License-Identifier: Apache-2.0
"""What `wbscope sql-package` writes, and recorded events that ride along in a timeline."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.archives import unpacked
from support.cli import Wbscope
from support.faults import snapshot
from support.pftrace import PerfettoEngine, TraceProcessorError, read_clocks
from support.runs import REPOSITORY, RecordedRun, drawn_runs, example
from support.twins import Twin
from wbscope.library.library import load_library
from wbscope.library.sqlfile import SqlFile
from wbscope.perfetto.package import module_of, modules
from wbscope.perfetto.perfetto_engine import has_schema, object_name, perfetto_type
from wbscope.perfetto.perfetto_library import perfetto_library

# What `wbscope sql-package` writes, as trace processor takes it with --add-sql-package.

LIBRARY = perfetto_library(REPOSITORY / "sql")
FILES = sorted(LIBRARY.files.values(), key=lambda file: file.name)
CELLS = {
    "LONG": int,
    "TIMESTAMP": int,
    "DURATION": int,
    "DOUBLE": float,
    "STRING": str,
}
# Facts of any type, as in the table meta of a run database.
ANY_TYPE = {("raw_meta", "value"), ("run_summary", "value")}


def modules_in(folder: Path) -> dict[str, str]:
    """As the shell names them: the folder's name, then the path with dots."""
    return {
        ".".join([folder.name, *path.relative_to(folder).with_suffix("").parts]): path.read_text()
        for path in folder.rglob("*.sql")
    }


@pytest.fixture(scope="module")
def package(wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package") / "wbscope"
    done = wbscope.run("sql-package", "-o", folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert f"--add-sql-package {folder} TRACE" in done.stderr
    return folder


@pytest.fixture(scope="module")
def fresh(package: Path, four_writers: Twin) -> Iterator[Callable[[], PerfettoEngine]]:
    """Engines with the trace and the package, and nothing included."""
    engines: list[PerfettoEngine] = []

    def start() -> PerfettoEngine:
        engine = PerfettoEngine()
        engines.append(engine)
        engine.load(four_writers.trace)
        engine.register("wbscope", modules_in(package))
        return engine

    yield start
    for engine in engines:
        engine.close()


@pytest.fixture(scope="module")
def engine(fresh: Callable[[], PerfettoEngine], package: Path) -> PerfettoEngine:
    """An engine that has included every module, one by one."""
    started = fresh()
    for module in sorted(modules_in(package), reverse=True):
        started.query(f"INCLUDE PERFETTO MODULE {module}")
    return started


def test_there_is_a_module_for_every_file(package: Path) -> None:
    found = modules_in(package)
    assert len(found) == len(FILES) + 1
    assert {"wbscope.library", "wbscope.views.wb_throttle", "wbscope.queries.stalls"} <= set(found)
    # A name with another dot would not be found, a keyword not be parsed.
    assert all(re.fullmatch(r"[a-z_][a-z0-9_.]*", name) for name in found)


def test_every_module_is_included_by_one(fresh: Callable[[], PerfettoEngine]) -> None:
    engine = fresh()
    engine.query("INCLUDE PERFETTO MODULE wbscope.library")
    for file in FILES:
        engine.query(f"SELECT 1 FROM {object_name(file)} LIMIT 1")


def test_no_module_nests_deep() -> None:
    """In a browser the engine ends without a word when modules include each other 18 deep."""
    texts = modules(LIBRARY)
    included = {
        name: re.findall(r"^INCLUDE PERFETTO MODULE (.*);$", text, re.MULTILINE)
        for name, text in texts.items()
    }

    def depth(name: str, seen: set[str]) -> int:
        if name in seen:
            return 0
        seen.add(name)
        return 1 + max((depth(below, seen) for below in included[name]), default=0)

    deepest = max((depth(name, set()), name) for name in included)
    assert deepest[0] <= 9, deepest


def test_a_query_includes_what_it_needs(fresh: Callable[[], PerfettoEngine]) -> None:
    engine = fresh()
    engine.query("INCLUDE PERFETTO MODULE wbscope.queries.fairness")
    assert len(engine.query("SELECT * FROM wbscope_fairness")) == 1
    with pytest.raises(TraceProcessorError, match="no such table"):
        engine.query("SELECT * FROM wbscope_stalls")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_columns_are_as_documented(engine: PerfettoEngine, file: SqlFile) -> None:
    columns, rows = engine.table(f"SELECT * FROM {object_name(file)}")
    told = file.columns
    assert columns == [column.name for column in told]
    assert all(column.description for column in told)
    for place, column in enumerate(told):
        kinds = {type(row[place]) for row in rows} - {type(None)}
        if (file.name, column.name) in ANY_TYPE:
            continue
        if (file.kind, column.name) == ("timeline", "value"):
            kinds -= {int}  # a counter can be a whole number
        assert kinds <= {CELLS[perfetto_type(column)]}, column.name


def test_each_column_has_its_comment(package: Path) -> None:
    """What Perfetto's own check of its modules asks for."""
    for file in FILES:
        _, folder, name = module_of(file).split(".")
        text = (package / folder / f"{name}.sql").read_text()
        statement = text[text.index("CREATE PERFETTO") :]
        assert "\n-- " in text[: text.index("CREATE PERFETTO")], "no description"
        assert not re.search(r"^\s*(DROP|INSERT|CREATE TABLE|CREATE VIEW)\b", text, re.MULTILINE)
        if has_schema(file):
            listed = statement[: statement.index("\n) AS")].splitlines()[1:]
            names = [line.split()[0] for line in listed if not line.startswith("  --")]
            assert names == [column.name for column in file.columns]
            assert listed[0].startswith("  -- ")
        else:
            assert {c.name for c in file.columns} & {"group", "index", "limit", "order"} or (
                file.name.startswith("raw_")
            )


def test_the_window_is_changed_as_the_page_says(fresh: Callable[[], PerfettoEngine]) -> None:
    page = (REPOSITORY / "docs" / "perfetto-sql.md").read_text()
    (block,) = (b for b in re.findall(r"```sql\n(.*?)```", page, re.DOTALL) if "wb_params" in b)
    assert "500000000 AS window_ns" in block
    wanted = [column.name for column in LIBRARY.files["wb_params"].columns]
    assert re.findall(r"AS (\w+)[,;]", block) == wanted
    told = fresh()
    for statement in block.replace("'8:0'", "NULL").split(";"):
        if statement.strip():
            told.query(statement)
    usual = fresh()
    usual.query("INCLUDE PERFETTO MODULE wbscope.queries.throughput")
    counts = [len(engine.query("SELECT * FROM wbscope_throughput")) for engine in (usual, told)]
    assert counts[1] >= 4 * counts[0] - 4 > counts[0]


def test_an_older_package_is_replaced(wbscope: Wbscope, tmp_path: Path) -> None:
    folder = tmp_path / "wbscope"
    assert wbscope.run("sql-package", "-o", folder).returncode == 0
    old = folder / "queries" / "gone.sql"
    old.write_text((folder / "library.sql").read_text())
    (folder / "library.sql").unlink()
    assert wbscope.run("sql-package", "-o", folder).returncode == 0
    assert not old.exists()
    assert (folder / "library.sql").is_file()
    assert os.listdir(tmp_path) == ["wbscope"]


def test_files_of_others_stay(wbscope: Wbscope, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    refused = wbscope.run("sql-package", "-o", tmp_path)
    assert refused.returncode == 2
    assert "error[output-exists]" in refused.stderr
    assert "notes.txt" in refused.stderr
    assert os.listdir(tmp_path) == ["notes.txt"]
    forced = wbscope.run("sql-package", "-o", tmp_path, "--force")
    assert forced.returncode == 0, forced.stderr
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert len(modules_in(tmp_path)) == len(FILES) + 1
    assert "@wbscope TRACE" in forced.stderr


@pytest.mark.parametrize("name", ["queries", "queries/fairness.sql", "library.sql", ".git"])
@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_has_the_name_of_a_module_and_is_none(
    wbscope: Wbscope, tmp_path: Path, name: str, kind: str
) -> None:
    """Not replaced with --force either; beside a .git of any kind the files are written."""
    folder, elsewhere = tmp_path / "package", tmp_path / "elsewhere"
    place = folder / name
    place.parent.mkdir(parents=True)
    elsewhere.mkdir()
    if kind == "link":
        place.symlink_to(elsewhere)
    elif kind == "folder":
        (place / "fairness.sql").mkdir(parents=True)
    else:
        place.write_text("SELECT 'mine'")
    before = snapshot(tmp_path)
    done = wbscope.run("sql-package", "-o", folder, "--force")
    after = snapshot(tmp_path)
    assert {path: after.get(path) for path in before} == before
    if name == ".git":
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 2
    assert f"have: {name}" in done.stderr
    assert after == before


def test_a_link_in_a_package_is_somebody_elses(wbscope: Wbscope, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    assert wbscope.run("sql-package", "-o", folder).returncode == 0
    (folder / "views/mine.sql").symlink_to("../library.sql")
    (folder / "empty").mkdir()
    refused = wbscope.run("sql-package", "-o", folder)
    assert refused.returncode == 2
    assert "have: empty/, views/mine.sql" in refused.stderr


@pytest.mark.parametrize(
    ("name", "slug"), [("file", "output-is-file"), ("none/wbscope", "no-output-folder")]
)
def test_what_cannot_be_a_folder(wbscope: Wbscope, tmp_path: Path, name: str, slug: str) -> None:
    (tmp_path / "file").write_text("")
    done = wbscope.run("sql-package", "-o", tmp_path / name)
    assert f"error[{slug}]" in done.stderr
    assert done.returncode in (2, 5)


def test_the_document(wbscope: Wbscope, tmp_path: Path) -> None:
    rows = wbscope.document("sql-package", "-o", tmp_path / "p")["rows"]
    assert rows == [
        {"output": str(tmp_path / "p"), "package": "wbscope", "modules_count": len(FILES) + 1}
    ]


# Recorded events ride along in a timeline: the ones that were chosen, on the same threads.

SAMPLES = unpacked("data") / "traces"
RUNS = ["deep", "four-equal-writers-7.2"]
COUNTS = "SELECT name, COUNT(*) AS n FROM ftrace_event GROUP BY name"


def timeline(wbscope: Wbscope, run: Path, output: Path, *options: str) -> Path:
    done = wbscope.run("timeline", run, "-o", output, *options)
    assert done.returncode == 0, done.stderr
    return output


def counts(file: Path) -> dict[str, int]:
    with PerfettoEngine() as engine:
        engine.load(file)
        return dict(engine.table(COUNTS)[1])  # type: ignore[arg-type]


def recorded(database: Path) -> dict[str, int]:
    """Events of the trace by name, loaded or not."""
    with sqlite3.connect(database) as connection:
        rows = connection.execute("SELECT event, count FROM event_counts WHERE count > 0")
        return dict(rows.fetchall())


@pytest.fixture
def database(request: pytest.FixtureRequest, wbscope: Wbscope, tmp_path: Path) -> Path:
    path = tmp_path / "run.db"
    assert wbscope.run("ingest", example(request.param).folder, "-o", path).returncode == 0
    return path


def named(events: dict[str, int]) -> dict[str, int]:
    """By the names that the engine has: without system, sys_enter_... as sys_enter."""
    found: dict[str, int] = {}
    for event, count in events.items():
        name = event.partition(":")[2]
        found[name] = found.get(name, 0) + count
    return found


@pytest.mark.parametrize(("name", "database"), [(n, n) for n in RUNS], indirect=["database"])
def test_events_that_queries_read(
    wbscope: Wbscope, name: str, database: Path, tmp_path: Path
) -> None:
    file = timeline(wbscope, example(name).folder, tmp_path / "run.pftrace")
    wanted = {
        event: count
        for event, count in recorded(database).items()
        if event in load_library().events()
    }
    assert len(wanted) > 5
    with PerfettoEngine() as engine:
        engine.load(file)
        assert dict(engine.table(COUNTS)[1]) == named(wanted)
        complaints = "SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
        assert engine.table(complaints)[1] == []
        switches = wanted.get("sched:sched_switch", 0)
        assert engine.table("SELECT COUNT(*) FROM sched_slice")[1] == [(switches,)]
        # A thread's waits and its time on a CPU are of one thread.
        tracks = (
            "SELECT t.tid, COUNT(DISTINCT t.utid) FROM thread AS t WHERE t.utid IN"
            " (SELECT k.utid FROM thread_track AS k WHERE k.name = 'Writeback stalls')"
            " OR t.utid IN (SELECT s.utid FROM sched_slice AS s) GROUP BY t.tid"
        )
        utids = dict(engine.table(tracks)[1])
        assert utids
        assert {tid: n for tid, n in utids.items() if n > 1 and tid != 0} == {}


@pytest.mark.parametrize("run", drawn_runs(), ids=str)
def test_no_reader_has_anything_to_complain_of(
    wbscope: Wbscope, run: RecordedRun, tmp_path: Path
) -> None:
    """Of the whole timeline as it is by default, with its events."""
    file = timeline(wbscope, run.folder, tmp_path / "run.pftrace")
    with PerfettoEngine() as engine:
        engine.load(file)
        problems = "SELECT name, severity, value FROM stats WHERE value > 0 AND severity <> 'info'"
        assert engine.table(problems)[1] == []
        assert engine.table("SELECT COUNT(*) > 1000 FROM ftrace_event")[1] == [(1,)]
        # Another notion of time than that of the tracks would show here.
        first, last = engine.table("SELECT start_ts, end_ts FROM trace_bounds")[1][0]
        spans = engine.table("SELECT MIN(ts), MAX(ts + dur) FROM slice WHERE dur > 0")[1][0]
    assert first <= spans[0] < spans[1] <= last


def test_events_that_would_be_most_of_the_file(wbscope: Wbscope, tmp_path: Path) -> None:
    """They stay out by default, and that is told; they ride along when they are named."""
    run = example("reclaim-writes").folder
    name = "mm_vmscan_write_folio"
    done = wbscope.run("timeline", run, "-o", tmp_path / "few.pftrace")
    told = " ".join(done.stderr.split())
    assert "warning[events-left-out]: " in told
    assert f"vmscan:{name} (" in told
    found = counts(tmp_path / "few.pftrace")
    assert name not in found
    assert found
    assert max(found.values()) <= 100_000
    assert (tmp_path / "few.pftrace").stat().st_size < 5 << 20
    named_file = timeline(wbscope, run, tmp_path / "all.pftrace", "--events", f"vmscan:{name}")
    assert counts(named_file)[name] > 100_000


def test_events_of_an_instance_are_on_the_threads_of_the_tracks(
    wbscope: Wbscope, tmp_path: Path
) -> None:
    """Of a recording with `-B`, whose top buffer is empty."""
    run = SAMPLES / "6.1-amd64-v7-host/trace.dat"
    file = timeline(wbscope, run, tmp_path / "run.pftrace", "--events", "*")
    with PerfettoEngine() as engine:
        engine.load(file)
        tids = [tid for (tid,) in engine.table("SELECT tid FROM thread")[1]]
        assert len(tids) > 1
        assert sorted(set(tids)) == sorted(tids)
        assert len(engine.table("SELECT id FROM machine")[1]) == 1


@pytest.mark.parametrize("part", [(), ("--from", "0.001s")], ids=["whole", "part"])
def test_times_of_all_machines_are_placed(
    wbscope: Wbscope, tmp_path: Path, part: tuple[str, ...]
) -> None:
    """By the rules that newer engines have of clocks: all are declared before the first track."""
    run = SAMPLES / "6.1-amd64-v7-instances/trace.dat"
    file = timeline(wbscope, run, tmp_path / "run.pftrace", "--events", "*", *part)
    graph = read_clocks(file)
    assert dict(graph.lost) == {}
    assert sorted(graph.placed) == [0, 1, 2]
    alone = timeline(wbscope, run, tmp_path / "alone.pftrace", "--no-events", *part)
    drawn = []
    for each in (file, alone):
        with PerfettoEngine() as engine:
            engine.load(each)
            drawn.append(engine.table("SELECT ts, dur, name FROM slice ORDER BY 1, 2, 3")[1])
            machines = engine.table(
                "SELECT COUNT(DISTINCT COALESCE(c.machine_id, 0)) FROM ftrace_event"
                " JOIN cpu AS c USING (ucpu)"
            )[1]
            assert machines == [(3 if each == file else 0,)]
    assert drawn[0] == drawn[1] != []


@pytest.mark.parametrize("database", ["deep"], indirect=True)
def test_choice_of_events(wbscope: Wbscope, database: Path, tmp_path: Path) -> None:
    run = example("deep").folder
    none = timeline(wbscope, run, tmp_path / "none.pftrace", "--no-events")
    assert counts(none) == {}
    some = timeline(wbscope, run, tmp_path / "some.pftrace", "--events", "sched:*")
    wanted = {e: n for e, n in recorded(database).items() if e.startswith("sched:")}
    assert counts(some) == named(wanted)
    # A database has no records as they were.
    assert counts(timeline(wbscope, database, tmp_path / "db.pftrace")) == {}


def test_two_choices_are_refused(wbscope: Wbscope, tmp_path: Path) -> None:
    done = wbscope.run(
        "timeline",
        example("deep").folder,
        "-o",
        tmp_path / "x.pftrace",
        *("--events", "sched:*", "--no-events"),
    )
    assert done.returncode == 2
    assert "two-choices" in done.stderr
    assert not list(tmp_path.iterdir())
