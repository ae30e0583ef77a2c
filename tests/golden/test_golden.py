# SPDX-License-Identifier: Apache-2.0
"""Golden cases: tiny synthetic traces whose answers can be checked by hand.

Each folder has case.py, which makes the input and states rows worked out by hand (CHECKS), and
command, whose output is kept in stdout and stderr. --update-golden writes these two.
"""

from __future__ import annotations

import difflib
import importlib
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.golden import difference
from support.once import Once

_FOLDER = Path(__file__).parent
_CASES = sorted(path.parent.name for path in _FOLDER.glob("*/case.py"))


def _case(name: str) -> Any:
    return importlib.import_module(f"golden.{name}.case")


def _made(once: Once, name: str) -> Path:
    """Its input, which no command changes."""
    return once.made(f"golden/{name}", _case(name).make)


def _output(wbscope: Wbscope, name: str, folder: Path) -> dict[str, str]:
    """What the case's commands print; a command that does not end with 0 says so on stderr."""
    output = {"stdout": "", "stderr": ""}
    for line in (_FOLDER / name / "command").read_text().splitlines():
        program, *arguments = shlex.split(line)
        assert program == "wbscope", line
        result = wbscope.run(*arguments, cwd=folder)
        output["stdout"] += f"$ {line}\n{result.stdout}"
        output["stderr"] += f"$ {line}\n{result.stderr}"
        if result.returncode:
            output["stderr"] += f"[exit {result.returncode}]\n"
    return output


@pytest.mark.parametrize("name", _CASES)
def test_rows_worked_out_by_hand(wbscope: Wbscope, once: Once, name: str) -> None:
    folder, case = _made(once, name), _case(name)
    assert case.CHECKS
    for check in case.CHECKS:
        document = wbscope.document(*check.arguments(str(folder)))
        assert difference(check, document) == "", check.query or check.sql


@pytest.mark.parametrize("name", _CASES)
def test_printed_output(
    wbscope: Wbscope, once: Once, name: str, pytestconfig: pytest.Config
) -> None:
    output = _output(wbscope, name, _made(once, name))
    changes = ""
    for stream, text in output.items():
        kept = _FOLDER / name / stream
        if pytestconfig.getoption("--update-golden"):
            kept.write_text(text)
        expected = kept.read_text() if kept.is_file() else ""
        got = kept.with_suffix(".got")
        if expected == text:
            got.unlink(missing_ok=True)
        else:
            got.write_text(text)
            lines = (expected.splitlines(), text.splitlines())
            diff = difflib.unified_diff(
                *lines, f"{name}/{stream}", f"{name}/{got.name}", lineterm=""
            )
            changes += "\n".join(diff) + "\n"
    assert not changes, changes
