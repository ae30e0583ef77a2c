# SPDX-License-Identifier: Apache-2.0
"""The cache: trusted, mended, full; the folder that an error names."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.faults import foreign_files, snapshot
from support.runs import REPOSITORY
from wbscope.base.cache import CACHE_FIX, entry_of, only_maker, scratch_folder, trim_cache, used
from wbscope.base.errors import SetupError
from wbscope.library.database import no_room, translate
from wbscope.library.library import load_library
from wbscope.run.ingested import database_of, engine_of
from wbscope.source.source import find_source

# The cache: a folder of its own that can be trusted, and nothing removed that is not its own.

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


# The disk of the cache is full: the user gave no output, and is told to move the cache.


@pytest.mark.usefixtures("ingester")
@pytest.mark.parametrize(
    ("slug", "moved"), [("cannot-write", True), ("cannot-write-database", True), ("no-room", False)]
)
def test_remedy(trace: Path, monkeypatch: pytest.MonkeyPatch, slug: str, moved: bool) -> None:
    monkeypatch.setenv("FAKE_INGESTER", "error5")
    monkeypatch.setenv("FAKE_INGESTER_SLUG", slug)
    with pytest.raises(SetupError) as caught:
        database_of(find_source(str(trace)), load_library())
    assert caught.value.slug == slug
    assert caught.value.fix == (CACHE_FIX if moved else "record it again")


# Damage in the cache is no damage of the trace: what can be made again is made again.

Cli = Callable[..., Any]
TRACE = REPOSITORY / "examples/gate/runs/before-2/trace.dat"


@pytest.fixture
def cached_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("WBSCOPE_SQL_DIR")  # the whole library is asked
    return Path(shutil.copyfile(TRACE, tmp_path / "t.dat"))


@pytest.fixture
def entry(cli: Cli, cached_trace: Path, cache_dir: Path) -> Path:
    """What the cache has of the trace."""
    assert cli("query", "event_counts", cached_trace).code == 0
    (entry,) = cache_dir.rglob("*.db")
    return entry


def _empty(path: Path, whole: bytes) -> None:
    path.write_bytes(b"")


def _cut(path: Path, whole: bytes) -> None:
    path.write_bytes(whole[: len(whole) // 2])


def _garbage(path: Path, whole: bytes) -> None:
    path.write_bytes(bytes(range(256)) * 64)


def _first_page(path: Path, whole: bytes) -> None:
    path.write_bytes(whole[:100] + b"\xa5" * 4000 + whole[4100:])


def _foreign_tables(path: Path, whole: bytes) -> None:
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE mine (x)")


@pytest.mark.parametrize("damage", [_empty, _cut, _garbage, _first_page, _foreign_tables])
def test_a_damaged_entry_is_made_anew(
    cli: Cli, cached_trace: Path, entry: Path, damage: Callable[[Path, bytes], None]
) -> None:
    query = ("query", "throttle_by_task", cached_trace)
    said = cli(*query)
    whole = entry.read_bytes()
    damage(entry, whole)
    again = cli(*query)
    assert (again.code, again.out, again.err) == (0, said.out, said.err)
    assert entry.stat().st_size == len(whole)


def test_a_damaged_trace_is_not_read_twice(cli: Cli, cached_trace: Path, cache_dir: Path) -> None:
    cached_trace.write_bytes(cached_trace.read_bytes()[:100])
    ran = cli("query", "throttle_by_task", cached_trace)
    assert (ran.code, "cache" in ran.err) == (3, False)
    assert list(cache_dir.rglob("*.db")) == []


def test_a_damaged_database_of_the_user_stays(cli: Cli, tmp_path: Path) -> None:
    database = tmp_path / "run.db"
    assert cli("ingest", TRACE, "-o", database).code == 0
    half = database.read_bytes()[: database.stat().st_size // 2]
    database.write_bytes(half)
    ran = cli("query", "throttle_by_task", database)
    assert (ran.code, f"damaged-database]: {database}" in ran.err) == (3, True)
    assert database.read_bytes() == half


@pytest.mark.parametrize("kind", ["folder", "FIFO", "link"])
def test_what_is_in_the_way_is_not_removed(
    cli: Cli, cached_trace: Path, entry: Path, tmp_path: Path, kind: str
) -> None:
    entry.unlink()
    mine = tmp_path / "mine"
    mine.write_text("mine")
    if kind == "folder":
        entry.mkdir()
        (entry / "mine").write_text("mine")
    elif kind == "FIFO":
        os.mkfifo(entry)
    else:
        entry.symlink_to(mine)
    before = entry.lstat()
    ran = cli("query", "event_counts", cached_trace, "--json")
    assert (ran.code, ran.error()["slug"]) == (5, "cache-entry-taken")
    assert os.path.samestat(before, entry.lstat())
    assert mine.read_text() == "mine"
    in_tmp = dict(os.environ, TMPDIR=str(tmp_path))
    subprocess.run(["bash", "-c", ran.error()["fix"]], check=True, env=in_tmp)
    assert cli("query", "event_counts", cached_trace).code == 0


def test_damage_that_is_met_late(cli: Cli, cached_trace: Path, entry: Path) -> None:
    whole = bytearray(entry.read_bytes())
    with contextlib.closing(sqlite3.connect(entry)) as opened:
        find = "SELECT rootpage FROM sqlite_schema WHERE name = 'ev_balance_dirty_pages'"
        root = opened.execute(find).fetchone()[0]
    page = int.from_bytes(whole[16:18], "big")
    whole[(root - 1) * page : root * page] = b"\xa5" * page
    entry.write_bytes(whole)
    query = ("query", "throttle_by_task", cached_trace, "--json")
    ran = cli(*query)
    error = ran.error()
    assert (ran.code, error["slug"], error["object"]) == (3, "damaged-cache", str(entry))
    subprocess.run(["bash", "-c", error["fix"]], check=True)
    assert cli(*query).code == 0


def test_an_entry_that_another_process_trims_is_made_anew(
    cached_trace: Path, entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at it and the opening, once."""
    whole, real, opened = entry.read_bytes(), sqlite3.connect, []

    def trimmed(path: str, *given: Any, **named: Any) -> sqlite3.Connection:
        if entry.name in str(path):
            opened.append(path)
            if len(opened) == 1:
                entry.unlink()
        return real(path, *given, **named)

    monkeypatch.setattr(sqlite3, "connect", trimmed)
    with contextlib.closing(engine_of(find_source(str(cached_trace)), load_library())):
        assert len(opened) > 1
        assert entry.read_bytes() == whole


# Which folder an error names where SQLite finds no room.

_WHY = "database or disk is full (SQLITE_FULL)"


def _room(monkeypatch: pytest.MonkeyPatch, free: Mapping[str, int]) -> None:
    def statvfs(folder: str) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=free[str(folder)], f_frsize=1)

    monkeypatch.setattr(os, "statvfs", statvfs)


def test_the_folder_with_less_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temp, output = tmp_path / "temp", tmp_path / "output"
    temp.mkdir()
    output.mkdir()
    monkeypatch.setenv("SQLITE_TMPDIR", str(temp))
    _room(monkeypatch, {str(temp): 7, str(output): 1000})
    error = no_room(_WHY, "x.db", output / "x.db")
    assert (error.slug, error.subject) == ("no-room", str(temp))
    assert error.have == "7 bytes free, less than it takes"
    _room(monkeypatch, {str(temp): 1000, str(output): 7})
    error = no_room(_WHY, "x.db", output / "x.db")
    assert (error.slug, error.subject) == ("cannot-write-database", "x.db")
    assert error.have == "its folder has 7 bytes free, less than it takes"
    # A database that is only read takes no room.
    assert no_room(_WHY, "x.db", None).subject == str(temp)


def test_the_folders_that_sqlite_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of its documentation: one that is no folder is passed over."""
    second = tmp_path / "second"
    second.mkdir()
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path / "none"))
    monkeypatch.setenv("TMPDIR", str(second))
    assert no_room(_WHY, "x.db", None).subject == str(second)
    monkeypatch.delenv("SQLITE_TMPDIR")
    monkeypatch.delenv("TMPDIR")
    assert no_room(_WHY, "x.db", None).subject == "/var/tmp"


def test_no_folder_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda folder, mode: False)
    error = no_room(_WHY, "x.db", None)
    assert error.slug == "no-room"
    assert error.subject.startswith("$SQLITE_TMPDIR, $TMPDIR, /var/tmp")
    assert error.have == "none of them can be written"


def test_sqlite_agrees() -> None:
    """Where SQLite has its temporary files is where the error looks."""
    folder = no_room(_WHY, "x.db", None).subject
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA temp_store = FILE")
    database.execute("CREATE TEMP TABLE t AS SELECT randomblob(100000) AS b")
    database.execute("PRAGMA temp.cache_spill = 1")
    database.executemany("INSERT INTO t VALUES (randomblob(?))", [(100_000,)] * 100)
    opened = Path("/proc/self/fd")
    links = [os.readlink(fd) for fd in opened.iterdir() if fd.is_symlink()]
    database.close()
    assert any(link.startswith(os.path.join(folder, "etilqs_")) for link in links), links


def test_a_temporary_file_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite says the same of the database itself, which then is the other program's."""
    with pytest.raises(sqlite3.OperationalError) as caught:
        sqlite3.connect(tmp_path / "none" / "x.db")
    assert caught.value.sqlite_errorname == "SQLITE_CANTOPEN"
    assert translate(caught.value, "x.db").slug == "unfinished-database"
    # A folder to which even root cannot write, and which SQLite takes.
    monkeypatch.setenv("SQLITE_TMPDIR", "/proc")
    error = translate(caught.value, "x.db")
    assert (error.slug, error.subject, error.exit_code) == ("no-room", "/proc", 5)
