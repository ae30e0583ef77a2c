# SPDX-License-Identifier: Apache-2.0
"""Files that once crashed the reader: each ends in an answer or in one clear error."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import Wbscope

_FILES = sorted((Path(__file__).parent / "regressions" / "whole").iterdir())


def test_there_are_files() -> None:
    assert _FILES


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_no_crash_and_nothing_left(wbscope: Wbscope, file: Path, tmp_path: Path) -> None:
    output = tmp_path / "run.db"
    done = wbscope.run("ingest", str(file), "-o", str(output), "--all")
    assert done.returncode in (0, 3), done.stderr
    assert output.exists() == (done.returncode == 0)
    assert [path.name for path in tmp_path.iterdir() if path != output] == []
