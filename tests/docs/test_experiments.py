# SPDX-License-Identifier: Apache-2.0
"""Every experiment of examples/lab has recorded results of the very matrix that lies beside them.

What the pages print of the results is compared by test_commands.py, `make lab` records anew.
"""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from pathlib import Path
from statistics import median

import pytest
from support.runs import REPOSITORY
from wbscope.lab.matrix import read_matrix

_LAB = REPOSITORY / "examples/lab"
_MATRICES = sorted(path.relative_to(_LAB) for path in _LAB.glob("*/*.toml"))
# One to start from, of which nothing is claimed.
_FIRST = Path("lower-limit/matrix.toml")
_TABLE = "docs/experiments.md"
_SMOOTH = ("smoothness/results.json", "smoothness/filesystems.json", "smoothness/low-memory.json")
_JAIN, _WRITTEN = "fairness.jain_ratio", "throughput.written_bytes_per_s"
_FEW, _MANY = "*,[1248]", "*,128"
# A page, its words with the smallest and the largest median of cells, the cells, and the unit.
_RANGES = [
    ("smoothness", r"index is (\d+) to (\d+) % \(medians\)", _SMOOTH, _JAIN, _FEW, 0.01),
    ("smoothness", r"writes (\d+) to (\d+) of 20 MiB/s", _SMOOTH, _WRITTEN, _FEW, 1 << 20),
    ("smoothness", r"index is (\d+) to (\d+) %, and the slowest", _SMOOTH, _JAIN, _MANY, 0.01),
    ("smoothness", r"slowest has (\d+) to (\d+) % of the fastest", _SMOOTH,
     "fairness.slowest_to_fastest_ratio", _MANY, 0.01),
    (_TABLE, r"Jain (\d+) to (\d+) % \(medians\)", _SMOOTH, _JAIN, _FEW, 0.01),
    (_TABLE, r"(\d+) to (\d+) of 20 MiB/s", _SMOOTH, _WRITTEN, _FEW, 1 << 20),
    (_TABLE, r"with 128 writers Jain (\d+) to (\d+) %", _SMOOTH, _JAIN, _MANY, 0.01),
    ("write-behind", r"(\d+) to (\d+) % of the bytes come", ("write-behind/slow-writer.json",),
     "write_bursts.burst_ratio", "*,defaults", 0.01),
    (_TABLE, r"come in bursts: (\d+) to (\d+) %", ("write-behind/slow-writer.json",),
     "write_bursts.burst_ratio", "*,defaults", 0.01),
    (_TABLE, r"sync of 96 MiB: (\d+) to (\d+) s", ("write-behind/results.json",),
     "ops.sync_ns", "*,defaults", 1e9),
    ("rates", r"unweighted it is (\d+) to (\d+) %", ("rates/results.json",), _JAIN, "*", 0.01),
    (_TABLE, r"blocked for (\d+) to (\d+) % of its time", ("noisy-neighbour/results.json",),
     "throttle_by_task.throttled_ratio[[]comm=fio]", "*,noisy", 0.01),
]  # fmt: skip


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


def medians(results: str, metric: str, cells: str) -> list[float]:
    """Of each cell that the pattern takes; both are patterns of fnmatch."""
    told = json.loads((_LAB / results).read_text())
    (values,) = (m["values"] for name, m in told["metrics"].items() if fnmatch(name, metric))
    of: dict[str, list[float]] = {}
    for run, value in zip(told["runs"], values, strict=True):
        cell = run["name"].rpartition("/")[0]
        if fnmatch(cell, cells) and value is not None:
            of.setdefault(cell, []).append(value)
    return [median(found) for found in of.values()]


@pytest.mark.parametrize(
    ("page", "words", "results", "metric", "cells", "unit"),
    _RANGES,
    ids=[f"{page}-{metric}-{cells}" for page, _, _, metric, cells, _ in _RANGES],
)
def test_ranges_in_words_are_those_of_the_results(
    page: str, words: str, results: tuple[str, ...], metric: str, cells: str, unit: float
) -> None:
    path = REPOSITORY / page if page.endswith(".md") else _LAB / page / "README.md"
    told = re.search(words, " ".join(path.read_text(encoding="utf-8").split()))
    assert told is not None
    found = [value / unit for file in results for value in medians(file, metric, cells)]
    assert [round(min(found)), round(max(found))] == [int(told[1]), int(told[2])]
