# SPDX-License-Identifier: Apache-2.0
"""The same input gives the same bytes: of ingest and convert with any number of threads, of
timeline."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.runs import REPOSITORY
from support.tools import ingester_path, run

_RUNS = sorted(path.parent for path in (REPOSITORY / "examples").glob("*/trace.dat"))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("folder", _RUNS, ids=lambda folder: folder.name)
def test_ingest(folder: Path, tmp_path: Path) -> None:
    found = set()
    for turn, threads in enumerate(("1", "2", "2", "7")):
        output = tmp_path / f"{turn}.db"
        command = [ingester_path(), "sqlite", folder, "--all", "-o", output, "--threads", threads]
        done = run(command)
        assert done.returncode == 0, done.stderr
        found.add(_digest(output))
    assert len(found) == 1


@pytest.mark.parametrize("folder", _RUNS, ids=lambda folder: folder.name)
def test_convert(folder: Path, tmp_path: Path) -> None:
    found = set()
    for turn, threads in enumerate(("1", "2", "2", "7")):
        output = tmp_path / f"{turn}.pftrace"
        done = run([ingester_path(), "convert", folder, "-o", output, "--threads", threads])
        assert done.returncode == 0, done.stderr
        found.add(_digest(output))
    assert len(found) == 1


@pytest.mark.parametrize("folder", _RUNS, ids=lambda folder: folder.name)
def test_timeline(wbscope: Wbscope, folder: Path, tmp_path: Path) -> None:
    found = set()
    for turn in range(2):
        output = tmp_path / f"{turn}.pftrace"
        done = wbscope.run("timeline", folder, "-o", output)
        assert done.returncode == 0, done.stderr
        found.add(_digest(output))
    assert len(found) == 1
