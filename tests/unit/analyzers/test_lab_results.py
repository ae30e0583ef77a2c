# SPDX-License-Identifier: Apache-2.0
"""The numbers of a lab in one file give the same report as its runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from support.cli import line_of

Cli = Callable[..., Any]

_MATRIX = """
runs = 6
title = "two limits"
metrics = ["ops.time*", "ops.left"]
[setup]
kernel.here = true
data = "."
workload = "true"
[axis.limit]
free = {}
low = {}
"""
# Run 6 of low is missing, run 5 of it failed.
_VALUES = {"free": (11, 12, 13, 14, 15, 16), "low": (21, 22, 23, 24)}


@pytest.fixture(autouse=True)
def real_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WBSCOPE_SQL_DIR", str(Path(__file__).parents[3] / "sql"))


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """Two cells; what ops.txt says besides is not among the metrics of the matrix."""
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "matrix.toml").write_text(_MATRIX)
    cells = [{"name": name, "values": {"limit": name}} for name in _VALUES]
    told = {"schema": 1, "title": "two limits", "digest": "abc", "wbscope_version": "1"}
    told |= {"axes": {"limit": list(_VALUES)}, "cells": cells}
    (folder / "lab.json").write_text(json.dumps(told))
    for cell, values in _VALUES.items():
        for number, value in enumerate(values, 1):
            run = folder / cell / f"run-{number}"
            run.mkdir(parents=True)
            (run / "meta.json").write_text('{"schema": 1}')
            (run / "ops.txt").write_text(f"time {value} s\nleft {value % 3} count\nother 1 count\n")
    failed = folder / "low" / "run-5.failed"
    failed.mkdir()
    (failed / "why.json").write_text('{"why": "the workload exited with code 2"}')
    return folder


def _whole(cli: Cli, *words: str) -> str:
    done = cli("lab", "report", *words)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.parametrize("style", [(), ("--style", "lkml"), ("--style", "markdown"), ("--json",)])
def test_the_report_is_the_same(
    cli: Cli, lab: Path, tmp_path: Path, style: tuple[str, ...]
) -> None:
    kept = tmp_path / "results.json"
    told = _whole(cli, str(lab), "--save", str(kept), *style)
    assert "exited with code 2" in told
    assert "other" not in told
    assert _whole(cli, str(kept), *style) == told


def test_the_numbers_are_those_of_the_runs(cli: Cli, lab: Path, tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    _whole(cli, str(lab), "--save", str(kept))
    rows = json.loads(_whole(cli, str(kept), "--json", "--metric", "ops.time_ns"))["rows"]
    assert {row["cell"]: row["of_runs"] for row in rows} == {
        cell: [value * 1e9 for value in values] for cell, values in _VALUES.items()
    }
    # It is a baseline besides.
    done = cli("compare", str(kept), "--against", str(kept), "--json")
    assert json.loads(done.out)["rows"], done.err


def test_a_cell_without_a_value_has_no_line_in_a_picture(
    cli: Cli, lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in lab.glob("low/*/ops.txt"):
        file.write_text(file.read_text().replace("time", "gone"))
    drawn: dict[str, list[str]] = {}

    def save(figure: Figure, *_: object, **__: object) -> None:
        (axes,) = figure.axes
        drawn[axes.get_title("left").split()[2]] = [
            label.get_text().split()[0] for label in axes.get_yticklabels()
        ]

    monkeypatch.setattr(Figure, "savefig", save)
    _whole(cli, str(lab), "-o", str(tmp_path / "pictures"))
    assert drawn == {"ops.time_ns": ["free"]}


def test_wrong_files(cli: Cli, lab: Path, tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    _whole(cli, str(lab), "--save", str(kept))
    again = cli("lab", "report", str(lab), "--save", str(kept))
    assert again.code == 2
    line_of(again.err, "error[output-exists]: ", kept)
    two = cli("lab", "report", str(kept), "--cell", "low", "--against", "free")
    assert two.code == 2
    line_of(two.err, "error[", kept)
    document = json.loads(kept.read_text())
    for wrong in (
        {**document, "lab": {**document["lab"], "cells": []}},
        {key: value for key, value in document.items() if key != "lab"},
        {**document, "lab": []},
    ):
        kept.write_text(json.dumps(wrong))
        done = cli("lab", "report", str(kept))
        assert done.code == 3, done.out
        line_of(done.err, "error[no-lab]: ")
    kept.write_text("no json")
    assert cli("lab", "report", str(kept)).code == 3


def test_an_output_that_cannot_be(cli: Cli, lab: Path, tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    kept.write_text("mine")
    for option in ("-o", "--save"):
        done = cli("lab", "report", str(lab), option, "x" * 5000)
        assert done.code == 5
        line_of(done.err, "error[cannot-write]: ", "File name too long")
        line_of(done.err, "  fix: ", option)
    for output, code in ((kept, 2), (kept / "pictures", 5), ("/proc/pictures", 5)):
        done = cli("lab", "report", str(lab), "-o", str(output))
        assert done.code == code, done.err
    assert kept.read_text() == "mine"


def test_pairs_can_be_left_out(cli: Cli, lab: Path) -> None:
    assert "limit: low against free" in _whole(cli, str(lab), "--pairs", "1")
    assert "against" not in _whole(cli, str(lab), "--pairs", "0")
    done = cli("lab", "report", str(lab), "--pairs", "0", "--json")
    assert (done.code, "--pairs" in done.err) == (2, True)
