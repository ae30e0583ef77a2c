# SPDX-License-Identifier: Apache-2.0
"""Workers that fail, are late, stopped or not there: the session answers all the same."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.progress import hang_guard, returned
from support.runs import REPOSITORY
from support.steps import (
    QUESTIONS,
    answer_of,
    answers,
    workers,
)
from support.waits import GUARD_SECONDS, wait_until
from wbscope.base.errors import QueryError
from wbscope.library import steps
from wbscope.library.library import Library
from wbscope.library.session import Session
from wbscope.library.sqlite import Objects, SqliteEngine
from wbscope.library.steps import Steps
from wbscope.run import ingested
from wbscope.run.ingested import ingest
from wbscope.source.source import find_source

_RUN = REPOSITORY / "examples/four-equal-writers"
_ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"


def failing(*_: object, **__: object) -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("SELECT nothing")


@pytest.mark.parametrize("step", ["open_database", "_make", "some", "attach", "start"])
def test_what_workers_cannot_make_is_made_here(
    run_db: Path, library: Library, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    wanted, _ = answers(run_db, library)
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(run_db.parent / "another"))
    if step == "open_database":
        monkeypatch.setattr(steps, step, failing)
    elif step == "start":

        def no_more(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, step, no_more)
    elif step == "some":
        make, calls = Steps._make, []

        def every_third(self: Steps, *given: Any) -> None:
            calls.append(1)
            if len(calls) % 3 == 0:
                failing()
            make(self, *given)

        monkeypatch.setattr(Steps, "_make", every_third)
    elif step == "_make":
        monkeypatch.setattr(Steps, step, failing)
    else:
        attach = Steps.attach

        def here_only(self: Steps, connection: sqlite3.Connection, schema: str) -> None:
            if threading.current_thread() is not threading.main_thread():
                failing()
            attach(self, connection, schema)

        monkeypatch.setattr(Steps, step, here_only)
    with hang_guard():
        assert answers(run_db, library)[0] == wanted


@pytest.mark.parametrize("when", ["before", "just then"])
def test_another_file_in_the_place_of_the_run_is_not_read(
    run_db: Path,
    library: Library,
    monkeypatch: pytest.MonkeyPatch,
    makes: list[str],
    when: str,
) -> None:
    """The session stays with the file that it opened; a worker would open the new one."""
    opened = steps.open_database

    def replace() -> None:
        new = run_db.with_name(f"new-{threading.get_ident()}.db")
        shutil.copy(run_db, new)
        new.replace(run_db)

    def replaced(*given: Any, **words: Any) -> Any:
        replace()
        return opened(*given, **words)

    engine = SqliteEngine(run_db, "run.db", library)
    if when == "before":
        replace()
    else:
        monkeypatch.setattr(steps, "open_database", replaced)
    assert Session(engine, library, "run.db").query("stalls").rows
    assert makes == []
    engine.close()


@pytest.mark.parametrize("place", [1, 3])
@pytest.mark.parametrize(
    ("owner", "step"),
    [(Objects, "take"), (Objects, "run"), (Steps, "want"), (Steps, "wait"), (Steps, "attach")],
)
def test_ctrl_c_at_any_step_leaves_the_session_usable(
    run_db: Path,
    library: Library,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    step: str,
    place: int,
) -> None:
    real, calls = getattr(owner, step), []

    def stopped(*given: Any, **words: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            calls.append(1)
            if len(calls) == place:
                raise KeyboardInterrupt
        return real(*given, **words)

    engine = SqliteEngine(run_db, "run.db", library)
    session = Session(engine, library, "run.db")
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, stopped)
        with pytest.raises(KeyboardInterrupt):
            session.findings()
    told = {name: answer_of(session, name) for name in QUESTIONS}
    engine.close()
    assert told == answers(run_db, library)[0]


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Workers never come to an end with a step; the event says that one has begun."""
    begun = threading.Event()

    def make(self: Steps, connection: sqlite3.Connection, *_: object) -> None:
        begun.set()
        connection.execute(_ENDLESS).fetchall()

    monkeypatch.setattr(Steps, "_make", make)
    return begun


def test_closing_waits_for_no_worker(
    run_db: Path, library: Library, endless: threading.Event
) -> None:
    engine = SqliteEngine(run_db, "run.db", library)
    Session(engine, library, "run.db").expect(["stalls", "blame"])
    assert endless.wait(GUARD_SECONDS)
    assert workers()
    assert returned(engine._steps.stop)
    engine.close()


def test_a_limit_is_heard_while_a_worker_is_waited_for(
    run_db: Path, library: Library, endless: threading.Event
) -> None:
    with wbscope.open(run_db) as run, hang_guard():
        with pytest.raises(QueryError, match="its time limit"):
            run.sql("SELECT count(*) FROM wb_stall", timeout="300ms")
        assert endless.is_set()


def test_a_run_that_is_dropped_takes_its_workers_along(
    run_db: Path, endless: threading.Event
) -> None:
    run = wbscope.open(run_db)
    run.expect(["stalls", "blame"])
    assert endless.wait(GUARD_SECONDS)
    del run  # nothing_is_left() looks


def test_what_is_not_begun_is_answered_here(
    run_db: Path, library: Library, endless: threading.Event
) -> None:
    """An answer that no worker has begun with waits for none."""
    engine = SqliteEngine(run_db, "run.db", library)
    session = Session(engine, library, "run.db")
    session.expect(["stalls"])
    assert endless.wait(GUARD_SECONDS)
    assert engine.answered("stalls") is None
    engine._steps.stop()
    assert session.query("stalls").rows
    engine.close()


def test_a_fork_that_goes_on_with_the_run_waits_for_nobody(run_db: Path) -> None:
    """The workers are not there: what they were to make is made in the child."""
    code = (
        "import os, sys, threading, wbscope\n"
        "from wbscope.library import database, steps\n"
        "database._MANY_RECORDS = 0\n"
        "os.sched_getaffinity = lambda _: {0, 1}\n"
        "begun, go_on = threading.Barrier(3), threading.Event()\n"
        "steps.Steps._make_all = lambda *_: begun.wait() + 1 and go_on.wait()\n"
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


def test_a_fork_that_ends_leaves_the_files(run_db: Path) -> None:
    code = (
        "import gc, os, sys, wbscope\n"
        "from wbscope.library import database, steps\n"
        "database._MANY_RECORDS = 0\n"
        "run = wbscope.open(sys.argv[1])\n"
        "assert run.query('fairness').rows\n"
        "folder = run._session.engine._steps._folder\n"
        "assert os.listdir(folder)\n"
        "if (child := os.fork()) == 0:\n"
        "    run.close()\n"
        "    del run\n"
        "    gc.collect()\n"
        "    sys.exit()\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "assert os.listdir(folder)\n"
        "assert run.query('stalls').rows\n"
        "run.close()\n"
    )
    subprocess.run([sys.executable, "-c", code, run_db], check=True, timeout=GUARD_SECONDS)


def test_a_script_that_does_not_close_leaves_no_folder(run_db: Path, cache: Path) -> None:
    code = (
        "import sys, wbscope\n"
        "from wbscope.library import database, steps\n"
        "database._MANY_RECORDS = 0\n"
        "run = wbscope.open(sys.argv[1])\n"
        "run.expect(['stalls', 'blame', 'check'])\n"
    )
    subprocess.run([sys.executable, "-c", code, run_db], check=True, timeout=GUARD_SECONDS)
    assert [path for path in cache.rglob(".*") if ".wbscope-" in path.name] == []


def test_files_that_are_gone_before_they_are_read(
    run_db: Path, library: Library, cache: Path
) -> None:
    wanted, _ = answers(run_db, library)
    shutil.rmtree(cache)
    engine = SqliteEngine(run_db, "run.db", library)
    session = Session(engine, library, "run.db")
    session.expect(QUESTIONS)
    wait_until(lambda: not workers(), "all is made")
    shutil.rmtree(cache)
    assert {name: answer_of(session, name) for name in QUESTIONS} == wanted
    engine.close()


def test_no_room_for_files(
    run_db: Path, library: Library, monkeypatch: pytest.MonkeyPatch, makes: list[str]
) -> None:
    wanted, _ = answers(run_db, library)
    makes.clear()
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", "/dev/null/none")
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null/none")
    assert answers(run_db, library)[0] == wanted
    assert makes == []


def test_a_worker_without_memory_says_nothing(
    run_db: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Steps, "_make", fail)
    assert answers(run_db, library)[0]  # pytest fails where a thread raises something


def test_an_ingest_whose_verdict_fails_is_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, library: Library
) -> None:
    """Workers that read the file have ended before it is written to again."""
    rested: list[bool] = []
    rest = SqliteEngine.rest

    def note(self: SqliteEngine) -> None:
        rest(self)
        rested.append(not workers())

    def fail(*_: object) -> None:
        raise QueryError("time-limit", "sql", "took too long")

    monkeypatch.setattr(SqliteEngine, "rest", note)
    monkeypatch.setattr(ingested, "find_all", fail)
    done = ingest(find_source(str(_RUN)), tmp_path / "new.db", library)
    assert "no-findings-saved" in [notice.slug for notice in done.warnings]
    assert rested == [True]
