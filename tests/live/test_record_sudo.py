# SPDX-License-Identifier: Apache-2.0
"""sudo wbscope record leaves no file of root: what a CI runner could not remove."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.live import Recorder

USER, GROUP = 4242, 4343
_MATRIX = """
runs = 1
[setup]
kernel.here = true
data = "{data}"
workload = "dd if=/dev/zero of=$DATA/sudo bs=64k count=10 2> /dev/null"
"""


def owners(folder: Path) -> set[tuple[int, int]]:
    found = [folder, *folder.rglob("*")]
    return {(status.st_uid, status.st_gid) for status in (path.lstat() for path in found)}


@pytest.fixture
def called_with_sudo(recorder: Recorder) -> Recorder:
    """sudo(8) tells who called it in the environment."""
    recorder.env |= {"SUDO_UID": str(USER), "SUDO_GID": str(GROUP)}
    return recorder


def test_a_run_is_the_callers(called_with_sudo: Recorder, tmp_path: Path) -> None:
    done = called_with_sudo.record("--no-report", "-q", "-o", "run", "--", "true")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run/trace.dat").stat().st_size > 0
    assert owners(tmp_path / "run") == {(USER, GROUP)}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".run")]


def test_a_lab_is_the_callers(called_with_sudo: Recorder, tmp_path: Path, disk: Path) -> None:
    (tmp_path / "matrix.toml").write_text(_MATRIX.format(data=disk))
    done = called_with_sudo.wbscope("lab", "matrix.toml", "-q", "-o", "lab")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "lab/all/run-1/trace.dat").exists()
    assert owners(tmp_path / "lab") == {(USER, GROUP)}


def test_without_sudo_nothing_changes_hands(recorder: Recorder, tmp_path: Path) -> None:
    for name in ("SUDO_UID", "SUDO_GID"):
        recorder.env.pop(name, None)
    assert recorder.record("--no-report", "-q", "-o", "run", "--", "true").returncode == 0
    assert (USER, GROUP) not in owners(tmp_path / "run")
