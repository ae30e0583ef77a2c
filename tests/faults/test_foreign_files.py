# SPDX-License-Identifier: Apache-2.0
"""Every command in a folder full of other people's things, as cache and for outputs: all stay."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.faults import Place
from support.foreign import foreign_files, snapshot
from support.tools import wbscope_path
from support.waits import GUARD_SECONDS

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
