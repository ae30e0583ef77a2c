# SPDX-License-Identifier: Apache-2.0
"""Descriptors: none is left open, and a process may have many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from wbscope.base.held_folder import HeldFolder
from wbscope.source.plain_files import first_bytes

_MANY = """
import os, resource, sys
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))
kept = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
from wbscope.cli.start import main
sys.exit(main())
"""


def _open_count() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_look_at_a_folder_leaves_none(tmp_path: Path) -> None:
    """A comparison looks at each of hundreds of run folders, several times."""
    (tmp_path / "sub").mkdir()
    before = _open_count()
    assert first_bytes(tmp_path, 16) == b""
    with HeldFolder(tmp_path) as held, pytest.raises(OSError, match="directory"):
        held.read_text("sub")
    assert _open_count() == before


def test_a_process_with_more_than_select_takes(database: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _MANY, "sql", str(database), "SELECT 1 AS a", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
