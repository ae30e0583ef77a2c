# SPDX-License-Identifier: Apache-2.0
"""The list of what a release is made of: by the standard, and nothing is missing."""

from __future__ import annotations

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
from support.runs import REPOSITORY

Document = dict[str, Any]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    output = tmp_path_factory.mktemp("sbom") / "made.cdx.json"
    command = [sys.executable, REPOSITORY / "tools/make_sbom.py", "--root", "/", "-o", output]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output.read_text()


def test_a_wheel_has_what_is_inside_it(tmp_path: Path, text: str) -> None:
    """By PEP 770: what pip installs beside it is told by its metadata."""
    output = tmp_path / "made.cdx.json"
    command = [sys.executable, REPOSITORY / "tools/make_sbom.py", "--inside", "--root", "/"]
    subprocess.run([*command, "-o", output], check=True, capture_output=True)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(output.read_text()) is None
    inside = json.loads(output.read_text())["components"]
    assert {one["name"] for one in inside} == {
        "libtraceevent", "protozero", "sqlite", "uplot", "xxhash", "zlib", "zstd",
    }  # fmt: skip
    assert all(one in json.loads(text)["components"] for one in inside)


@pytest.fixture
def parts(text: str) -> dict[str, Document]:
    return {one["name"]: one for one in json.loads(text)["components"]}


def test_it_keeps_the_standard(text: str) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_it_has_every_library_of_the_base_install(parts: dict[str, Document]) -> None:
    lock = (REPOSITORY / "tools/locks/base.txt").read_text()
    for line in re.findall(r"^[\w.-]+==.*", lock, re.MULTILINE):
        name, version = re.split("==| ", line)[:2]
        if "win32" not in line:
            assert (parts[name]["version"], parts[name]["scope"]) == (version, "required")
            assert parts[name]["hashes"]


def test_it_has_every_extra_of_the_package(parts: dict[str, Document]) -> None:
    text = (REPOSITORY / "pyproject.toml").read_text()
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
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
