# SPDX-License-Identifier: Apache-2.0
"""What is installed without a checkout: the files, and what is said where it cannot be built."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from support.runs import REPOSITORY


@pytest.fixture
def deb(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    return importlib.import_module("make_deb")


def _cmake(folder: Path, *settings: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["cmake", "-S", REPOSITORY, "-B", folder, *settings],
        env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_missing_libraries_are_named_with_the_packages_that_have_them(tmp_path: Path) -> None:
    (tmp_path / "pkgconfig").mkdir()
    done = _cmake(tmp_path / "build", PKG_CONFIG_LIBDIR=str(tmp_path / "pkgconfig"))
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "missing: libtraceevent, libzstd, zlib, sqlite3." in said
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    debs = re.search(r"^DEBS +:= (.*)$", makefile, re.MULTILINE)
    assert debs is not None
    named = re.search(r"apt install ([^.]*)\.", said)
    assert named is not None
    libraries = {name for name in debs[1].split() if name.startswith("lib") or "zlib" in name}
    assert set(named[1].split()) == libraries | {"pkg-config"}


def test_all_data_is_in_the_wheel(tmp_path: Path) -> None:
    """As scikit-build-core asks CMake for them; the program itself is not built for this."""
    built, target = tmp_path / "build", tmp_path / "wheel"
    done = _cmake(built, "-DSKBUILD_SCRIPTS_DIR=scripts", f"-DCMAKE_INSTALL_PREFIX={target}")
    assert done.returncode == 0, done.stderr
    (built / "wbscope-ingest").write_text("not built\n")
    strip = ["cmake", "--install", str(built)]
    subprocess.run(strip, check=True, capture_output=True)
    assert (target / "scripts/wbscope-ingest").is_file()
    package = target / "wbscope"
    for name in ("sql", "kernel-tracepoints/formats", "kernel-tracepoints/text-formats"):
        source = REPOSITORY / name.replace("wbscope/", "")
        wanted = {
            str(path.relative_to(source))
            for path in source.rglob("*")
            if path.is_file() and (name == "sql" or path.suffix == ".formats")
        }
        there = {
            str(path.relative_to(package / name))
            for path in (package / name).rglob("*")
            if path.is_file()
        }
        assert there == wanted
        assert wanted
    demo = REPOSITORY / "tests/corpus/6.1-slow-starves-fast/run.tar.xz"
    assert (package / "demo/run.tar.xz").read_bytes() == demo.read_bytes()


def test_the_deb_names_what_the_program_is_linked_to(deb: ModuleType) -> None:
    program = REPOSITORY / ".venv/bin/wbscope-ingest"
    if not program.is_file():
        pytest.skip("there is no .venv/bin/wbscope-ingest")
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    needed = {line.split()[0] for line in said.splitlines() if "=>" in line}
    assert needed - set(deb.LINKED) == set()


def test_help_as_a_page_of_the_manual(deb: ModuleType) -> None:
    page = deb.manual("wbscope-ingest", "1.2", "usage: a-b\n.dot\\n")
    assert page.splitlines()[0] == '.TH WBSCOPE-INGEST 1 "" "wbscope 1.2"'
    assert page.endswith(".nf\nusage: a\\-b\n\\&.dot\\en\n.fi\n")
