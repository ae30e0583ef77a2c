# SPDX-License-Identifier: Apache-2.0
"""The library as a whole: names, needs, order, where it is found, how it is kept."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.runs import REPOSITORY
from wbscope.base.errors import QueryError, SetupError
from wbscope.ingest.program import find_formats_dir
from wbscope.library.engine import FINDINGS, PARAMS
from wbscope.library.library import Library, find_sql_dir, load_library
from wbscope.perfetto.perfetto_library import perfetto_library

# The library as a whole: names, needs, order, where it is found.


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
        ("queries/a.sql", "-- @query a\n-- @events as b\nSELECT 1;", "@events as b"),
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


def test_events_are_those_of_another_object(sql_dir: Path) -> None:
    query = "-- @query {}\n-- @events {}\n-- @optional {}\nSELECT 1 AS a;\n"
    (sql_dir / "queries/a.sql").write_text(query.format("a", "b:c|d:e, f:g", "h:i"))
    (sql_dir / "queries/b.sql").write_text(query.format("b", "as a", "as a"))
    one, other = (load_library().files[name] for name in "ab")
    assert other.events == one.events == (("b:c", "d:e"), ("f:g",))
    assert other.optional == one.optional == ("h:i",)


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


def test_a_macro_can_be_what_is_read(sql_dir: Path) -> None:
    (sql_dir / "macros.sql").write_text("later!(view) =\n  SELECT v.ts FROM view AS v;\n")
    view = "-- @view b\nCREATE VIEW b AS\nSELECT x.ts FROM later!(a) AS x;\n"
    (sql_dir / "views/a.sql").write_text(SPANS + view)
    assert load_library().files["b"].needs == ("a",)


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


# The library that is kept as it was read: never another one than the files have.


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(folder))
    return folder


def entry_in(cache: Path) -> Path:
    (entry,) = cache.rglob("*.library")
    return entry


def _loaded(load: Callable[[], Library] = load_library) -> tuple[Library, list[Path]]:
    found: list[Path] = []
    read = Path.read_text

    def noted(path: Path, *rest: Any, **named: Any) -> str:
        if path.suffix == ".sql":
            found.append(path)
        return read(path, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_text", noted)
        return load(), sorted(found)


def loaded(load: Callable[[], Library] = load_library) -> tuple[Library, list[Path]]:
    """By a process that has not loaded it before, and the SQL files that it has read."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        return pool.submit(_loaded, load).result()


def test_the_files_are_read_once(sql_dir: Path, cache: Path) -> None:
    (first, reads), (second, again) = loaded(), loaded()
    assert first == second
    assert first.digest() == second.digest()
    assert (reads, again) == (sorted(sql_dir.rglob("*.sql")), [])


def test_a_process_reads_it_once(sql_dir: Path, cache: Path) -> None:
    """Whatever becomes of the cache."""
    first, reads = _loaded()
    entry_in(cache).unlink()
    assert reads
    assert _loaded() == (first, [])


@pytest.mark.parametrize("load", [load_library, perfetto_library])
def test_the_whole_library_comes_back(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, load: Callable[[], Library]
) -> None:
    """With rules, templates, profiles and drawings: the reader knows each part."""
    folder = shutil.copytree(REPOSITORY / "sql", tmp_path / "sql")
    monkeypatch.setenv("WBSCOPE_SQL_DIR", str(folder))
    (first, reads), (second, again) = loaded(load), loaded(load)
    assert first == second
    assert len(reads) > 100
    assert again == []


@pytest.mark.parametrize("change", ["text", "new file", "gone", "the folder"])
def test_another_text_is_read(
    sql_dir: Path, cache: Path, change: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    added = sql_dir / "views/a.sql"
    added.write_text("-- @view a\nCREATE VIEW a AS SELECT 1 AS one;\n")
    assert load_library().files["a"].select == "SELECT 1 AS one"
    if change == "text":
        added.write_text("-- @view a\nCREATE VIEW a AS SELECT 2 AS two;\n")
        assert load_library().files["a"].select == "SELECT 2 AS two"
    elif change == "new file":
        (sql_dir / "views/b.sql").write_text("-- @view b\nCREATE VIEW b AS SELECT 1;\n")
        assert "b" in load_library().files
    elif change == "gone":
        added.unlink()
        assert "a" not in load_library().files
    else:
        monkeypatch.delenv("WBSCOPE_SQL_DIR")
        assert "a" not in load_library().files


def test_another_format_is_another_library(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Words for codes of a Perfetto trace are those of the captured formats."""
    formats = shutil.copytree(find_formats_dir(), tmp_path / "formats")
    monkeypatch.setenv("WBSCOPE_FORMATS_DIR", str(formats))
    monkeypatch.setenv("WBSCOPE_SQL_DIR", str(REPOSITORY / "sql"))
    before, _ = loaded(perfetto_library)
    for path in formats.rglob("*.formats"):
        path.write_text(path.read_text().replace('"laptop_timer"', '"behind"'))
    after, reads = loaded(perfetto_library)
    assert reads
    assert after.digest() != before.digest()


class _Evil:
    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.mkdir, (str(self.made),)


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "evil", "another thing"])
def test_what_is_damaged_is_read_again(
    sql_dir: Path, cache: Path, tmp_path: Path, damage: str
) -> None:
    wanted, _ = loaded()
    entry = entry_in(cache)
    whole = entry.read_bytes()
    made = tmp_path / "made"
    texts = {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "noise": bytes(range(256)) * 4,
        "evil": pickle.dumps(_Evil(made)),
        "another thing": pickle.dumps(({}, (), 3)),
    }
    entry.write_bytes(texts[damage])
    assert loaded()[0] == wanted
    assert not made.exists()
    assert entry.read_bytes() == whole


def test_what_others_have_in_the_cache_stays(sql_dir: Path, cache: Path) -> None:
    loaded()
    folder = entry_in(cache).parent
    others = ["mine.library", "0123.library", f"{'g' * 32}.library", "notes.txt"]
    for name in others:
        (folder / name).write_text("mine")
    (folder / f"{'a' * 32}.library").mkdir()  # of the name of an entry, and no file
    entry = max(folder.glob("*.library"), key=lambda path: path.is_file() * path.stat().st_size)
    entry.write_bytes(b"damaged")
    assert loaded()[0].files
    assert {path.name for path in folder.iterdir()} >= {*others, f"{'a' * 32}.library", entry.name}


def test_no_cache_is_no_error(
    sql_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What needs no cache works where there is none."""
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    assert loaded()[1] == loaded()[1] == sorted(sql_dir.rglob("*.sql"))
