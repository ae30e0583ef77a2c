# SPDX-License-Identifier: Apache-2.0
"""What make test leaves out of a commit, the next seven have: see tests/support/choice.py."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path

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
    few = [Case("unit/test_x.py::test_it", f"case{number}") for number in range(8)]
    assert chosen(few, 0, {few[0].function: 8.0}) == set(few)
    assert sum(len(chosen(few, part, {few[0].function: 8.1})) for part in range(PARTS)) < 24
    one = [Case("unit/test_x.py::test_it")]
    assert sum(len(chosen(one, part, {one[0].function: 1.1})) for part in range(PARTS)) == 1
    core = [Case("unit/test_x.py::test_it", marks=frozenset({"core"}))]
    assert all(chosen(core, part, {core[0].function: 1.1}) for part in range(PARTS))


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
