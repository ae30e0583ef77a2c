# SPDX-License-Identifier: Apache-2.0
"""The rules of how the package is built up, each tried by breaking it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
