# SPDX-License-Identifier: Apache-2.0
"""The words behind `wbscope lab`, and what it prints and tells."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.textrun import sent_archive

Cli = Callable[..., Any]

_MATRIX = """
runs = 1
[setup]
kernel.ssh = "board"
data = "/tmp"
workload = "true"
[axis.place]
a = {}
[axis.run]
b = {}
"""


# The script that records is not run: what it would send is in a file.
_SSH = """#!/bin/sh
if [ "$1" = -- ]; then exec cat {0}/sent.tar; fi
shift 4
exec "$@"
"""
_SCP = """#!/bin/sh
exec cp -r "${{2#*:}}" "$3"
"""


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host that ssh reaches: this machine. Returns where what it records is to be put."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in (("ssh", _SSH), ("scp", _SCP)):
        (programs / name).write_text(text.format(programs))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(programs))
    monkeypatch.delenv("WBSCOPE_SQL_DIR")  # what is recorded is in the whole library
    return programs / "sent.tar"


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


def test_the_remedy_can_be_pasted(cli: Cli, board: Path, matrix: Path, tmp_path: Path) -> None:
    """The fix of failed runs is the command that makes them again."""
    failed = cli("lab", matrix, "-o", tmp_path / "a lab")
    assert failed.code == 5
    fix = failed.err.splitlines()[-1].removeprefix("  fix: ")
    words = shlex.split(fix, comments=True)
    assert words[0] == "wbscope"
    board.write_bytes(sent_archive())
    again = cli(*words[1:])
    assert again.code == 0, again.err
    assert (tmp_path / "a lab/a,b/run-1/trace.dat").exists()


@pytest.mark.usefixtures("board")
def test_a_dry_run_prints_its_result(cli: Cli, matrix: Path) -> None:
    ran = cli("lab", matrix, "--dry-run")
    assert (ran.code, ran.out, ran.err) == (0, "1 cell, 1 run of each: nothing is missing\n", "")
    (row,) = cli("lab", matrix, "--dry-run", "--json").json()["rows"]
    assert (row["place"], row["run"]) == (1, "a,b/run-1")
