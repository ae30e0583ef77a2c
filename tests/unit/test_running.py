# SPDX-License-Identifier: Apache-2.0
"""make test: what it runs of a commit, and when it is red."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from support.archives import unpacked
from support.choice import (
    CASES,
    PARTS,
    WHOLE_ONLY,
    Case,
    chosen,
    commit_of,
    is_dealt,
    pairwise,
    part_of,
)
from support.costs import of_functions
from support.properties import some
from support.runs import REPOSITORY

# What make test leaves out of a commit, the next seven have: see tests/support/choice.py.

_RECORDINGS = [path.name for path in (unpacked("data") / "traces").iterdir()]


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> list[Case]:
    """All tests that this run of pytest has found, whatever it runs of them."""
    return request.config.stash[CASES]


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True)


def test_parts_together_are_all(cases: list[Case]) -> None:
    always, costs = pairwise(_RECORDINGS), of_functions()
    parts = [chosen(cases, part, costs, always) for part in range(PARTS)]
    whole = {case for case in cases if not case.function.startswith(WHOLE_ONLY)}
    assert set.union(*parts) == whole
    # A function that is not dealt is in each part, as a case of those is that have many.
    functions: dict[str, list[Case]] = defaultdict(list)
    for case in whole:
        functions[case.function].append(case)
    there = {
        name
        for name, found in functions.items()
        if len(found) > 1 or not is_dealt(found, costs.get(name, 0.0))
    }
    for part in parts:
        assert {case.function for case in part} >= there


def test_a_part_is_a_part() -> None:
    """Of many cases each is in one part; those of a name that is always there are in all."""
    many = [Case("fuzz/test_x.py::test_it", f"case{number}") for number in range(800)]
    dear = {many[0].function: 80.0}
    parts = [chosen(many, part, dear) for part in range(PARTS)]
    assert sum(map(len, parts)) == len(many)
    assert all(50 < len(part) < 150 for part in parts)
    assert all(many[0] in chosen(many, part, dear, ["case0"]) for part in range(PARTS))


def test_what_is_cheap_is_whole() -> None:
    many = [Case("fuzz/test_x.py::test_it", f"case{number}") for number in range(80)]
    assert chosen(many, 0, {}) == set(many)
    assert len(chosen(many, 0, {many[0].function: 0.6})) < 20


def test_what_takes_long_is_dealt_in_every_folder() -> None:
    one = [Case("unit/test_x.py::test_it")]
    assert all(chosen(one, part, {}) for part in range(PARTS))
    assert sum(len(chosen(one, part, {one[0].function: 0.6})) for part in range(PARTS)) == 1
    core = [Case("unit/test_x.py::test_it", marks=frozenset({"core"}))]
    assert all(chosen(core, part, {core[0].function: 0.6}) for part in range(PARTS))


def test_one_case_at_least() -> None:
    two = [Case("real/test_x.py::test_it", name) for name in ("one", "other")]
    dear = {two[0].function: 2.0}
    assert all(chosen(two, part, dear) for part in range(PARTS))
    slow = [Case("real/test_x.py::test_slow", marks=frozenset({"dealt"}))]
    assert sum(len(chosen(slow, part, {})) for part in range(PARTS)) == 1


def test_parts_do_not_depend_on_who_asks() -> None:
    """Nor on the day: this is what they are."""
    assert [part_of(name) for name in ("a", "b", "c", "")] == [2, 6, 6, 3]


def test_eight_commits_one_after_the_other_have_all_parts(tmp_path: Path) -> None:
    _git(tmp_path, "init", "--quiet")
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    seen = []
    for number in range(PARTS + 3):
        _git(tmp_path, *who, "commit", "--quiet", "--allow-empty", "-m", str(number))
        seen.append(commit_of(tmp_path).part)
        assert commit_of(tmp_path).part == seen[-1]
    for first in range(4):
        assert set(seen[first : first + PARTS]) == set(range(PARTS))


def test_a_clone_without_history_has_a_part(tmp_path: Path) -> None:
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    _git(tmp_path, "init", "--quiet", "origin")
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for number in range(3):
        _git(origin, *who, "commit", "--quiet", "--allow-empty", "-m", str(number))
    _git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{origin}", "clone")
    found = commit_of(clone)
    name = subprocess.run(
        ["git", "-C", clone, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    assert found.part == part_of(name)
    assert commit_of(tmp_path / "nowhere").part == 0


def test_recordings_that_are_always_there() -> None:
    """Each processor in each version of the file, each compression; less than a quarter of all."""
    kept = pairwise(_RECORDINGS)
    assert 20 <= len(kept) <= 28 < len(_RECORDINGS) / 4
    of_all = {tuple(name.split("-")[:3]) for name in _RECORDINGS}
    assert {tuple(name.split("-")[:3]) for name in kept} == of_all
    assert any(name.endswith("-none") for name in kept)
    assert any(name.endswith("-zlib") for name in kept)


def test_some_are_a_third_in_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WBSCOPE_PART", raising=False)
    assert sorted(some(range(100))) == list(range(100))
    monkeypatch.setenv("WBSCOPE_PART", "3")
    found = some(range(100))
    assert len(set(found)) == 34
    assert found == some(range(100)) != some(range(100), "other")
    assert some([7]) == [7]


# make test is red when a step fails, cannot be started, or stands behind one that failed.

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
