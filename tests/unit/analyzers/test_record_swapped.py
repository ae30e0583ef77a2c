# SPDX-License-Identifier: Apache-2.0
"""A recording in a folder that somebody else can write to: nothing else is written or given."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from support.faults import as_root, is_untouched, make_victim
from wbscope.base.held_folder import HeldFolder
from wbscope.record.finish import write_meta
from wbscope.record.folders import private_folder, publish
from wbscope.record.register import DirectFile, Plan, save

_INSTANCE = "wbscope-999999999-aaaaaaaa"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    return make_victim(tmp_path / "victim")


def test_links_in_a_recording_are_not_written_through(tmp_path: Path) -> None:
    target = tmp_path / "written"
    for name in (".meta.json.part", ".fio.json.part"):
        (tmp_path / name).symlink_to(target)
        save(tmp_path / name.removeprefix(".").removesuffix(".part"), "content")
    (tmp_path / "vmstat.samples").symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        DirectFile(tmp_path / "vmstat.samples", is_new=False)
    assert not target.exists()
    assert (tmp_path / "meta.json").read_text() == "content"


def _recorded(tmp_path: Path) -> tuple[Plan, HeldFolder]:
    target = tmp_path / "home/run"
    folder = private_folder(target, _INSTANCE)
    folder.mkdir(parents=True)
    plan = Plan(
        str(folder), str(target), "/nonexistent", _INSTANCE, "tracefs", "p", (), "mono", 1, 1.0
    )
    (folder / ".plan").write_text(plan.to_json())
    for name in (".head", "meta.json", "trace.dat"):
        (folder / name).write_text("{}")
    return plan, HeldFolder(folder)


def test_a_folder_that_is_swapped_while_it_is_recorded(tmp_path: Path, victim: Path) -> None:
    plan, held = _recorded(tmp_path)
    folder = Path(plan.folder)
    aside = folder.rename(folder.with_name("aside"))
    folder.mkdir()
    (folder / ".meta.json.part").symlink_to(tmp_path / "written")
    write_meta(replace(plan, folder=str(held.inside)), "complete", {}, {})
    assert json.loads((aside / "meta.json").read_text())["ended"] == "complete"
    (folder / ".meta.json.part").unlink()
    folder.rmdir()
    folder.symlink_to(victim)
    with held, pytest.raises(OSError, match="in the place of its folder"):
        publish(plan, held)
    assert not (tmp_path / "written").exists()
    assert is_untouched(victim)
    assert not (tmp_path / "home/run").exists()


@as_root
def test_a_run_is_given_away_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its name, and each folder after what is in it: a new owner can rename its files."""
    monkeypatch.setenv("SUDO_UID", "4242")
    monkeypatch.setenv("SUDO_GID", "4343")
    plan, held = _recorded(tmp_path)
    inside = Path(plan.folder) / "cgroups"
    inside.mkdir()
    (inside / "memory.stat").touch()
    given: list[int] = []
    real = os.fchown

    def fchown(number: int, *owner: int) -> None:
        assert (tmp_path / "home/run").exists()
        given.append(os.fstat(number).st_ino)
        for name in os.listdir(number):
            assert os.stat(name, dir_fd=number).st_uid == 4242
        real(number, *owner)

    monkeypatch.setattr(os, "fchown", fchown)
    with held:
        run = publish(plan, held)
    assert given == [(run / "cgroups").stat().st_ino, run.stat().st_ino]
    assert {path.stat().st_uid for path in (run, *run.rglob("*"))} == {4242}
    assert not (run / ".plan").exists()
