# SPDX-License-Identifier: Apache-2.0
"""Dot commands and completion of the prompt, without a terminal."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import wbscope
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from wbscope.cli.shell_commands import Objects, SqlCompleter, answer


@pytest.fixture
def objects(database: Path) -> Iterator[Objects]:
    with wbscope.open(database) as run:
        yield Objects(run)


@pytest.mark.parametrize(
    ("text", "some"),
    [
        ("SEL", ["SELECT"]),
        ("sel", ["select"]),
        ("SELECT * FROM event_f", ["event_format"]),
        ("SELECT * FROM wb_", ["wb_params", "wb_throttle", "wb_warning"]),
        ("SELECT * FROM task AS t WHERE t.", ["tid", "comm"]),
        ("SELECT * FROM task JOIN meta AS m ON m.k", ["key"]),
        ("SELECT tid FROM task WHERE co", ["comm", "coalesce", "count"]),
        (".sch", [".schema"]),
        (".schema wb_thr", ["wb_throttle"]),
        (".schema nothing", []),
        ("SELECT * FROM nowhere AS n WHERE n.x", []),
    ],
)
def test_completion(objects: Objects, text: str, some: list[str]) -> None:
    completer = SqlCompleter(objects)
    found = completer.get_completions(Document(text), CompleteEvent())
    names = [completion.text for completion in found]
    assert [name for name in names if name in some] == some
    if not some:
        assert names == []


def test_completion_of_columns_knows_tables_after_the_cursor(objects: Objects) -> None:
    document = Document("SELECT co FROM task", cursor_position=len("SELECT co"))
    found = SqlCompleter(objects).get_completions(document, CompleteEvent())
    assert next(iter(found)).text == "comm"


def test_completion_replaces_what_was_typed(objects: Objects) -> None:
    found = SqlCompleter(objects).get_completions(Document("SELECT * FROM TAS"), CompleteEvent())
    assert [(c.text, c.start_position) for c in found] == [("task", -3)]


def test_schema_has_type_unit_and_meaning(objects: Objects) -> None:
    schema = answer(".schema tl_pauses", objects, 80).splitlines()
    assert schema[0] == "timeline tl_pauses"
    assert any(
        line.split() == ["ts", "INTEGER", "ns", "start,", "trace", "clock"] for line in schema
    )
    assert "  made of: wb_throttle" in schema


def test_columns_are_those_that_a_select_gives(database: Path) -> None:
    with wbscope.open(database) as run:
        objects = Objects(run)
        for name in ("tl_pauses", "task", "event_counts"):
            assert objects.columns(name) == list(run.sql(f"SELECT * FROM {name}").columns)


def test_names_of_a_strangers_database_cannot_steer_the_terminal(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE \"a\x1b[2Jb\" (x TEXT DEFAULT '\x1b[2J')")
    with wbscope.open(database) as run:
        objects = Objects(run)
        shown = answer(".tables", objects, 80) + answer(".schema a\x1b[2Jb", objects, 80)
    assert "\\x1b[2Jb" in shown
    assert "\x1b" not in shown


def test_help_fits_the_page(objects: Objects) -> None:
    for width in (60, 80):
        shown = answer(".help", objects, width)
        assert all(len(line) <= width for line in shown.splitlines())
