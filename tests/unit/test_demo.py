# SPDX-License-Identifier: Apache-2.0
"""wbscope demo: what it unpacks, what it says, what it leaves alone."""

from __future__ import annotations

import os
import re
import shlex
import tarfile
from pathlib import Path

import pytest
from support.cli import Wbscope, check_error
from wbscope.cli.demo import packed_run


@pytest.fixture
def wbscope(tmp_path: Path) -> Wbscope:
    (tmp_path / "cache").mkdir(mode=0o700)
    return Wbscope(tmp_path / "cache")


def _packed() -> dict[str, bytes]:
    with tarfile.open(packed_run()) as archive:
        files = ((one.name, archive.extractfile(one)) for one in archive)
        return {Path(name).name: file.read() for name, file in files if file is not None}


def test_it_is_small_and_all_of_it_is_unpacked(wbscope: Wbscope, tmp_path: Path) -> None:
    assert packed_run().stat().st_size < 1 << 20
    done = wbscope.run("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "wbscope-demo"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == _packed()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "wbscope-demo"]


def test_the_verdict_is_that_of_explain(wbscope: Wbscope, tmp_path: Path) -> None:
    told = wbscope.run("demo", "-q", cwd=tmp_path).stdout
    short = wbscope.run("explain", "wbscope-demo", "--short", cwd=tmp_path).stdout
    assert told.startswith(short)
    assert "Pages of one device hold up writers of another" in short
    assert max(map(len, told.splitlines())) <= 80


def test_the_commands_that_it_names_work(wbscope: Wbscope, tmp_path: Path) -> None:
    told = wbscope.run("demo", "-o", "a b", cwd=tmp_path).stdout
    commands = re.findall(r"^  wbscope (.*?) +# ", told, re.MULTILINE)
    assert len(commands) == 5
    for command in commands[:-1]:  # doctor judges this machine
        done = wbscope.run(*shlex.split(command), cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_again_in_the_same_folder(wbscope: Wbscope, tmp_path: Path) -> None:
    first = wbscope.run("demo", cwd=tmp_path)
    inode = (tmp_path / "wbscope-demo/trace.dat").stat().st_ino
    second = wbscope.run("demo", cwd=tmp_path)
    assert (first.stdout, second.returncode) == (second.stdout, 0)
    assert (tmp_path / "wbscope-demo/trace.dat").stat().st_ino == inode


@pytest.mark.parametrize("there", ["folder", "trace", "file", "link"])
def test_what_is_there_is_left_alone(wbscope: Wbscope, tmp_path: Path, there: str) -> None:
    place, mine = tmp_path / "wbscope-demo", tmp_path / "mine"
    mine.mkdir()
    if there == "file":
        place.write_text("mine\n")
    elif there == "link":
        place.symlink_to(mine)
    else:
        place.mkdir()
        (place / ("trace.dat" if there == "trace" else "notes")).write_text("mine\n")
    done = wbscope.run("demo", cwd=tmp_path)
    assert done.returncode == 2
    check_error(done.stderr, "output-exists", "wbscope-demo", fix="wbscope demo -o wbscope-demo-2")
    assert list(mine.iterdir()) == []


@pytest.mark.parametrize(
    ("output", "fix"),
    [
        (".", "wbscope-demo-2"),
        ("", "wbscope-demo-2"),
        ("-", "wbscope-demo-2"),
        ("/", "/wbscope-demo"),
    ],
)
def test_what_is_no_name_for_a_folder(
    wbscope: Wbscope, tmp_path: Path, output: str, fix: str
) -> None:
    (tmp_path / "wbscope-demo").mkdir()
    done = wbscope.run("demo", "-o", output, cwd=tmp_path)
    assert done.returncode == 2
    check_error(done.stderr, "no-new-folder", f"{output or '.'}: ", fix=f"wbscope demo -o {fix}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "wbscope-demo"]


def test_the_folder_of_the_demo_itself(wbscope: Wbscope, tmp_path: Path) -> None:
    assert wbscope.run("demo", cwd=tmp_path).returncode == 0
    assert wbscope.run("demo", "-o", ".", cwd=tmp_path / "wbscope-demo").returncode == 0


def test_a_folder_that_nobody_may_write_to(wbscope: Wbscope, tmp_path: Path) -> None:
    done = wbscope.run("demo", "-o", tmp_path / "none/demo")
    assert done.returncode == 5
    assert "No such file or directory" in done.stderr
    assert "fix: wbscope demo -o DIR" in done.stderr
    assert not os.path.lexists(tmp_path / "none")


def test_what_others_have_beside_it_stays(wbscope: Wbscope, tmp_path: Path) -> None:
    for name in (".wbscope-demo-mine", ".git", "wbscope-demo.bak"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").write_text("mine")
    for _ in range(2):
        assert wbscope.run("demo", cwd=tmp_path).returncode == 0
    left = {".wbscope-demo-mine", ".git", "wbscope-demo.bak", "wbscope-demo", "cache"}
    assert {path.name for path in tmp_path.iterdir()} == left
    assert all((tmp_path / name / "precious").exists() for name in left if "mine" in name)
