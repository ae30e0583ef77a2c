# SPDX-License-Identifier: Apache-2.0
"""What others leave in a folder is no recording of ours, whatever it says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.faults import OTHER_UID, as_root, is_untouched, make_victim
from wbscope.base.errors import InputError
from wbscope.record.finish import recover_folder
from wbscope.record.folders import private_folder, published, remove_leftovers, remove_unused
from wbscope.record.register import Plan

_INSTANCE = "wbscope-999999999-aaaaaaaa"


@pytest.fixture(autouse=True)
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "register"
    monkeypatch.setenv("WBSCOPE_RUN_DIR", str(folder))
    return folder


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    return make_victim(tmp_path / "victim")


def _recording(home: Path, target: Path, force: bool = True) -> Path:
    """What a recorder that was killed has left, as it may be written by hand."""
    home.mkdir(exist_ok=True)
    folder = private_folder(home / target.name, _INSTANCE)
    folder.mkdir()
    plan = Plan(
        str(folder), str(target), "/nonexistent", _INSTANCE, "tracefs", "p", (), "mono", 1, 1.0,
        force=force,
    )  # fmt: skip
    (folder / ".plan").write_text(plan.to_json())
    (folder / "meta.json").write_text("{}")
    (folder / "trace.dat").write_text("x")
    return folder


def _give(folder: Path) -> None:
    for path in (*folder.iterdir(), folder):
        os.chown(path, OTHER_UID, OTHER_UID)


@as_root
def test_a_recording_of_another_user_is_left_alone(tmp_path: Path, victim: Path) -> None:
    folder = _recording(tmp_path / "home", victim)
    _give(folder)
    with pytest.raises(InputError) as caught:
        recover_folder(folder)
    assert caught.value.slug == "foreign-recording"
    assert caught.value.message.startswith(f"belongs to uid {OTHER_UID}, wanted")
    (told,) = remove_unused(folder.parent)
    assert told == f"{folder.name}: belongs to uid {OTHER_UID}: left alone"
    assert is_untouched(victim)
    assert folder.exists()


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_recording_that_others_can_write_to_is_left_alone(tmp_path: Path, mode: int) -> None:
    folder = _recording(tmp_path / "home", tmp_path / "home/run")
    folder.chmod(mode)
    with pytest.raises(InputError, match="can be written by others"):
        recover_folder(folder)
    (told,) = remove_unused(folder.parent)
    assert told.endswith(f"can be written by others (mode {mode:04o}): left alone")
    assert (folder / ".plan").exists()


@as_root
def test_unused_folders_of_another_user_stay(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "run", _INSTANCE)
    folder.mkdir()
    (folder / ".plan").touch()
    _give(folder)
    remove_leftovers(tmp_path / "run")
    assert remove_unused(tmp_path) == [f"{folder.name}: belongs to uid {OTHER_UID}: left alone"]
    assert (folder / ".plan").exists()


@as_root
@pytest.mark.parametrize("owner", [OTHER_UID, 4242])
def test_a_finished_run_of_another_user_is_none_of_ours(
    tmp_path: Path, owner: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorder that was killed when its run had its name; that of the caller of sudo is."""
    monkeypatch.setenv("SUDO_UID", "4242")
    monkeypatch.setenv("SUDO_GID", "4242")
    folder = _recording(tmp_path / "home", tmp_path / "home/run")
    plan = Plan.from_json((folder / ".plan").read_text())
    run = folder.rename(tmp_path / "home/run")
    for path in (*run.iterdir(), run):
        os.chown(path, owner, owner)
    is_ours = owner == 4242
    assert published(plan) == (run if is_ours else None)
    assert (run / ".plan").exists() == (not is_ours)
    assert {path.stat().st_uid for path in (run, *run.iterdir())} == {owner}


def test_the_run_is_beside_its_folder_whatever_the_plan_says(tmp_path: Path, victim: Path) -> None:
    """As of a copy of somebody else's folder: only what is a run is replaced."""
    folder = _recording(tmp_path / "home", victim)
    assert recover_folder(folder) == tmp_path / "home/victim"
    assert is_untouched(victim)
    (tmp_path / "home/victim").rename(tmp_path / "first")
    victim.rename(tmp_path / "home/victim")
    folder = _recording(tmp_path / "home", victim)
    assert recover_folder(folder) == tmp_path / "home/victim-2"
    assert is_untouched(tmp_path / "home/victim")


@pytest.mark.parametrize("renamed", [False, True])
def test_only_the_run_that_the_folder_is_called_after_is_replaced(
    tmp_path: Path, renamed: bool
) -> None:
    folder = _recording(tmp_path / "home", tmp_path / "home/run")
    older = tmp_path / "home/run"
    older.mkdir()
    (older / "meta.json").write_text('{"schema": "wbscope.record/1"}')
    if renamed:
        folder = folder.rename(tmp_path / "home/other")
    wanted = "run-2" if renamed else "run"
    assert recover_folder(folder) == tmp_path / "home" / wanted
    assert (older / "trace.dat").exists() == (not renamed)


@pytest.mark.parametrize("name", [".plan", ""])
def test_links_are_no_recordings(tmp_path: Path, name: str) -> None:
    folder = _recording(tmp_path / "home", tmp_path / "home/run")
    moved = (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(moved)
    with pytest.raises(InputError, match="is no folder of a recording"):
        recover_folder(folder)
