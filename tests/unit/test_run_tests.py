# SPDX-License-Identifier: Apache-2.0
"""make test is red when a step fails, cannot be started, or stands behind one that failed."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest
from support.runs import REPOSITORY


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The program, with its logs and costs in a folder of the test."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    monkeypatch.setattr("sys.argv", ["run_tests.py", "quick"])
    loaded = importlib.import_module("run_tests")
    monkeypatch.setattr(loaded, "_LOGS", tmp_path)
    monkeypatch.setattr(loaded, "_COSTS", tmp_path / "costs.jsonl")
    return loaded


def _ended(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, *stages: list[list[tuple[str, str]]]
) -> int:
    made = [
        [[tool.Step(name, ["sh", "-c", text]) for name, text in lane] for lane in stage]
        for stage in stages
    ]
    monkeypatch.setattr(tool, "stages", lambda which: made)
    code: int = tool.main()
    return code


def test_all_is_well(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert _ended(tool, monkeypatch, [[("a", "echo said by a")], [("b", "true")]]) == 0
    out = capfd.readouterr().out
    assert "== a: passed" in out
    assert "said by a" in out


def test_what_stands_behind_a_failure_is_run_but_no_further_stage(
    tool: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    stages = [[[("a", "exit 3"), ("b", "true")]], [[("c", f"touch {tmp_path}/c")]]]
    assert _ended(tool, monkeypatch, *stages) == 1
    told = capfd.readouterr()
    assert "== a: FAILED" in told.out
    assert "== b: passed" in told.out
    assert told.err == "failed: a (build/logs/a.log)\n"
    assert not (tmp_path / "c").exists()


def test_a_program_that_is_not_there(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    lanes = [[tool.Step("none", ["/nowhere/pytest"])], [tool.Step("a", ["true"])]]
    monkeypatch.setattr(tool, "stages", lambda which: [lanes])
    assert tool.main() == 1
    assert "cannot be run" in capfd.readouterr().err


def test_the_table_counts_by_folder(tool: ModuleType) -> None:
    tests = [
        ("tests/unit/test_a.py::test_a", 1.5, 1.0, "passed"),
        ("tests/unit/test_a.py::test_b", 2.0, 0.4, "failed"),
        ("tests/live/test_c.py::test_c", 9.0, 0.0, "skipped"),
    ]
    keys = ("test", "seconds", "cpu_seconds", "outcome")
    lines = [json.dumps(dict(zip(keys, values, strict=True))) + "\n" for values in tests]
    tool._COSTS.write_text("".join(lines))
    step = tool.Step("lint", ["make", "lint"])
    rows = [line.split() for line in tool.table([tool.Ended(step, 0, 7.0, 5.0)], 12.0).splitlines()]
    assert rows[1:5] == [
        ["tests/live", "1", "1", "0", "9", "0"],
        ["tests/unit", "2", "0", "1", "4", "1"],
        ["lint", "0", "7", "5"],
        ["all", "3", "0", "12", "5"],
    ]


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
