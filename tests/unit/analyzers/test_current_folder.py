# SPDX-License-Identifier: Apache-2.0
"""The current folder has been removed: that is told, and is no bug."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wbscope.base.errors import SetupError
from wbscope.base.system import absolute, current_folder
from wbscope.record import choose

Cli = Callable[..., Any]


@pytest.fixture
def gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.delenv("WBSCOPE_SQL_DIR", raising=False)  # the whole library
    monkeypatch.chdir(folder)
    folder.rmdir()
    return folder


def test_paths_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert current_folder() == tmp_path
    assert absolute(Path("a/../b")) == tmp_path / "a/../b"
    assert absolute(Path("/x")) == Path("/x")


def test_whole_paths_need_none(gone: Path) -> None:
    assert absolute(Path("/x")) == Path("/x")
    with pytest.raises(SetupError, match="has been removed"):
        absolute(Path("x"))


@pytest.mark.parametrize(
    "words",
    [
        ("report", "x"), ("query", "event_counts", "x", "y"), ("compare", "x", "--against", "y"),
        ("record", "-o", "x", "--", "true"), ("record", "--unpack", "x.tar"),
        ("sql-package", "-o", "x"),
        ("gate", "--policy", "/p.toml", "/x", "--against", "/y", "--junit", "j", "-o", "v"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("gone")
def test_relative_paths_are_refused(cli: Cli, words: tuple[str, ...]) -> None:
    ran = cli(*words)
    assert "error[no-cwd]: " in ran.err
    assert ran.code == 5


@pytest.mark.usefixtures("gone")
def test_what_was_put_back_is_told(
    cli: Cli, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before leftovers are looked for there."""
    monkeypatch.setattr(choose, "mounted_tracefs", lambda: None)
    register = tmp_path_factory.mktemp("register")
    (register / "wbscope-1-aa.json").touch()
    monkeypatch.setenv("WBSCOPE_RUN_DIR", str(register))
    ran = cli("record", "--recover")
    assert ran.code == 5
    first, second, *_ = ran.err.splitlines()
    assert first.startswith("wbscope-1-aa: ")
    assert second.startswith("error[no-cwd]: ")
