# SPDX-License-Identifier: Apache-2.0
"""Files of sudo belong to the one who called it, and no other file is given away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from wbscope.base.outputs import give_to_caller

USER, GROUP = 4242, 4343
CALLER = {"SUDO_UID": str(USER), "SUDO_GID": str(GROUP)}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder, and beside it what is somebody else's."""
    (tmp_path / "secret").write_text("root's")
    folder = tmp_path / "run"
    (folder / "cgroups/slow").mkdir(parents=True)
    (folder / "trace.dat").write_text("x")
    (folder / "cgroups/slow/memory.stat").write_text("x")
    return folder


def owners(folder: Path) -> set[tuple[int, int]]:
    found = [folder, *folder.rglob("*")]
    return {(status.st_uid, status.st_gid) for status in (path.lstat() for path in found)}


@as_root
def test_all_of_it_is_given(run: Path) -> None:
    assert give_to_caller(run, CALLER)
    assert owners(run) == {(USER, GROUP)}
    assert owners(run.parent / "secret") == {(0, 0)}


@as_root
def test_nothing_is_followed(run: Path) -> None:
    (run / "uname").symlink_to(run.parent / "secret")
    (run / "other").symlink_to(run.parent, target_is_directory=True)
    os.link(run.parent / "secret", run / "meminfo")
    assert give_to_caller(run, CALLER)
    assert owners(run.parent / "secret") == {(0, 0)}
    assert run.parent.stat().st_uid == 0
    link = run.parent / "link"
    link.symlink_to(run)
    with pytest.raises(OSError, match="link"):
        give_to_caller(link, CALLER)


@pytest.mark.parametrize(
    "environment",
    [{}, {"SUDO_UID": "0", "SUDO_GID": "0"}, {"SUDO_UID": "-1", "SUDO_GID": "5"},
     {"SUDO_UID": "4242"}, {"SUDO_UID": "four", "SUDO_GID": "4"}],
    ids=str,
)  # fmt: skip
def test_nobody_called_sudo(run: Path, environment: dict[str, str]) -> None:
    before = owners(run)
    assert not give_to_caller(run, environment)
    assert owners(run) == before


def test_only_root_has_something_to_give(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: USER)
    assert not give_to_caller(run, CALLER)
