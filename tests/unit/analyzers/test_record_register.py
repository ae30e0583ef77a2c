# SPDX-License-Identifier: Apache-2.0
"""The register of recordings: locked while they go on, found when their recorder is dead."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest
from wbscope.errors import SetupError
from wbscope.record.finish import recover
from wbscope.record.plan import Plan, dead_entries, lock_sysctls, open_entry


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


def test_entry_taken_away_before_it_was_locked(register: Path) -> None:
    """Somebody found it unlocked, locked it and removes it: the recorder makes another."""
    register.mkdir()
    path = register / "wbscope-1-aa.json"
    path.touch()
    other = os.open(path, os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_EX)
    made = []
    thread = threading.Thread(target=lambda: made.append(open_entry("wbscope-1-aa")))
    thread.start()
    path.unlink()
    os.close(other)
    thread.join(10)
    assert path.exists()
    assert list(dead_entries()) == []
    made[0].remove()


def test_sysctls_are_changed_by_one_at_a_time(register: Path) -> None:
    register.mkdir()
    lock = lock_sysctls()
    with pytest.raises(SetupError, match="another recording"):
        lock_sysctls()
    os.close(lock)
    os.close(lock_sysctls())
