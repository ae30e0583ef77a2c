# SPDX-License-Identifier: Apache-2.0
"""The cache: a folder of its own that can be trusted, and nothing removed that is not its own."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from support.foreign import foreign_files, snapshot
from wbscope.base.cache import entry_of, only_maker, scratch_folder, trim_cache, used
from wbscope.base.errors import SetupError

_OLD = 1_000_000
_KEY = "0123456789abcdef" * 2
_OTHER_UID = 12345

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user: not root")


def _entry(folder: Path, digit: str, age: int, size: int = 10, suffix: str = ".db") -> Path:
    path = folder / f"{digit * 32}{suffix}"
    path.write_bytes(b"x" * size)
    path.chmod(0o600)
    os.utime(path, (_OLD - age, _OLD - age))
    return path


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What WBSCOPE_CACHE_DIR names."""
    folder = tmp_path / "base"
    folder.mkdir(mode=0o755)
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(folder))
    return folder


def test_folder_is_our_own_and_closed(base: Path) -> None:
    folder = entry_of(["key"]).parent
    assert folder == base / "wbscope" / "v1"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder)] == [0o700] * 2
    tag = (folder / "CACHEDIR.TAG").read_text()
    assert tag.startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_trim_removes_what_was_used_longest_ago(base: Path) -> None:
    folder = entry_of(["key"]).parent
    ages = {"a": 30, "b": 20, "c": 10}
    old, middle, new = (_entry(folder, digit, age) for digit, age in ages.items())
    trim_cache(keep=new, limit_bytes=25)
    assert (old.exists(), middle.exists(), new.exists()) == (False, True, True)
    trim_cache(keep=middle, limit_bytes=5)
    assert (middle.exists(), new.exists()) == (True, False)


def test_trim_removes_what_a_killed_command_left(base: Path) -> None:
    folder = entry_of(["key"]).parent
    stale, fresh = (folder / f".{_KEY}.db.wbscope-{name * 8}" for name in "ab")
    for path in (stale, fresh):
        path.mkdir()
        (path / ".writer.lock").touch()
        (path / "half.db").touch()
    os.utime(stale, (1, 1))
    trim_cache(keep=_entry(folder, "f", 0))
    assert (stale.exists(), fresh.exists()) == (False, True)


def test_foreign_files_in_the_base_survive(base: Path) -> None:
    before = foreign_files(base, _KEY)
    trim_cache(keep=_entry(entry_of(["key"]).parent, "f", 0), limit_bytes=1)
    after = snapshot(base)
    assert before.items() <= after.items()


def test_foreign_files_in_our_own_folder_survive(base: Path) -> None:
    folder = entry_of(["key"]).parent
    before = foreign_files(folder, _KEY)
    ours = {f"{_KEY}.db", f"{_KEY}.pftrace"}  # named as entries are: entries
    trim_cache(keep=_entry(folder, "f", 0), limit_bytes=1)
    foreign = {name: seen for name, seen in before.items() if name not in ours}
    assert foreign.items() <= snapshot(folder).items()


def test_symbolic_link_is_refused(base: Path, tmp_path: Path, monkeypatch: Any) -> None:
    link = tmp_path / "link"
    link.symlink_to(base)
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(link))
    with pytest.raises(SetupError, match="symbolic link"):
        entry_of(["key"])
    assert os.listdir(base) == []


@pytest.mark.parametrize("place", ["wbscope", "wbscope/v1"])
def test_symbolic_link_below_is_refused(base: Path, tmp_path: Path, place: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    (base / place).parent.mkdir(mode=0o700, exist_ok=True)
    (base / place).symlink_to(victim)
    with pytest.raises(SetupError, match="symbolic link"):
        entry_of(["key"])
    assert os.listdir(victim) == []


def test_base_of_everybody_is_refused(base: Path) -> None:
    base.chmod(0o777)
    with pytest.raises(SetupError, match="mode 0777") as caught:
        entry_of(["key"])
    assert caught.value.fix == "export WBSCOPE_CACHE_DIR=$(mktemp -d)"
    assert os.listdir(base) == []


def test_sticky_base_of_everybody_will_do(base: Path) -> None:
    base.chmod(0o1777)
    assert entry_of(["key"]).parent == base / "wbscope" / "v1"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o755])
@pytest.mark.parametrize("place", ["wbscope", "wbscope/v1"])
def test_folder_that_is_open_to_others_is_refused(base: Path, place: str, mode: int) -> None:
    entry_of(["key"])
    (base / place).chmod(mode)
    with pytest.raises(SetupError, match="open to others"):
        entry_of(["key"])


@needs_root
@pytest.mark.parametrize("place", [".", "wbscope", "wbscope/v1"])
def test_folder_of_another_user_is_refused(base: Path, place: str) -> None:
    entry_of(["key"])
    os.chown(base / place, _OTHER_UID, _OTHER_UID)
    with pytest.raises(SetupError, match=f"belongs to uid {_OTHER_UID}"):
        entry_of(["key"])


def test_file_in_place_of_the_folder_is_refused(base: Path) -> None:
    (base / "wbscope").write_text("mine")
    with pytest.raises(SetupError, match="is no folder"):
        entry_of(["key"])


@needs_root
def test_entry_of_another_user_is_not_used(base: Path) -> None:
    entry = _entry(entry_of(["key"]).parent, "a", 0)
    assert used(entry)
    os.chown(entry, _OTHER_UID, _OTHER_UID)
    assert not used(entry)


def test_entry_that_is_a_link_is_not_used(base: Path) -> None:
    entry = _entry(entry_of(["key"]).parent, "a", 0)
    link = entry.with_name(f"{'b' * 32}.db")
    link.symlink_to(entry)
    assert (used(entry), used(link)) == (True, False)


def test_scratch_folder_is_gone_and_so_is_that_of_a_dead_command(base: Path) -> None:
    folder = entry_of(["key"]).parent
    dead = folder / ".scratch.wbscope-aaaaaaaa"
    dead.mkdir()
    for name in (".writer.lock", "facts.db"):
        (dead / name).touch()
    with scratch_folder() as made:
        assert made.parent == folder
        assert not dead.exists()
        with scratch_folder() as other:
            assert made.exists()
            assert other != made
    assert os.listdir(folder) == ["CACHEDIR.TAG"]


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_lock_that_was_taken_away_locks_nothing(
    base: Path, monkeypatch: pytest.MonkeyPatch, is_made_anew: bool
) -> None:
    """Who had it was done while we waited for it; a third one may have made another since."""
    entry = entry_of(["key"])
    lock = entry.with_name(f"{entry.name}.lock")
    flock = fcntl.flock

    def waited_for(file: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        lock.unlink()
        if is_made_anew:
            lock.touch(0o600)
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", waited_for)
    with only_maker(entry):
        third = os.open(lock, os.O_RDWR)
        try:
            with pytest.raises(BlockingIOError):
                flock(third, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(third)
    assert not lock.exists()
