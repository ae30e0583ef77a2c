# SPDX-License-Identifier: Apache-2.0
"""The experiments of examples/lab can be done again: `make lab` runs these tests, `make test` not.

One round of every matrix, a run of each cell: about 100 runs, half an hour emulated on 2 CPUs.
WBSCOPE_LAB_RUNS=all makes all runs of every cell, which takes hours, WBSCOPE_LAB=NAME one folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.runs import REPOSITORY

_LAB = REPOSITORY / "examples/lab"
_ONLY = os.environ.get("WBSCOPE_LAB", "*")
_MATRICES = sorted(path.relative_to(_LAB) for path in _LAB.glob(f"{_ONLY}/*.toml"))


@pytest.mark.parametrize("matrix", _MATRICES, ids=str)
def test_the_experiment_can_be_done_again(matrix: Path, tmp_path: Path, wbscope: Wbscope) -> None:
    folder = tmp_path / "experiment"
    shutil.copytree(_LAB / matrix.parent, folder)
    file = folder / matrix.name
    text = file.read_text()
    if (image := re.search(r'image = "([^"]+)"', text)) and not (file.parent / image[1]).exists():
        there = _LAB / matrix.parent / image[1]
        if not there.exists():
            pytest.skip(f"no kernel {image[1]}; {matrix.parent}/README.md says how to build it")
        text = text.replace("../../..", str(REPOSITORY))
    if os.environ.get("WBSCOPE_LAB_RUNS") != "all":
        text = re.sub(r"^runs = .*", "runs = 1", text, flags=re.MULTILINE)
    file.write_text(text)
    made = wbscope.run("lab", str(file), "-o", str(tmp_path / "lab"))
    assert made.returncode == 0, made.stderr
    told = wbscope.run("lab", "report", str(tmp_path / "lab"), "--json")
    rows = json.loads(told.stdout)["rows"]
    known = {(row["cell"], row["metric"]) for row in rows if row["median"] is not None}
    recorded = folder / f"{'results' if matrix.stem == 'matrix' else matrix.stem}.json"
    kept = json.loads(wbscope.run("lab", "report", str(recorded), "--json").stdout)["rows"]
    assert known >= {(row["cell"], row["metric"]) for row in kept if row["median"] is not None}
