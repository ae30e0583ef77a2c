# SPDX-License-Identifier: Apache-2.0
"""Every experiment of examples/lab has recorded results of the very matrix that lies beside them.

What the pages print of the results is compared by test_commands.py, `make lab` records anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.runs import REPOSITORY
from wbscope.lab.matrix import read_matrix

_LAB = REPOSITORY / "examples/lab"
_MATRICES = sorted(path.relative_to(_LAB) for path in _LAB.glob("*/*.toml"))
# One to start from, of which nothing is claimed.
_FIRST = Path("lower-limit/matrix.toml")


@pytest.mark.parametrize("matrix", [path for path in _MATRICES if path != _FIRST], ids=str)
def test_results_are_of_this_matrix(matrix: Path) -> None:
    name = "results" if matrix.stem == "matrix" else matrix.stem
    recorded = json.loads((_LAB / matrix.parent / f"{name}.json").read_text())["lab"]
    wanted = read_matrix(_LAB / matrix)
    assert recorded["digest"] == wanted.digest
    assert [cell["name"] for cell in recorded["cells"]] == [cell.name for cell in wanted.cells]
    for cell in recorded["cells"]:
        assert cell["runs"] >= min(3, wanted.runs), cell
        assert not cell["failed"], cell
        assert not cell["missing"], cell


@pytest.mark.parametrize("folder", sorted({path.parent for path in _MATRICES}), ids=str)
def test_every_experiment_has_its_page(folder: Path) -> None:
    assert f"]({folder}/README.md)" in (_LAB / "README.md").read_text()
    page = (_LAB / folder / "README.md").read_text()
    for matrix in (_LAB / folder).glob("*.toml"):
        assert f"wbscope lab {matrix.name} -o" in page
