# SPDX-License-Identifier: Apache-2.0
"""Libraries that only some commands need, and the list of what a release is made of."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from support.cli import Wbscope, check_error
from support.runs import REPOSITORY
from wbscope.base.errors import EXTRAS, install_line, missing_library

# Libraries that only some commands need: which extra has them, what is said without.

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


# The list of what a release is made of: by the standard, and nothing is missing.

Document = dict[str, Any]


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> str:
    output = tmp_path_factory.mktemp("sbom") / "made.cdx.json"
    command = [sys.executable, REPOSITORY / "tools/make_sbom.py", "--root", "/", "-o", output]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output.read_text()


def test_a_wheel_has_what_is_inside_it(tmp_path: Path, listed: str) -> None:
    """By PEP 770: what pip installs beside it is told by its metadata."""
    output = tmp_path / "made.cdx.json"
    command = [sys.executable, REPOSITORY / "tools/make_sbom.py", "--inside", "--root", "/"]
    subprocess.run([*command, "-o", output], check=True, capture_output=True)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(output.read_text()) is None
    inside = json.loads(output.read_text())["components"]
    assert {one["name"] for one in inside} == {
        "libtraceevent", "protozero", "sqlite", "uplot", "xxhash", "zlib", "zstd",
    }  # fmt: skip
    assert all(one in json.loads(listed)["components"] for one in inside)


@pytest.fixture
def parts(listed: str) -> dict[str, Document]:
    return {one["name"]: one for one in json.loads(listed)["components"]}


def test_it_keeps_the_standard(listed: str) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(listed) is None


def test_it_has_every_library_of_the_base_install(parts: dict[str, Document]) -> None:
    lock = (REPOSITORY / "tools/locks/base.txt").read_text()
    for line in re.findall(r"^[\w.-]+==.*", lock, re.MULTILINE):
        name, version = re.split("==| ", line)[:2]
        if "win32" not in line:
            assert (parts[name]["version"], parts[name]["scope"]) == (version, "required")
            assert parts[name]["hashes"]


def test_it_has_every_extra_of_the_package(parts: dict[str, Document]) -> None:
    listed = (REPOSITORY / "pyproject.toml").read_text()
    extras = tomllib.loads(listed)["project"]["optional-dependencies"]
    for extra in ("gate", "plots", "arrow", "perfetto", "fleet", "spark", "prompt"):
        for wanted in extras[extra]:
            name = re.split(r"[\[<>=~!; ]", wanted)[0].lower().replace("_", "-")
            assert name == "wbscope" or parts[name]["hashes"], name


def test_it_has_every_library_inside_the_program(parts: dict[str, Document]) -> None:
    """Those that CMake links, and those of which it takes headers."""
    cmake = (REPOSITORY / "CMakeLists.txt").read_text()
    (linked,) = re.findall(r"pkg_check_modules\(DEPS REQUIRED IMPORTED_TARGET ([^)]*)\)", cmake)
    (headers,) = re.findall(r"foreach\(header ([^)]*)\)", cmake)
    assert {name.removeprefix("lib").rstrip("3") for name in linked.split()} == {
        "traceevent", "zstd", "z", "sqlite",
    } ^ {"z", "zlib"}  # fmt: skip
    assert re.findall(r"(\w+)(?:\.h|/\S+)", headers) == ["xxhash", "protozero"]
    for name, package in (("zstd", "libzstd"), ("sqlite", "sqlite3"), ("zlib", "zlib"),
                          ("libtraceevent", "libtraceevent"), ("xxhash", "libxxhash")):  # fmt: skip
        said = subprocess.run(
            ["pkg-config", "--modversion", package], capture_output=True, text=True
        )
        assert parts[name]["version"] == said.stdout.strip(), name
    assert parts["protozero"]["version"][0].isdigit()
    assert parts["uplot"]["licenses"] == [{"license": {"id": "MIT"}}]


def test_each_has_a_licence(parts: dict[str, Document]) -> None:
    for name, one in parts.items():
        (told,) = one["licenses"]
        assert "expression" in told or "id" in told["license"], name


def test_a_root_without_libraries(tmp_path: Path) -> None:
    command = [sys.executable, REPOSITORY / "tools/make_sbom.py", "--root", tmp_path]
    done = subprocess.run(
        [*command, "-o", tmp_path / "x.json"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "libtraceevent.pc" in done.stderr) == (5, True)
    assert not (tmp_path / "x.json").exists()
