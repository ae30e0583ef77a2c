# SPDX-License-Identifier: Apache-2.0
"""The record of tested kernel patches: a line a series, which changes with any of its files."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from support.runs import REPOSITORY

_TOOL = REPOSITORY / "tools/kernel_stamp.py"

Ran = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def patches(tmp_path: Path) -> Path:
    """Of a repository that has nothing but the tool."""
    (tmp_path / "tools").mkdir()
    shutil.copy(_TOOL, tmp_path / "tools")
    for name in ("series/6.1/0001-a.patch", "series/6.12/0001-b.patch", "kconfig/guest.config"):
        path = tmp_path / "kernel-tracepoints" / name
        path.parent.mkdir(parents=True)
        path.write_text(f"{name}\n")
    return tmp_path / "kernel-tracepoints"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernel_stamp", _TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ran(patches: Path) -> Ran:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, patches.parent / "tools/kernel_stamp.py", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_each_change_is_seen(tool: ModuleType, patches: Path) -> None:
    other = tool.series_hash("6.12", patches)
    before = tool.series_hash("6.1", patches)
    assert tool.series_hash("6.1", patches) == before
    (patches / "README.md").write_text("not a patch\n")
    assert tool.series_hash("6.1", patches) == before
    patch = patches / "series/6.1/0001-a.patch"
    patch.write_text("other\n")
    changed = tool.series_hash("6.1", patches)
    patch.rename(patch.with_name("0002-a.patch"))
    moved = tool.series_hash("6.1", patches)
    assert tool.series_hash("6.12", patches) == other
    (patches / "kconfig/guest.config").write_text("CONFIG_X=y\n")
    assert len({before, changed, moved, tool.series_hash("6.1", patches)}) == 4
    assert tool.series_hash("6.12", patches) != other


def test_what_was_noted_is_known(ran: Ran, patches: Path) -> None:
    """make kernel-test boots 6.1 only: it says nothing else of the others than it did."""
    assert ran("--check").returncode == 3
    assert ran("--write", "--booted", "6.1").returncode == 0
    noted = ran("--check")
    assert noted.returncode == 0
    first, second = noted.stdout.splitlines()
    assert first.startswith("6.1: as it was booted on 2")
    assert first[-1].isdigit()
    assert second.startswith("6.12: as it was compiled on 2")
    assert second.endswith(", not booted")
    (patches / "series/6.12/0001-b.patch").write_text("other\n")
    changed = ran("--check")
    assert changed.returncode == 1
    assert changed.stdout.splitlines() == [first]
    assert _named(changed) == ["6.12"]
    (patches / "series/7.2").mkdir()
    more = ran("--check")
    assert (more.returncode, _named(more)) == (1, ["6.12", "7.2"])


def _named(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The series that are not as they were."""
    return [line.partition(":")[0] for line in done.stderr.splitlines()]


def test_more_stays_known_of_the_same_patches(ran: Ran, patches: Path) -> None:
    old = "2026-01-02"
    assert ran("--write", "--booted", "6.1 6.12").returncode == 0
    tested = patches / "tested"
    today = tested.read_text().split()[3]
    tested.write_text(tested.read_text().replace(today, old))
    assert ran("--write", "--booted", "6.1").returncode == 0
    told = {line.split()[0]: line.split()[1::2] for line in tested.read_text().splitlines()}
    assert told == {"6.1": ["booted", today], "6.12": ["booted", old]}
    (patches / "series/6.12/0001-b.patch").write_text("other\n")
    assert ran("--write", "--booted", "6.1").returncode == 0
    assert tested.read_text().splitlines()[1].split()[:2] == ["6.12", "compiled"]


def test_a_series_that_is_not_there_was_not_booted(ran: Ran, patches: Path) -> None:
    refused = ran("--write", "--booted", "6.3")
    assert (refused.returncode, "6.3" in refused.stderr) == (2, True)
    assert not (patches / "tested").exists()


def test_the_record_is_of_what_is_here(tool: ModuleType) -> None:
    """Made another way: CI would build kernels for nothing, or not when it has to."""
    top = REPOSITORY / "kernel-tracepoints"
    lines = (top / "tested").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["6.1", "6.12", "7.2"]
    for line in lines:
        series, level, noted, _ = line.split()
        assert level in ("applied", "compiled", "booted")
        files = sorted((top / "series" / series).iterdir()) + sorted((top / "kconfig").iterdir())
        text = b"".join(
            str(path.relative_to(top)).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest()
            for path in files
        )
        assert hashlib.sha256(text).hexdigest() == tool.series_hash(series, top)
        assert len(noted) == 64
