# SPDX-License-Identifier: Apache-2.0
"""What `wbscope sql-package` writes, as trace processor takes it with --add-sql-package."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.foreign import snapshot
from support.perfetto_engine import PerfettoEngine, TraceProcessorError
from support.runs import REPOSITORY
from support.twins import Twin
from wbscope.library.sqlfile import SqlFile
from wbscope.perfetto.package import module_of, modules
from wbscope.perfetto.perfetto_engine import has_schema, object_name, perfetto_type
from wbscope.perfetto.perfetto_library import perfetto_library

LIBRARY = perfetto_library(REPOSITORY / "sql")
FILES = sorted(LIBRARY.files.values(), key=lambda file: file.name)
CELLS = {
    "LONG": int,
    "TIMESTAMP": int,
    "DURATION": int,
    "DOUBLE": float,
    "STRING": str,
}
# Facts of any type, as in the table meta of a run database.
ANY_TYPE = {("raw_meta", "value"), ("run_summary", "value")}


def modules_in(folder: Path) -> dict[str, str]:
    """As the shell names them: the folder's name, then the path with dots."""
    return {
        ".".join([folder.name, *path.relative_to(folder).with_suffix("").parts]): path.read_text()
        for path in folder.rglob("*.sql")
    }


@pytest.fixture(scope="module")
def package(wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package") / "wbscope"
    done = wbscope.run("sql-package", "-o", folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert f"--add-sql-package {folder} TRACE" in done.stderr
    return folder


@pytest.fixture(scope="module")
def fresh(package: Path, four_writers: Twin) -> Iterator[Callable[[], PerfettoEngine]]:
    """Engines with the trace and the package, and nothing included."""
    engines: list[PerfettoEngine] = []

    def start() -> PerfettoEngine:
        engine = PerfettoEngine()
        engines.append(engine)
        engine.load(four_writers.trace)
        engine.register("wbscope", modules_in(package))
        return engine

    yield start
    for engine in engines:
        engine.close()


@pytest.fixture(scope="module")
def engine(fresh: Callable[[], PerfettoEngine], package: Path) -> PerfettoEngine:
    """An engine that has included every module, one by one."""
    started = fresh()
    for module in sorted(modules_in(package), reverse=True):
        started.query(f"INCLUDE PERFETTO MODULE {module}")
    return started


def test_there_is_a_module_for_every_file(package: Path) -> None:
    found = modules_in(package)
    assert len(found) == len(FILES) + 1
    assert {"wbscope.library", "wbscope.views.wb_throttle", "wbscope.queries.stalls"} <= set(found)
    # A name with another dot would not be found, a keyword not be parsed.
    assert all(re.fullmatch(r"[a-z_][a-z0-9_.]*", name) for name in found)


def test_every_module_is_included_by_one(fresh: Callable[[], PerfettoEngine]) -> None:
    engine = fresh()
    engine.query("INCLUDE PERFETTO MODULE wbscope.library")
    for file in FILES:
        engine.query(f"SELECT 1 FROM {object_name(file)} LIMIT 1")


def test_no_module_nests_deep() -> None:
    """In a browser the engine ends without a word when modules include each other 18 deep."""
    texts = modules(LIBRARY)
    included = {
        name: re.findall(r"^INCLUDE PERFETTO MODULE (.*);$", text, re.MULTILINE)
        for name, text in texts.items()
    }

    def depth(name: str, seen: set[str]) -> int:
        if name in seen:
            return 0
        seen.add(name)
        return 1 + max((depth(below, seen) for below in included[name]), default=0)

    deepest = max((depth(name, set()), name) for name in included)
    assert deepest[0] <= 9, deepest


def test_a_query_includes_what_it_needs(fresh: Callable[[], PerfettoEngine]) -> None:
    engine = fresh()
    engine.query("INCLUDE PERFETTO MODULE wbscope.queries.fairness")
    assert len(engine.query("SELECT * FROM wbscope_fairness")) == 1
    with pytest.raises(TraceProcessorError, match="no such table"):
        engine.query("SELECT * FROM wbscope_stalls")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_columns_are_as_documented(engine: PerfettoEngine, file: SqlFile) -> None:
    columns, rows = engine.table(f"SELECT * FROM {object_name(file)}")
    told = file.columns
    assert columns == [column.name for column in told]
    assert all(column.description for column in told)
    for place, column in enumerate(told):
        kinds = {type(row[place]) for row in rows} - {type(None)}
        if (file.name, column.name) in ANY_TYPE:
            continue
        if (file.kind, column.name) == ("timeline", "value"):
            kinds -= {int}  # a counter can be a whole number
        assert kinds <= {CELLS[perfetto_type(column)]}, column.name


def test_each_column_has_its_comment(package: Path) -> None:
    """What Perfetto's own check of its modules asks for."""
    for file in FILES:
        _, folder, name = module_of(file).split(".")
        text = (package / folder / f"{name}.sql").read_text()
        statement = text[text.index("CREATE PERFETTO") :]
        assert "\n-- " in text[: text.index("CREATE PERFETTO")], "no description"
        assert not re.search(r"^\s*(DROP|INSERT|CREATE TABLE|CREATE VIEW)\b", text, re.MULTILINE)
        if has_schema(file):
            listed = statement[: statement.index("\n) AS")].splitlines()[1:]
            names = [line.split()[0] for line in listed if not line.startswith("  --")]
            assert names == [column.name for column in file.columns]
            assert listed[0].startswith("  -- ")
        else:
            assert {c.name for c in file.columns} & {"group", "index", "limit", "order"} or (
                file.name.startswith("raw_")
            )


def test_the_window_is_changed_as_the_page_says(fresh: Callable[[], PerfettoEngine]) -> None:
    page = (REPOSITORY / "docs" / "perfetto-sql.md").read_text()
    (block,) = (b for b in re.findall(r"```sql\n(.*?)```", page, re.DOTALL) if "wb_params" in b)
    assert "500000000 AS window_ns" in block
    wanted = [column.name for column in LIBRARY.files["wb_params"].columns]
    assert re.findall(r"AS (\w+)[,;]", block) == wanted
    told = fresh()
    for statement in block.replace("'8:0'", "NULL").split(";"):
        if statement.strip():
            told.query(statement)
    usual = fresh()
    usual.query("INCLUDE PERFETTO MODULE wbscope.queries.throughput")
    counts = [len(engine.query("SELECT * FROM wbscope_throughput")) for engine in (usual, told)]
    assert counts[1] >= 4 * counts[0] - 4 > counts[0]


def test_an_older_package_is_replaced(wbscope: Wbscope, tmp_path: Path) -> None:
    folder = tmp_path / "wbscope"
    assert wbscope.run("sql-package", "-o", folder).returncode == 0
    old = folder / "queries" / "gone.sql"
    old.write_text((folder / "library.sql").read_text())
    (folder / "library.sql").unlink()
    assert wbscope.run("sql-package", "-o", folder).returncode == 0
    assert not old.exists()
    assert (folder / "library.sql").is_file()
    assert os.listdir(tmp_path) == ["wbscope"]


def test_files_of_others_stay(wbscope: Wbscope, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    refused = wbscope.run("sql-package", "-o", tmp_path)
    assert refused.returncode == 2
    assert "error[output-exists]" in refused.stderr
    assert "notes.txt" in refused.stderr
    assert os.listdir(tmp_path) == ["notes.txt"]
    forced = wbscope.run("sql-package", "-o", tmp_path, "--force")
    assert forced.returncode == 0, forced.stderr
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert len(modules_in(tmp_path)) == len(FILES) + 1
    assert "@wbscope TRACE" in forced.stderr


@pytest.mark.parametrize("name", ["queries", "queries/fairness.sql", "library.sql", ".git"])
@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_has_the_name_of_a_module_and_is_none(
    wbscope: Wbscope, tmp_path: Path, name: str, kind: str
) -> None:
    """Not replaced with --force either; beside a .git of any kind the files are written."""
    folder, elsewhere = tmp_path / "package", tmp_path / "elsewhere"
    place = folder / name
    place.parent.mkdir(parents=True)
    elsewhere.mkdir()
    if kind == "link":
        place.symlink_to(elsewhere)
    elif kind == "folder":
        (place / "fairness.sql").mkdir(parents=True)
    else:
        place.write_text("SELECT 'mine'")
    before = snapshot(tmp_path)
    done = wbscope.run("sql-package", "-o", folder, "--force")
    after = snapshot(tmp_path)
    assert {path: after.get(path) for path in before} == before
    if name == ".git":
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 2
    assert f"have: {name}" in done.stderr
    assert after == before


def test_a_link_in_a_package_is_somebody_elses(wbscope: Wbscope, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    assert wbscope.run("sql-package", "-o", folder).returncode == 0
    (folder / "views/mine.sql").symlink_to("../library.sql")
    (folder / "empty").mkdir()
    refused = wbscope.run("sql-package", "-o", folder)
    assert refused.returncode == 2
    assert "have: empty/, views/mine.sql" in refused.stderr


@pytest.mark.parametrize(
    ("name", "slug"), [("file", "output-is-file"), ("none/wbscope", "no-output-folder")]
)
def test_what_cannot_be_a_folder(wbscope: Wbscope, tmp_path: Path, name: str, slug: str) -> None:
    (tmp_path / "file").write_text("")
    done = wbscope.run("sql-package", "-o", tmp_path / name)
    assert f"error[{slug}]" in done.stderr
    assert done.returncode in (2, 5)


def test_the_document(wbscope: Wbscope, tmp_path: Path) -> None:
    rows = wbscope.document("sql-package", "-o", tmp_path / "p")["rows"]
    assert rows == [
        {"output": str(tmp_path / "p"), "package": "wbscope", "modules_count": len(FILES) + 1}
    ]
