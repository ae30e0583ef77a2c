# SPDX-License-Identifier: Apache-2.0
"""Whoever says what will be asked has a second thread: in order, dropped, forked, with windows."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.runs import REPOSITORY
from support.waits import GUARD_SECONDS
from wbscope.base.errors import EvidenceError, QueryError
from wbscope.library import ahead, kept, sharing
from wbscope.library.definitions import Definition
from wbscope.library.library import Library, load_library
from wbscope.library.sqlfile import SqlFile
from wbscope.library.sqlite import SqliteEngine
from wbscope.plot.asked import Asked, Lacking, ask_figures
from wbscope.plot.figures import FIGURES
from wbscope.run.filters import Filters
from wbscope.run.ingested import ingest
from wbscope.run.source import find_source


@pytest.fixture(scope="module")
def run_db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.db"
    ingest(find_source(str(REPOSITORY / "examples/four-equal-writers")), path, load_library())
    return path


@pytest.fixture
def library() -> Library:
    return load_library()


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also of a small run, and on one CPU."""
    monkeypatch.setattr(sharing, "_MANY_RECORDS", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))


def test_queries_that_are_announced_come_in_an_order_of_their_own(run_db: Path) -> None:
    names = ["findings", "pool", "event_counts", "blame", "bdi_bandwidth"]
    with wbscope.open(run_db) as run:
        order = run.expect(names)
        assert sorted(order) == sorted(names)
        assert order[:2] == ["event_counts", "bdi_bandwidth"], "which wait for nothing"
        assert order.index("blame") < order.index("findings")
        told = {name: run.query(name) for name in order}
        assert sorted(run.expect(names)) == sorted(names)
        assert run.expect([]) == []
        with pytest.raises(QueryError):
            run.expect(["nothing"])
    with wbscope.open(run_db) as run:
        for name in ("event_counts", "run_summary", "throughput"):
            run.query(name)
        assert run._session.engine._sharing._ahead is None, "nobody said that more will be asked"
        assert {name: run.query(name) for name in names} == told


def later(run: wbscope.Run) -> list[str]:
    """Queries whose answers the other thread is to make."""
    return list(run._session.engine._sharing._answers)


def wait_for_all(run: wbscope.Run) -> None:
    working = run._session.engine._sharing._ahead
    for name in working.names:
        working.table(name)


@pytest.mark.parametrize("is_ready", [True, False])
def test_answers_of_the_other_thread_are_the_same(
    run_db: Path, is_ready: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The second session has the tables of the first: they are in nobody's way.
    monkeypatch.setattr(kept, "_SLOW_NS", 0)
    names = [query.name for query in load_library().queries()]
    told = []
    made: list[str] = []
    rows = sharing.Sharing.answer

    def note(self: sharing.Sharing, query: str) -> object:
        found = rows(self, query)
        made.extend([query] if found is not None else [])
        return found

    monkeypatch.setattr(sharing.Sharing, "answer", note)
    for threads in (1, 2):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, count=threads: range(count))
        with wbscope.open(run_db) as run:
            if threads == 2:
                run.query("stalls")  # so that fewer tables are in the way
                run.query("throttle_by_task")
            order = run.expect(names)
            if threads == 2:
                expected = later(run)
                assert {"stalls_evidence", "bdi_dirty", "task_pauses"} <= set(expected)
                if is_ready:
                    wait_for_all(run)
            told.append({name: answer_of(run, name) for name in order})
            assert not later(run)
    assert told[0] == told[1]
    if is_ready:
        assert set(made) == set(expected)


def answer_of(run: wbscope.Run, name: str) -> object:
    try:
        found = run.query(name)
    except EvidenceError as error:
        return error.slug
    # Types, too: 1 is not 1.0.
    return repr(found)


def test_an_answer_is_for_its_filters_only(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no table is made there, as ingest has saved them."""
    run_db = tmp_path / "known.db"
    ingest(find_source(str(REPOSITORY / "examples/four-equal-writers")), run_db, library)
    with wbscope.open(run_db) as run:
        alone = run.query("stalls", start="1s").rows
    with wbscope.open(run_db) as run:
        run.expect(["stalls", "blame"])
        assert not run._session.engine._sharing._tables
        wait_for_all(run)
        assert "stalls" in later(run)
        assert run.query("stalls", start="1s").rows == alone
        assert not later(run)
        whole = run.query("stalls").rows
        assert 0 < len(alone) < len(whole)


def test_what_is_not_begun_there_is_answered_here(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for a thread that has something else to do first."""
    run_db = tmp_path / "known.db"
    ingest(find_source(str(REPOSITORY / "examples/four-equal-writers")), run_db, library)
    go_on, told = threading.Event(), []
    make = ahead.Ahead._make_all

    def wait(self: ahead.Ahead, connection: sqlite3.Connection) -> None:
        told.append(go_on.wait(GUARD_SECONDS))
        make(self, connection)

    monkeypatch.setattr(ahead.Ahead, "_make_all", wait)
    with wbscope.open(run_db) as run:
        run.expect(["stalls", "blame"])
        assert "stalls" in later(run)
        thread = run._session.engine._sharing._ahead._thread
        assert run.query("stalls").rows
        go_on.set()
    thread.join()
    assert told == [True]  # and not that nobody came


def test_all_warnings_are_asked_for_once(run_db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where those of another query cannot be had, those of each are asked for alone."""
    asked: list[str] = []
    answer = SqliteEngine.answer

    def fail(self: SqliteEngine, about: str, *given: Any) -> Any:
        asked.append(about)
        if about == "wb_warning":
            raise QueryError("too-big", "wb_warning", "text-too-long")
        return answer(self, about, *given)

    with wbscope.open(run_db) as run:
        wanted = [run.query("task_faults").warnings for _ in range(3)]
    assert wanted[0]
    monkeypatch.setattr(SqliteEngine, "answer", fail)
    with wbscope.open(run_db) as run:
        assert [run.query("task_faults").warnings for _ in range(3)] == wanted
    assert asked.count("wb_warning") == 1


def test_an_answer_that_fails_there_is_told_here(
    run_db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(query: SqlFile) -> Definition:
        create = f"CREATE TEMP TABLE answer_{query.name} (a)"
        insert = f"INSERT INTO answer_{query.name}\nSELECT abs(-9223372036854775808)"
        return Definition(f"answer_{query.name}", (create, insert), True)

    monkeypatch.setattr(sharing, "_answering", fail)
    with wbscope.open(run_db) as run:
        run.expect(["stalls", "task_pauses"])
        wait_for_all(run)
        found = run.query("stalls").rows
    with wbscope.open(run_db) as run:
        assert run.query("stalls").rows == found


def test_a_run_that_is_dropped_takes_its_thread_along(run_db: Path) -> None:
    run = wbscope.open(run_db)
    run.expect(["stalls", "blame"])
    thread = run._session.engine._sharing._ahead._thread
    assert thread.is_alive()
    del run
    gc.collect()
    thread.join(GUARD_SECONDS)
    assert not thread.is_alive()


def test_threads_that_are_done_leave_nothing(run_db: Path) -> None:
    made: list[weakref.ref[ahead.Ahead]] = []
    with wbscope.open(run_db) as run:
        for seconds in range(1, 6):
            run.expect(["dirty_position"], Filters(window_ns=seconds * 10**9))
            made.append(weakref.ref(run._session.engine._sharing._ahead))
        gc.collect()
        assert [one() for one in made] == [None] * 4 + [run._session.engine._sharing._ahead]


def test_a_fork_that_goes_on_with_the_run_waits_for_nobody(run_db: Path) -> None:
    """The thread is not there: what it was to make is made in the child.

    Where it is inside SQLite just then, what it holds there stays held: that is for nobody to mend.
    """
    code = (
        "import os, sys, time, wbscope\n"
        "from wbscope.library import ahead, sharing\n"
        "sharing._MANY_RECORDS = 0\n"
        "os.sched_getaffinity = lambda _: {0, 1}\n"
        "begun, go_on = ahead.threading.Event(), ahead.threading.Event()\n"
        "ahead.Ahead._make = lambda *_: begun.set() or go_on.wait()\n"
        "run = wbscope.open(sys.argv[1])\n"
        "run.expect(['stalls', 'blame'])\n"
        "begun.wait()\n"
        "if child := os.fork():\n"
        "    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "    go_on.set()\n"
        "    run.close()\n"
        "    sys.exit(code)\n"
        "os._exit(0 if len(run.query('stalls').rows) else 1)\n"
    )
    subprocess.run([sys.executable, "-c", code, run_db], check=True, timeout=GUARD_SECONDS)


def test_figures_of_other_windows_have_two_threads(
    run_db: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown = [figure for figure in FIGURES if figure.windows]
    with wbscope.open(run_db) as run:
        begun: list[list[str]] = []
        begin = sharing.Sharing.begin

        def note(
            self: sharing.Sharing, wanted: list[str], queries: list[SqlFile], *, shared: bool
        ) -> Sequence[str]:
            begun.append(wanted)
            return begin(self, wanted, queries, shared=shared)

        monkeypatch.setattr(sharing.Sharing, "begin", note)
        told = ask_figures(run, shown)
    assert any("_dirty_sum" in names for names in begun)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "another"))
    with wbscope.open(run_db) as run:
        alone = ask_figures(run, shown)
    assert [numbers(one) for one in alone] == [numbers(one) for one in told]


def numbers(one: Asked | Lacking) -> tuple[object, object]:
    return (one.error.message, None) if isinstance(one, Lacking) else (one.result, one.panels)


@pytest.mark.parametrize("few_pages", [0, 16])
def test_a_thread_with_few_places_goes_on(
    run_db: Path, monkeypatch: pytest.MonkeyPatch, few_pages: int, tmp_path: Path
) -> None:
    """What it cannot lend is made by whoever asks; a small table takes no place."""
    names = [query.name for query in load_library().queries()]
    with wbscope.open(run_db) as run:
        wanted = {name: answer_of(run, name) for name in names}
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "another"))
    opened = ahead.open_database

    def cramped(*given: Any, **words: Any) -> Any:
        connection, recorded = opened(*given, **words)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 2)
        return connection, recorded

    monkeypatch.setattr(ahead, "open_database", cramped)
    monkeypatch.setattr(ahead, "_FEW_PAGES", few_pages)
    with wbscope.open(run_db) as run:
        order = run.expect(names)
        working = run._session.engine._sharing._ahead
        tables = [name for name in working.names if not name.startswith("answer_")]
        ready = [name for name in tables if working.table(name)]
        assert len(tables) > 20
        assert (ready == tables) is (few_pages > 0)
        # It has gone on to the last one.
        assert working._told[tables[-1]].is_set()
        assert {name: answer_of(run, name) for name in order} == wanted
