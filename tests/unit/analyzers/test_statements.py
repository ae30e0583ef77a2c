# SPDX-License-Identifier: Apache-2.0
"""Views as PerfettoSQL: the text of the statements and of the package."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs import REPOSITORY
from wbscope.base.errors import UsageError
from wbscope.library.sqlfile import SqlFile, read_sql_file
from wbscope.perfetto.package import modules, write_package
from wbscope.perfetto.perfetto_engine import create, indexes
from wbscope.perfetto.perfetto_library import perfetto_library

VIEW = """\
-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_small
-- @summary  A view of two columns.
-- @grain    row; order ts
-- @column   ts INTEGER ns, when
-- @column   share_ratio REAL a text that is so long that it has to be put on two
--   lines
-- @column   bdi TEXT device
{more}CREATE VIEW wb_small AS
SELECT 1 AS ts, 0.5 AS share_ratio, '8:0' AS bdi;
"""
COLUMNS = """(
  -- ns, when
  ts TIMESTAMP,
  -- a text that is so long that it has to be put on two lines
  share_ratio DOUBLE,
  -- device
  bdi STRING
) AS
SELECT 1 AS ts, 0.5 AS share_ratio, '8:0' AS bdi"""


def file_of(folder: Path, text: str) -> SqlFile:
    path = folder / "wb_small.sql"
    path.write_text(text)
    (file,) = read_sql_file(path)
    return file


def test_a_view(tmp_path: Path) -> None:
    file = file_of(tmp_path, VIEW.format(more=""))
    assert create(file) == f"CREATE PERFETTO VIEW wb_small{COLUMNS}"
    assert create(file, replace=True).startswith("CREATE OR REPLACE PERFETTO VIEW wb_small(")


def test_a_table(tmp_path: Path) -> None:
    file = file_of(tmp_path, VIEW.format(more="-- @materialize\n"))
    assert create(file) == f"CREATE PERFETTO TABLE wb_small{COLUMNS}"
    assert create(file, select="SELECT 2").endswith("\n) AS\nSELECT 2")


def test_indexes_of_a_table(tmp_path: Path) -> None:
    tags = "-- @index    ts\n-- @index    bdi ts\n"
    assert indexes(file_of(tmp_path, VIEW.format(more=tags))) == []  # a view has none
    assert indexes(file_of(tmp_path, VIEW.format(more=f"{tags}-- @materialize\n"))) == [
        "CREATE PERFETTO INDEX wb_small_ts ON wb_small(ts)",
        "CREATE PERFETTO INDEX wb_small_bdi_ts ON wb_small(bdi, ts)",
    ]


def test_a_keyword_cannot_be_listed(tmp_path: Path) -> None:
    text = VIEW.format(more="").replace("bdi TEXT", "limit TEXT").replace("AS bdi", 'AS "limit"')
    assert create(file_of(tmp_path, text)).startswith("CREATE PERFETTO VIEW wb_small AS\nSELECT 1")


def test_a_module() -> None:
    texts = modules(perfetto_library(REPOSITORY / "sql"))
    lines = texts["wbscope.queries.fairness"].splitlines()
    assert lines[0] == "-- SPDX-License-Identifier: Apache-2.0"
    assert "from sql/queries/fairness.sql; do not edit." in lines[1]
    included = [line for line in lines if line.startswith("INCLUDE")]
    # Before what it reads come deeper ones, so that no chain of includes is long.
    assert included[-4:] == [
        "INCLUDE PERFETTO MODULE wbscope.views._window_rate;",
        "INCLUDE PERFETTO MODULE wbscope.views.wb_params;",
        "INCLUDE PERFETTO MODULE wbscope.views.wb_rule;",
        "INCLUDE PERFETTO MODULE wbscope.views.wb_task_rate;",
    ]
    assert "CREATE PERFETTO VIEW wbscope_fairness(" in lines
    assert all(text.endswith("\n") and "\n\n\n" not in text for text in texts.values())


def test_an_edited_module_is_not_replaced(tmp_path: Path) -> None:
    library = perfetto_library(REPOSITORY / "sql")
    folder = tmp_path / "wbscope"
    write_package(library, folder)
    write_package(library, folder)
    module = folder / "views" / "wb_params.sql"
    made = module.read_text()
    module.write_text(made.replace("2000000000", "500000000"))
    with pytest.raises(UsageError, match="1 modules that were edited") as caught:
        write_package(library, folder)
    assert (caught.value.slug, caught.value.have) == ("output-edited", "views/wb_params.sql")
    assert "500000000" in module.read_text()
    write_package(library, folder, force=True)
    assert module.read_text() == made


def test_a_folder_whose_file_is_a_link_is_not_ours(tmp_path: Path) -> None:
    library = perfetto_library(REPOSITORY / "sql")
    folder = tmp_path / "wbscope"
    count = write_package(library, folder)
    assert count == len(list(folder.rglob("*.sql")))
    (folder / "mine.sql").symlink_to("/dev/null")
    with pytest.raises(UsageError, match="1 files"):
        write_package(library, folder)
    assert (folder / "mine.sql").is_symlink()
