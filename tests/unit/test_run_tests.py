# SPDX-License-Identifier: Apache-2.0
"""make test is red when a step fails, cannot be started, or stands behind one that failed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from support.runs import REPOSITORY

_TOOL = REPOSITORY / "tools/run_tests.py"
_UNIT_TESTS = "build/tests/tests/unit/ingest/wbscope_unit_tests"

Ran = Callable[[Mapping[str, str]], subprocess.CompletedProcess[str]]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = spec_from_file_location("run_tests", _TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    """`run_tests.py quick` of a repository whose steps are lines of shell, none of them wrong."""

    def run(steps: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        (tmp_path / "tools").mkdir()
        shutil.copy(_TOOL, tmp_path / "tools")
        targets = (f"{name}:\n\t@{steps.get(name, 'true')}\n" for name in ("lint", "tests-built"))
        (tmp_path / "Makefile").write_text("".join(targets))
        for name in (_UNIT_TESTS, ".venv/bin/pytest"):
            program = tmp_path / name
            text = steps.get(program.name, "true")
            if text:
                program.parent.mkdir(parents=True)
                program.write_text(f"#!/bin/sh\n{text}\n")
                program.chmod(0o755)
        command = [sys.executable, tmp_path / "tools/run_tests.py", "quick"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_all_is_well(ran: Ran) -> None:
    done = ran({"lint": "echo said by lint"})
    assert done.returncode == 0, done.stderr
    for name in ("lint", "tests-built", "C++", "most"):
        assert f"== {name}: passed" in done.stdout
    assert "said by lint" in done.stdout


def test_what_stands_behind_a_failure_is_run(ran: Ran) -> None:
    done = ran({"wbscope_unit_tests": "exit 3"})
    assert done.returncode == 1
    assert "== C++: FAILED" in done.stdout
    assert "== most: passed" in done.stdout
    assert "C++ (build/logs/C++.log)" in done.stderr


def test_no_stage_is_run_behind_a_failure(ran: Ran, tmp_path: Path) -> None:
    done = ran({"lint": "exit 3", "pytest": f"touch {tmp_path}/ran"})
    assert done.returncode == 1
    assert "== lint: FAILED" in done.stdout
    assert "== tests-built: passed" in done.stdout
    assert "lint (build/logs/lint.log)" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_program_that_is_not_there(ran: Ran) -> None:
    done = ran({"pytest": ""})
    assert done.returncode == 1
    assert ".venv/bin/pytest" in done.stderr


def test_the_table_counts_by_folder(ran: Ran) -> None:
    """As tests/support/costs.py writes them; what a step took is measured."""
    tests = [
        ("tests/unit/test_a.py::test_a", 1.5, 1.0, "passed"),
        ("tests/unit/test_a.py::test_b", 2.0, 0.4, "failed"),
        ("tests/live/test_c.py::test_c", 9.0, 0.0, "skipped"),
    ]
    keys = ("test", "seconds", "cpu_seconds", "outcome")
    lines = [json.dumps(dict(zip(keys, values, strict=True))) for values in tests]
    done = ran({"pytest": "".join(f"echo '{line}' >> \"$WBSCOPE_COSTS\"\n" for line in lines)})
    assert done.returncode == 0, done.stderr
    table = done.stdout[done.stdout.index("\ngroup ") :]
    rows = [line.split() for line in table.splitlines()[2:8]]
    assert rows[:2] == [
        ["tests/live", "1", "1", "0", "9", "0"],
        ["tests/unit", "2", "0", "1", "4", "1"],
    ]
    assert sorted(row[:2] for row in rows[2:5]) == [
        ["C++", "0"],
        ["lint", "0"],
        ["tests-built", "0"],
    ]
    assert rows[5][:3] == ["all", "3", "0"]


@pytest.mark.parametrize("which", ["quick", "commit", "all"])
def test_no_folder_is_run_twice_or_never(tool: ModuleType, which: str) -> None:
    """make check leaves out those that record, wait for browsers or measure memory."""
    steps = [step for stage in tool.stages(which) for lane in stage for step in lane]
    asked = [word for step in steps for word in step.command]
    there = {f"tests/{path.parent.name}" for path in REPOSITORY.glob("tests/*/test_*.py")}
    left_out = {word.removeprefix("--ignore=") for word in asked if word.startswith("--ignore=")}
    named = {word for word in asked if word in there}
    assert left_out <= there
    by_others = {"tests/kernel", "tests/lab"}
    assert left_out - named == (left_out if which == "quick" else by_others)


def test_costs_of_functions_are_kept(tmp_path: Path) -> None:
    """All cases together, of those that are worth a line."""
    for name in ("tools", "tests", "build/logs"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(_TOOL, tmp_path / "tools")
    command = [sys.executable, tmp_path / "tools/run_tests.py", "costs"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, list((tmp_path / "tests").iterdir())) == (1, [])
    assert "make test-all" in done.stderr
    costs = {"text/test_b.py::f[1]": 0.5, "text/test_b.py::f[2]": 1.25, "docs/test_a.py::g": 0.2}
    lines = (json.dumps({"test": f"tests/{k}", "cpu_seconds": v}) for k, v in costs.items())
    (tmp_path / "build/logs/costs-all.jsonl").write_text("\n".join(lines))
    subprocess.run(command, check=True)
    assert (tmp_path / "tests/costs.txt").read_text() == "1.8 text/test_b.py::f\n"
