# SPDX-License-Identifier: Apache-2.0
"""The words behind `wbscope lab`, and what it prints and tells."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wbscope.lab import places

Cli = Callable[..., Any]

_MATRIX = """
runs = 1
[setup]
kernel.folder = "."
workload = "true"
[axis.place]
a = {}
[axis.run]
b = {}
"""


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "it's a matrix.toml"
    path.write_text(_MATRIX)
    return path


@pytest.mark.parametrize(
    "words", [("lab", "@", "--list"), ("lab", "--list", "@"), ("lab", "run", "@", "--list")]
)
def test_a_first_word_that_is_no_command_is_a_matrix(
    cli: Cli, matrix: Path, words: tuple[str, ...]
) -> None:
    ran = cli(*(matrix if word == "@" else word for word in words))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("   1  a,b/run-1  (")


def test_names_of_axes_hide_nothing_in_json(cli: Cli, matrix: Path) -> None:
    (row,) = cli("lab", matrix, "--list", "--json").json()["rows"]
    assert (row["place"], row["run"]) == (1, "a,b/run-1")
    assert row["values"] == {"place": "a", "run": "b"}


def test_wrong_words(cli: Cli) -> None:
    for words in (["lab"], ["lab", "m.toml", "-o"], ["lab", "a", "b"]):
        ran = cli(*words)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("error[usage]: wbscope lab")
        assert ran.err.splitlines()[-1].startswith("  fix: wbscope lab")


def test_the_remedy_can_be_pasted(
    cli: Cli, matrix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fix of failed runs is the command that makes them again."""

    def fail(*_: object) -> Path:
        raise places.Failure("no luck", {})

    def good(_self: object, _setup: object, work: Path, *_: object) -> Path:
        (work / "run").mkdir()
        (work / "run/meta.json").write_text(json.dumps({"ended": "complete"}))
        return work / "run"

    monkeypatch.setattr(places.Places, "check", lambda *_: None)
    monkeypatch.setattr(places.Places, "make", fail)
    failed = cli("lab", matrix, "-o", tmp_path / "a lab")
    assert failed.code == 5
    fix = failed.err.splitlines()[-1].removeprefix("  fix: ")
    words = shlex.split(fix, comments=True)
    assert words[0] == "wbscope"
    monkeypatch.setattr(places.Places, "make", good)
    again = cli(*words[1:])
    assert again.code == 0, again.err
    assert "1 run made" in again.err


def test_a_dry_run_prints_its_result(
    cli: Cli, matrix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places.Places, "check", lambda *_: None)
    ran = cli("lab", matrix, "--dry-run")
    assert (ran.code, ran.out, ran.err) == (0, "1 cell, 1 run of each: nothing is missing\n", "")
    (row,) = cli("lab", matrix, "--dry-run", "--json").json()["rows"]
    assert (row["place"], row["run"]) == (1, "a,b/run-1")
