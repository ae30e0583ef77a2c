# SPDX-License-Identifier: Apache-2.0
"""Every command in a folder full of other people's things, as cache and for outputs: all stay."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.faults import Place
from support.foreign import foreign_files, snapshot
from support.labs import new_lab
from support.runs import REPOSITORY, example
from support.textrun import sent_archive
from support.tools import wbscope_path
from support.waits import GUARD_SECONDS
from typer.main import get_command
from wbscope.cli.main import program

_GATE = "throttle_summary.pause_p99_ns <= 100s"
# Words of each command; it runs in the folder and names what it writes there.
_COMMANDS = {
    "query": ["query", "fairness", "{trace}"],
    "query -o": ["query", "fairness", "{trace}", "--csv", "-o", "fairness.csv"],
    "sql": ["sql", "{trace}", "SELECT count(*) FROM wb_throttle"],
    "report": ["report", "{trace}", "-o", "report.txt"],
    "report -o html": ["report", "{trace}", "-o", "report.html"],
    "explain": ["explain", "{trace}", "-o", "verdict.txt"],
    "ingest": ["ingest", "{trace}", "-o", "run.db"],
    "ingest --force": ["ingest", "{trace}", "-o", "run.db", "--force"],
    "timeline": ["timeline", "{trace}", "-o", "run.pftrace"],
    "plot": ["plot", "{trace}", "task-wait", "-o", ".", "--format", "svg"],
    "convert": ["convert", "{trace}", "-o", "config"],
    "open": ["open", "{trace}", "--no-browser", "--wait", "100ms"],
    "compare": ["compare", "{trace}", "--against", "{trace}"],
    "gate": ["gate", "{trace}", "--budget", _GATE],
    "queries": ["queries"],
    "doctor": ["doctor"],
    "sql-package": ["sql-package", "-o", "package"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    for name in (".run.db.12345678", ".config.d", ".run.db.wbscope-notours"):
        (made / name).mkdir()
        (made / name / "file").write_text(name)
    (made / ".run.db.abcdefgh").mkdir()  # empty and old
    (made / ".fairness.csv.wbscope-theirs01").mkdir()
    (made / ".fairness.csv.wbscope-theirs01" / "keep").write_text("no lock: no writer's folder")
    return made


@pytest.mark.parametrize("name", _COMMANDS)
def test_foreign_files_survive(place: Place, folder: Path, name: str) -> None:
    before = foreign_files(folder)
    command = [word.format(trace=place.source) for word in _COMMANDS[name]]
    done = subprocess.run(
        [wbscope_path(), *command],
        cwd=folder,
        env=dict(os.environ, WBSCOPE_CACHE_DIR=str(folder), HOME=str(folder)),
        capture_output=True,
        text=True,
        timeout=GUARD_SECONDS,
        check=False,
    )
    codes = {"open": (5,), "doctor": (0, 5), "compare": (0, 4), "gate": (0, 4)}
    assert done.returncode in codes.get(name, (0,)), done.stderr
    after = snapshot(folder)
    gone = {path for path, seen in before.items() if after.get(path) != seen}
    assert not gone
    new = {path.split("/")[0] for path in after} - {path.split("/")[0] for path in before}
    outputs = {"fairness.csv", "report.txt", "run.db", "run.pftrace", "config", "package"}
    outputs |= {"task-wait.svg", "report.html", "verdict.txt"}
    assert new <= outputs | {"wbscope", ".local", ".cache"}


def test_caches_that_cannot_be_trusted_are_refused(place: Place, tmp_path: Path) -> None:
    """What a gate asks must not come from where somebody else can write."""
    shared, link = tmp_path / "shared", tmp_path / "link"
    shared.mkdir()
    link.symlink_to(shared)
    for cache, mode in ((shared, 0o777), (link, 0o755)):
        shared.chmod(mode)
        for command in _COMMANDS["query"], _COMMANDS["gate"]:
            words = [word.format(trace=place.source) for word in command]
            env = dict(os.environ, WBSCOPE_CACHE_DIR=str(cache))
            done = subprocess.run(
                [wbscope_path(), *words], env=env, capture_output=True, text=True, check=False
            )
            assert done.returncode == 5, done.stderr
            assert done.stderr.startswith("error[no-cache]: "), done.stderr
            assert "fix: export WBSCOPE_CACHE_DIR=" in done.stderr
        assert os.listdir(shared) == []


_RUNS = REPOSITORY / "examples/gate"
_BEFORE, _LOW = str(_RUNS / "before.json"), str(_RUNS / "lower-limit.json")
_POLICY = str(_RUNS / "gate.toml")
# Words of each verb that has --force, which come twice to the same folder; what it writes there.
_FORCED = {
    "baseline save": (["{runs}", "-o", "all.json"], "all.json"),
    "baseline merge": ([_BEFORE, _LOW, "-o", "all.json"], "all.json"),
    "check": (["{run}", "-o", "check.txt"], "check.txt"),
    "compare": ([_LOW, "--against", _BEFORE, "--html", "c.html"], "c.html"),
    "convert": (["{trace}", "-o", "run.pftrace"], "run.pftrace"),
    "explain": (["{trace}", "-o", "verdict.txt"], "verdict.txt"),
    "fleet gate": (
        ["{dataset}", "--cohort", "source LIKE '%7.2'", "--against", "source NOT LIKE '%7.2'",
         "--policy", _POLICY, "-o", "gate.txt"],
        "gate.txt",
    ),
    "fleet report": (["{dataset}", "-o", "fleet.html"], "fleet.html"),
    "fleet sql": (["{dataset}", "SELECT 1 AS one", "-o", "one.csv"], "one.csv"),
    "gate": (
        [_LOW, "--baseline", _BEFORE, "--policy", _POLICY, "-o", "gate.txt",
         "--junit", "gate.xml", "--sarif", "gate.sarif"],
        "gate.txt gate.xml gate.sarif",
    ),
    "history show": (["{history}", "-o", "trend.html"], "trend.html"),
    "ingest": (["{trace}", "-o", "run.db"], "run.db"),
    "lab report": (["{lab}", "-o", "pictures", "--save", "lab.json"], "pictures lab.json"),
    "plot": (["{trace}", "task-wait", "-o", ".", "--format", "svg"], "task-wait.svg"),
    "query": (["fairness", "{trace}", "-o", "fairness.csv"], "fairness.csv"),
    "record": (["--unpack", "{archive}", "--no-report", "-o", "recorded"], "recorded"),
    "report": (["{trace}", "-o", "report.html"], "report.html"),
    "sql": (["{trace}", "SELECT 1 AS one", "-o", "one.csv"], "one.csv"),
    "sql-package": (["-o", "package"], "package"),
    "timeline": (["{trace}", "-o", "time.pftrace"], "time.pftrace"),
}  # fmt: skip


def _with_force(command: Any, name: str = "") -> Iterator[str]:
    if any("--force" in parameter.opts for parameter in command.params):
        yield name
    for below, one in getattr(command, "commands", {}).items():
        yield from _with_force(one, f"{name} {below}".strip())


def test_every_verb_with_force_is_tried() -> None:
    assert set(_FORCED) == set(_with_force(get_command(program())))


@pytest.fixture(scope="module")
def inputs(wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("inputs")
    made = {name: str(folder / name) for name in ("history", "dataset", "archive")}
    for number, commit in enumerate(("a1", "b2", "c3", "d4")):
        words = (
            "add",
            made["history"],
            _LOW,
            "--commit",
            commit,
            "--date",
            f"2026-01-0{number + 1}",
        )
        done = wbscope.run("history", *words)
        assert done.returncode == 0, done.stderr
    folders = [example(f"four-equal-writers{kernel}").folder for kernel in ("", "-7.2")]
    done = wbscope.run("fleet", "ingest", *folders, "-o", made["dataset"])
    assert done.returncode == 0, done.stderr
    (folder / "archive").write_bytes(sent_archive())
    lab = new_lab(folder / "lab", {"limit": ("low", "high")}, {"low": [1, 2], "high": [3, 4]}, 2)
    return made | {"lab": str(lab), "runs": str(lab / "low"), "run": str(folders[0])}


@pytest.mark.parametrize("name", _FORCED)
def test_force_replaces_what_is_ours(
    wbscope: Wbscope, place: Place, inputs: dict[str, str], tmp_path: Path, name: str
) -> None:
    """Beside a note, a folder, a repository and links; the second time, the first one is there."""
    words, outputs = _FORCED[name]
    folder = tmp_path / "home"
    folder.mkdir()
    before = foreign_files(folder)
    command = [*name.split(), *(w.format(trace=place.source, **inputs) for w in words), "--force"]
    for _ in range(2):
        done = wbscope.run(*command, cwd=folder)
        assert done.returncode in (0, 1, 4), done.stderr
        after = snapshot(folder)
        assert {path: after.get(path) for path in before} == before
        assert {path.split("/")[0] for path in after.keys() - before.keys()} == {*outputs.split()}


@pytest.mark.parametrize("name", ["lab report", "plot", "record", "sql-package"])
def test_files_of_others_in_a_folder_that_is_written_again(
    wbscope: Wbscope, place: Place, inputs: dict[str, str], tmp_path: Path, name: str
) -> None:
    """What somebody has put into a folder that a verb has made."""
    words, _ = _FORCED[name]
    made = {"lab report": "pictures", "plot": ".", "record": "recorded", "sql-package": "package"}
    command = [*name.split(), *(w.format(trace=place.source, **inputs) for w in words), "--force"]
    folder = tmp_path / "home"
    folder.mkdir()
    assert wbscope.run(*command, cwd=folder).returncode == 0
    inside = folder / made[name]
    before = foreign_files(inside)
    theirs = {path for path in before if (inside / path).is_symlink() or path[0] == "."}
    done = wbscope.run(*command, cwd=folder)
    after = snapshot(inside)
    assert theirs
    if name == "record":
        assert (done.returncode, after) == (2, before)
        assert "error[output-exists]: recorded: is a run with other files in it" in done.stderr
        assert (
            "/, .backups1/, .config/, .dangling, .env, .git/, .run.db.wbscope-aaaaaaa/\n"
            in done.stderr
        )
        assert done.stderr.endswith("fix: -o recorded-2\n")
    else:
        assert done.returncode == 0, done.stderr
    assert {path: after.get(path) for path in theirs} == {path: before[path] for path in theirs}
