# SPDX-License-Identifier: Apache-2.0
"""Header and statement of one library file."""

from __future__ import annotations

from pathlib import Path

import pytest
from wbscope.base.errors import SetupError
from wbscope.base.result import Column
from wbscope.library.sqlfile import Metric, read_sql_file


def test_query_header_is_read_in_full(sql_dir: Path) -> None:
    (file,) = read_sql_file(sql_dir / "queries/throttle_by_task.sql")
    assert (file.kind, file.name, file.order) == ("query", "throttle_by_task", 2)
    assert file.title == "Who was throttled"
    assert file.read == "A long pause is a wait that the kernel ordered."
    assert file.needs == ("wb_throttle",)
    assert file.events == (("writeback:balance_dirty_pages",),)
    assert file.optional == ("sched:sched_switch",)
    assert tuple(column for column in file.columns if column.type) == (
        Column("tid", "INTEGER", "thread"),
        Column("pause_total_ns", "INTEGER", "intended pauses, in total"),
    )
    assert file.select.startswith("SELECT tid")
    assert file.select.endswith("ORDER BY tid")


def test_adapter_names_its_source_and_continues_a_list(sql_dir: Path) -> None:
    (file,) = read_sql_file(sql_dir / "adapters/sqlite/raw_balance_dirty_pages.sql")
    assert file.source_view == "_ev_balance_dirty_pages"
    assert file.source_events == ("writeback:balance_dirty_pages",)
    assert file.fields == ("bdi", "pause", "wb_setpoint", "bdi_setpoint", "limit")


@pytest.mark.parametrize(
    "events", ["a:x | a:y, b:z", "a:x|a:y,b:z", "a:x|a:y b:z"], ids=["spaces", "tight", "plain"]
)
def test_alternatives_are_one_group(tmp_path: Path, events: str) -> None:
    path = tmp_path / "q.sql"
    path.write_text(f"-- @query q\n-- @events {events}\nSELECT 1;\n")
    assert read_sql_file(path)[0].events == (("a:x", "a:y"), ("b:z",))


def test_metrics_have_a_direction_and_a_meaning(tmp_path: Path) -> None:
    path = tmp_path / "q.sql"
    header = "-- @query q\n-- @column a_ns INTEGER x\n-- @column b REAL y\n"
    metrics = "-- @metric   a_ns lower: what a user\n--   waits for\n-- @metric   b neutral: fits\n"
    path.write_text(f"{header}{metrics}SELECT 1 AS a_ns, 2 AS b;\n")
    assert read_sql_file(path)[0].metrics == (
        Metric("a_ns", "lower", "what a user waits for"),
        Metric("b", "neutral", "fits"),
    )


_COLUMNS = "".join(f"-- @column {name}\n" for name in ("a TEXT x", "b TEXT x", "c_ns INTEGER x"))


@pytest.mark.parametrize(
    ("tags", "keys", "first"),
    [
        ("", ("a", "b"), ()),
        ("-- @keys a\n-- @first c_ns,\n--   b\n", ("a",), ("c_ns", "b")),
    ],
)
def test_what_tables_begin_with(
    tmp_path: Path, tags: str, keys: tuple[str, ...], first: tuple[str, ...]
) -> None:
    path = tmp_path / "q.sql"
    path.write_text(f"-- @query q\n{tags}{_COLUMNS}SELECT 1;\n")
    assert read_sql_file(path)[0].keys == keys
    assert read_sql_file(path)[0].first == first


@pytest.mark.parametrize("tag", ["keys", "first"])
def test_a_table_begins_with_columns_only(tmp_path: Path, tag: str) -> None:
    path = tmp_path / "q.sql"
    path.write_text(f"-- @query q\n-- @{tag} a, nothing\n{_COLUMNS}SELECT 1;\n")
    with pytest.raises(SetupError, match=f"@{tag} nothing is no @column"):
        read_sql_file(path)


def test_plain_comment_ends_a_tag(tmp_path: Path) -> None:
    path = tmp_path / "q.sql"
    path.write_text("-- @query q\n-- @read one\n-- a remark\n--   more of it\nSELECT 1;\n")
    assert read_sql_file(path)[0].read == "one"


def test_a_file_of_several_views(tmp_path: Path) -> None:
    path = tmp_path / "wait.sql"
    path.write_text(
        "-- SPDX-License-Identifier: Apache-2.0\n-- Waits of tasks,\n-- in two steps.\n\n"
        "-- @view v\nCREATE VIEW v AS\nSELECT s.a FROM _step AS s;\n\n"
        "-- A remark on what comes next.\n"
        "-- @view _step\nCREATE VIEW _step AS SELECT 1 AS a;\n"
    )
    public, private = read_sql_file(path)
    assert (public.name, public.needs) == ("v", ("_step",))
    assert public.select == "SELECT s.a FROM _step AS s"
    assert (private.name, private.select) == ("_step", "SELECT 1 AS a")
    assert public.subject == private.subject == "Waits of tasks, in two steps."
    assert [public.is_private(), private.is_private()] == [False, True]


def test_select_may_hold_comments(tmp_path: Path) -> None:
    path = tmp_path / "v.sql"
    path.write_text("-- @view v\n\nCREATE VIEW v AS\n-- why\nSELECT 1 AS a;\n")
    assert read_sql_file(path)[0].select == "-- why\nSELECT 1 AS a"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-- @query q\n", "q: has a header and no statement"),
        ("SELECT 1;\n-- @query q\nSELECT 2;\n", "'SELECT 1;' stands before the first object"),
        ("-- @view v\nCREATE VIEW v AS SELECT 1;\n-- @view w\n", "w: has a header and no"),
        (
            "-- @view v\nCREATE VIEW v AS SELECT 1;\n\nCREATE VIEW w AS SELECT 2;\n",
            "v: has two statements",
        ),
        ("", "no statement"),
        ("SELECT 1;\n", "first tag is '@'"),
        ("-- @summary s\nSELECT 1;\n", "first tag is '@summary'"),
        ("-- @query q\nSELECT 1\n", "does not end in ';'"),
        ("-- @view v\nCREATE VIEW w AS SELECT 1;\n", "wanted 'CREATE VIEW v AS ...'"),
        ("-- @view v\nSELECT 1;\n", "statement is 'SELECT 1 ...'"),
        ("-- @query q\n-- @order two\nSELECT 1;\n", "@order is 'two'"),
        ("-- @query q\n-- @column a\nSELECT 1;\n", "@column is 'a'"),
        ("-- @query q\n-- @column a REAL x\n-- @metric a\nSELECT 1;\n", "@metric is 'a'"),
        (
            "-- @query q\n-- @column a REAL x\n-- @metric a less: why\nSELECT 1;\n",
            "wanted COLUMN lower|higher|neutral",
        ),
        (
            "-- @query q\n-- @column a REAL x\n-- @metric a lower:\nSELECT 1;\n",
            "@metric is 'a lower:'",
        ),
        ("-- @query q\n-- @metric a lower: why\nSELECT 1;\n", "@metric a is no @column"),
    ],
)
def test_broken_file_says_what_was_found(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "broken.sql"
    path.write_text(text)
    with pytest.raises(SetupError, match=r"broken\.sql") as caught:
        read_sql_file(path)
    assert message in caught.value.message
    assert caught.value.slug == "broken-sql-library"


def test_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "broken.sql"
    path.write_bytes(b"-- @query \xff\n")
    with pytest.raises(SetupError, match="cannot be read"):
        read_sql_file(path)
