# SPDX-License-Identifier: Apache-2.0
"""Links between rows, indexes and the times of records: wbscope-ingest itself."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.cli import check_error
from support.runs import example
from support.tools import ingester_path, plan_option, run

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
