# SPDX-License-Identifier: Apache-2.0
"""Names of files that are no UTF-8: the work is done, what is shown of them can be pasted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.runs import example
from support.tools import wbscope_path
from wbscope.base.system import as_utf8, join, pasteable

STRANGE = os.fsdecode(b"\xff.dat")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wbscope:
    """The real command, with the real library."""
    monkeypatch.delenv("WBSCOPE_SQL_DIR", raising=False)
    monkeypatch.delenv("WBSCOPE_INGEST", raising=False)
    (tmp_path / "cache").mkdir(mode=0o700)
    return Wbscope(tmp_path / "cache", process=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "runs"
    made.mkdir()
    trace = example("four-equal-writers").folder / "trace.dat"
    shutil.copy(trace, made / STRANGE)
    shutil.copy(trace, made / "plain.dat")
    return made


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "a b",
        "it's",
        "a\\b c",
        STRANGE,
        os.fsdecode(b"it's \xffe\\"),
        "tab\there",
        "\u00a0",
    ],
)
def test_a_shell_reads_back_the_name(name: str) -> None:
    shown = join(["printf", "%s", name])
    assert shown.isprintable()
    said = subprocess.run(["bash", "-c", shown], check=True, capture_output=True).stdout
    assert said == os.fsencode(name)


def test_a_command_that_cannot_be_shown_is_left_out() -> None:
    assert pasteable("wbscope report 'a b'") == "wbscope report 'a b'"
    assert pasteable(f"wbscope report {STRANGE}") is None
    assert pasteable(f"don't wbscope report '{STRANGE}'") is None


def test_a_name_to_store() -> None:
    assert as_utf8("tëxt") == "tëxt"
    assert as_utf8(STRANGE) == "\\udcff.dat"


@pytest.mark.parametrize("output", ["r.html", "r.md", "r.txt", "r.json"])
def test_report(command: Wbscope, folder: Path, output: str) -> None:
    done = command.run("report", STRANGE, "-o", output, cwd=folder)
    assert (done.returncode, done.stderr) == (0, f"wrote {output}\n")
    text = (folder / output).read_text(encoding="utf-8")
    assert "\\udcff.dat" in text
    if output.endswith("json"):
        assert json.loads(text)["run"] == STRANGE
    if output.endswith("md"):
        assert "wbscope query lost_time $'\\xff.dat'\n" in text


def test_baseline(command: Wbscope, folder: Path) -> None:
    done = command.run("baseline", "save", STRANGE, "-o", "b.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    shown = command.run("baseline", "show", "b.json", cwd=folder)
    assert shown.stdout.startswith("1 run: \\udcff.dat\n"), shown.stderr


def test_ingest_into_such_a_name(command: Wbscope, folder: Path) -> None:
    output = os.fsdecode(b"out\xff.db")
    done = command.run("ingest", "plain.dat", "-o", output, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("wrote out\\udcff.db: ")
    again = command.run("query", "lost_time", output, "--csv", cwd=folder)
    assert again.returncode == 0, again.stderr
    assert (
        again.stdout == command.run("query", "lost_time", "plain.dat", "--csv", cwd=folder).stdout
    )


def test_history_and_dataset(command: Wbscope, folder: Path) -> None:
    place = ("--commit", "a", "--date", "2026-01-01")
    for history in ("h.db", os.fsdecode(b"\xfe.db")):
        added = command.run("history", "add", history, STRANGE, *place, cwd=folder)
        assert added.returncode == 0, added.stderr
        shown = command.run("history", "show", history, cwd=folder)
        assert shown.returncode == 0, shown.stderr
    done = command.run("export", STRANGE, "--parquet", "dataset", cwd=folder)
    assert done.returncode == 0, done.stderr
    asked = command.run("fleet", "sql", "dataset", "SELECT name FROM runs", "--csv", cwd=folder)
    assert asked.stdout == "name\n\\udcff\n", asked.stderr


def test_the_fix_can_be_pasted(command: Wbscope, folder: Path) -> None:
    (folder / "plain.dat").unlink()
    done = command.run("report", os.fsdecode(b"\xfe.dat"), cwd=folder)
    assert done.returncode == 3
    fix = done.stderr.partition("  fix: wbscope ")[2]
    assert fix == "report $'\\xff.dat'\n"
    wbscope = wbscope_path()
    words = ["bash", "-c", f"{wbscope} {fix}"]
    assert subprocess.run(words, cwd=folder, env=command.env, capture_output=True).returncode == 0
