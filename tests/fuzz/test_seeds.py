# SPDX-License-Identifier: Apache-2.0
"""The seeds of the fuzz targets are made by Debian's Python, which has no package of ours."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path

from support.tools import require_program

_MAKE_SEEDS = Path(__file__).with_name("make_seeds.py")


def test_seeds_need_nothing_but_python(tmp_path: Path) -> None:
    # -S: no site-packages, where this machine may have what another has not.
    python = require_program("/usr/bin/python3")
    done = subprocess.run(
        [python, "-I", "-S", _MAKE_SEEDS, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made = {folder.name for folder in tmp_path.iterdir() if any(folder.iterdir())}
    assert made == set(runpy.run_path(str(_MAKE_SEEDS.with_name("run.py")))["TARGETS"])
