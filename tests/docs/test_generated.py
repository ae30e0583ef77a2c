# SPDX-License-Identifier: Apache-2.0
"""Generated pages are current, and docs/schema.md names all that a run database holds."""

from __future__ import annotations

import re
import sqlite3
import sys

import pytest
from support.cli import Wbscope
from support.runs import REPOSITORY, example
from support.tools import run
from wbscope.library.library import load_library

_SCHEMA = (REPOSITORY / "docs" / "schema.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def database(wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory) -> sqlite3.Connection:
    path = tmp_path_factory.mktemp("database") / "run.db"
    result = wbscope.run("ingest", example("four-equal-writers").folder, "-o", path)
    assert result.returncode == 0, result.stderr
    return sqlite3.connect(path)


def _documented(heading: str) -> list[str]:
    """The names in the first column of the tables below a heading."""
    _, _, section = _SCHEMA.partition(f"\n### {heading}\n")
    rows = re.findall(r"^\| (`.*?`) \|", section.split("\n##", 1)[0], re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


@pytest.mark.parametrize("tool", ["gen_docs.py", "gen_perfetto_events.py"])
def test_what_is_made_is_current(tool: str) -> None:
    result = run([sys.executable, REPOSITORY / "tools" / tool, "--check"])
    assert result.returncode == 0, result.stdout + result.stderr


def test_schema_page_has_every_table_and_column(database: sqlite3.Connection) -> None:
    tables = database.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'ev\\_%' ESCAPE '\\'"
    )
    saved = load_library().files  # the views, which have a page of their own
    for (table,) in tables.fetchall():
        if table in saved:
            continue
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        assert _documented(table)[: len(columns)] == columns, table


def test_schema_page_has_no_other_table(database: sqlite3.Connection) -> None:
    headings = re.findall(r"^### (\w+)$", _SCHEMA.split("\n## History")[0], re.MULTILINE)
    for table in headings:
        assert database.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", [table]).fetchone()


def test_schema_page_has_every_key_and_counter(database: sqlite3.Connection) -> None:
    keys = {row[0] for row in database.execute("SELECT key FROM meta")}
    assert keys - set(_documented("meta")) == set()
    counters = database.execute("SELECT name, severity, description FROM ingest_stats")
    for name, severity, description in counters:
        assert f"| `{name}` | {severity} | {description} |" in _SCHEMA


def test_schema_page_has_the_columns_of_events(database: sqlite3.Connection) -> None:
    columns = [row[1] for row in database.execute("PRAGMA table_info(ev_balance_dirty_pages)")]
    assert [*columns[:4], columns[-1]] == ["ts", "cpu", "tid", "buffer", "seq"]
    for column in ("ts", "cpu", "tid", "buffer", "seq"):
        assert f"\n| `{column}` | INTEGER |" in _SCHEMA


def test_schema_page_is_of_this_version(database: sqlite3.Connection) -> None:
    (version,) = database.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    assert f"\n**schema_version {version}** " in _SCHEMA
    assert f"\n### {version}\n" in _SCHEMA.partition("\n## History\n")[2]
