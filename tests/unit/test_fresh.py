# SPDX-License-Identifier: Apache-2.0
"""tools/fresh.py: what it removes, which skips it allows, what it hands in."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from support.runs import REPOSITORY

_TOOL = REPOSITORY / "tools/fresh.py"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    return importlib.import_module("fresh")


def _remove(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, _TOOL, "--remove", folder]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_its_own_folder_is_removed(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "foreign").write_text("mine\n")
    folder = tool.make_folder(tmp_path)
    (folder / "root/etc").mkdir(parents=True)
    (folder / "root/etc/link").symlink_to(tmp_path / "foreign")
    (folder / "root/top").symlink_to(tmp_path)
    done = _remove(folder)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["foreign"]
    assert (tmp_path / "foreign").read_text() == "mine\n"


def test_two_at_a_time_have_folders_of_their_own(tool: ModuleType, tmp_path: Path) -> None:
    first, second = tool.make_folder(tmp_path), tool.make_folder(tmp_path)
    tool.remove_folder(first)
    assert not first.exists()
    assert tool.why_not_own(second) is None


@pytest.mark.parametrize("kind", ["no marker", "other marker", "link", "open", "file", "nothing"])
def test_another_folder_is_refused(tool: ModuleType, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    (folder / "precious").write_text("mine\n")
    given = folder
    if kind == "other marker":  # a copy of a folder of its own
        (folder / tool.MARKER).write_text("/somewhere/else\n")
    elif kind == "open":
        (folder / tool.MARKER).write_text(f"{folder}\n")
        folder.chmod(0o755)
    elif kind == "link":
        (folder / tool.MARKER).write_text(f"{folder}\n")
        given = tmp_path / "link"
        given.symlink_to(folder)
    elif kind == "file":
        given = folder / "precious"
    elif kind == "nothing":
        given = tmp_path / "nothing"
    done = _remove(given)
    assert done.returncode == 1
    assert str(given) in done.stderr
    assert (folder / "precious").read_text() == "mine\n"


def test_a_folder_of_another_user_is_refused(tool: ModuleType, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not root, so cannot give a folder away")
    folder = tool.make_folder(tmp_path)
    os.chown(folder, 65534, 65534)
    assert "is not a private folder of user 0" in tool.why_not_own(folder)
    assert _remove(folder).returncode == 1
    assert folder.is_dir()


def test_only_leftovers_of_killed_runs_are_removed(tool: ModuleType, tmp_path: Path) -> None:
    killed, kept = tool.make_folder(tmp_path), tool.make_folder(tmp_path)
    (kept / tool.KEPT).touch()
    foreign = tmp_path / f"{tool.PREFIX}mine"
    foreign.mkdir(mode=0o700)
    (tmp_path / "other").mkdir(mode=0o700)
    with tool.own_folder(tmp_path, keep=False) as used:
        tool.remove_leftovers(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {
            kept.name, foreign.name, "other", used.name,
        }  # fmt: skip
    assert not killed.exists()
    with tool.own_folder(tmp_path, keep=True) as again:
        pass
    tool.remove_leftovers(tmp_path)
    assert not used.exists()
    assert again.exists()
    assert foreign.exists()


def test_a_mount_below_is_refused(tool: ModuleType, tmp_path: Path) -> None:
    line = "50 27 0:40 / {} rw - tmpfs a rw\n"
    folder = Path("/x/my folder")
    for place in ("/x/my\\040folder", "/x/my\\040folder/root/proc"):
        assert tool.mounts_below(folder, line.format(place))
    for place in ("/x/my\\040folder2", "/x", "/"):
        assert not tool.mounts_below(folder, line.format(place))


def test_a_real_mount_below_is_refused(tool: ModuleType, tmp_path: Path) -> None:
    folder = tool.make_folder(tmp_path)
    (folder / "root").mkdir()
    script = (
        'mount -t tmpfs none "$1/root" && touch "$1/root/precious" && exec "$2" "$3" --remove "$1"'
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", folder, sys.executable, _TOOL],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mount namespace: {done.stderr.strip()}")
    assert done.returncode == 1, done.stderr
    assert f"{folder}/root" in done.stderr
    assert (folder / tool.MARKER).exists()


def test_a_refused_mount_is_told_apart(tool: ModuleType, tmp_path: Path) -> None:
    """Exit code 75, and which one; nothing is mounted, and no command is run."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "mount").write_text('#!/bin/sh\necho "mount: denied" >&2\nexit 32\n')
    (programs / "mount").chmod(0o755)
    root = tmp_path / "root"
    done = subprocess.run(
        ["sh", REPOSITORY / "tools/fresh_root.sh", root, "", "touch", tmp_path / "ran"],
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == tool.REFUSED
    assert done.stderr.splitlines()[-1].endswith(f"mount --bind {root} {root}")
    assert not (tmp_path / "ran").exists()


_SAID = """\
=========================== short test summary info ============================
SKIPPED [1] tests/live/test_guest.py:84: no kernel 6.1 in build/guests; run: make guest-kernels
SKIPPED [12] tests/live/test_record.py: this machine cannot be traced: no tracefs
SKIPPED [2] tests/support/test_tracedat.py:202: zstd is not installed
SKIPPED [1] tests/a.py:1: could not import 'pandas': No module named 'pandas'
XFAIL tests/b.py::test_x - not yet
1 passed, 16 skipped in 1.00s
"""


def test_skips_for_want_of_a_package_fail(tool: ModuleType) -> None:
    bad = tool.bad_skips(_SAID, tool.allowed_skips())
    assert bad == [
        "2 x tests/support/test_tracedat.py: zstd is not installed",
        "1 x tests/a.py: could not import 'pandas': No module named 'pandas'",
    ]
    assert tool.bad_skips("SKIPPED [1] x.py:1: this machine cannot be traced: y", []) != []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3 passed, 2 skipped in 1s\n", []),
        ("FAILED tests/a.py::test_x - assert 1\n1 failed, 2 passed\n"
         "make: [Makefile:58: test] Error 1 (ignored)\n3 passed\n",
         ["FAILED tests/a.py::test_x - assert 1", "make: [Makefile:58: test] Error 1 (ignored)"]),
        ("make: [Makefile:65: test] Terminated (ignored)\n3 passed\n",
         ["make: [Makefile:65: test] Terminated (ignored)"]),
        ("make: *** [Makefile:50: build/.debs] Error 100\n",
         ["make: *** [Makefile:50: build/.debs] Error 100", "no test was run"]),
    ],
)  # fmt: skip
def test_what_make_test_said(tool: ModuleType, tmp_path: Path, text: str, said: list[str]) -> None:
    """All of it, though make goes on behind a failure."""
    log = tmp_path / "test.log"
    found = tool.run_tests(tmp_path, log, lambda root, log, *words: log.write_text(text))
    assert len(found) == len(said) + bool(said)  # and where the log is
    for one, wanted in zip(found, said, strict=False):
        assert wanted in one


def test_each_allowed_skip_says_why(tool: ModuleType) -> None:
    for entry in tomllib.loads(tool.SKIPS.read_text())["skip"]:
        assert set(entry) == {"reason", "why"}
        assert "is not installed" not in entry["reason"]


def test_what_is_handed_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """How registries are reached, and nothing else of the environment."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    settings = importlib.import_module("fresh_settings")
    for name in settings.environment():
        monkeypatch.delenv(name)
    environ = {"PIP_INDEX_URL": "a", "https_proxy": "b", "NO_PROXY": "c", "SSL_CERT_FILE": "d"}
    environ |= {"PIP_FIND_LINKS": f"{tmp_path} /not/there https://x", "TOKEN": "e"}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    names = set(settings.environment())
    assert names == {"PIP_INDEX_URL", "https_proxy", "NO_PROXY", "SSL_CERT_FILE", "PIP_FIND_LINKS"}
    assert settings.local_folders() == [str(tmp_path)]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Others can reach it; pytest's own folders are private."""
    with tempfile.TemporaryDirectory(prefix="wbscope-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_without_root_it_says_so(open_folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not root, so cannot become nobody")
    for name in (
        "tools/fresh.py",
        "tools/fresh_packages.py",
        "tools/fresh_settings.py",
        "tools/fresh_suites.py",
    ):
        (open_folder / "tools").mkdir(exist_ok=True)
        (open_folder / name).write_bytes((REPOSITORY / name).read_bytes())
    (open_folder / "build").mkdir()
    (open_folder / "build").chmod(0o777)
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3",
         open_folder / "tools/fresh.py", "--quick"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 5, done.stderr
    assert "uid 65534" in done.stderr
    assert "uid 65534" in (open_folder / "build/fresh/refused").read_text()
