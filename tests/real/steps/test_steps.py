# SPDX-License-Identifier: Apache-2.0
"""Steps that workers make: the same answers as without them, made once, and never old ones."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.steps import (
    QUESTIONS,
    answer_of,
    answers,
    findings,
    kept,
    names_in,
    tables_of,
)
from wbscope.base.errors import QueryError
from wbscope.base.span import parse_span
from wbscope.library import database, step_files
from wbscope.library.engine import FINDINGS
from wbscope.library.library import Library
from wbscope.library.params import Params
from wbscope.library.session import Session
from wbscope.library.sqlite import SqliteEngine
from wbscope.library.steps import Steps
from wbscope.run.run import Run
from wbscope.timeline.export import write_timeline


@pytest.mark.parametrize("part", ["whole", "part"])
def test_answers_are_the_same(
    run_db: Path, library: Library, monkeypatch: pytest.MonkeyPatch, makes: list[str], part: str
) -> None:
    """Without workers, with them, and of the steps that an earlier session has made."""
    with wbscope.open(run_db) as run:
        first, last = run.bounds()
    third = (last - first) // 3
    params = Params() if part == "whole" else Params(t0_ns=first + third, t1_ns=last - third)
    monkeypatch.setattr(database, "_MANY_RECORDS", 1 << 60)
    wanted, none = answers(run_db, library, params, announced=True)
    assert not none
    assert not makes
    monkeypatch.setattr(database, "_MANY_RECORDS", 0)
    assert answers(run_db, library, params, announced=True)[0] == wanted
    there = list(makes)
    assert len(there) > 20
    assert len(set(there)) == len(there), "each is made once"
    if part == "part":
        assert library.depending(["t0_ns", "t1_ns"]).isdisjoint(there)
    told, given = answers(run_db, library, params, announced=True)
    assert told == wanted
    assert set(there) <= given
    assert makes == there


def test_the_verdict_is_the_same(
    run_db: Path, library: Library, monkeypatch: pytest.MonkeyPatch, makes: list[str]
) -> None:
    told = findings(run_db, library)
    assert makes
    monkeypatch.setattr(database, "_MANY_RECORDS", 1 << 60)
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(run_db.parent / "another"))
    assert findings(run_db, library) == told


def test_what_takes_longest_is_begun_first(run_db: Path, library: Library) -> None:
    """With all that stands on it; what is waited for comes before that."""
    engine = SqliteEngine(run_db, "run.db", library)
    names = [name for name, file in library.files.items() if file.materialize and file.columns]
    plan = engine._steps._plan
    plan.wanted.update({name: engine._steps._needs(name) for name in names})
    engine._steps._weigh()
    for name, needs in plan.wanted.items():
        assert all(plan.worth[need] > plan.worth[name] for need in needs)
    free = [name for name in names if not plan.wanted[name]]
    assert plan.next() == max(free, key=lambda name: (plan.worth[name], name))
    least = min(free, key=lambda name: plan.worth[name])
    plan.urgent = {least}
    assert plan.next() == least
    engine.close()


def test_queries_that_are_announced_come_in_an_order_of_their_own(run_db: Path) -> None:
    names = ["findings", "event_counts", "blame"]
    with wbscope.open(run_db) as run:
        order = run.expect(names)
        assert sorted(order) == sorted(names)
        assert order == ["event_counts", "findings", "blame"], "what has a @cost comes last"
        told = {name: run.query(name) for name in order}
        assert run.expect([]) == []
        with pytest.raises(QueryError):
            run.expect(["nothing"])
    with wbscope.open(run_db) as run:
        assert {name: run.query(name) for name in names} == told


def test_steps_are_read_not_made(run_db: Path, library: Library, cache: Path) -> None:
    """One that is changed by hand shows through: else equal answers prove nothing."""
    answers(run_db, library)
    for path in kept(cache):
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            if "wb_stall" in names_in(connection):
                connection.execute("DELETE FROM wb_stall")
    told, _ = answers(run_db, library)
    assert str(told["stalls"]).startswith("([], ")


def test_of_a_part_only_what_is_the_same_of_the_whole_is_kept(
    run_db: Path, library: Library, cache: Path
) -> None:
    answers(run_db, library, Params(window_ns=10**9))
    assert {"wb_throttle_pause", "_throttle_done"} & tables_of(cache)
    assert tables_of(cache).isdisjoint(library.depending(["window_ns", "by_window"]))


def test_a_changed_database_or_library_gets_steps_of_its_own(
    run_db: Path, library: Library
) -> None:
    before, _ = answers(run_db, library)
    other = dict(library.files)
    file = other["wb_rule"]
    select = file.select.replace("0.5 AS most", "0.75 AS most")
    other["wb_rule"] = type(file)(**{**vars(file), "select": select})
    assert answers(run_db, Library(other, library.profiles))[1] == frozenset()
    with contextlib.closing(sqlite3.connect(run_db)) as connection, connection:
        connection.execute("UPDATE ev_balance_dirty_pages SET bdi = '9:9'")
    after, given = answers(run_db, library)
    assert not given
    assert after != before


@pytest.mark.parametrize("damage", ["cut", "header", "middle", "column"])
def test_damaged_files_are_made_again(
    run_db: Path, library: Library, cache: Path, damage: str
) -> None:
    first, _ = answers(run_db, library)
    foreign = kept(cache)[0].with_name("other.db")
    foreign.write_text("no file of ours")
    for path in set(kept(cache)) - {foreign}:
        data = bytearray(path.read_bytes())
        if damage == "cut":
            del data[len(data) // 2 :]
        elif damage == "header":
            data[:16] = b"no database here"
        elif damage == "column":  # of every table
            data = data.replace(b'"task_id" INTEGER', b'"tazk_id" INTEGER')
        else:
            data[16384:] = b"\xff" * (len(data) - 16384)
        path.write_bytes(data)
    assert answers(run_db, library)[0] == first
    assert answers(run_db, library)[0] == first
    assert answers(run_db, library)[1]
    assert foreign.read_text() == "no file of ours"


def test_a_cache_that_cannot_be_used_changes_nothing(
    run_db: Path, library: Library, monkeypatch: pytest.MonkeyPatch, makes: list[str]
) -> None:
    first, _ = answers(run_db, library)
    blocker = run_db.with_name("file")
    blocker.write_text("")
    # As ours are called, but no writer of ours has made it.
    foreign = Path(tempfile.gettempdir(), ".wbscope-steps.wbscope-abcdefgh", "file")
    foreign.parent.mkdir()
    foreign.write_text("")
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(blocker / "below"))
    makes.clear()
    assert answers(run_db, library) == (first, frozenset())
    assert makes
    assert foreign.exists()
    shutil.rmtree(foreign.parent)


def test_steps_of_a_database_with_a_log_beside_it_are_not_kept(
    run_db: Path, library: Library, cache: Path
) -> None:
    Path(f"{run_db}-wal").write_bytes(b"")
    answers(run_db, library)
    assert not kept(cache)


def test_sessions_at_the_same_time(run_db: Path, library: Library, cache: Path) -> None:
    """Each has files of its own; what one keeps, the other does not meet."""
    engines = [SqliteEngine(run_db, "run.db", library) for _ in range(2)]
    sessions = [Session(engine, library, "run.db") for engine in engines]
    told = [[answer_of(one, name) for one in sessions] for name in QUESTIONS]
    assert all(first == second for first, second in told)
    for engine in engines:
        engine.close()
    assert answers(run_db, library)[0] == dict(
        zip(QUESTIONS, (first for first, _ in told), strict=True)
    )
    assert len(kept(cache)) == 4


def test_there_are_no_more_files_than_can_be_attached(
    run_db: Path, library: Library, cache: Path
) -> None:
    """And room for those of the workers."""
    for query in ("bdi_bandwidth", "fairness", "stalls", "pool", "law", "blame"):
        engine = SqliteEngine(run_db, "run.db", library)
        Session(engine, library, "run.db").query(query)
        engine.close()
    assert len(kept(cache)) == step_files._SLOTS
    answers(run_db, library, announced=True)
    assert len(kept(cache)) == step_files._SLOTS


def test_the_cache_is_cleared_while_it_is_read(run_db: Path, library: Library, cache: Path) -> None:
    first, _ = answers(run_db, library)
    engine = SqliteEngine(run_db, "run.db", library)
    session = Session(engine, library, "run.db")
    assert "wb_stall" in engine.given
    for path in kept(cache):
        path.unlink()
    assert answer_of(session, "stalls") == first["stalls"]
    assert answer_of(session, "law")
    engine.close()
    assert answers(run_db, library)[0] == first


def test_general_warnings_are_asked_for_once(run_db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the first question; the next ones ask for their own only."""
    asked: list[int] = []
    answer = SqliteEngine.answer

    def count(self: SqliteEngine, about: str, names: Any, tables: Any, selects: Any) -> Any:
        asked.append(len(selects))
        return answer(self, about, names, tables, selects)

    monkeypatch.setattr(SqliteEngine, "answer", count)
    with wbscope.open(run_db) as run:
        told = [run.query("task_faults").warnings for _ in range(3)]
    assert told[0]
    assert told[0] == told[1] == told[2]
    assert asked == [3, 2, 2]


@pytest.mark.parametrize("part", ["", "1s..3s"], ids=["whole", "part"])
def test_a_timeline_is_drawn_of_steps(
    run_db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, makes: list[str], part: str
) -> None:
    """The same without any, and where they are damaged between the verdict and the drawing."""
    span = parse_span(None, None, part or None)
    files = [tmp_path / f"{name}.pftrace" for name in ("steps", "damaged", "none")]
    with wbscope.open(run_db) as run:
        write_timeline(run, files[0], span=span)
        assert makes
        garbage = tmp_path / "garbage.db"
        garbage.write_bytes(b"no database" * 1000)
        statements = Steps.statements

        def damaged(self: Steps, wanted: Any) -> tuple[list[str], frozenset[str]]:
            found, names = statements(self, wanted)
            assert names
            return [f"ATTACH '{garbage}' AS steps_0", *found], names

        monkeypatch.setattr(Steps, "statements", damaged)
        write_timeline(run, files[1], span=span)
    monkeypatch.setattr(Steps, "statements", statements)
    monkeypatch.setattr(database, "_MANY_RECORDS", 1 << 60)
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "another"))
    with wbscope.open(run_db) as run:
        write_timeline(run, files[2], span=span)
    assert len({path.read_bytes() for path in files}) == 1
    assert garbage.read_bytes() == b"no database" * 1000


@pytest.mark.parametrize("kind", [QueryError, KeyboardInterrupt])
def test_a_verdict_that_fails_ends_the_drawing(
    run_db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    asked = []

    def fail(self: Run, *_: object) -> None:
        asked.append(self)
        raise QueryError("time-limit", "sql", "took too long") if kind is QueryError else kind

    monkeypatch.setattr(Run, "findings", fail)
    with wbscope.open(run_db) as run, pytest.raises(kind):
        write_timeline(run, tmp_path / "out.pftrace")
    assert len(asked) == 1
    assert not (tmp_path / "out.pftrace").exists()


def test_a_closed_session_has_no_connection(run_db: Path, library: Library) -> None:
    """So that what it kept can be replaced, and what it did not keep is gone."""
    told: Callable[[], set[str]] = lambda: {  # noqa: E731
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.lexists(f"/proc/self/fd/{fd}")
    }
    answers(run_db, library)
    assert not any(str(run_db.parent) in name for name in told())


def test_a_damaged_answer_is_made_again(run_db: Path, library: Library, cache: Path) -> None:
    """Its rows, where the schema and all other tables are whole."""
    wanted, _ = answers(run_db, library, announced=True)
    for path in kept(cache):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            find = "SELECT rootpage FROM sqlite_schema WHERE name IN ('blame', 'stalls')"
            pages = [page for (page,) in connection.execute(find)]
            (size,) = connection.execute("PRAGMA page_size").fetchone()
        with path.open("r+b") as file:
            for page in pages:
                file.seek((page - 1) * size)
                file.write(b"\xff" * size)
    assert answers(run_db, library, announced=True)[0] == wanted


def test_a_view_of_the_file_is_not_run_for_a_step_of_its_name(
    run_db: Path, library: Library
) -> None:
    with contextlib.closing(sqlite3.connect(run_db)) as connection, connection:
        connection.execute("CREATE VIEW blame AS SELECT 'a view of the file was run' AS told")
    for _ in range(2):
        with wbscope.open(run_db) as run:
            for statement in ("SELECT * FROM 'blame'", "SELECT * FROM main./**/blame"):
                with contextlib.suppress(QueryError):
                    assert "told" not in run.sql(statement).columns
        answers(run_db, library, announced=True)


def test_a_key_that_is_no_text_is_no_traceback(run_db: Path, library: Library) -> None:
    with contextlib.closing(sqlite3.connect(run_db)) as connection, connection:
        connection.execute("INSERT INTO meta VALUES (x'ff', 1)")
    assert answers(run_db, library)[0]


def test_no_step_tells_what_a_session_says(run_db: Path, library: Library) -> None:
    """Rows of a kept answer are those of the run alone: findings have labels and filters."""
    engine = SqliteEngine(run_db, "run.db", library)
    told = {name for name in library.files if engine._steps.is_step(name)}
    engine.close()
    assert "stalls" in told
    assert {name for name in told if FINDINGS in library.closure([name])} == set()
