# SPDX-License-Identifier: Apache-2.0
"""The views that ingest saves in the file: plain SQLite reads what wbscope answers."""

from __future__ import annotations

import itertools
import math
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest
import wbscope
from support.properties import some
from support.runs import REPOSITORY, RecordedRun, example
from wbscope.base.errors import EvidenceError, InputError, WbscopeError
from wbscope.library import saved_views
from wbscope.library.guard import stoppable
from wbscope.library.library import Library, load_library
from wbscope.library.statements import read_macros
from wbscope.run.ingested import ingest
from wbscope.source.source import find_source

# Counted in the file itself, each row with its column names.
Rows = list[tuple[object, ...]]


@pytest.fixture(scope="session")
def library() -> Library:
    return load_library()


def public_views(library: Library) -> list[str]:
    return sorted(f.name for f in library.files.values() if f.kind == "view" and f.name[0] != "_")


def answers(library: Library) -> list[str]:
    """The queries; one has the name of a table, which has its rows."""
    return [query.name for query in library.queries()]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="session")
def database(recorded: RecordedRun, folder: Path, library: Library) -> Path:
    path = folder / f"{recorded}.db"
    if not path.exists():  # a worker of pytest-xdist may come back to a run
        ingest(find_source(str(recorded.folder)), path, library)
    return path


@pytest.fixture
def small(folder: Path, library: Library, tmp_path: Path) -> Path:
    """Of a small run; the test may change it."""
    path = folder / "small.db"
    if not path.exists():
        ingest(find_source(str(example("four-equal-writers").folder)), path, library)
    return Path(shutil.copy(path, tmp_path / "run.db"))


@pytest.fixture
def plain(database: Path) -> Iterator[sqlite3.Connection]:
    """Without any function, attached file or setting of wbscope."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
        yield connection


def test_plain_sqlite_reads_what_wbscope_answers(
    database: Path, plain: sqlite3.Connection, library: Library, tmp_path: Path
) -> None:
    # Of a copy wbscope does not know who has saved its tables, and makes its own.
    with wbscope.open(shutil.copy(database, tmp_path / "copy.db")) as run:
        for view in some(public_views(library)):
            columns = [column.name for column in library.files[view].columns]
            select = f"SELECT {', '.join(columns)} FROM {view}"
            # A file that others get says RUN, not where it lies here.
            ours = [
                tuple(_without(tmp_path / "copy.db", cell) for cell in row)
                for row in run.sql(select).rows
            ]
            rows = plain.execute(select).fetchall()
            assert str(database) not in str(rows), view
            assert same(rows, ours), view


def test_a_canned_query_is_a_view_of_its_name(
    database: Path, plain: sqlite3.Connection, library: Library, tmp_path: Path
) -> None:
    asked = 0
    with wbscope.open(shutil.copy(database, tmp_path / "copy.db")) as run:
        for name in answers(library):
            columns = ", ".join(column.name for column in library.files[name].columns)
            select = f'SELECT {columns or "*"} FROM "{name}"'
            rows = plain.execute(select).fetchall()
            try:
                answer = run.query(name).rows
            except EvidenceError as refused:
                with pytest.raises(EvidenceError, match=re.escape(refused.message)):
                    run.sql(select)
                continue
            asked += 1
            ours = [tuple(_without(tmp_path / "copy.db", cell) for cell in row) for row in answer]
            assert same(rows, ours), name
            assert same(run.sql(select).rows, answer), name
    assert asked > 20


def test_all_events_in_one_view(database: Path, plain: sqlite3.Connection) -> None:
    """In a trace of several tracing instances an event is in several tables' rows once."""
    found = "SELECT name, count(*) FROM event GROUP BY name ORDER BY name"
    tables = dict(
        plain.execute("SELECT event, table_name FROM event_format WHERE table_name <> ''")
    )
    counted = []
    for name, table in sorted(tables.items()):
        first = f'(SELECT min(buffer) FROM "{table}")'
        counted.append((name, f'SELECT count(*) FROM "{table}" WHERE buffer = {first}'))
    wanted = [(name, plain.execute(count).fetchone()[0]) for name, count in counted]
    assert plain.execute(found).fetchall() == [row for row in wanted if row[1]]
    (first,) = plain.execute('SELECT name, "table", ts, cpu, tid FROM event LIMIT 1').fetchall()
    read = plain.execute(f'SELECT ts, cpu, tid FROM "{first[1]}" LIMIT 1').fetchone()
    assert (tables[first[0]], read) == (first[1], first[2:])
    with wbscope.open(database) as run:
        assert run.sql(found).rows == plain.execute(found).fetchall()


def test_all_events_of_a_file_with_a_strange_table(small: Path) -> None:
    """A column called event reads none of them."""
    with closing(sqlite3.connect(small)) as connection:
        connection.execute("DROP TABLE ev_writeback_start")
        connection.execute("CREATE VIEW ev_writeback_start AS SELECT 1 AS ts, 2 AS cpu, 3 AS tid")
    with wbscope.open(small) as run:
        assert run.sql("SELECT event, count FROM event_counts").rows
        with pytest.raises(InputError, match="view named 'ev_writeback_start'"):
            run.sql("SELECT ts FROM event")


def _without(database: Path, cell: object) -> object:
    return cell.replace(str(database), "RUN") if isinstance(cell, str) else cell


def same(found: Rows, wanted: Rows) -> bool:
    """As sets: a view has no order. Sums of reals may be added up in another one."""
    if len(found) != len(wanted):
        return False
    if Counter(map(typed, found)) == Counter(map(typed, wanted)):
        return True
    pairs = zip(sorted(found, key=repr), sorted(wanted, key=repr), strict=True)
    return all(a == b or equal_values(a, b) for a, b in pairs)


def typed(row: tuple[object, ...]) -> tuple[tuple[type, object], ...]:
    """For Python 1 is 1.0; for who reads the file it is another type of column."""
    return tuple((type(value), value) for value in row)


def equal_values(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    return all(
        type(x) is type(y)
        and (x == y or (isinstance(x, float) and isinstance(y, float) and math.isclose(x, y)))
        for x, y in zip(a, b, strict=True)
    )


def test_every_public_view_is_in_the_file(plain: sqlite3.Connection, library: Library) -> None:
    there = {name for (name,) in plain.execute("SELECT name FROM sqlite_schema")}
    assert {*public_views(library), *answers(library), "event"} <= there


def test_the_file_has_neither_raw_views_nor_those_of_timelines(plain: sqlite3.Connection) -> None:
    found = "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'raw_*' OR name GLOB 'tl_*'"
    assert plain.execute(found).fetchone() == (0,)


def test_an_attached_file_answers_too(small: Path) -> None:
    """A view that names its schema could be read as main's only."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("ATTACH ? AS run", (str(small),))
        rows = connection.execute("SELECT count(*) FROM run.wb_throttle").fetchone()
        direct = connection.execute("SELECT count(*) FROM run.ev_balance_dirty_pages").fetchone()
    assert rows == direct
    assert rows[0] > 0


def test_the_schema_tells_what_a_row_is(small: Path) -> None:
    with closing(sqlite3.connect(small)) as connection:
        find = "SELECT sql FROM sqlite_schema WHERE name = 'wb_throttle'"
        (sql,) = connection.execute(find).fetchone()
    assert "-- One row for each balance_dirty_pages event" in sql


def test_views_without_tables_give_the_same(
    small: Path, library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As in a trace with too many events for tables."""
    monkeypatch.setattr(saved_views, "_MOST_ROWS", 100)
    views_only = tmp_path / "views.db"
    ingest(find_source(str(example("four-equal-writers").folder)), views_only, library)
    with closing(sqlite3.connect(views_only)) as few, closing(sqlite3.connect(small)) as many:
        kind = "SELECT type FROM sqlite_schema WHERE name = '_throttle_charge'"
        assert (few.execute(kind).fetchone(), many.execute(kind).fetchone()) == (
            ("view",),
            ("table",),
        )
        for view in ("wb_throttle", "wb_dirty_window", "reclaim_run", "wb_bandwidth"):
            select = f"SELECT * FROM {view}"
            assert same(few.execute(select).fetchall(), many.execute(select).fetchall())


def test_a_trace_of_other_events_is_not_ingested_more_slowly(
    library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Only what stands on no event is made, or on few: views that hang without it are told."""
    _only_small_steps(monkeypatch)
    path = tmp_path / "large.db"
    done = ingest(find_source(str(example("four-equal-writers").folder)), path, library)
    with closing(sqlite3.connect(path)) as connection:
        find = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'wb_*'"
        tables = {name for (name,) in connection.execute(find)}
        rows = connection.execute("SELECT count(*) FROM wb_throttle").fetchone()[0]
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        (left,) = connection.execute(
            "SELECT value FROM meta WHERE key = 'views_left_out'"
        ).fetchone()
        events = connection.execute("SELECT count(*) FROM ev_balance_dirty_pages").fetchone()[0]
    assert {"wb_params", "wb_units", "wb_bounds"} <= tables
    assert not {"wb_task", "wb_stall", "wb_finding"} & tables
    assert rows == events
    # Its findings take longer than its ingest; an empty table would say that there are none.
    assert {"wb_finding", "wb_stall", "wb_loss"} <= set(left.split(", "))
    assert left.split(", ") == sorted({*public_views(library), *answers(library)} - there)
    (warning,) = done.warnings
    assert warning.slug == "views-left-out"
    assert f"wbscope sql {path}" in warning.message
    assert wbscope.open(path).sql("SELECT count(*) FROM wb_stall").rows


def test_a_large_trace_of_the_librarys_events_has_all(
    library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(saved_views, "_MOST_EVENTS", 100)
    path = tmp_path / "large.db"
    done = ingest(find_source(str(example("four-equal-writers").folder)), path, library)
    assert done.warnings == ()
    with closing(sqlite3.connect(path)) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        assert set(public_views(library)) <= there
        assert connection.execute("SELECT count(*) FROM wb_finding").fetchone()[0] > 0
        find = "SELECT count(*) FROM meta WHERE key = 'views_left_out'"
        assert connection.execute(find).fetchone() == (0,)


def test_of_many_rows_fewer_views_are_saved(
    library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """wb_law goes through all events for each of them."""
    _only_small_steps(monkeypatch)
    monkeypatch.setattr(saved_views, "_LONG_ROWS", 1000)
    path = tmp_path / "large.db"
    ingest(find_source(str(example("four-equal-writers").folder)), path, library)
    with closing(sqlite3.connect(path)) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    assert "wb_law" not in there
    assert "wb_throttle_total" in there


@pytest.mark.parametrize("kind", ["small", "large"])
def test_plain_sqlite_prepares_every_view(
    kind: str, library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Views in views in views: 3.40 said "no such table: main.active", or took minutes."""
    if kind == "large":
        _only_small_steps(monkeypatch)
    path = tmp_path / "run.db"
    ingest(find_source(str(example("rate-limited-writers").folder)), path, library)
    with closing(sqlite3.connect(path)) as connection:
        find = "SELECT name FROM sqlite_schema WHERE type = 'view'"
        views = [name for (name,) in connection.execute(find)]
        for view in views:
            looks = itertools.count(1)  # at a column, a function or a view: the next is refused
            connection.set_authorizer(
                lambda *_, looks=looks: (
                    sqlite3.SQLITE_OK if next(looks) <= _MOST_LOOKS else sqlite3.SQLITE_DENY
                )
            )
            steps = connection.execute(f'EXPLAIN SELECT * FROM "{view}"').fetchall()
            assert len(steps) <= _MOST_STEPS, view
    assert len(views) > 50


# To prepare the worst view takes a fifth of each.
_MOST_LOOKS = 100_000
_MOST_STEPS = 200_000


def _only_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a large trace that is mostly of events that no view reads."""
    monkeypatch.setattr(saved_views, "_MOST_EVENTS", 100)
    monkeypatch.setattr(saved_views, "_LEAST_SHARE", 2)
    monkeypatch.setattr(saved_views, "_MOST_STEP_ROWS", 0)


def test_what_sqlite_refuses_to_add_up_is_a_view(
    small: Path, library: Library, tmp_path: Path
) -> None:
    """The ingest of a strange trace ends well; the view tells the error when it is asked."""
    strange = tmp_path / "strange.db"
    with closing(sqlite3.connect(small)) as connection:
        names = connection.execute(
            "SELECT type, name FROM sqlite_schema WHERE name GLOB 'wb_*' OR name GLOB '_[a-z]*'"
            " OR name GLOB 'reclaim_*' OR type = 'view'"
        ).fetchall()
        for kind, name in names:
            if kind in ("table", "view"):
                connection.execute(f'DROP {kind} "{name}"')
        connection.execute("UPDATE ev_writeback_written SET nr_pages = 9223372036854775807")
        connection.execute("UPDATE ev_bdi_dirty_ratelimit SET write_bw = 9223372036854775807")
        connection.commit()
        connection.execute(f"VACUUM INTO '{strange}'")
    saved_views.save_views(strange, library, "strange.db", lambda *_: [])
    with closing(sqlite3.connect(strange)) as connection:
        rows = connection.execute("SELECT count(*) FROM wb_throttle").fetchone()[0]
    assert rows > 0


def test_a_trace_that_takes_too_long_goes_without(
    library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(saved_views, "default_limit_ns", lambda: 1)
    path = tmp_path / "run.db"
    done = ingest(find_source(str(example("four-equal-writers").folder)), path, library)
    assert [notice.slug for notice in done.warnings] == ["no-views-saved"]
    with closing(sqlite3.connect(path)) as connection:
        find = "SELECT name FROM sqlite_schema WHERE name GLOB 'wb_*' OR type = 'view'"
        assert connection.execute(find).fetchall() == []
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert wbscope.open(path).query("event_counts").rows


def test_they_may_take_as_long_as_a_question(
    library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the variable that people set where a machine is slow or busy."""
    limits: list[int | None] = []

    def noted(
        connection: sqlite3.Connection, limit_ns: int | None = None
    ) -> AbstractContextManager[None]:
        limits.append(limit_ns)
        return stoppable(connection, limit_ns)

    monkeypatch.setattr(saved_views, "stoppable", noted)
    monkeypatch.setenv("WBSCOPE_TIMEOUT", "1234")
    ingest(find_source(str(example("four-equal-writers").folder)), tmp_path / "run.db", library)
    assert limits == [1_234_000_000_000]


def test_wbscope_answers_from_its_own_library(small: Path) -> None:
    """Tables and views of the file are a stranger's."""
    ask = "SELECT sum(slept_ns) AS ns FROM wb_throttle"
    wanted = wbscope.open(small).sql(ask).rows
    with closing(sqlite3.connect(small)) as connection:
        connection.execute("UPDATE _throttle_charge SET slept_ns = 1")
        connection.execute("DROP VIEW wb_throttle")
        connection.execute("CREATE VIEW wb_throttle AS SELECT 7 AS slept_ns")
        connection.commit()
    again = [wbscope.open(small).sql(ask).rows for _ in range(2)]  # the second with kept tables
    assert again == [wanted, wanted]


def test_a_cache_entry_has_no_views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads it but wbscope."""
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    wbscope.open(example("four-equal-writers").folder).query("event_counts")
    found = []
    for path in (tmp_path / "cache").rglob("*.db"):
        with closing(sqlite3.connect(path)) as connection:
            find = "SELECT count(*) FROM sqlite_schema WHERE name = 'wb_throttle'"
            found += connection.execute(find).fetchone()
    assert found == [0]


def test_events_that_tell_something_are_found_by_an_index(plain: sqlite3.Connection) -> None:
    """The catalog's condition is that of the view, word by word, or SQLite reads all rows."""
    macros = read_macros((REPOSITORY / "sql/macros.sql").read_text())
    select = "SELECT e.seq FROM ev_balance_dirty_pages AS e WHERE is_told!(e)"
    for macro in macros:
        select = macro.expand(select)
    plan = plain.execute(f"EXPLAIN QUERY PLAN {select}").fetchall()
    assert "INDEX ix_ev_balance_dirty_pages__seq__pause" in str(plan)
    wanted = plain.execute(
        "SELECT seq FROM ev_balance_dirty_pages WHERE pause > 0 OR paused > 0 OR pause < -1000"
        " OR period <> 0 OR think >= (SELECT silent_least_ns FROM wb_rule) / 1000000"
        " ORDER BY +seq"
    ).fetchall()
    assert len(wanted) > 10
    found = plain.execute(f"{select} ORDER BY e.seq").fetchall()
    assert found == wanted


def test_only_the_views_that_are_named_are_made(small: Path) -> None:
    """However they are written; hundreds of others cost more than the answer."""
    with wbscope.open(small) as run:
        assert run.sql('SELECT count(*) FROM WB_Throttle AS t JOIN "wb_task" AS k').rows
        made = run._session.engine.made  # type: ignore[attr-defined]
        assert {"wb_throttle", "wb_task"} <= set(made)
        assert "wb_stall" not in made
        assert run.sql("SELECT count(*) FROM wb_stall").rows


def test_the_schema_is_as_create_view_leaves_it(database: Path, tmp_path: Path) -> None:
    """Most views go there as rows, which SQLite does not look at."""
    rows = "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema WHERE type = 'view'"
    with (
        closing(sqlite3.connect(tmp_path / "made.db")) as made,
        closing(sqlite3.connect(database)) as connection,
    ):
        found = connection.execute(f"{rows} ORDER BY name").fetchall()
        for *_, sql in found:
            made.execute(sql)
        assert made.execute(f"{rows} ORDER BY name").fetchall() == found
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema")]
        assert sorted(set(names)) == sorted(names)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert len(found) > 50


def test_what_names_of_the_trace_are_in_is_checked(
    library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Findings name tasks: as a row of the schema a broken one would break the file."""
    monkeypatch.setattr(saved_views, "findings_select", lambda *_: "SELECT 'its name is 'dd'")
    path = tmp_path / "run.db"
    with pytest.raises(WbscopeError, match="token"):
        ingest(find_source(str(example("four-equal-writers").folder)), path, library)
    assert not path.exists()


class _Defended(sqlite3.Connection):
    """Of an SQLite that lets nobody write its schema."""

    def executemany(self, sql: str, *rows: object) -> sqlite3.Cursor:
        return self.execute("INSERT INTO sqlite_master VALUES ('view', 'v', 'v', 0, 'v')")


def test_an_sqlite_that_defends_its_schema_makes_the_views(
    library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As some are built: SQLITE_DBCONFIG_DEFENSIVE."""
    run = find_source(str(example("four-equal-writers").folder))
    ingest(run, tmp_path / "open.db", library)
    monkeypatch.setattr(
        saved_views,
        "_writer",
        lambda path: sqlite3.connect(path, isolation_level=None, factory=_Defended),
    )
    monkeypatch.setattr(_Defended, "execute", _without_writable_schema)
    ingest(run, tmp_path / "defended.db", library)
    schemas = []
    for name in ("open.db", "defended.db"):
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            rows = "SELECT type, name, sql FROM sqlite_schema ORDER BY name"
            schemas.append(connection.execute(rows).fetchall())
    assert schemas[0] == schemas[1]


def _without_writable_schema(connection: sqlite3.Connection, sql: str, *rows: object) -> object:
    known = sql if "writable_schema" not in sql else "SELECT 1"
    return sqlite3.Connection.execute(connection, known, *rows)
