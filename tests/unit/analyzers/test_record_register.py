# SPDX-License-Identifier: Apache-2.0
"""The register of recordings: locked while they go on, found when their recorder is dead."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import queue
import threading
from pathlib import Path
from typing import Any

import pytest
from support.faults import OTHER_UID, as_root, no_file_above
from support.waits import GUARD_SECONDS
from wbscope.base.errors import SetupError
from wbscope.record.finish import recover, recover_all
from wbscope.record.register import Plan, dead_entries, lock_sysctls, open_entry, registered
from wbscope.record.supervisor import Link

_ENTRY = "wbscope-999999999-aaaaaaaa"


@pytest.fixture(autouse=True)
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "register"
    monkeypatch.setenv("WBSCOPE_RUN_DIR", str(folder))
    return folder


def _plan(tmp_path: Path) -> Plan:
    target = str(tmp_path / "run")
    return Plan(
        str(tmp_path / "private"), target, str(tmp_path), "wbscope-1-aa", "tracefs", "writeback",
        ("writeback:balance_dirty_pages",), "boot", 1, 1.0,
    )  # fmt: skip


def test_entry_is_dead_when_its_lock_is_gone(tmp_path: Path) -> None:
    entry = open_entry("wbscope-1-aa")
    entry.write(_plan(tmp_path), {"vm.dirty_ratio": "20"})
    assert list(dead_entries()) == []
    entry.close()
    (dead,) = dead_entries("wbscope-1-aa")
    assert dead.read() == (_plan(tmp_path), {"vm.dirty_ratio": "20"}, {})
    dead.remove()
    assert list(dead_entries()) == []


def test_entry_without_content_is_of_a_recorder_that_changed_nothing(register: Path) -> None:
    open_entry("wbscope-1-aa").close()
    (dead,) = dead_entries()
    assert recover(dead) is None
    assert list(register.iterdir()) == []


def test_entry_taken_away_before_it_was_locked(
    register: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody found it unlocked, locked it and removes it: the recorder makes another."""
    register.mkdir()
    path = register / "wbscope-1-aa.json"
    path.touch()
    other = os.open(path, os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_EX)
    has_opened = threading.Event()

    real = fcntl.flock

    def flock(file: int, how: int) -> None:
        has_opened.set()
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    made = []
    thread = threading.Thread(target=lambda: made.append(open_entry("wbscope-1-aa")))
    thread.start()
    assert has_opened.wait(GUARD_SECONDS)
    path.unlink()
    os.close(other)
    thread.join(GUARD_SECONDS)
    assert path.exists()
    assert list(dead_entries()) == []
    made[0].remove()


def _dead(tmp_path: Path) -> Path:
    """A recorder that was killed when it had recorded something; its folder."""
    plan = _plan(tmp_path)
    folder = Path(plan.folder)
    folder.mkdir()
    (folder / ".plan").write_text(plan.to_json())
    (folder / ".head").touch()
    entry = open_entry(plan.instance)
    entry.write(plan, {})
    entry.close()
    return folder


def test_killed_while_the_disk_is_full(tmp_path: Path) -> None:
    """What was recorded stays, and it is said where."""
    folder = _dead(tmp_path)
    start = b"\x17\x08\x44tracing6\0\0\x08" + (4096).to_bytes(4, "little")
    (folder / ".head").write_bytes(start + bytes(2 << 20))
    with no_file_above(1 << 20):
        (found,) = recover_all(None)
    assert (folder / ".head").exists()
    assert f"{folder} is no run yet: {os.strerror(errno.EFBIG)}; " in str(found)
    assert str(found).endswith(f"wbscope record --recover {folder}")
    assert recover_all(None) == []


def test_killed_when_its_run_had_the_name(tmp_path: Path, register: Path) -> None:
    folder = _dead(tmp_path)
    run = folder.rename(tmp_path / "run")
    (found,) = recover_all(None)
    assert str(found).endswith(f"run in {run}")
    assert not (run / ".plan").exists()
    assert list(register.iterdir()) == []


@pytest.mark.parametrize("now", [False, True])
def test_what_was_set_since_the_recorder_died_is_left(tmp_path: Path, now: bool) -> None:
    """A moment after its end nobody else can have; swappiness still is as it was recorded with."""
    root = tmp_path / "sys"
    (root / "vm").mkdir(parents=True)
    (root / "vm/laptop_mode").write_text("7\n")
    (root / "vm/swappiness").write_text("5\n")
    entry = open_entry("wbscope-1-aa")
    saved = {"vm.laptop_mode": "0", "vm.swappiness": "60"}
    entry.write(_plan(tmp_path), saved, {"vm.laptop_mode": "1", "vm.swappiness": "5"})
    entry.close()
    (dead,) = dead_entries("wbscope-1-aa")
    found = recover(dead, now=now, sysctls=root)
    assert found is not None
    assert (root / "vm/swappiness").read_text() == "60"
    if now:
        assert found.put_back == ("vm.laptop_mode = 0", "vm.swappiness = 60")
        assert (root / "vm/laptop_mode").read_text() == "0"
    else:
        assert (found.put_back, found.left) == (("vm.swappiness = 60",), ("vm.laptop_mode",))
        assert (root / "vm/laptop_mode").read_text() == "7\n"


def test_instances_of_others_are_left_alone(tmp_path: Path) -> None:
    made = tmp_path / "instances"
    for name in ("mine", "bench-1", f"{os.getpid()}-0123abcd", "999999999-0123abcd"):
        (made / f"wbscope-{name}").mkdir(parents=True)
    (found,) = recover_all(tmp_path)
    assert str(found).startswith("wbscope-999999999-0123abcd: ")
    assert len(list(made.iterdir())) == 3


def test_orphan_in_use_is_not_stopped(tmp_path: Path) -> None:
    """Of a recorder in a container, whose process is not to be seen from here."""
    used = tmp_path / "instances/wbscope-999999999-0123abcd"
    used.mkdir(parents=True)
    (used / "tracing_on").write_text("1")  # and so it cannot be removed
    (found,) = recover_all(tmp_path)
    assert "left alone" in str(found)
    assert (used / "tracing_on").read_text() == "1"


def test_no_register_is_told(tmp_path: Path, register: Path) -> None:
    """Not as a recorder that died."""
    register.write_text("a file in place of the folder")
    (tmp_path / "private").mkdir()
    events: queue.Queue[Any] = queue.Queue()
    link = Link(_plan(tmp_path), events)
    told = events.get(timeout=GUARD_SECONDS)["error"]
    link.close()
    assert told["slug"] == "cannot-write"
    assert told["subject"] == str(register)
    assert "WBSCOPE_RUN_DIR" in told["fix"]


def test_sysctls_are_changed_by_one_at_a_time(register: Path) -> None:
    register.mkdir()
    lock = lock_sysctls()
    with pytest.raises(SetupError, match="another recording"):
        lock_sysctls()
    os.close(lock)
    os.close(lock_sysctls())


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "thesis.txt").write_text("precious")
    return folder


def _is_whole(victim: Path) -> bool:
    return {path.name: path.read_text() for path in victim.iterdir()} == {"thesis.txt": "precious"}


def _entry(register: Path, folder: Path) -> Path:
    """As whoever can write to the register puts it there."""
    plan = Plan(
        str(folder), str(folder), "/nonexistent", _ENTRY, "tracefs", "p", (), "mono", 1, 1.0
    )
    path = register / f"{_ENTRY}.json"
    path.write_text(json.dumps({"plan": plan.to_json(), "saved": {"vm.swappiness": "60"}}))
    return path


def test_a_register_that_others_can_write_to(register: Path, victim: Path) -> None:
    register.mkdir()
    _entry(register, victim)
    for mode in (0o1777, 0o770, 0o777):
        register.chmod(mode)
        for ask in (
            lambda: recover_all(None),
            lambda: list(dead_entries()),
            registered,
            lock_sysctls,
            lambda: open_entry("wbscope-1-aa"),
        ):
            with pytest.raises(SetupError) as caught:
                ask()
            assert caught.value.slug == "foreign-register"
            assert f"can be written by others (mode {mode:04o})" in caught.value.message
            assert caught.value.fix == "export WBSCOPE_RUN_DIR=$(mktemp -d -p /dev/shm)"
    assert [path.name for path in register.iterdir()] == [f"{_ENTRY}.json"]
    assert _is_whole(victim)


@as_root
def test_a_register_of_another_user(register: Path, victim: Path) -> None:
    register.mkdir()
    _entry(register, victim)
    os.chown(register, OTHER_UID, OTHER_UID)
    with pytest.raises(SetupError, match=f"belongs to uid {OTHER_UID}"):
        recover_all(None)
    assert _is_whole(victim)


@as_root
def test_entries_of_another_user_and_links_are_not_believed(
    tmp_path: Path, register: Path, victim: Path
) -> None:
    register.mkdir()
    os.chown(_entry(register, victim), OTHER_UID, OTHER_UID)
    assert list(dead_entries()) == []
    moved = _entry(register, victim).rename(tmp_path / "entry")
    (register / f"{_ENTRY}.json").symlink_to(moved)
    assert list(dead_entries()) == []
    with pytest.raises(SetupError, match="symbolic links"):
        open_entry(_ENTRY)
    assert _is_whole(victim)


def test_a_register_is_made_closed(register: Path) -> None:
    open_entry("wbscope-1-aa").remove()
    assert register.stat().st_mode & 0o777 == 0o700
