# SPDX-License-Identifier: Apache-2.0
"""SQLite's temporary files lie in a folder of their own: an error names the one that is full."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest
from support.cli import check_error
from support.faults import EARLIER, memory_disk
from support.runs import example
from support.tools import ingester_path, plan_option, run, wbscope_path

_SOURCE = "reclaim-writes"
# An index as large as one of a long trace: SQLite sorts its 188,809 rows of 180 bytes in files.
_WIDE_INDEX = {"vmscan:mm_vmscan_write_folio": {"indexes": [{"columns": ["ts"] * 20}]}}
_FIX = "export SQLITE_TMPDIR="


def _ingester(output: Path, temp: Path, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = [example(_SOURCE).trace, "-o", output, "--all", "--force", *options]
    return run(
        [ingester_path(), "sqlite", *arguments, *plan_option(output, _WIDE_INDEX)],
        env={**os.environ, "SQLITE_TMPDIR": str(temp)},
    )


def _wbscope(output: Path, temp: Path) -> subprocess.CompletedProcess[str]:
    return run(
        [wbscope_path(), "ingest", example(_SOURCE).trace, "-o", output, "--all", "--force"],
        env={**os.environ, "SQLITE_TMPDIR": str(temp)},
    )


def _check_earlier(output: Path) -> None:
    assert os.listdir(output.parent) == [output.name]
    assert output.read_bytes() == EARLIER


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """An earlier result."""
    path = tmp_path / "x.db"
    path.write_bytes(EARLIER)
    return path


@pytest.mark.parametrize("writer", ["pages", "sqlite"])
@pytest.mark.parametrize(
    ("options", "have"),
    [
        ("size=64k", "65536 bytes"),
        ("size=8m", "8388608 bytes"),
        ("nr_inodes=1", "one more file"),
    ],
)
def test_of_the_ingester(output: Path, options: str, have: str, writer: str) -> None:
    with memory_disk(f"{options},mode=0777") as disk:
        ended = _ingester(output, disk, "--writer", writer)
        assert os.listdir(disk) == []
        _check_earlier(output)
        assert ended.returncode == 5, ended.stderr
        named = (disk, os.strerror(errno.ENOSPC), output, have)
        check_error(ended.stderr, "no-room", *named, fix=_FIX)


def test_the_remedy_helps(output: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    ended = _ingester(output, tmp_path_factory.mktemp("temp"))
    assert ended.returncode == 0, ended.stderr


def test_of_the_whole_command(output: Path) -> None:
    """Here it is Python's SQLite, which makes tables of the library's views."""
    with memory_disk("size=64k,mode=0777") as disk:
        ended = _wbscope(output, disk)
        assert os.listdir(disk) == []
        _check_earlier(output)
        assert ended.returncode == 5, ended.stderr
        check_error(ended.stderr, "no-room", disk, output, fix=_FIX)


def test_a_full_disk_is_not_taken_for_the_other(tmp_path: Path) -> None:
    """Room for what the ingester writes, and little more for the views."""
    done = _wbscope(tmp_path / "alone.db", tmp_path)
    assert done.returncode == 0, done.stderr
    whole = (tmp_path / "alone.db").stat().st_size
    with memory_disk(f"size={whole - (1 << 19)},mode=0777") as disk:
        ended = _wbscope(disk / "x.db", tmp_path)
        assert os.listdir(disk) == []
        assert ended.returncode == 5, ended.stderr
        check_error(ended.stderr, "cannot-write-database", disk / "x.db")
        assert "SQLITE_TMPDIR" not in ended.stderr
