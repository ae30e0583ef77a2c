# SPDX-License-Identifier: Apache-2.0
"""Databases from strangers as RUN: an answer or one clear error, nothing of theirs run or changed.

Each is made in tests/support/hostile_databases.py; `-k 'endless'` chooses by name. With --part a
third of the verbs is tried, others for each commit.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import Commands, Ended, problems
from support.hostile_databases import DATABASES, MARK
from support.mutate_values import part_of_trace
from support.properties import some
from support.runs import REPOSITORY
from support.tools import wbscope_path

_EXAMPLE = REPOSITORY / "examples/four-equal-writers"
_PART = (6, 1)
_SELECT = "SELECT * FROM event_counts"
_JOIN = "SELECT comm, count(*) FROM wb_throttle GROUP BY comm"


def _verbs(run: str, output: str) -> list[tuple[list[str], tuple[int, ...]]]:
    """Words, and the exit codes that are right; 2: of the user's SQL, which names a table."""
    return [
        (["report", run], (0, 3, 4)),
        (["timeline", run, "-o", output, "--force"], (0, 3, 4)),
        (["query", "throttle_by_task", run, "--json"], (0, 3, 4)),
        (["query", "fairness", run, "--window", "2s", "--json"], (0, 2, 3, 4)),
        (["query", "event_counts", run, "--json"], (0, 3, 4)),
        (["sql", run, _SELECT, "--timeout", "5s", "--json"], (0, 2, 3, 4)),
        (["sql", run, _JOIN, "--timeout", "5s", "--json"], (0, 2, 3, 4)),
        (["gate", run, "--budget", "throttle_summary.pause_p99_ns <= 100ms"], (0, 1, 3, 4)),
    ]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small database of a real run."""
    folder = tmp_path_factory.mktemp("good")
    run = folder / "run"
    shutil.copytree(_EXAMPLE, run, ignore=shutil.ignore_patterns("trace.dat", "README.md"))
    (run / "trace.dat").write_bytes(part_of_trace(_EXAMPLE / "trace.dat", *_PART))
    database = folder / "run.db"
    subprocess.run([wbscope_path(), "ingest", run, "-o", database, "-q"], check=True)
    return database


@pytest.fixture(scope="module")
def commands(good: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """One process for all commands of this module, with everything imported."""
    folder = tmp_path_factory.mktemp("commands")
    with Commands(folder / "work") as started:
        for words, codes in _verbs(str(good), str(folder / "x.pftrace")):
            assert started.warm(*words) in codes, words
        started.forget()
        yield started


@pytest.mark.parametrize("name", DATABASES)
def test_hostile(name: str, good: Path, commands: Commands, tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    run = folder / "run.db"
    shutil.copy(good, run)
    DATABASES[name](run)
    before = _contents(folder)
    output = tmp_path / "x.pftrace"
    wrong: list[str] = []
    for words, codes in some(_verbs(str(run), str(output)), name):
        ended = commands.run(*words)
        found = [*problems(ended, codes), *_marks(ended, output)]
        if (after := _contents(folder)) != before:
            found.append(f"files were changed: {sorted(before)} to {sorted(after)}")
        shutil.rmtree(folder)
        folder.mkdir()
        for path, data in before.items():
            (folder / path).write_bytes(data)
        wrong += [f"{name}: {_verb(words)}: {told}" for told in found]
    commands.forget()
    assert not wrong, f"{len(wrong)} failures:\n" + "\n".join(wrong)


def _contents(folder: Path) -> dict[str, bytes]:
    """Without what SQLite itself puts beside a file in WAL mode: an index, an empty log."""
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    return {name: data for name, data in found.items() if data and not name.endswith("-shm")}


def _verb(words: list[str]) -> str:
    return f"query {words[1]}" if words[0] == "query" else words[0]


def _marks(ended: Ended, output: Path) -> Iterator[str]:
    """Traces of a view of the file that was run."""
    if MARK in ended.err or MARK.encode() in ended.out:
        yield "a view of the file was run, or a column worked out"
    if output.exists() and MARK.encode() in output.read_bytes():
        yield "a view of the file is in the timeline"


def test_there_are_enough() -> None:
    assert len(DATABASES) >= 50
