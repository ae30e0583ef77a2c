# SPDX-License-Identifier: Apache-2.0
"""Rules of tools/check_layout.py and tools/check_imports.py: each is broken once."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from support.runs import REPOSITORY
from wbscope.library.sqlfile import empty_file

# Rules of tools/check_layout.py for SQL and for texts of the library: each is broken once.

HEAD = """\
-- SPDX-License-Identifier: Apache-2.0
-- Waits of tasks.

"""
VIEW = """\
-- @view     wb_task_wait
-- @summary  Waits.
-- @column   ts INTEGER ns
CREATE VIEW wb_task_wait AS
SELECT p.ts
FROM _pair AS p;
"""
STEP = """\
-- @view     _pair
-- @summary  Pairs.
-- @column   ts INTEGER ns
CREATE VIEW _pair AS
SELECT u.ms_ns AS ts
FROM wb_units AS u;
"""
GOOD = f"{HEAD}{VIEW}\n{STEP}"


@pytest.fixture(scope="module")
def layout() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "check_layout", REPOSITORY / "tools" / "check_layout.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def found(layout: ModuleType, text: str, path: str = "sql/views/some.sql") -> list[tuple[int, str]]:
    return [(line, what) for line, what, _ in layout.check_sql(path, text)]


def test_a_file_as_it_should_be(layout: ModuleType) -> None:
    assert found(layout, GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("-- Waits of tasks.\n", "", 1, "does not say what it is about"),
        (VIEW, VIEW.replace("_pair", "_other"), 9, "reads _other, which is private"),
        (VIEW, "", 1, "nothing in this file reads _pair"),
        (f"{VIEW}\n{STEP}", f"{STEP}\n{VIEW}", 1, "a public view stands below a private one"),
        ("-- @summary  Pairs.\n", "-- @needs    wb_units\n", 12, "@needs is an old tag"),
        ("FROM _pair AS p", "FROM pair AS p", 9, "reads pair, which is no view"),
        ("wb_units", "wb_unit", 16, "reads wb_unit, which is no view"),
        ("u.ms_ns", "1000000", 15, "number 1000000 converts a unit"),
        ("SELECT u.ms_ns", "SELECT 20 * u.ms_ns", 15, "'20 * u.ms_ns' is a bare threshold"),
        ("SELECT u.ms_ns", "SELECT 20000000", 15, "'20000000' is a bare threshold"),
        ("AS p;", "AS p\nWHERE p.ts < 0.5;", 10, "'< 0.5' is a bare threshold"),
        ("AS p;", "AS p\nWHERE p.ts > 40000;", 10, "'> 40000' is a bare threshold"),
        ("AS p;", "AS p\nWHERE p.ts < -16;", 10, "'< -16' is a bare threshold"),
        ("u.ms_ns AS ts", "u.ms_ns / 2048 AS ts", 15, "'/ 2048' is a bare threshold"),
        ("u.ms_ns AS ts", "u.ms_ns AS ns", 11, "column ns has no @column"),
        ("SELECT p.ts\n", "SELECT *\n", 8, "'SELECT *' is not for every engine"),
        (
            "SELECT p.ts\nFROM _pair AS p;",
            "WITH\n  meta AS (SELECT p.ts FROM _pair AS p)\nSELECT m.ts\nFROM meta AS m;",
            9,
            "meta is a table, too",
        ),
    ],
)
def test_a_broken_rule(layout: ModuleType, old: str, new: str, line: int, message: str) -> None:
    assert old in GOOD
    told = found(layout, GOOD.replace(old, new))
    assert any(at == line and message in what for at, what in told), told


def test_a_column_that_repeats_its_view(layout: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "some.sql"
    path.write_text(GOOD)
    files = layout.read_sql_file(path)
    views = {file.name: file for file in files} | {"wb_units": empty_file()}
    (told,) = layout.check_repeats(files, views)
    assert told[1] == "@column ts of wb_task_wait repeats its view"
    path.write_text(GOOD.replace("ts INTEGER ns", "ts INTEGER ns, start", 1))
    assert list(layout.check_repeats(layout.read_sql_file(path), views)) == []


def test_arguments_of_a_timeline(layout: ModuleType) -> None:
    text = f"{STEP.replace('_pair', 'tl_x').replace('@view', '@timeline')}"
    both = text.replace("ts INTEGER ns", "arg_b TEXT word").replace("AS ts", "AS arg_a")
    told = {what for _, what in found(layout, both, "sql/timelines/tl_x.sql")}
    assert {"arg_a is a column only", "arg_b is a @column only"} <= told


def test_a_file_that_is_too_long(layout: ModuleType) -> None:
    told = found(layout, GOOD + "-- more\n" * layout.MAX_SUBJECT_LINES)
    assert any(f"wanted at most {layout.MAX_SUBJECT_LINES}" in what for _, what in told)


def test_a_macro_has_no_threshold(layout: ModuleType) -> None:
    macros = (REPOSITORY / "sql/macros.sql").read_text()
    (check,) = set(layout.rules("sql/macros.sql")) - {layout.check_source}
    assert list(check("sql/macros.sql", macros)) == []
    changed = macros.replace("event.think >= 500", "event.think >= 700")
    ((_, told, _),) = check("sql/macros.sql", changed)
    assert told == "'>= 700' is a bare threshold"


def test_a_query_has_a_file_of_its_own(layout: ModuleType) -> None:
    query = (REPOSITORY / "sql/queries/pressure.sql").read_text()
    assert found(layout, query, "sql/queries/pressure.sql") == []
    told = found(layout, query + STEP, "sql/queries/pressure.sql")
    assert told == [(1, "nothing in this file reads _pair")]
    told = found(layout, query + VIEW, "sql/queries/pressure.sql")
    assert (1, "defines pressure, wb_task_wait") in told
    assert (1, "defines pressure") in found(layout, query, "sql/queries/other.sql")


def test_depth_counts_steps(layout: ModuleType) -> None:
    needs = {
        "wb_a": (),
        "_step": ("wb_a", "raw_meta"),
        "wb_b": ("_step",),
        "wb_c": ("wb_b", "wb_a"),
    }
    assert layout.depths(needs) == {"wb_a": 1, "_step": 2, "wb_b": 3, "wb_c": 4}


TEXTS = '''
"""Raises an error for --window; a docstring may say so."""
raise UsageError("slug", Phrase(Argument("tid", 2)), f"is {x}", fix="wbscope query N R --tid 3")
run(["timeline", "--view", name])
told = "record it with: fio --output-format=json+ --output=fio.json"
fix = f"wbscope ingest {x} -o RUN.db --force    # again"
sort = "perf stat --per-socket"
other = "ps --help-me, --windows"
'''


def test_texts_of_the_library_name_arguments(layout: ModuleType) -> None:
    assert list(layout.check_texts("analyzers/wbscope/run/run.py", TEXTS)) == []


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ('raise UsageError("slug", "--window", "is wrong")', "--window"),
        ('raise UsageError("slug", x, "is wrong", fix="--window 2s")', "--window"),
        ('fix = f"--window {x}"', "--window"),
        ('told = "ask for less (" "--from, LIMIT)"', "--from"),
        ('fix = f"-o {x}"', "-o"),
        ('fix = "wbscope query NAME RUN    # without --engine perfetto"', "--engine"),
        (
            'notice = Notice("slug", Phrase(f"record with a larger ", "--buffer-size"))',
            "--buffer-size",
        ),
    ],
)
def test_an_option_in_a_text_of_the_library(layout: ModuleType, line: str, option: str) -> None:
    told = list(layout.check_texts("analyzers/wbscope/run/run.py", f"{TEXTS}{line}\n"))
    assert [(at, what) for at, what, _ in told] == [
        (TEXTS.count("\n") + 1, f"text names the option {option}")
    ]


def test_which_files_have_texts_of_the_library(layout: ModuleType) -> None:
    for path, is_library in (
        ("analyzers/wbscope/base/units.py", True),
        ("analyzers/wbscope/viewer/link.py", True),
        ("analyzers/wbscope/cli/query.py", False),
        ("analyzers/wbscope/render/text.py", False),
        ("tools/check_layout.py", False),
    ):
        assert (layout.check_texts in layout.rules(path)) == is_library
    packages = {
        path.parent.name for path in (REPOSITORY / "analyzers/wbscope").glob("*/__init__.py")
    }
    assert packages - set(layout.LIBRARY) == {"cli", "render", "ci"}


def test_what_is_no_threshold(layout: ModuleType) -> None:
    select = "SELECT 1.0 * u.second_ns * u.ms_ns / 3 AS ts"
    where = "WHERE u.ms_ns > 0 AND u.ms_ns < 4 * u.page_bytes AND 1.0 < 2.0 AND 9 < 1 << 32"
    where += " AND u.version >= 6016 AND u.ms_ns >> 10 < 9 AND u.ms_ns < 64 * u.page_bytes"
    text = GOOD.replace("SELECT u.ms_ns AS ts", select).replace("AS u;", f"AS u\n{where};")
    assert where in text
    assert found(layout, text) == []


def test_the_whole_has_limits(layout: ModuleType) -> None:
    paths, library = layout.files(), layout.load_library(layout.ROOT / "sql").files
    assert list(layout.check_whole(paths, library)) == []
    twice = {f"{name}{more}": file for name, file in library.items() for more in ("", "_too")}
    told = list(layout.check_whole(paths * 2, twice))
    for what in (
        "documented views",
        "steps that several files share",
        "lines of SQL",
        "lines of Python",
        "files of Python",
        "lines of tests",
        "words of docs by hand",
        "words of reference by hand",
        "tracked files",
    ):
        assert any(f" {what}, wanted at most " in words for words in told), what


def test_views_that_stand_too_high(layout: ModuleType) -> None:
    files = layout.load_library(layout.ROOT / "sql").files
    deep = {
        name: depth - 1
        for name, depth in layout.depths({name: file.needs for name, file in files.items()}).items()
    }
    assert max(deep.values()) == layout.MAX_DEPTH, "lower MAX_DEPTH"
    highest = max(deep, key=lambda name: deep[name])
    higher = {**files, "wb_on_top": replace(files[highest], name="wb_on_top", needs=(highest,))}
    told = list(layout.check_whole([], higher))
    assert any(words.startswith("wb_on_top stands on") for words in told)


def test_a_long_statement(layout: ModuleType) -> None:
    columns = "".join(f"  p.ts AS a{number},\n" for number in range(layout.MAX_SELECT_LINES))
    told = found(layout, GOOD.replace("SELECT p.ts\n", f"SELECT\n{columns}  p.ts\n"))
    assert any(what.startswith("wb_task_wait has ") for _, what in told)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("_A = 1\nB = _A\n", []),
        ("_A, _B = 1, 2\nC = _B\n", ["_A"]),
        ("_A: int = 1\n_B: int = 2\nC = _B\n", ["_A"]),
        ("def _f() -> None: ...\nclass _C: ...\ndef g() -> _C: return _C()\n", ["_f"]),
        ("__all__ = ['x']\nx = _y = 1\n", ["_y"]),
    ],
)
def test_a_private_name_that_nothing_reads(layout: ModuleType, text: str, names: list[str]) -> None:
    said = [what for _, what, _ in layout.check_python("analyzers/wbscope/run/some.py", text)]
    assert said == [f"nothing reads {name}" for name in names]


def test_python_names_no_private_view(layout: ModuleType) -> None:
    text = 'ASKED = ("wb_wait", "_law_rate", "_no_view")\n'
    said = [what for _, what, _ in layout.check_python("analyzers/wbscope/run/some.py", text)]
    assert said == ["names _law_rate, which is private to a file of sql/"]


# The rules of how the package is built up, each tried by breaking it.

_TOOL = Path(__file__).parents[2] / "tools" / "check_imports.py"


def _check(*words: object) -> tuple[int, str]:
    command = [sys.executable, str(_TOOL), *(str(word) for word in words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_the_package_keeps_them() -> None:
    assert _check() == (0, "")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    made = tmp_path / "wbscope"
    for name, text in (
        ("__init__", "from wbscope.run.run import open_run\n"),
        ("base/errors", ""),
        ("library/session", "from wbscope.base.errors import InputError\n"),
        ("source/source", "from wbscope.base import errors\n"),
        ("ingest/program", "from wbscope.source.source import Source\n"),
        ("run/run", "from wbscope.ingest import program\nfrom wbscope.library import session\n"),
        ("cli/run", "from wbscope.run.run import open_run\n"),
    ):
        path = made / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return made


def test_a_good_one_passes(package: Path) -> None:
    assert _check(package) == (0, "")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("base/errors", "import wbscope.run.run\n", "imports run.run, which stands above it"),
        (
            "base/errors",
            "def later():\n    from wbscope.cli.run import x\n",
            "base/errors.py:2: imports cli.run, which stands above it",
        ),
        (
            "source/source",
            "from wbscope.ingest.program import f\n",
            "imports ingest.program, which",
        ),
        ("base/errors", "from wbscope.base.other import x\n", "circle"),
        ("helpers", "", "helpers.py lies beside the packages"),
        ("misc/thing", "", "package misc is in no layer"),
        ("library/program", "", "program.py stands 2 times"),
    ],
)
def test_what_breaks_a_rule_is_told(package: Path, name: str, text: str, told: str) -> None:
    (package / "base/other.py").write_text("from wbscope.base.errors import InputError\n")
    path = package / f"{name}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    code, said = _check(package)
    assert (code, told in said) == (1, True), said
