# SPDX-License-Identifier: Apache-2.0
"""Files and folders whose names begin with a dash are files and folders, not options."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.runs import REPOSITORY
from wbscope.base.system import file_word
from wbscope.source.plain_files import report_of

Cli = Callable[..., Any]
TRACE = REPOSITORY / "examples/gate/runs/before-2/trace.dat"
DASHED = "-t.dat"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a run folder and a trace; the whole library is asked."""
    monkeypatch.delenv("WBSCOPE_SQL_DIR")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-d").mkdir()
    shutil.copyfile(TRACE, tmp_path / "-d" / "trace.dat")
    shutil.copyfile(TRACE, tmp_path / DASHED)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["report", "./-t.dat"],
        ["report", "--", DASHED],
        ["report", "./-d"],
        ["gate", "./-t.dat", "--budget", "throttle_summary.pause_p99_ns<=1h"],
        ["convert", "./-t.dat", "-o", "./-c.pftrace"],
        ["convert", "./-d", "-o", "./-d/c.pftrace"],
        ["timeline", "./-t.dat", "-o", "./-x.pftrace"],
        ["timeline", "./-t.dat", "-o", "part.pftrace", "--time-range", "1s..2s"],
        ["ingest", "./-t.dat", "-o", "./-x.db"],
        ["ingest", "./-t.dat", "-o", "x.db", "--time-range", "0s..2000h"],
        ["ingest", "./-d"],
    ],
    ids=" ".join,
)
def test_dash_in_front(cli: Cli, here: Path, words: list[str]) -> None:
    ran = cli(*words)
    assert ran.code == 0, ran.err


def test_a_database_with_a_dash(cli: Cli, here: Path) -> None:
    assert cli("ingest", "./-t.dat", "-o", "./-x.db").code == 0
    for words in (["report", "./-x.db"], ["timeline", "./-x.db", "-o", "x.pftrace"]):
        ran = cli(*words)
        assert ran.code == 0, ran.err


def test_words() -> None:
    words = [file_word(Path(name)) for name in ("./-x", "-d/x", "a-b", "/-x", "-")]
    assert words == ["./-x", "./-d/x", "a-b", "/-x", "./-"]
    assert report_of(Path("./-x y")) == "wbscope report './-x y'"
    assert report_of(Path("-")) == "wbscope report -"  # stdin


def test_commands_that_are_printed(cli: Cli, here: Path) -> None:
    told = " ".join(cli("explain", "./-t.dat").out.split())
    assert "wbscope query lost_time ./-t.dat" in told or "./-t.dat" in told
    assert " -t.dat" not in told
    assert "wbscope explain ./-t.dat" in " ".join(cli("explain", "./-t.dat", "--short").out.split())
    no_output = cli("ingest", "./-t.dat")
    assert "fix: wbscope ingest ./-t.dat -o ./-t.db" in no_output.err
