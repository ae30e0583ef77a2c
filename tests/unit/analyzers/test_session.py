# SPDX-License-Identifier: Apache-2.0
"""Canned queries on a database: shims, filters, evidence, warnings."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import wbscope
from wbscope.base.errors import (
    EvidenceError,
    InputError,
    InternalError,
    QueryError,
    UsageError,
    WbscopeError,
)
from wbscope.library.database import SCHEMA_VERSION
from wbscope.library.library import Library
from wbscope.library.own_sql import run_select
from wbscope.library.params import Params, quote
from wbscope.library.session import Session
from wbscope.library.sqlite import SqliteEngine

EVENT = "writeback:balance_dirty_pages"


def change(database: Path, *statements: str) -> None:
    connection = sqlite3.connect(database)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_result_has_columns_units_rows_and_warnings(database: Path) -> None:
    with wbscope.open(database) as run:
        result = run.query("throttle_by_task")
    assert result.columns == ("tid", "comm", "bdi", "pauses_count", "pause_total_ns")
    assert result.units == {"pauses_count": "count", "pause_total_ns": "ns"}
    assert result.rows == [(11, "dd", "8:0", 2, 223_000_000), (13, "fio", "8:0", 1, 100_000_000)]
    assert [notice.slug for notice in result.warnings] == ["lower-bound"]
    assert result.records()[1]["comm"] == "fio"


def test_field_that_the_kernel_lacks_is_null(database: Path) -> None:
    with wbscope.open(database) as run:
        assert run.sql("SELECT DISTINCT wb_setpoint FROM raw_balance_dirty_pages").rows == [(7,)]
    change(
        database,
        "ALTER TABLE ev_balance_dirty_pages RENAME COLUMN wb_setpoint TO bdi_setpoint",
    )
    with wbscope.open(database) as run:
        assert run.sql("SELECT DISTINCT wb_setpoint FROM raw_balance_dirty_pages").rows == [(7,)]
    change(database, "ALTER TABLE ev_balance_dirty_pages DROP COLUMN bdi_setpoint")
    with wbscope.open(database) as run:
        assert run.sql("SELECT DISTINCT wb_setpoint FROM raw_balance_dirty_pages").rows == [(None,)]


def test_field_named_like_an_sql_keyword(database: Path) -> None:
    with wbscope.open(database) as run:
        assert run.sql("SELECT DISTINCT limit_pages FROM raw_balance_dirty_pages").rows == [(99,)]
    change(database, "DROP TABLE ev_balance_dirty_pages")
    change(database, "UPDATE event_format SET table_name = NULL")
    with wbscope.open(database) as run:
        assert run.sql("SELECT limit_pages FROM raw_balance_dirty_pages").rows == []


def test_table_is_found_through_event_format(database: Path) -> None:
    change(
        database,
        "ALTER TABLE ev_balance_dirty_pages RENAME TO ev_writeback__balance_dirty_pages",
        "UPDATE event_format SET table_name = 'ev_writeback__balance_dirty_pages'",
    )
    with wbscope.open(database) as run:
        assert len(run.query("throttle_by_task").rows) == 2


def test_second_alternative_serves_an_older_kernel(database: Path) -> None:
    change(
        database,
        "CREATE TABLE ev_mm_vmscan_writepage(ts, cpu, tid, buffer, pfn)",
        "INSERT INTO ev_mm_vmscan_writepage VALUES (1, 0, 11, 0, 5)",
        "INSERT INTO event_format VALUES "
        "('vmscan:mm_vmscan_writepage', 2, 'ev_mm_vmscan_writepage', 'parsed', '')",
    )
    with wbscope.open(database) as run:
        assert run.query("reclaim_writes").rows == [(1,)]


def test_table_without_links_is_refused(database: Path, sql_dir: Path) -> None:
    adapter = sql_dir / "adapters/sqlite/raw_balance_dirty_pages.sql"
    adapter.write_text(adapter.read_text().replace("-- @from", "-- @previous tid\n-- @from"))
    with wbscope.open(database) as run:
        assert run.query("run_summary").rows
        for ask in (run.query, lambda _: run.sql("SELECT count(*) FROM wb_throttle")):
            with pytest.raises(InputError) as caught:
                ask("throttle_by_task")
            assert (caught.value.slug, caught.value.subject) == ("no-links", str(database))
            assert "ev_balance_dirty_pages has no column prev_seq" in caught.value.message
            assert caught.value.fix == f"wbscope ingest trace.dat -o {database} --force"
    change(database, "ALTER TABLE ev_balance_dirty_pages ADD COLUMN prev_seq INTEGER")
    with wbscope.open(database) as run:
        assert len(run.query("throttle_by_task").rows) == 2


def test_event_that_was_not_recorded(database: Path) -> None:
    with wbscope.open(database) as run, pytest.raises(EvidenceError) as caught:
        run.query("reclaim_writes")
    error = caught.value
    assert error.slug == "missing-event"
    assert error.message == (
        f"needs vmscan:mm_vmscan_write_folio or vmscan:mm_vmscan_writepage; {database} has none"
    )
    assert error.have == EVENT
    assert error.fix == "trace-cmd record -e vmscan:mm_vmscan_write_folio -o trace.dat COMMAND"


def test_recorded_event_that_never_happened_is_an_honest_zero(database: Path) -> None:
    change(
        database,
        "INSERT INTO event_format VALUES ('vmscan:mm_vmscan_write_folio', 2, NULL, 'parsed', '')",
    )
    with wbscope.open(database) as run:
        assert run.query("reclaim_writes").rows == [(0,)]


def test_event_that_was_counted_and_not_loaded(database: Path) -> None:
    change(database, "UPDATE event_format SET table_name = NULL")
    with wbscope.open(database) as run, pytest.raises(EvidenceError) as caught:
        run.query("throttle_by_task")
    assert caught.value.slug == "event-not-loaded"
    assert "counts 3 of them" in caught.value.message
    assert (
        caught.value.fix
        == "wbscope ingest trace.dat -o RUN.db --events writeback:balance_dirty_pages --force"
    )


def test_no_events_at_all(database: Path) -> None:
    change(database, "DELETE FROM event_format", "DELETE FROM event_counts")
    with wbscope.open(database) as run, pytest.raises(EvidenceError) as caught:
        run.query("throttle_by_task")
    assert caught.value.have == "no events"


def test_long_list_of_recorded_events_is_counted(database: Path) -> None:
    names = [f"('vmscan:e{i}', {i}, 1, 0, NULL)" for i in range(10, 20)]
    change(database, f"INSERT INTO event_counts VALUES {', '.join(names)}")
    with wbscope.open(database) as run, pytest.raises(EvidenceError) as caught:
        run.query("reclaim_writes")
    assert caught.value.have is not None
    assert caught.value.have.startswith("vmscan:e10, vmscan:e11")
    assert caught.value.have.endswith("vmscan:e17 and 3 more")


@pytest.mark.parametrize(
    ("filters", "tids"),
    [
        ({"tid": 13}, [13]),
        ({"bdi": "8:0"}, [11, 13]),
        ({"bdi": "8:16"}, []),
        ({"start": "500ms"}, [11, 13]),
        ({"start": "1.5s"}, [11]),
        ({"end": "500ms"}, [11]),
        ({"start": "1s", "end": "2s"}, [13]),
        ({"bdi": "8:0' OR '1'='1"}, []),
    ],
)
def test_filters(database: Path, filters: dict[str, str], tids: list[int]) -> None:
    with wbscope.open(database) as run:
        assert [row[0] for row in run.query("throttle_by_task", **filters).rows] == tids  # type: ignore[arg-type]


def test_defaults_come_from_the_library_and_given_values_replace_them(database: Path) -> None:
    with wbscope.open(database) as run:
        assert run.query("windows").rows == [(2_000_000_000, None, None, None, None, None)]
        given = run.query("windows", window="500ms", start="1s", bdi="8:0", cgroup=27)
        assert given.rows == [(500_000_000, 2_000_000_000, None, "8:0", None, 27)]
        assert run.sql("SELECT window_ns FROM wb_params").rows == [(2_000_000_000,)]


def test_a_window_that_was_asked_for_is_known_as_such() -> None:
    assert Params().given() == {}
    assert Params(window_ns=5).given() == {"window_ns": 5, "by_window": 1}
    assert Params(window_ns=5, bdi="8:0").filters() == ["window", "bdi"]


def test_filter_on_a_query_without_one_is_refused(database: Path) -> None:
    with wbscope.open(database) as run, pytest.raises(UsageError, match="does not take"):
        run.query("run_summary", tid=11)


@pytest.mark.parametrize(
    ("filters", "slug"),
    [
        ({"window": "2"}, "bad-duration"),
        ({"window": "0s"}, "bad-duration"),
        ({"window": "1ns"}, "window-too-small"),
        ({"start": "3s"}, "empty-range"),
        ({"start": "1s", "end": "1s"}, "empty-range"),
        ({"end": "0s"}, "empty-range"),
        ({"tid": 2**70}, "out-of-range"),
        ({"bdi": "8:0\n"}, "unprintable-text"),
        ({"bdi": "\udcff"}, "unprintable-text"),
    ],
)
def test_filters_that_make_no_sense(database: Path, filters: dict[str, str], slug: str) -> None:
    with wbscope.open(database) as run, pytest.raises(UsageError) as caught:
        run.query("windows", **filters)  # type: ignore[arg-type]
    assert caught.value.slug == slug


@pytest.mark.parametrize(
    ("filters", "slug", "subject"),
    [
        ({"window": 2}, "bad-duration", "window=2"),
        ({"start": 1.5}, "bad-duration", "start=1.5"),
        ({"cgroup": 1.5}, "bad-type", "cgroup=1.5"),
        ({"tid": "x"}, "bad-type", "tid='x'"),
        ({"tid": True}, "bad-type", "tid=True"),
        ({"task": 1.0}, "bad-type", "task=1.0"),
        ({"bdi": 8}, "bad-type", "bdi=8"),
        ({"bdi": ""}, "no-bdi", "bdi=''"),
    ],
)
def test_filters_of_a_wrong_type(
    database: Path, filters: dict[str, Any], slug: str, subject: str
) -> None:
    with wbscope.open(database) as run, pytest.raises(UsageError) as caught:
        run.query("windows", **filters)
    assert (caught.value.slug, caught.value.subject) == (slug, subject)
    assert "wanted" in caught.value.message
    assert caught.value.fix


@pytest.mark.parametrize(
    ("ask", "subject"),
    [
        (lambda run: run.query(None), "name=None"),
        (lambda run: run.query(5), "name=5"),
        (lambda run: run.sql(None), "statement=None"),
        (lambda run: run.report(section=5), "section=5"),
        (lambda run: run.report(section=["fairness", None]), "section=None"),
    ],
)
def test_what_is_asked_of_a_wrong_type(
    database: Path, ask: Callable[[wbscope.Run], object], subject: str
) -> None:
    with wbscope.open(database) as run, pytest.raises(UsageError) as caught:
        ask(run)
    assert (caught.value.slug, caught.value.subject) == ("bad-type", subject)
    assert caught.value.fix


def test_a_run_is_for_one_thread(database: Path) -> None:
    """That the run cannot be used would be another thing."""
    told = []

    def ask(run: wbscope.Run) -> None:
        for one in (lambda: run.query("windows"), lambda: run.sql("SELECT 1"), run.findings):
            with pytest.raises(UsageError) as caught:
                one()
            told.append(caught.value.slug)

    with wbscope.open(database) as run:
        thread = threading.Thread(target=ask, args=(run,))
        thread.start()
        thread.join()
        assert run.sql("SELECT 1").rows == [(1,)]
    assert told == ["other-thread"] * 3


def test_a_closed_run_says_so(database: Path) -> None:
    run = wbscope.open(database)
    run.close()
    run.close()
    for ask in (lambda: run.query("windows"), lambda: run.sql("SELECT 1"), run.recorded):
        with pytest.raises(UsageError) as caught:
            ask()
        assert (caught.value.slug, caught.value.subject) == ("run-closed", str(database))
        assert caught.value.fix == f"wbscope.open('{database}')"


def test_quote() -> None:
    assert [quote(None), quote(-5), quote("8:0"), quote("it's")] == [
        "NULL",
        "-5",
        "'8:0'",
        "'it''s'",
    ]


def test_materialized_view_becomes_a_table_only_where_it_is_used(
    database: Path, library: Library
) -> None:
    kinds = "SELECT type FROM sqlite_temp_schema WHERE name LIKE 'wb_throttl_'"
    engine = SqliteEngine(database, "run.db", library)
    assert run_select(engine, kinds).rows == []  # not named, and so not made
    engine.close()
    engine = SqliteEngine(database, "run.db", library)
    Session(engine, library, "run.db").query("throttle_by_task")
    assert run_select(engine, kinds).rows == [("table",)]
    engine.close()


def test_filters_that_cannot_be_used_leave_the_engine_usable(
    database: Path, library: Library
) -> None:
    """It is opened again then; the file goes away meanwhile, and comes back."""
    session = Session(SqliteEngine(database, "run.db", library), library, "run.db")
    rows = session.query("throttle_by_task").rows
    away = database.rename(database.with_suffix(".away"))

    session.engine.connection.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
    with pytest.raises(WbscopeError, match="not authorized"):
        session.query("throttle_by_task", Params(tid=13))
    for _ in range(2):
        with pytest.raises(WbscopeError, match="unable to open"):
            session.query("throttle_by_task", Params(tid=13))
    away.rename(database)
    assert session.query("throttle_by_task").rows == rows
    assert [row[0] for row in session.query("throttle_by_task", Params(tid=13)).rows] == [13]
    session.engine.close()
    session.engine.close()


def test_warnings_of_the_run(new_database: Callable[..., Path]) -> None:
    with wbscope.open(new_database(lost_events_count=17)) as run:
        assert [n.message for n in run.warnings()] == ["17 events were lost"]
        slugs = [n.slug for n in run.query("throttle_by_task").warnings]
        # From the second question on they are not asked for again; nor is one of another query.
        for filters in ({}, {}, {"tid": 13}, {"tid": 13}):
            found = run.query("throttle_by_task", **filters)
            assert [n.slug for n in found.warnings] == slugs
        other = [n.slug for n in run.query("windows").warnings]
        assert "lost-events" in other
        assert "lower-bound" not in other
    assert slugs == ["lost-events", "lower-bound"]


def test_strange_task_name_is_shown(database: Path) -> None:
    change(database, "UPDATE task SET comm = CAST(x'6464ff' AS TEXT) WHERE tid = 11")
    with wbscope.open(database) as run:
        assert run.query("throttle_by_task").rows[0][1] == "dd\\xff"


def test_database_is_not_changed(database: Path) -> None:
    before = database.read_bytes()
    database.chmod(0o444)
    with wbscope.open(database) as run:
        run.query("throttle_by_task")
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.glob("run.db*")] == ["run.db"]


@pytest.mark.parametrize("name", ["a?b.db", "a#b.db", "a%41.db", "a b'.db"])
def test_any_file_name(new_database: Callable[..., Path], name: str) -> None:
    with wbscope.open(new_database(name)) as run:
        assert len(run.query("throttle_by_task").rows) == 2


@pytest.mark.parametrize(("version", "found"), [(3, "3"), (99, "99"), (None, "None")])
def test_other_schema_version(
    new_database: Callable[..., Path], version: int | None, found: str
) -> None:
    database = new_database(schema_version=version)
    with pytest.raises(InputError) as caught:
        wbscope.open(database)
    assert caught.value.slug == "schema-version"
    assert (
        caught.value.message == f"has schema_version {found}, this wbscope reads {SCHEMA_VERSION}"
    )


def test_sqlite_file_of_somebody_else(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    change(path, "CREATE TABLE places(id)")
    with pytest.raises(InputError, match="without a table 'meta'") as caught:
        wbscope.open(path)
    assert caught.value.have == "places"


def test_meta_of_somebody_else(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    change(path, "CREATE TABLE meta(name)")
    with pytest.raises(InputError, match="no such column"):
        wbscope.open(path)


def test_cut_database(database: Path) -> None:
    data = database.read_bytes()
    database.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError) as caught, wbscope.open(database) as run:
        run.query("throttle_by_task")
    assert caught.value.slug == "damaged-database"


def test_overwritten_pages(database: Path) -> None:
    data = bytearray(database.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    database.write_bytes(bytes(data))
    with pytest.raises(InputError) as caught, wbscope.open(database) as run:
        run.query("throttle_by_task")
    assert caught.value.slug == "damaged-database"


def test_wrong_sql_in_the_library_is_a_bug(database: Path, sql_dir: Path) -> None:
    (sql_dir / "queries/bad.sql").write_text(
        "-- @query bad\nSELECT p.missing FROM wb_params AS p;\n"
    )
    with wbscope.open(database) as run, pytest.raises(InternalError, match="no such column"):
        run.query("bad")


def test_unknown_query(database: Path) -> None:
    with wbscope.open(database) as run, pytest.raises(QueryError, match="none of the 4"):
        run.query("throttle")
