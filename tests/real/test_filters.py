# SPDX-License-Identifier: Apache-2.0
"""Filters on recorded runs, also such that change within a session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import wbscope
from support.corpus import CORPUS, unpack
from support.properties import some
from support.runs import REPOSITORY, example
from wbscope.base.errors import EvidenceError
from wbscope.library import database
from wbscope.library.library import Library, load_library
from wbscope.library.params import Params
from wbscope.library.session import Session
from wbscope.library.sqlite import SqliteEngine
from wbscope.run.ingested import ingest
from wbscope.source.source import find_source

# Filters on a recorded run: --task and --tid leave exactly the rows of these tasks.

_QUERIES = [
    query.name
    for query in load_library(REPOSITORY / "sql").queries()
    if {"tid", "comm"} <= {column.name for column in query.columns}
]
# Its events are of patches of 2011; golden/waits_of_2011 has it.
_ANSWERED = [name for name in _QUERIES if name != "completion_waits"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wbscope.Run]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        with wbscope.open(_deep()) as opened:
            yield opened


def _deep() -> Path:
    return example("deep").folder


def test_every_query_of_tasks_takes_both_filters() -> None:
    library = load_library(REPOSITORY / "sql")
    assert all({"tid", "task"} <= set(library.query(name).filters) for name in _QUERIES)
    assert len(_QUERIES) > 7


@pytest.mark.parametrize("name", _ANSWERED)
@pytest.mark.parametrize("pattern", ["dd", "[jk]*", "*/*"])
def test_rows_of_a_name(run: wbscope.Run, name: str, pattern: str) -> None:
    whole = run.query(name)
    wanted = [row for row in whole if fnmatchcase(row["comm"], pattern)]
    assert run.query(name, task=pattern).records() == wanted


@pytest.mark.parametrize("name", _ANSWERED)
def test_rows_of_a_thread(run: wbscope.Run, name: str) -> None:
    whole = run.query(name)
    wanted = [row for row in whole if row["tid"] == 174]
    assert run.query(name, task="174").records() == wanted
    assert run.query(name, tid=174).records() == wanted


def test_types_of_all_columns_are_those_of_the_headers(run: wbscope.Run) -> None:
    kinds = {"INTEGER": int, "REAL": float, "TEXT": str}
    checked = 0
    for query in run.library.queries():
        # Its value column is a number or a word, as the fact is; or there are no such events.
        if query.name in ("completion_waits", "run_summary", "server_latency"):
            continue
        result = run.query(query.name)
        for row in result.rows:
            for column, value in zip(result.fields, row, strict=True):
                assert value is None or type(value) is kinds[column.type], (query.name, column)
                checked += value is not None
    assert checked > 1000


# Filters that change within a session: the same answers as a session that has no others.

RUNS = (REPOSITORY / "examples/four-equal-writers", CORPUS / "7.2-memory-cgroup")
EVENT = "ev_balance_dirty_pages"


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library()


@pytest.fixture(scope="module", params=RUNS, ids=[run.name for run in RUNS])
def run_db(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, library: Library
) -> Path:
    run: Path = request.param
    folder = tmp_path_factory.mktemp("run")
    path = folder / "run.db"
    ingest(find_source(str(unpack(run, folder) if run.parent == CORPUS else run)), path, library)
    return path


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))


Question = tuple[str, Params]


def questions(path: Path, library: Library) -> list[Question]:
    """Each query without filters, and with each that it takes."""
    engine = SqliteEngine(path, "run.db", library)
    first, last = (int(engine.recorded.meta[name]) for name in ("first_ts", "last_ts"))
    select = f"SELECT bdi, tid, cgroup_ino FROM {EVENT} ORDER BY pause DESC LIMIT 1"
    bdi, tid, cgroup = engine.connection.execute(select).fetchone()
    engine.close()
    third = (last - first) // 3
    filters = {
        "range": [
            Params(t0_ns=first + third, t1_ns=first + 2 * third),
            Params(t0_ns=first + third),
        ],
        "window": [Params(window_ns=10**9), Params(window_ns=7 * 10**8, t1_ns=last - third)],
        "bdi": [Params(bdi=bdi)],
        "tid": [Params(tid=tid)],
        "task": [Params(comm_glob="dd*")],
        "cgroup": [Params(cgroup_ino=cgroup)] if cgroup else [],
    }
    return [
        (query.name, params)
        for query in library.queries()
        for params in (Params(), *(p for name in query.filters for p in filters[name]))
        if set(params.filters()) <= set(query.filters)
    ]


def answer(session: Session, question: Question) -> object:
    name, params = question
    try:
        result = session.query(name, params)
    except EvidenceError as error:
        return error.slug
    return result.columns, result.rows, result.warnings


def apart(path: Path, library: Library, asked: list[Question]) -> list[object]:
    found = []
    for question in asked:
        engine = SqliteEngine(path, "run.db", library)
        found.append(answer(Session(engine, library, "run.db"), question))
        engine.close()
    return found


@pytest.mark.usefixtures("cache")
def test_one_session_answers_as_many(
    run_db: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any order; the second time with steps of workers."""
    asked = some(questions(run_db, library))
    wanted = apart(run_db, library, asked)
    assert sum(isinstance(one, tuple) and bool(one[1]) for one in wanted) > len(asked) // 3
    for most in (1 << 60, 0):
        monkeypatch.setattr(database, "_MANY_RECORDS", most)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
        engine = SqliteEngine(run_db, "run.db", library)
        session = Session(engine, library, "run.db")
        for question, there in zip(asked, wanted, strict=True):
            assert answer(session, question) == there, question
        engine.close()


@pytest.mark.usefixtures("cache")
def test_what_a_window_does_not_change_stays(
    run_db: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SqliteEngine(run_db, "run.db", library)
    session = Session(engine, library, "run.db")
    session.query("stalls")
    session.query("fairness")
    there = {name for name, is_table in engine.made.items() if is_table}
    connection = engine.connection
    engine.use(Params(window_ns=10**9))
    assert engine.connection is connection
    lost = there - {name for name, is_table in engine.made.items() if is_table}
    assert {"_throttle_charge", "wb_wait", "wb_stall"} <= there - lost
    assert lost == there & library.depending(["window_ns", "by_window"])
    assert "wb_window" in lost
    tables = {
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_temp_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    }
    assert tables == there - lost
    engine.close()
