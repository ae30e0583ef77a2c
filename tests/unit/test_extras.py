# SPDX-License-Identifier: Apache-2.0
"""Libraries that only some commands need: which extra has them, what is said without."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
from support.cli import Wbscope, check_error
from support.runs import REPOSITORY
from wbscope.base.errors import EXTRAS, install_line, missing_library

_PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_BASE = {re.split(r"[.<>=]", text)[0] for text in _PROJECT["dependencies"]}
# What has another name when it is installed than when it is imported.
_INSTALLED_AS = {"google": "perfetto", "py4j": "pyspark"}
# Each is for one kind of user: data frames, and a cluster (450 MB and Java).
_NOT_IN_ALL = {"pandas", "polars", "spark"}


def test_each_extra_brings_what_it_is_named_for() -> None:
    for library, extra in EXTRAS.items():
        brought = " ".join(_PROJECT["optional-dependencies"][extra])
        assert _INSTALLED_AS.get(library, library) in brought, (library, extra)


def test_all_has_what_commands_need() -> None:
    (text,) = _PROJECT["optional-dependencies"]["all"]
    named = set(re.findall(r"\w+", text)) - {"wbscope"}
    assert named == set(EXTRAS.values()) - _NOT_IN_ALL


def test_every_import_is_of_the_base_or_an_extra() -> None:
    known = _BASE | set(EXTRAS) | set(sys.stdlib_module_names) | {"wbscope", "viztracer"}
    known.add("compression")  # of Python 3.14
    for path in sorted((REPOSITORY / "analyzers/wbscope").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            assert {name.partition(".")[0] for name in names} <= known, path


@pytest.mark.dealt
@pytest.mark.parametrize(
    ("words", "library", "extra"),
    [
        (("plot", "RUN", "-o", "plots"), "matplotlib", "plots"),
        (("query", "fairness", "RUN", "--parquet", "rows"), "pyarrow", "arrow"),
        (("fleet", "ingest", "RUN", "-o", "rows", "--master", "local[1]"), "pyspark", "spark"),
        (("compare", "RUN", "--against", "RUN"), "numpy", "gate"),
        (("gate", "--budget", "throttle_summary.pause_p99_ns <= 1s", "RUN"), "numpy", "gate"),
        (("baseline", "save", "RUN", "-o", "base.json"), "numpy", "gate"),
        # Of several extras that the command needs, the one that brings all.
        (("export", "RUN", "--parquet", "rows"), "pyarrow", "fleet"),
        (("fleet", "ingest", "RUN", "-o", "rows"), "pyarrow", "fleet"),
        (("fleet", "ingest", "RUN", "-o", "rows", "--master", "local[1]"), "pyarrow", "spark"),
    ],
)
def test_one_error_with_the_line_for_pip(
    tmp_path: Path, words: tuple[str, ...], library: str, extra: str
) -> None:
    # A module of this name that says the same as none.
    (tmp_path / f"{library}.py").write_text(
        f"raise ModuleNotFoundError(\"No module named '{library}'\", name='{library}')\n"
    )
    wbscope = Wbscope(tmp_path / "cache", process=True)
    wbscope.env["PYTHONPATH"] = str(tmp_path)
    run = str(REPOSITORY / "examples/four-equal-writers")
    done = wbscope.run(*(run if word == "RUN" else word for word in words), cwd=tmp_path)
    assert done.returncode == 5
    fix = f"{sys.prefix}/bin/python -m pip install 'wbscope[{extra}]'"
    check_error(done.stderr, "missing-library", f"wbscope {words[0]}: ", library, fix=fix)


def test_the_base_imports_no_extra(tmp_path: Path) -> None:
    """All that these verbs import, they have."""
    for library in EXTRAS:
        (tmp_path / f"{library}.py").write_text("raise RuntimeError('imported')\n")
    wbscope = Wbscope(tmp_path / "cache", process=True)
    wbscope.env["PYTHONPATH"] = str(tmp_path)
    for words in (
        ["demo"],
        ["queries"],
        ["query", "throttle_by_task", "wbscope-demo"],
        ["report", "wbscope-demo", "-o", "demo.html"],
        ["timeline", "wbscope-demo", "-o", "demo.pftrace"],
        ["check", "wbscope-demo"],
    ):
        done = wbscope.run(*words, cwd=tmp_path)
        assert done.returncode == 0, (words, done.stderr)


@pytest.mark.parametrize("extra", ["fleet", "spark"])
def test_one_extra_brings_all_that_a_command_needs(extra: str) -> None:
    needed = {"duckdb", "numpy", "pyarrow", "ruptures", "scipy"}
    needed |= {"pyspark"} if extra == "spark" else set()
    for library in needed:
        error = missing_library(ImportError(name=library), "wbscope fleet", extra)
        assert error is not None
        assert f"'wbscope[{extra}]'" in str(error.fix)
    other = missing_library(ImportError(name="perfetto"), "wbscope fleet", extra)
    assert other is not None
    assert "'wbscope[perfetto]'" in str(other.fix)


def test_another_import_is_a_bug() -> None:
    assert missing_library(ImportError(name="wbscope.nowhere"), "wbscope plot") is None
    assert missing_library(ImportError(), "wbscope plot") is None


def test_within_pipx_it_is_pipx_that_installs() -> None:
    prefix = Path("/home/me/.local/share/pipx/venvs/wbscope")
    assert install_line("plots", prefix) == "pipx runpip wbscope install 'wbscope[plots]'"
