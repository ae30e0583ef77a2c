# SPDX-License-Identifier: Apache-2.0
"""The library as a whole: names, needs, order, where it is found."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.runs import REPOSITORY
from wbscope.base.errors import QueryError, SetupError
from wbscope.library.engine import FINDINGS, PARAMS
from wbscope.library.library import Library, find_sql_dir, load_library


def test_closure_puts_each_object_after_its_needs(library: Library) -> None:
    order = library.closure(["wb_throttle"])
    assert sorted(order) == ["raw_balance_dirty_pages", "raw_task", "wb_params", "wb_throttle"]
    assert order[-1] == "wb_throttle"


def test_events_are_those_of_the_adapters_with_all_alternatives(library: Library) -> None:
    assert library.events() == [
        "vmscan:mm_vmscan_write_folio",
        "vmscan:mm_vmscan_writepage",
        "writeback:balance_dirty_pages",
    ]


def test_frequent_events_are_not_in_the_default_profile(sql_dir: Path) -> None:
    path = sql_dir / "adapters/sqlite/raw_page_fault_user.sql"
    path.write_text(
        "-- @raw raw_page_fault_user\n-- @event exceptions:page_fault_user\n-- @extra on request\n"
        "-- @from _ev_page_fault_user\n-- @fields seq\n"
        "CREATE VIEW raw_page_fault_user AS\nSELECT e.seq FROM _ev_page_fault_user AS e;\n"
    )
    library = load_library(sql_dir)
    assert library.files["raw_page_fault_user"].extra
    assert "exceptions:page_fault_user" not in library.events()
    assert "writeback:balance_dirty_pages" in library.events()


def test_unknown_query_names_the_closest(library: Library) -> None:
    with pytest.raises(QueryError) as caught:
        library.query("throttle_by_tusk")
    assert caught.value.slug == "unknown-query"
    assert caught.value.have == "throttle_by_task"


def test_unknown_query_without_a_close_one_lists_all(library: Library) -> None:
    with pytest.raises(QueryError) as caught:
        library.query("zzz")
    assert caught.value.have == "reclaim_writes, run_summary, throttle_by_task, windows"


def test_view_is_no_query(library: Library) -> None:
    with pytest.raises(QueryError):
        library.query("wb_throttle")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("views/a.sql", "-- @view wb_throttle\nCREATE VIEW wb_throttle AS SELECT 1;", "is also in"),
        ("views/a.sql", "-- @view a\nCREATE VIEW a AS SELECT b.x FROM b;", "a reads b"),
        ("queries/a.sql", "-- @query a\n-- @explain b\nSELECT 1;", "@explain b"),
        (
            "queries/a.sql",
            "-- @query a\n-- @explain wb_throttle\nSELECT 1;",
            "@explain wb_throttle",
        ),
        ("views/a.sql", "-- @view a\nCREATE VIEW a AS SELECT a.x FROM a;", "needs itself"),
    ],
)
def test_broken_library(sql_dir: Path, name: str, text: str, message: str) -> None:
    (sql_dir / name).write_text(text + "\n")
    with pytest.raises(SetupError, match=message):
        load_library()


def test_a_private_view_is_read_in_its_own_file_only(sql_dir: Path) -> None:
    step = "-- @view _step\nCREATE VIEW _step AS SELECT 1 AS a;\n"
    reader = "-- @view {0}\nCREATE VIEW {0} AS SELECT s.a FROM _step AS s;\n"
    (sql_dir / "views/a.sql").write_text(reader.format("a") + step)
    assert load_library().closure(["a"]) == ["_step", "a"]
    (sql_dir / "views/b.sql").write_text(reader.format("b"))
    with pytest.raises(SetupError, match=r"b reads _step, which is private to a\.sql"):
        load_library()


def test_what_reads_a_query_has_all_that_it_needs(sql_dir: Path) -> None:
    reader = "-- @view a\nCREATE VIEW a AS SELECT 1 AS b FROM windows AS w;\n"
    (sql_dir / "views/a.sql").write_text(reader)
    library = load_library()
    needs = library.closure(library.files["windows"].needs)
    assert library.closure(["a"]) == [*needs, "windows", "a"]


MACROS = """\
-- A time in a span.
in_span!(ts, s) =
  ts >= s.from_ts
  AND ts < s.to_ts;
"""
SPANS = "-- @view a\nCREATE VIEW a AS\nSELECT 2 AS ts, 1 AS from_ts, 3 AS to_ts;\n"


def test_a_macro_is_what_it_stands_for(sql_dir: Path) -> None:
    (sql_dir / "macros.sql").write_text(MACROS)
    view = "-- @view b\nCREATE VIEW b AS\nSELECT x.ts FROM a AS x WHERE NOT in_span!(x.ts, x);\n"
    (sql_dir / "views/a.sql").write_text(SPANS + view)
    select = load_library().files["b"].select
    wanted = "FROM a AS x WHERE NOT (x.ts >= x.from_ts AND x.ts < x.to_ts)"
    assert " ".join(select.split()).endswith(wanted)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("in_span!(x.ts)", "b: in_span!(x.ts): wanted in_span!(ts, s)"),
        ("in_spam!(x.ts, x)", "b: in_spam! is none of sql/macros.sql"),
    ],
)
def test_a_macro_that_is_none(sql_dir: Path, call: str, message: str) -> None:
    (sql_dir / "macros.sql").write_text(MACROS)
    view = f"-- @view b\nCREATE VIEW b AS\nSELECT x.ts FROM a AS x WHERE {call};\n"
    (sql_dir / "views/a.sql").write_text(SPANS + view)
    with pytest.raises(SetupError, match=re.escape(message)):
        load_library()


WARNINGS = """\
-- About tests.

-- @warning  many_rows
-- @scope    windows, run_summary
-- @sentence {rows} rows aren't few[, not {some}]
SELECT 3 AS rows, NULL AS some;

-- @warning  any
-- @slug     any-{kind}
-- @scope    *
-- @sentence always
SELECT 'a' AS kind;
"""


def test_warnings_become_rows_of_one_view(sql_dir: Path) -> None:
    """Those of every answer first; each query has its own apart."""
    (sql_dir / "warnings/run.sql").write_text(WARNINGS)
    files = load_library().files
    with closing(sqlite3.connect(":memory:")) as connection:

        def rows(select: str) -> list[tuple[str, ...]]:
            return connection.execute(select).fetchall()

        assert rows(files["wb_warning"].select) == [
            ("*", "any-a", "always"),
            ("windows", "many-rows", "3 rows aren't few"),
            ("run_summary", "many-rows", "3 rows aren't few"),
        ]
        assert rows(files["wb_warning"].warns) == [("any-a", "always")]
        assert rows(files["windows"].warns) == [("many-rows", "3 rows aren't few")]
    assert not files["throttle_by_task"].warns


def test_a_warning_of_no_query(sql_dir: Path) -> None:
    (sql_dir / "warnings/run.sql").write_text(WARNINGS.replace("windows,", "window,"))
    with pytest.raises(SetupError, match="@scope window is no query"):
        load_library()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("-- @scope    *\n", "", "any: has no @scope or no @sentence"),
        ("-- @sentence always\n", "", "any: has no @scope or no @sentence"),
        ("{rows}", "{row}", "many_rows: {row} is no column"),
        ("any-{kind}", "{x}", "any: {x} is no column"),
    ],
)
def test_a_broken_warning(sql_dir: Path, old: str, new: str, message: str) -> None:
    (sql_dir / "warnings/run.sql").write_text(WARNINGS.replace(old, new))
    with pytest.raises(SetupError, match=re.escape(message)):
        load_library()


WIDE = """\
-- @view a
-- @column ts INTEGER ns, trace clock
-- @column bdi TEXT backing device
CREATE VIEW a AS SELECT 1 AS ts, '8:0' AS bdi;
"""
INHERITED = [("ts", "INTEGER", "ns, trace clock"), ("bdi", "TEXT", "backing device")]


@pytest.mark.parametrize(
    "select",
    [
        "SELECT a.ts, a.bdi FROM a",
        "SELECT ts, bdi FROM a",
        "SELECT x.ts, x.bdi FROM wb_params AS p CROSS JOIN a AS x",
        "WITH s AS (SELECT a.ts, a.bdi FROM a) SELECT s.ts, s.bdi FROM s WHERE s.ts IN (SELECT 2)",
        "WITH s AS (SELECT ts, bdi FROM a), t AS (SELECT s.ts, s.bdi FROM s) SELECT ts, bdi FROM t",
        "SELECT s.ts, s.bdi FROM (SELECT a.ts, a.bdi FROM a) AS s",
        "SELECT a.ts, a.bdi FROM a UNION ALL SELECT 1, 'FROM wb_params'",
        "SELECT a.ts, -- a comment, FROM b\n a.bdi FROM a",
    ],
)
def test_a_column_that_is_passed_through_is_described_once(sql_dir: Path, select: str) -> None:
    (sql_dir / "views/a.sql").write_text(WIDE)
    (sql_dir / "views/b.sql").write_text(f"-- @view b\nCREATE VIEW b AS\n{select};\n")
    columns = load_library().files["b"].columns
    assert [(one.name, one.type, one.description) for one in columns] == INHERITED


@pytest.mark.parametrize(
    "select",
    [
        "SELECT a.ts, max(a.bdi) AS bdi FROM a",
        "SELECT a.ts, a.ts AS bdi FROM a",
        "WITH s AS (SELECT a.ts, a.ts AS bdi FROM a) SELECT s.ts, s.bdi FROM s",
        "SELECT ts, bdi FROM a CROSS JOIN c",
        "WITH s(bdi, ts) AS (SELECT a.ts, a.bdi FROM a) SELECT s.ts, s.bdi FROM s",
        "SELECT a.ts, 'a' AS bdi FROM a",
    ],
)
def test_a_column_that_is_computed_is_not(sql_dir: Path, select: str) -> None:
    """Nor one without an alias that two views have, and describe differently."""
    (sql_dir / "views/a.sql").write_text(WIDE)
    other = WIDE.replace("@view a", "@view c").replace("VIEW a", "VIEW c")
    (sql_dir / "views/c.sql").write_text(other.replace("backing device", "disk"))
    view = f"-- @view b\n-- @column ts INTEGER of a\nCREATE VIEW b AS\n{select};\n"
    (sql_dir / "views/b.sql").write_text(view)
    assert [(one.name, one.description) for one in load_library().files["b"].columns] == [
        ("ts", "of a")
    ]


def test_folder_without_sql(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"no \.sql file"):
        load_library(tmp_path)


def test_checkout_is_found_without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WBSCOPE_SQL_DIR")
    assert find_sql_dir().name == "sql"


def test_the_views_for_everybody_are_few() -> None:
    """Steps that several subjects share are told apart from what a user has to know."""
    shipped = load_library(REPOSITORY / "sql")
    public = [file.name for file in shipped.files.values() if file.is_public()]
    assert "wb_throttle" in public
    assert not {"_throttle_done", "_throttle_charge", "raw_meta", "tl_stall"} & set(public)
    assert len(public) <= 40


def test_readers_of_the_filters_name_what_they_look_at() -> None:
    """So that it can be told what stays as it is when others change."""
    library = load_library(REPOSITORY / "sql")
    readers = [file for file in library.files.values() if PARAMS in file.needs]
    for file in readers:
        names = re.findall(rf"(?:FROM|JOIN)\s+{PARAMS}\s+AS\s+(\w+)", file.select)
        assert names, file.name
        assert len(names) == file.select.count(PARAMS), file.name
        for name in names:
            assert f"{name}.*" not in file.select, file.name
    assert not any("NATURAL" in file.select or " USING (" in file.select for file in readers)
    assert {"wb_window", "wb_dirty_window"} <= library.depending(["window_ns"])
    assert {"wb_window", "wb_stall"} <= library.depending(["t0_ns"])
    assert "wb_stall" not in library.depending(["window_ns", "by_window"])
    assert library.depending([]) == frozenset()


def test_no_table_is_made_of_the_findings() -> None:
    """They are others for other filters; only views look at them."""
    library = load_library(REPOSITORY / "sql")
    tables = [name for name, file in library.files.items() if file.materialize]
    assert tables
    assert FINDINGS not in library.closure(tables)
