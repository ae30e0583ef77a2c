# SPDX-License-Identifier: Apache-2.0
"""What Tab offers: asked for as the shells' scripts do, and in the shells themselves."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from support.tools import require_program
from support.waits import close, spawn
from wbscope.cli.completing import answer
from wbscope.cli.main import main, program
from wbscope.cli.verbs import VERBS
from wbscope.library.library import load_library
from wbscope.render.schemas import schema_of


def _words(*words: str) -> list[str]:
    return [value for value, _ in answer(program, words).words]


@pytest.fixture(autouse=True)
def whole_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the small one of these tests."""
    monkeypatch.delenv("WBSCOPE_SQL_DIR", raising=False)


@pytest.fixture
def named(database: Path) -> Path:
    """A run whose devices and cgroups have names."""
    with sqlite3.connect(database) as connection:
        connection.executescript("""
            ALTER TABLE task ADD COLUMN events_count INTEGER;
            UPDATE task SET events_count = 2;
            CREATE TABLE bdi (bdi TEXT PRIMARY KEY, device TEXT, mount TEXT);
            INSERT INTO bdi VALUES ('8:0', 'sda', '/data');
            CREATE TABLE cgroup (cgroup_ino INTEGER PRIMARY KEY, path TEXT);
            INSERT INTO cgroup VALUES (27, '/batch');
        """)
    return database


def test_commands_and_options() -> None:
    assert _words("") == [verb.name for verb in VERBS]
    assert _words("que") == ["query", "queries"]
    assert _words("baseline", "") == ["save", "show", "merge"]
    assert "--version" in _words("--")
    assert {"--columns", "--limit", "--sort", "--width"} <= set(_words("query", "x", "--"))
    assert _words("nosuch", "") == []
    assert answer(program, ["q"]).words[0][1] == "Answer a canned query, of one run or of several."


def test_names_of_the_library() -> None:
    library = load_library()
    queries = [file.name for file in library.queries()]
    assert _words("query", "") == queries
    assert _words("report", "x", "--section", "fairness_t") == ["fairness_tasks"]
    rule = library.findings()[0].name
    assert rule in _words("queries", rule)
    assert "event_counts" not in _words("schema", "")
    assert all(schema_of(name) for name in _words("schema", ""))
    assert "throttle_summary.call_max_ns" in _words("compare", "a", "--metric", "throttle_summary.")
    assert answer(program, ["gate", "--budget", "throttle_summary.c"]).is_part
    assert "global_dirty_state" in _words("plot", "x", "global_dirty_state")
    assert _words("record", "--profile", "") == ["writeback", "stalls", "reclaim", "deep", "custom"]
    assert _words("query", "x", "--engine", "p") == ["perfetto"]
    assert _words("query", "x", "--engine=p") == ["--engine=perfetto"]
    assert _words("completion", "") == ["bash", "zsh", "fish"]


def test_columns_are_a_list_of_those_of_the_query() -> None:
    assert _words("query", "fairness", "--columns", "bdi,jain_r") == ["bdi,jain_ratio"]
    assert "bdi,bdi" not in _words("query", "fairness", "--columns", "bdi,")
    assert _words("query", "fairness", "--sort=-jain_r") == ["--sort=-jain_ratio"]
    assert answer(program, ["query", "fairness", "--columns", "bd"]).is_part


def test_values_of_the_run(named: Path) -> None:
    query = ("query", "throttle_by_task", str(named))
    assert answer(program, [*query, "--bdi", ""]).words == [("8:0", "sda /data")]
    assert dict(answer(program, [*query, "--tid", ""]).words)["11"] == "dd"
    assert {"dd", "11"} <= set(_words(*query, "--task", ""))
    assert _words(*query, "--cgroup", "/") == ["/batch"]
    found = _words("ingest", str(named), "--events", "writeback:")
    assert found == ["writeback:balance_dirty_pages"]


def test_a_tab_starts_no_ingest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also not where the program is there, and reads nothing from stdin."""
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "run").mkdir()
    (tmp_path / "run/trace.dat").write_bytes(b"\x17\x08\x44tracing, and then nothing")
    for run in (str(tmp_path / "run"), "-", str(tmp_path / "no-run")):
        assert _words("query", "fairness", run, "--bdi", "") == []
    assert list((tmp_path / "cache").rglob("*.db")) == []


def test_where_the_shell_knows_better_it_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["report"], ["compare", "a", "--against", "b"], ["gate", "--policy"],
                  ["record", "--", "dd"], ["query", "fairness", "--width"]):  # fmt: skip
        assert main(["__complete", "fish", *words, ""]) == 0
        assert capsys.readouterr().out == "files\n"


def test_options_that_take_every_word_take_an_option_s_place() -> None:
    assert _words("compare", "a", "--against", "b", "c", "--metric", "fairness.j")
    assert _words("compare", "a", "--against", "b", "c", "--metri") == ["--metric"]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("wbscope que", ["words", "query", "queries"]),
        ("wbscope query fairness --engine=sq", ["words", "sqlite"]),  # bash breaks words at =
        ("wbscope query 'fairness_t", ["words", "fairness_tasks"]),
        ("wbscope query fairness '--columns' bdi,jain_w", ["part", "bdi,jain_weighted_ratio"]),
        ("wbscope convert x --compat ", ["files"]),
    ],
)
def test_a_line_of_bash(line: str, wanted: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["__complete", "bash", line, " \t\n\"'><=;|&(:"]) == 0
    assert capsys.readouterr().out.splitlines() == wanted


def test_a_word_is_completed_without_what_answers_take() -> None:
    code = (
        "import sys\n"
        "from wbscope.cli.main import main\n"
        "main(['__complete', 'fish', 'que'])\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "pyarrow", "matplotlib", "wbscope.library.library"}
    assert set(done.stdout.split()) & heavy == set()
    assert "queries\tList" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_in_the_shell(shell: str, named: Path, tmp_path: Path) -> None:
    """The script, read by the shell itself: a name of the library, a value with a colon."""
    path = require_program(shell)
    program_path = tmp_path / "bin/wbscope"
    program_path.parent.mkdir()
    program_path.write_text(f'#!/bin/sh\nexec {sys.executable} -m wbscope "$@"\n')
    program_path.chmod(0o755)
    script = tmp_path / "script"
    with script.open("w") as file:
        subprocess.run([program_path, "completion", shell], stdout=file, check=True)
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": f"{program_path.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "TERM": "dumb",
    }
    lines = {
        "wbscope query fairness_t": "fairness_tasks",
        f"wbscope query fairness {named} --bdi 8:": "8:0",
    }
    if shell == "fish":
        for line, wanted in lines.items():
            command = [path, "--no-config", "-c", f"source {script}; complete -C '{line}'"]
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=True
            )
            assert done.stdout.split("\t")[0].strip() == wanted
        return
    start = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}[shell]
    setup = {"bash": "", "zsh": "autoload -U compinit; compinit -u; "}[shell]
    process = spawn(path, *start, env=environment, size=(40, 400))
    try:
        process.sendline(f"{setup}source {script}; echo re''ady")
        process.expect("ready")
        for line, wanted in lines.items():
            process.send(f"{line}\t")
            process.expect_exact(line + wanted[len(line.split()[-1]) :] + " ")
            process.sendcontrol("u")
    finally:
        close(process, kill=True)
