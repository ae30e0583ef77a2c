# SPDX-License-Identifier: Apache-2.0
"""The record of tested kernel patches changes with any of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from support.runs import REPOSITORY


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "kernel_stamp", REPOSITORY / "tools/kernel_stamp.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def patches(tmp_path: Path) -> Path:
    for name in ("series/6.1/0001-a.patch", "kconfig/guest.config"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(f"{name}\n")
    return tmp_path


def test_each_change_is_seen(patches: Path) -> None:
    patches_hash = _tool().patches_hash
    before = patches_hash(patches)
    assert patches_hash(patches) == before
    (patches / "README.md").write_text("not a patch\n")
    assert patches_hash(patches) == before
    patch = patches / "series/6.1/0001-a.patch"
    patch.write_text("other\n")
    changed = patches_hash(patches)
    patch.rename(patch.with_name("0002-a.patch"))
    moved = patches_hash(patches)
    (patches / "kconfig/guest.config").write_text("CONFIG_X=y\n")
    assert len({before, changed, moved, patches_hash(patches)}) == 4


def test_what_was_noted_is_known(patches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = _tool()
    monkeypatch.setattr(tool, "_TOP", patches)
    monkeypatch.setattr(tool, "_FILE", patches / "tested")
    monkeypatch.setattr(tool, "patches_hash", lambda: "abc")
    for words, code in (("--check", 3), ("--write", 0), ("--check", 0)):
        monkeypatch.setattr("sys.argv", ["kernel_stamp.py", words])
        assert tool.main() == code
    monkeypatch.setattr(tool, "patches_hash", lambda: "def")
    monkeypatch.setattr("sys.argv", ["kernel_stamp.py", "--check"])
    assert tool.main() == 1
    assert (patches / "tested").read_text().startswith("sha256 abc\ndate 2")
