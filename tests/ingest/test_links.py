# SPDX-License-Identifier: Apache-2.0
"""Links between rows, indexes, and timeline views on a second connection."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.cli import check_error
from support.progress import wait_for_work, waits_in
from support.runs import example
from support.tools import ingester_path, plan_option, run
from support.waits import GUARD_SECONDS, wait_until

# Links between rows, indexes and the times of records: wbscope-ingest itself.

_RUN = example("deep").trace
_PAUSE = "writeback:balance_dirty_pages"
_STATE = "writeback:global_dirty_state"


def _ask(database: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        return db.execute(sql).fetchall()


def _ingest(output: Path, plan: object, *options: str) -> Any:
    command = [ingester_path(), "sqlite", _RUN, "-o", output, "--events", "writeback:*"]
    return run([*command, *plan_option(output, plan), *options])


def _indexed(*columns: str, where: str = "") -> dict[str, Any]:
    return {"indexes": [{"columns": columns, "where": where}]}


@pytest.mark.parametrize(
    ("event", "key", "partition"),
    [(_PAUSE, "tid", "PARTITION BY tid"), (_STATE, "any", ""), (_STATE, "tid", "PARTITION BY tid")],
)
def test_the_row_before(tmp_path: Path, event: str, key: str, partition: str) -> None:
    output = tmp_path / "run.db"
    done = _ingest(output, {event: {"previous": key}})
    assert done.returncode == 0, done.stderr
    table = f"ev_{event.partition(':')[2]}"
    rows = _ask(output, f"SELECT prev_seq, lag(seq) OVER ({partition} ORDER BY seq) FROM {table}")
    assert [ours for ours, _ in rows] == [theirs for _, theirs in rows]
    assert sum(ours is not None for ours, _ in rows) > 1000
    linked = _ask(
        output,
        "SELECT m.name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c"
        " WHERE m.type = 'table' AND c.name = 'prev_seq'",
    )
    assert linked == [(table,)]


@pytest.mark.parametrize("writer", ["pages", "sqlite"])
@pytest.mark.parametrize("key", ["any", "tid"])
def test_the_row_before_is_of_any_event_of_the_group(tmp_path: Path, key: str, writer: str) -> None:
    output = tmp_path / "run.db"
    plan = {event: {"previous": key, "group": "both"} for event in (_PAUSE, _STATE)}
    done = _ingest(output, plan, "--writer", writer)
    assert done.returncode == 0, done.stderr
    both = " UNION ALL ".join(
        f"SELECT '{event}' AS event, seq, tid, prev_seq FROM ev_{event.partition(':')[2]}"
        for event in (_PAUSE, _STATE)
    )
    within = "PARTITION BY tid" if key == "tid" else ""
    rows = _ask(
        output,
        "SELECT prev_seq, lag(seq) OVER task, event, lag(event) OVER task"
        f" FROM ({both}) WINDOW task AS ({within} ORDER BY seq)",
    )
    assert [ours for ours, *_ in rows] == [theirs for _, theirs, *_ in rows]
    assert sum(event != before for *_, event, before in rows) > 1000
    assert _ask(output, "SELECT count(*) FROM event_task") == [(0,)]


@pytest.mark.parametrize("key", ["any", "tid"])
def test_rows_that_say_what_the_one_before_said(tmp_path: Path, key: str) -> None:
    """Where all fields are named that can differ, by the rows themselves."""
    output = tmp_path / "run.db"
    fields = ("nr_dirty", "nr_writeback", "dirty_thresh", "no_such_field")
    done = _ingest(output, {_STATE: {"previous": key, "repeats": fields}})
    assert done.returncode == 0, done.stderr
    same = " AND ".join(f"g.{field} IS p.{field}" for field in fields[:-1])
    rows = _ask(
        output,
        "SELECT g.repeats_count,"
        f" CASE WHEN p.seq IS NOT NULL AND {same} THEN p.repeats_count + 1 ELSE 0 END"
        " FROM ev_global_dirty_state AS g"
        " LEFT JOIN ev_global_dirty_state AS p ON p.seq = g.prev_seq",
    )
    assert [ours for ours, _ in rows] == [theirs for _, theirs in rows]
    assert {ours for ours, _ in rows} >= {0, 1, 2}
    told = _ask(
        output,
        "SELECT m.name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c"
        " WHERE m.type = 'table' AND c.name = 'repeats_count'",
    )
    assert told == [("ev_global_dirty_state",)]


def test_rows_whose_other_events_say_the_same(tmp_path: Path) -> None:
    """The last state of the row's thread told the same, and no rate was told in between."""
    output = tmp_path / "run.db"
    fields = ("bdi", "dirty", "task_ratelimit")
    told = ("background_thresh", "dirty_thresh")
    rate = "writeback:bdi_dirty_ratelimit"
    context = {_STATE: told, rate: []}
    done = _ingest(output, {_PAUSE: {"previous": "tid", "repeats": fields, "context": context}})
    assert done.returncode == 0, done.stderr
    rows = _ask(
        output,
        f"SELECT 'pause', seq, tid, repeats_count, {', '.join(fields)} FROM ev_balance_dirty_pages"
        f" UNION ALL SELECT 'state', seq, tid, NULL, {', '.join(told)}, NULL"
        " FROM ev_global_dirty_state"
        " UNION ALL SELECT 'rate', seq, tid, NULL, NULL, NULL, NULL FROM ev_bdi_dirty_ratelimit"
        " ORDER BY 2",
    )
    states: dict[int, tuple[Any, ...]] = {}
    before: dict[int, tuple[Any, ...]] = {}
    repeats: dict[int, int] = {}
    last, changes = None, 0
    found, wanted = [], []
    for what, _, tid, repeats_count, *values in rows:
        if what == "rate":
            changes += 1
        elif what == "state":
            changes += values != last
            last = values
            states[tid] = (changes,)
        else:
            by = states.pop(tid, None)
            is_repeat = by is not None and before.get(tid) == (by, values)
            repeats[tid] = repeats.get(tid, 0) + 1 if is_repeat else 0
            found.append(repeats_count)
            wanted.append(repeats[tid])
            before[tid] = (by, values)
    assert found == wanted
    assert set(found) >= {0, 1, 2}


def test_the_time_of_every_so_many_records(tmp_path: Path) -> None:
    output = tmp_path / "run.db"
    done = run([ingester_path(), "sqlite", _RUN, "-o", output, "--all"])
    assert done.returncode == 0, done.stderr
    tables = _ask(output, "SELECT table_name FROM event_counts WHERE loaded_count > 0")
    every = " UNION ALL ".join(f'SELECT ts, seq FROM "{table}"' for (table,) in tables)
    wanted = _ask(output, f"SELECT ts, seq FROM ({every}) WHERE seq % 1024 = 0 ORDER BY seq")
    assert len(wanted) > 100
    assert _ask(output, "SELECT ts, seq FROM time_index ORDER BY seq") == wanted


def test_indexes(tmp_path: Path) -> None:
    output = tmp_path / "run.db"
    wanted = {_PAUSE: _indexed("tid", "no_such_field", "pause"), _STATE: _indexed("no_such_field")}
    done = _ingest(output, wanted)
    assert done.returncode == 0, done.stderr
    made = "SELECT name FROM sqlite_schema WHERE type = 'index' AND name LIKE 'ix!_%' ESCAPE '!'"
    assert _ask(output, made) == [("ix_ev_balance_dirty_pages__tid__pause",)]


def test_an_index_of_some_rows(tmp_path: Path) -> None:
    output = tmp_path / "run.db"
    some = "pause > 0 OR think = 7"
    lacks = _indexed("nr_dirty", "no_such_field", where=some)
    done = _ingest(output, {_PAUSE: _indexed("seq", "pause", where=some), _STATE: lacks})
    assert done.returncode == 0, done.stderr
    made = "SELECT sql FROM sqlite_schema WHERE type = 'index' AND name LIKE 'ix!_%' ESCAPE '!'"
    ((sql,),) = _ask(output, made)
    assert sql.endswith(f'("seq", "pause") WHERE {some}')


@pytest.mark.parametrize("kept", ["tid", "any"])
def test_rows_of_each_task_are_counted(tmp_path: Path, kept: str) -> None:
    output = tmp_path / "run.db"
    done = _ingest(output, {event: {"previous": kept} for event in (_PAUSE, _STATE)})
    assert done.returncode == 0, done.stderr
    of_tables = " UNION ALL ".join(
        f"SELECT '{event}', tid, count(*), min(seq), max(seq) FROM ev_{event.partition(':')[2]}"
        " GROUP BY tid"
        for event in (_PAUSE, _STATE)
    )
    wanted = _ask(output, f"SELECT * FROM ({of_tables}) ORDER BY 1, 2")
    assert len(wanted) > 5
    assert _ask(output, "SELECT * FROM event_task ORDER BY event, tid") == wanted


@pytest.mark.parametrize(
    ("plan", "found"),
    [
        ("", "no JSON object"),
        ("{", "no JSON object"),
        ("[]", "no JSON object"),
        ({_PAUSE: []}, "array in $"),
        ({"balance_dirty_pages": {}}, "the event 'balance_dirty_pages'"),
        ({_PAUSE: {"previous": "cpu"}}, f"previous (text 'cpu') of {_PAUSE}"),
        ({_PAUSE: {"previous": 7}}, f"previous (integer '7') of {_PAUSE}"),
        ({_PAUSE: {"previous": "tid", "group": 7}}, f"group (integer '7') of {_PAUSE}"),
        ({_PAUSE: {"repeat": ["bdi"]}}, f"repeat (array '') of {_PAUSE}"),
        ({_PAUSE: {"repeats": "bdi"}}, f"repeats (text 'bdi') of {_PAUSE}"),
        ({_PAUSE: {"repeats": ["pause", ""]}}, "an empty name in"),
        ({_PAUSE: {"repeats": [7]}}, "integer in"),
        ({_PAUSE: {"context": {"global_dirty_state": []}}}, "the event 'global_dirty_state'"),
        ({_PAUSE: {"context": {_STATE: "thresh"}}}, "text in"),
        ({_PAUSE: {"context": {_STATE: ["", "thresh"]}}}, "an empty name in"),
        ({_PAUSE: {"indexes": [["tid"]]}}, "array in"),
        ({_PAUSE: {"indexes": [{}]}}, f"an index of {_PAUSE} without columns"),
        ({_PAUSE: {"indexes": [{"columns": []}]}}, f"an index of {_PAUSE} without columns"),
        ({_PAUSE: {"indexes": [{"columns": ["tid", ""]}]}}, "an empty name in"),
        ({_PAUSE: {"indexes": [{"column": ["tid"]}]}}, f"column of an index of {_PAUSE}"),
    ],
)
def test_wrong_plans(tmp_path: Path, plan: object, found: str) -> None:
    done = _ingest(tmp_path / "run.db", plan)
    assert done.returncode == 2, done.stderr
    check_error(done.stderr, "bad-plan", "run.db.plan", found, "wanted ")
    assert list(tmp_path.iterdir()) == []


# Timeline views that wbscope-ingest asks for on a second connection: same file, same errors.

_COLUMNS = "NULL AS unit, NULL AS rank, NULL AS tid, NULL AS flows, NULL AS arg_a"
# Slices with arguments of all types and arrows, instants, counters of both types.
_SLICES = """
CREATE TEMP VIEW slices AS
SELECT e.ts, 1000 AS dur, 'a/' || e.cpu AS track, 'slice ' || (e.seq % 7) AS name, NULL AS value,
  NULL AS unit, e.cpu AS rank, CASE WHEN e.seq % 3 = 0 THEN e.tid END AS tid,
  e.seq || ', ' || (e.seq + 1) AS flows, e.seq AS arg_whole, e.seq / 4.0 AS arg_part,
  CASE WHEN e.seq % 2 THEN 'odd' END AS arg_text, 'x=' || e.seq || char(10) || 'y=b' AS arg_more
FROM ev_balance_dirty_pages AS e;
"""
_INSTANTS = """
CREATE TEMP VIEW instants AS
SELECT e.ts, NULL AS dur, 'b' AS track, 'at' AS name, NULL AS value, NULL AS unit, e.pause AS arg_a
FROM ev_balance_dirty_pages AS e;
"""
_COUNTERS = """
CREATE TEMP VIEW counters AS
SELECT e.ts, NULL AS dur, 'c' AS track, NULL AS name, e.dirtied AS value, 'pages' AS unit
FROM ev_balance_dirty_pages AS e
UNION ALL
SELECT e.ts, NULL, 'd', NULL, e.pause / 3.0, 'ratio' FROM ev_balance_dirty_pages AS e
UNION ALL
SELECT e.ts, NULL, 'd', NULL, NULL, 'ratio' FROM ev_balance_dirty_pages AS e;
"""
_ENDLESS = f"""
CREATE TEMP VIEW endless AS
WITH RECURSIVE c(ts) AS (SELECT 1 UNION ALL SELECT ts + 1 FROM c)
SELECT c.ts, NULL AS dur, 'a' AS track, 'b' AS name, NULL AS value, {_COLUMNS} FROM c;
"""
_SILENT = _ENDLESS.replace("SELECT c.ts", "SELECT count(*) AS ts").replace("endless", "silent")
_NO_TIMELINE = "CREATE TEMP VIEW other AS SELECT 1 AS ts, 1 AS dur;"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "run.db"
    done = run([ingester_path(), "sqlite", example("four-equal-writers").trace, "-o", path,
                "--events", "writeback:*"])  # fmt: skip
    assert done.returncode == 0, done.stderr
    return path


def _start(
    database: Path, setup: str, *lanes: tuple[str, str], views: str, threads: int = 2
) -> subprocess.Popen[bytes]:
    """The set-up is written; a lane is its script, '-' for one from stdin, and its views."""
    words: list[str | Path] = []
    for number, (script, names) in enumerate(lanes):
        path = Path("-")
        if script != "-":
            path = database.with_name(f"lane{number}.sql")
            path.write_text(script)
        words += ["--lane", path, *_named("--lane-view", names)]
    output = database.with_name("out.pftrace")
    process = subprocess.Popen(
        [ingester_path(), "timeline", database, "--setup", "-", *_named("--view", views), *words,
         "-o", output, "--threads", str(threads), "--force", "--json-lines"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(setup.encode())
    process.stdin.flush()
    return process


def _named(option: str, names: str) -> list[str]:
    return [word for name in names.split() for word in (option, name)]


def _drawn(process: subprocess.Popen[bytes], database: Path) -> bytes:
    _, err = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0, err
    return database.with_name("out.pftrace").read_bytes()


def _error(process: subprocess.Popen[bytes]) -> str:
    _, err = process.communicate(timeout=GUARD_SECONDS)
    (slug,) = (
        line["slug"] for line in map(json.loads, err.splitlines()) if line["type"] == "error"
    )
    return str(slug)


def _no_output(database: Path) -> bool:
    return not any("out.pftrace" in path.name for path in database.parent.iterdir())


@pytest.mark.parametrize("threads", [1, 2])
def test_the_file_is_the_same(database: Path, threads: int) -> None:
    """Whatever gives the rows, and whatever comes from stdin."""
    views = "counters slices instants"
    whole = _SLICES + _INSTANTS + _COUNTERS
    alone = _drawn(_start(database, whole, views=views), database)
    assert len(alone) > 10_000
    lanes = [(_INSTANTS + _COUNTERS, "counters instants")]
    assert (
        _drawn(_start(database, _SLICES, *lanes, views=views, threads=threads), database) == alone
    )
    lanes = [("-", "instants"), (_SLICES, "slices"), ("-", "")]
    scripts = f"{_COUNTERS}\0{_INSTANTS}\0SELECT 1"
    assert (
        _drawn(_start(database, scripts, *lanes, views=views, threads=threads), database) == alone
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_a_lane_reads_what_one_before_has_made(database: Path, threads: int) -> None:
    made = "CREATE TEMP TABLE made AS SELECT * FROM ev_balance_dirty_pages;"
    read = _INSTANTS.replace("ev_balance_dirty_pages", "made")
    views = "slices instants"
    alone = _drawn(_start(database, _SLICES + _INSTANTS, views=views), database)
    lanes = [(made + _SLICES, "slices"), ("-", "instants")]
    there = _drawn(_start(database, f"\0{read}", *lanes, views=views, threads=threads), database)
    assert there == alone


def test_lanes_that_are_asked_for_in_another_order(database: Path) -> None:
    """More rows than wait for their turn: those of the second lane are drawn first."""
    many = _INSTANTS.replace("AS e;", "AS e CROSS JOIN (VALUES " + "(1)," * 199 + "(2)) AS f;")
    alone = _drawn(_start(database, many + _SLICES, views="slices instants"), database)
    lanes = [(many, "instants"), (_SLICES, "slices")]
    assert _drawn(_start(database, "", *lanes, views="slices instants"), database) == alone


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("script", "slug"),
    [("nonsense;", "cannot-read-database"), (_NO_TIMELINE, "not-a-timeline")],
)
def test_error_of_a_lane(database: Path, script: str, slug: str, threads: int) -> None:
    process = _start(database, _SLICES, (script, "other"), views="slices other", threads=threads)
    assert _error(process) == slug
    assert _no_output(database)


def test_error_of_a_lane_before_the_set_up_has_come(database: Path) -> None:
    """Who asks for the set-up meanwhile may take long."""
    process = _start(database, "", (_NO_TIMELINE, "other"), views="other")
    assert process.wait(GUARD_SECONDS) == 2  # its stdin is open still
    assert _error(process) == "not-a-timeline"


@pytest.mark.parametrize("lane", ["endless", "silent"])
def test_error_of_the_set_up_ends_the_lane(database: Path, lane: str) -> None:
    script = {"endless": _ENDLESS, "silent": _SILENT}[lane]
    process = _start(database, "nonsense;", (script, lane), views=lane)
    assert _error(process) == "cannot-read-database"
    assert _no_output(database)


def test_time_limit_of_a_lane(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WBSCOPE_TIMEOUT", "0.5")
    assert _error(_start(database, "", (_SILENT, "silent"), views="silent")) == "time-limit"


@pytest.mark.parametrize("lane", ["endless", "silent", "-"])
@pytest.mark.parametrize("is_told", [True, False], ids=["told", "waiting"])
def test_signal(database: Path, lane: str, is_told: bool) -> None:
    """While the set-up is waited for, and while the lane is."""
    script = {"endless": _ENDLESS, "silent": _SILENT, "-": "-"}[lane]
    view = "endless" if lane == "endless" else "silent"
    process = _start(database, f"\0{_SILENT}", (script, view), views=view)
    if is_told and process.stdin is not None:
        process.stdin.close()
        process.stdin = None
    if is_told or lane != "-":  # else there is nothing to do yet
        wait_for_work(process, database)
    else:
        wait_until(
            lambda: waits_in(process.pid, "pipe_read", "poll") or process.poll() is not None, "asks"
        )
    process.send_signal(signal.SIGTERM)
    process.wait(GUARD_SECONDS)
    process.communicate()
    assert process.returncode == 130
    assert _no_output(database)


def test_error_of_a_view_beside_the_lanes(database: Path) -> None:
    """It has a thread, too: the lane before it has no end."""
    process = _start(database, _NO_TIMELINE, (_SILENT, "silent"), views="silent other")
    assert _error(process) == "not-a-timeline"
    assert _no_output(database)


def test_signal_while_both_threads_work(database: Path) -> None:
    process = _start(database, _ENDLESS, (_SILENT, "silent"), views="silent endless")
    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None
    wait_for_work(process, database)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 130
    assert _no_output(database)
