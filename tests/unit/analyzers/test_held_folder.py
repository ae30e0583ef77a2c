# SPDX-License-Identifier: Apache-2.0
"""Files and folders that others change, replace or own."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.cli import line_of
from support.faults import OTHER_UID, as_root, is_untouched, make_victim
from support.runs import example
from support.tools import wbscope_path
from support.waits import GUARD_SECONDS
from wbscope.base import outputs
from wbscope.base.errors import SetupError
from wbscope.base.held_folder import HeldFolder, remove_own
from wbscope.base.outputs import (
    give_to_caller,
    private_folder,
    private_output,
    remove_if_dead,
    write_whole,
)
from wbscope.base.system import read_small

# Folders that somebody renames while they are written to: nothing lands or is lost elsewhere.


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    return make_victim(tmp_path / "victim")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


def _swap(shared: Path, put: Callable[[Path], object]) -> None:
    """As who owns the shared folder can at any moment."""
    (private,) = shared.glob(".x.db.wbscope-*")
    private.rename(shared / "moved")
    put(private)


def _swaps(victim: Path) -> dict[str, Callable[[Path], object]]:
    return {"link": lambda path: path.symlink_to(victim), "folder": lambda path: path.mkdir()}


@pytest.mark.parametrize("kind", ["link", "folder"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_output_whose_private_folder_is_swapped(
    shared: Path, victim: Path, kind: str, when: str
) -> None:
    """Before or after it is written: it is told, and nobody's file is written or gone."""

    def write() -> None:
        with private_output(shared / "x.db") as private:
            if when == "before":
                _swap(shared, _swaps(victim)[kind])
            private.write_text("mine")
            private.with_name("x.db-journal").mkdir()
            if when == "after":
                _swap(shared, _swaps(victim)[kind])

    with pytest.raises(SetupError, match="another program has put something in the place"):
        write()
    assert is_untouched(victim)
    assert not (shared / "x.db").exists()
    assert list((shared / "moved").iterdir()) == []


@pytest.mark.parametrize("held", [False, True])
def test_a_private_folder_that_is_swapped(shared: Path, victim: Path, held: bool) -> None:
    with private_folder(shared / "x.db", held=held) as folder:
        (folder / "part").mkdir()
        _swap(shared, _swaps(victim)["link"])
        if held:
            (folder / "x.db").write_text("mine")
    assert is_untouched(victim)
    assert list((shared / "moved").iterdir()) == []


def test_a_private_folder_that_is_swapped_before_a_forced_end(shared: Path, victim: Path) -> None:
    with private_folder(shared / "x.db"):
        _swap(shared, _swaps(victim)["link"])
        outputs.remove_private_folders()
    assert is_untouched(victim)


@pytest.mark.parametrize("kind", ["link", "own folder", "folder of another"])
def test_swapped_before_it_is_opened(
    shared: Path, victim: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    real = tempfile.mkdtemp

    def swapped(**named: object) -> str:
        made = Path(real(**named))  # type: ignore[call-overload]
        made.rmdir()
        if kind == "link":
            made.symlink_to(victim)
        elif kind == "own folder":  # that who owns the shared folder can move, and not empty
            victim.rename(made)
        else:
            made.mkdir(mode=0o777)
            os.chown(made, OTHER_UID, OTHER_UID)
        return str(made)

    if kind == "folder of another" and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    if kind == "own folder":
        (victim / ".writer.lock").unlink()
    monkeypatch.setattr(tempfile, "mkdtemp", swapped)
    with pytest.raises(SetupError) as caught:
        write_whole(shared / "x.db", "mine")
    assert caught.value.slug == "cannot-write"
    (left,) = shared.iterdir()
    if kind == "own folder":
        left.rename(victim)
        (victim / ".writer.lock").write_text("precious")
    assert is_untouched(victim)


def test_a_link_in_the_place_of_what_a_killed_writer_left(shared: Path, victim: Path) -> None:
    left = shared / ".x.db.wbscope-abcdefgh"
    left.symlink_to(victim)
    remove_if_dead(left)
    write_whole(shared / "x.db", "mine")
    assert is_untouched(victim)
    assert left.is_symlink()


@as_root
def test_what_a_killed_writer_of_another_user_left_stays(shared: Path) -> None:
    left = shared / ".x.db.wbscope-abcdefgh"
    left.mkdir()
    (left / ".writer.lock").touch()
    os.chown(left, OTHER_UID, OTHER_UID)
    write_whole(shared / "x.db", "mine")
    assert (left / ".writer.lock").exists()


def test_without_proc_the_path_has_to_do(
    shared: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.stat

    def stat(path: Any, **named: Any) -> os.stat_result:
        if str(path).startswith("/proc/"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return real(path, **named)

    monkeypatch.setattr(os, "stat", stat)
    write_whole(shared / "x.db", "mine")
    assert (shared / "x.db").read_text() == "mine"

    def write() -> None:
        with private_output(shared / "x.db") as private:
            assert private.parent.parent == shared
            private.write_text("mine")
            _swap(shared, _swaps(victim)["link"])

    with pytest.raises(SetupError):
        write()
    assert is_untouched(victim)


def test_names_lead_there_also_in_programs_that_are_started(shared: Path) -> None:
    with private_output(shared / "x.db") as private:
        assert os.spawnlp(os.P_WAIT, "cp", "cp", "/etc/passwd", str(private)) == 0
        assert os.path.samefile(private.parent, next(shared.glob(".x.db.wbscope-*")))
    assert (shared / "x.db").read_bytes() == Path("/etc/passwd").read_bytes()


def test_whose_it_is(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with HeldFolder(shared) as held:
        held.check_closed()
        held.check_new()
        monkeypatch.setattr(os, "geteuid", lambda: 4242)
        held.check_own()  # as root on a network: what it makes there has the same owner
        shared.chmod(0o775)
        with pytest.raises(PermissionError, match=r"written by others .mode 0775"):
            held.check_closed()
        (shared / "file").touch()
        with pytest.raises(OSError, match="in the place of its folder"):
            held.check_new()
        assert held.names() == ["file"]


@as_root
def test_whose_it_is_not(shared: Path) -> None:
    os.chown(shared, OTHER_UID, OTHER_UID)
    with HeldFolder(shared) as held, pytest.raises(PermissionError, match=f"to uid {OTHER_UID}"):
        held.check_own()
    (shared / "file").touch()
    remove_own(shared)
    assert [path.name for path in shared.iterdir()] == ["file"]


def test_links_and_files_are_no_folders(shared: Path, victim: Path) -> None:
    (shared / "link").symlink_to(victim)
    for path in (shared / "link", victim / "x.db"):
        with pytest.raises(NotADirectoryError):
            HeldFolder(path)
        remove_own(path)
    with pytest.raises(FileNotFoundError):
        HeldFolder(shared / "nothing")
    (shared / "file").symlink_to(victim / "x.db")
    os.mkfifo(shared / "fifo")
    with HeldFolder(shared) as held:
        for name in ("file", "fifo"):
            with pytest.raises(OSError, match=r"symbolic links|is no file"):
                held.read_text(name)
        held.remove()
        held.close()
        held.remove()  # of a thread that was late
    assert is_untouched(victim)
    assert not shared.exists()


# What is read whole has an end: a device in the place of a file that people write is refused.

RUN = str(example("four-equal-writers").folder)
_MEMORY = 2 << 30


@pytest.fixture
def _whole_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WBSCOPE_SQL_DIR")


def _ask(words: Sequence[str], stdin: str = "/dev/null") -> subprocess.CompletedProcess[str]:
    """With room for a command, not for what never ends."""
    limits = (_MEMORY, _MEMORY)
    with Path(stdin).open("rb") as given:
        return subprocess.run(
            [wbscope_path(), *words],
            stdin=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=GUARD_SECONDS,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limits),
        )


@pytest.mark.usefixtures("_whole_library")
@pytest.mark.parametrize(
    ("words", "slug", "most"),
    [
        (("lab", "/dev/zero", "--list"), "no-matrix", 1),
        (("gate", "--policy", "/dev/zero", RUN), "no-policy", 1),
        (("sql", RUN, "-f", "/dev/zero"), "cannot-read", 16),
        (("baseline", "show", "/dev/zero"), "cannot-read", 64),
    ],
    ids=["lab", "gate", "sql", "baseline"],
)
def test_device_is_no_file_of_text(words: Sequence[str], slug: str, most: int) -> None:
    done = _ask(words)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    line_of(done.stderr, f"error[{slug}]: /dev/zero: ", f"{most} MiB")


@pytest.mark.usefixtures("_whole_library")
def test_stdin_without_an_end_is_no_statement() -> None:
    done = _ask(("sql", RUN), stdin="/dev/zero")
    assert done.returncode == 3
    line_of(done.stderr, "error[cannot-read]: stdin: ", "16 MiB")


@pytest.mark.usefixtures("_whole_library")
def test_folder_of_a_lab_is_read_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "lab.json").symlink_to("/dev/zero")
    done = _ask(("lab", "report", str(tmp_path)))
    assert done.returncode == 3, done.stderr
    line_of(done.stderr, "error[", "16 MiB")


@pytest.mark.usefixtures("_whole_library")
def test_as_many_bytes_as_are_allowed_are_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (1 << 20))
    assert len(read_small(file, 1 << 20)) == 1 << 20
    with pytest.raises(OSError, match="it has more than 0 MiB"):
        read_small(file, (1 << 20) - 1)


@pytest.mark.usefixtures("_whole_library")
def test_policy_with_the_line_ends_of_windows_is_read(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_bytes(b'[metrics."throttle_summary.pause_max_ns"]\r\nbudget = "<= 1s"\r\n')
    done = _ask(("gate", "--policy", str(policy), RUN, "--json"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "PASS"


# Files of sudo belong to the one who called it, and no other file is given away.

USER, GROUP = 4242, 4343
CALLER = {"SUDO_UID": str(USER), "SUDO_GID": str(GROUP)}
as_sudo_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


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


@as_sudo_root
def test_all_of_it_is_given(run: Path) -> None:
    assert give_to_caller(run, CALLER)
    assert owners(run) == {(USER, GROUP)}
    assert owners(run.parent / "secret") == {(0, 0)}


@as_sudo_root
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
