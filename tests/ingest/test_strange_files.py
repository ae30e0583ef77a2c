# SPDX-License-Identifier: Apache-2.0
"""Run folders with FIFOs, sockets, devices and links out of them: refused, never waited for."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import sqlite3
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.runs import REPOSITORY
from support.tools import ingester_path, run
from support.waits import GUARD_SECONDS
from wbscope.base.errors import InputError
from wbscope.base.held_folder import SIDECAR_NAMES
from wbscope.record.machine import save_after, save_before
from wbscope.source import plain_files
from wbscope.source.source import find_source

_TRACE = REPOSITORY / "examples" / "four-equal-writers" / "trace.dat"


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        place = Path.cwd()
        os.chdir(path.parent)  # the name of a socket is short
        server.bind(path.name)
        os.chdir(place)


def _device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        path.symlink_to("/dev/zero")


def _link_out(path: Path) -> None:
    outside = path.parent.parent / "outside"
    outside.write_text("secret\n")
    path.symlink_to(outside)


def _link_up(path: Path) -> None:
    (path.parent.parent / "outside").write_text("secret\n")
    path.symlink_to("../outside")


def _link_to_fifo(path: Path) -> None:
    os.mkfifo(path.parent / "other")
    path.symlink_to("other")


def _link_to_nothing_outside(path: Path) -> None:
    path.symlink_to("/nowhere/at/all")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


_KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "fifo": (_fifo, "a FIFO"),
    "socket": (_socket, "a socket"),
    "device": (_device, "device|outside of the folder"),
    "link out": (_link_out, "outside of the folder"),
    "link up": (_link_up, "outside of the folder"),
    "link to a fifo": (_link_to_fifo, "a FIFO"),
    "link to nothing": (_link_to_nothing_outside, "outside of the folder"),
    "loop": (_loop, "leads to itself"),
}
_NAMES = ("trace.dat", "vmstat.before", "time.txt", "meta.json", "uname", "trace.dat.cpu0", "bdis")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    made.mkdir()
    shutil.copy(_TRACE, made / "trace.dat")
    return made


def _put(folder: Path, name: str, kind: str) -> str:
    (folder / name).unlink(missing_ok=True)
    make, words = _KINDS[kind]
    make(folder / name)
    return words


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("kind", _KINDS)
def test_ingester(folder: Path, kind: str, name: str) -> None:
    words = _put(folder, name, kind)
    output = folder.parent / "out"
    for job in (["sqlite", folder, "-o", output], ["convert", folder, "-o", output]):
        done = subprocess.run(
            [ingester_path(), *job, "--json-lines"],
            capture_output=True,
            text=True,
            timeout=GUARD_SECONDS,
            check=False,
        )
        assert done.returncode == 3, done.stderr
        (line,) = done.stderr.splitlines()
        said = json.loads(line)
        assert said["slug"] == "strange-file"
        assert said["object"] == str(folder / name)
        assert any(word in said["message"] for word in words.split("|")), said
        assert said["fix"].startswith("mv ")
    assert not output.exists()


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("kind", _KINDS)
def test_front_end(folder: Path, kind: str, name: str) -> None:
    words = _put(folder, name, kind)
    with pytest.raises(InputError) as caught:
        find_source(str(folder))
    assert caught.value.subject == str(folder / name)
    assert any(word in caught.value.message for word in words.split("|"))


def test_both_refuse_the_same() -> None:
    """Files beside a trace, by name: here and in the ingester, which a test cannot ask."""
    source = (REPOSITORY / "ingest/src/sidecar/sidecars.cc").read_text()
    lists = re.findall(
        r"static const std::set<std::string> k(?:Names|Texts)\{(.*?)\};", source, re.DOTALL
    )
    assert len(lists) == 2
    assert set(re.findall(r'"([^"]+)"', "".join(lists))) == set(SIDECAR_NAMES)


def test_what_is_recorded_is_refused_where_it_is_strange(tmp_path: Path) -> None:
    save_before(tmp_path)
    save_after(tmp_path)
    found = {path.name for path in tmp_path.iterdir()}
    assert {"mounts", "sysctls", "vmstat.before", "zoneinfo.after"} <= found
    assert found - plain_files._READ == set()


@pytest.mark.parametrize("name", sorted(SIDECAR_NAMES))
def test_each_name(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(InputError, match="is a FIFO"):
        find_source(str(folder))
    done = run([ingester_path(), "sqlite", folder, "-o", folder.parent / "out", "--json-lines"])
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stderr)["object"] == str(folder / name)


_VERBS = (
    ("query", "fairness", "RUN"),
    ("sql", "RUN", "SELECT 1"),
    ("report", "RUN"),
    ("ingest", "RUN", "-o", "OUT"),
    ("timeline", "RUN", "-o", "OUT"),
    ("convert", "RUN", "-o", "OUT"),
    ("compare", "RUN", "--against", "RUN"),
    ("gate", "RUN", "--budget", "throttle_summary.pause_p99_ns <= 1s"),
    ("open", "RUN"),
)


@pytest.mark.parametrize("verb", _VERBS, ids=lambda verb: verb[0])
def test_every_verb(wbscope: Wbscope, folder: Path, verb: tuple[str, ...]) -> None:
    _put(folder, "trace.dat", "fifo")
    words = {"RUN": str(folder), "OUT": str(folder.parent / "out")}
    done = subprocess.run(
        [wbscope._program, *(words.get(word, word) for word in verb)],
        capture_output=True,
        text=True,
        env=wbscope.env,
        timeout=GUARD_SECONDS,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "strange-file" in done.stderr
    assert f"{folder / 'trace.dat'}" in done.stderr.replace("\n", "")
    assert not (folder.parent / "out").exists()


def test_fix_works(folder: Path) -> None:
    _put(folder, "vmstat.before", "fifo")
    with pytest.raises(InputError) as caught:
        find_source(str(folder))
    fix = caught.value.fix
    assert fix is not None
    subprocess.run(fix, shell=True, check=True)
    assert find_source(str(folder)).trace == folder / "trace.dat"


@pytest.mark.parametrize("is_absolute", [False, True])
def test_link_within_the_folder(folder: Path, is_absolute: bool) -> None:
    (folder / "before").write_text("nr_dirty 23\n")
    (folder / "vmstat.before").symlink_to(folder / "before" if is_absolute else "before")
    (folder / "real.dat").write_bytes((folder / "trace.dat").read_bytes())
    (folder / "trace.dat").unlink()
    (folder / "trace.dat").symlink_to("real.dat")
    assert find_source(str(folder)).trace == folder / "trace.dat"
    done = run([ingester_path(), "sqlite", folder, "-o", folder.parent / "run.db"])
    assert done.returncode == 0, done.stderr
    with contextlib.closing(sqlite3.connect(folder.parent / "run.db")) as db:
        rows = db.execute("SELECT name, value FROM sidecar_vmstat").fetchall()
    assert rows == [("nr_dirty", 23)]


def test_folder_that_is_a_link(folder: Path) -> None:
    (folder / "vmstat.before").write_text("nr_dirty 23\n")
    link = folder.parent / "link"
    link.symlink_to(folder)
    assert find_source(str(link)).folder == link
    done = run([ingester_path(), "sqlite", link, "-o", folder.parent / "run.db"])
    assert done.returncode == 0, done.stderr
    assert "outside" not in done.stderr


@pytest.mark.parametrize("kind", _KINDS)
def test_other_strange_files_do_not_matter(folder: Path, kind: str) -> None:
    """Nobody reads a file of that name; a link out of the folder is not followed."""
    _put(folder, "notes", kind)
    assert find_source(str(folder)).inputs()
    database = folder.parent / "run.db"
    done = subprocess.run(
        [ingester_path(), "sqlite", folder, "-o", database],
        capture_output=True,
        text=True,
        timeout=GUARD_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with contextlib.closing(sqlite3.connect(database)) as db:
        assert db.execute("SELECT * FROM sidecar_text WHERE text GLOB '*secret*'").fetchall() == []
