# SPDX-License-Identifier: Apache-2.0
"""wbscope lab report: the cells, what is missing, what a step along an axis changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from support.labs import METRIC, new_lab

Cli = Callable[..., Any]

_AXES = {"kernel": ["old", "new"], "limit": ["free", "low"]}
_VALUES = {
    "old,free": [10.0, 11.0, 12.0, 13.0, 14.0, 15.0],
    "old,low": [20.5, 21.5, 22.5, 23.5, 24.5, 25.5],
    "new,free": [10.2, 11.2, 12.2, 13.2, 14.2, 15.2],
    "new,low": [20.1, 21.1, 22.1, 23.1, 24.1, 25.1],
}


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    return new_lab(tmp_path / "my lab", _AXES, _VALUES, runs=6)


def test_medians_intervals_and_pairs(cli: Cli, lab: Path) -> None:
    document = cli("lab", "report", lab, "--json").document()
    assert document["schema"] == "wbscope.lab-report/1"
    assert document["undecidable"] is None
    rows = {row["cell"]: row for row in document["rows"]}
    assert list(rows) == list(_VALUES)
    ms = 1e6
    for cell, values in _VALUES.items():
        row = rows[cell]
        assert (row["metric"], row["unit"], row["n"]) == (METRIC, "ns", 6)
        assert row["median"] == pytest.approx((values[2] + values[3]) / 2 * ms)
        assert (row["low"], row["high"]) == pytest.approx((values[0] * ms, values[-1] * ms))
        assert row["values"] == dict(zip(_AXES, cell.split(","), strict=True))
    pairs = {(pair["cell"], pair["against"]): pair for pair in document["pairs"]}
    assert {key: pair["axis"] for key, pair in pairs.items()} == {
        ("old,low", "old,free"): "limit",
        ("new,low", "new,free"): "limit",
        ("new,free", "old,free"): "kernel",
        ("new,low", "old,low"): "kernel",
    }
    for (cell, base), pair in pairs.items():
        (change,) = pair["changes"]
        p = stats.mannwhitneyu(_VALUES[cell], _VALUES[base], method="exact").pvalue
        assert change["p"] == pytest.approx(p)
        assert change["decided"] == (p <= 0.05) == (pair["axis"] == "limit")
    # Both steps of the limit are larger than both of the kernel.
    assert [pair["axis"] for pair in document["pairs"]] == ["limit"] * 2 + ["kernel"] * 2


def test_the_first_screen(cli: Cli, lab: Path) -> None:
    ran = cli("lab", "report", lab)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "wbscope lab report: two limits"
    assert lines[1].startswith("kernel (old, new) x limit (free, low): 4 cells, 24 of 24 runs")
    assert "old,free     6  12.5 ms [10.0 to 15.0 ms]" in lines
    assert "what they can be with 95 % confidence" in ran.out
    assert "limit: old,low against old,free" in lines
    place = lines.index("limit: old,low against old,free")
    ratios = [a / b for a in _VALUES["old,low"] for b in _VALUES["old,free"]]
    change = f"{100 * (np.exp(np.median(np.log(ratios))) - 1):+.1f}"
    assert lines[place + 2].split()[:3] == ["latency", change, "%"]
    assert lines[place + 2].split()[-3:] == ["0.0022", "6+6", "worse"]
    assert all(len(line) <= 80 for line in lines)


def test_same_runs_same_bytes(cli: Cli, lab: Path, tmp_path: Path) -> None:
    """From another place on the disk, too."""
    copy = tmp_path / "copy"
    shutil.copytree(lab, copy)
    for words in ((), ("--json",), ("--style", "markdown"), ("--style", "lkml")):
        first, second = cli("lab", "report", lab, *words), cli("lab", "report", copy, *words)
        assert first.code == 0, first.err
        assert first.out == second.out == cli("lab", "report", lab, *words).out
    for folder in ("one", "two"):
        assert cli("lab", "report", lab, "-o", tmp_path / folder).code == 0
    pictures = [(tmp_path / folder / f"{METRIC}.png").read_bytes() for folder in ("one", "two")]
    assert pictures[0][:4] == b"\x89PNG"
    assert pictures[0] == pictures[1]


def test_failed_and_missing_runs_are_told(cli: Cli, tmp_path: Path) -> None:
    values = dict(_VALUES, **{"old,low": [20.0], "new,low": []})
    lab = new_lab(tmp_path / "lab", _AXES, values, runs=6)
    failed = lab / "old,low/run-3.failed"
    failed.mkdir()
    (failed / "why.json").write_text(json.dumps({"why": "the workload exited with 3"}))
    # A file of somebody, a run that is a link: no runs of this lab.
    (lab / "old,low/run-x").mkdir()
    (lab / "old,low/run-4").symlink_to(lab / "old,free/run-1")
    ran = cli("lab", "report", lab)
    assert ran.code == 0, ran.err
    assert "13 of 24 runs" in ran.out
    assert "failed: old,low run 3: the workload exited with 3\n" in ran.out
    assert "not made: old,low run 2, 4 to 6\n" in ran.out
    assert "not made: new,low run 1 to 6\n" in ran.out
    assert "of fewer than 6 runs the range" in " ".join(ran.out.split())
    assert "old,low      1  20.0 ms\n" in ran.out
    assert "new,low against" not in ran.out


def test_a_spoilt_run_hides_no_other(cli: Cli, lab: Path) -> None:
    """A run without its files, a trace that is none, one that is cut."""
    (lab / "old,free/run-2/ops.txt").unlink()
    (lab / "old,low/run-1/trace.dat").write_text("no trace\n")
    (lab / "new,low/run-6/ops.txt").write_text("latency many ms lower\n")
    ran = cli("lab", "report", lab)
    assert ran.code == 0, ran.err
    lines = " ".join(ran.out.split())
    for run in ("old,free run-2", "old,low run-1", "new,low run-6"):
        assert f"{run}: is left out: " in lines
    assert "old,low 5 23.5 ms [21.5 to 25.5 ms]" in lines
    document = cli("lab", "report", lab, "--json").document()
    counts = {row["cell"]: row["n"] for row in document["rows"]}
    assert counts == {"old,free": 5, "old,low": 5, "new,free": 6, "new,low": 5}
    slugs = [warning["slug"] for warning in document["warnings"]]
    assert slugs == ["unreadable-run"] * 3
    unknown = cli("lab", "report", lab, "--metric", "ops.latancy_ns", "--json").error()
    assert unknown["fix"] == f"--metric {METRIC}"


def test_only_spoilt_runs_are_no_answer(cli: Cli, tmp_path: Path) -> None:
    lab = new_lab(tmp_path / "lab", {"kernel": ["old"]}, {"old": [1.0]}, runs=1)
    (lab / "old/run-1/ops.txt").unlink()
    ran = cli("lab", "report", lab, "--json")
    assert (ran.code, ran.error()["slug"]) == (4, "no-runs")
    assert ran.error()["have"].startswith("old run-1 is left out: ")


def test_one_run_of_one_cell(cli: Cli, tmp_path: Path) -> None:
    lab = new_lab(tmp_path / "lab", {"kernel": ["old"]}, {"old": [1.0]}, runs=1)
    for words in ((), ("--style", "lkml"), ("--style", "markdown"), ("--json",)):
        ran = cli("lab", "report", lab, *words)
        assert (ran.code, ran.err) == (0, "")
    assert "No two cells with runs differ in one axis only." in cli("lab", "report", lab).out
    told = cli("lab", "report", lab, "--json").document()["undecidable"]
    assert told == "there is one cell with runs, and nothing to compare it with"
    assert cli("lab", "report", lab, "-o", tmp_path / "pictures").code == 0


@pytest.mark.parametrize("runs", ["1000000000", "inf", '"many"', "-3", "true"])
def test_numbers_of_a_stranger(cli: Cli, lab: Path, runs: str) -> None:
    """The folder may come from anybody: no number in it is a size."""
    (lab / "matrix.toml").write_text(f"runs = {runs}\n")
    shutil.copytree(lab / "old,low/run-1", lab / "old,low/run-999999")
    ran = cli("lab", "report", lab, "--json")
    if runs in ("inf", '"many"'):
        assert (ran.code, ran.error()["slug"]) == (3, "no-lab")
    else:
        assert ran.document()["wanted_runs"] == (1000 if runs == "1000000000" else 6)
        assert len(cli("lab", "report", lab).out) < 10_000
        assert {row["n"] for row in ran.document()["rows"]} == {6}


def test_no_folder_outside_is_read(cli: Cli, lab: Path, tmp_path: Path) -> None:
    other = new_lab(tmp_path / "other", {"kernel": ["a"]}, {"a": [1.0, 2.0]}, runs=2)
    shutil.rmtree(lab / "old,low")
    (lab / "old,low").symlink_to(other / "a")
    document = cli("lab", "report", lab, "--json").document()
    assert "old,low" not in {row["cell"] for row in document["rows"]}
    text = (lab / "lab.json").read_text()
    for name in ("..", "", "../other/a", "/"):
        (lab / "lab.json").write_text(text.replace('"old,low"', json.dumps(name)))
        assert cli("lab", "report", lab, "--json").error()["slug"] == "no-lab"


def test_two_runs_decide_nothing(cli: Cli, tmp_path: Path) -> None:
    values = {cell: numbers[:2] for cell, numbers in _VALUES.items()}
    lab = new_lab(tmp_path / "lab", _AXES, values, runs=2)
    told = "nothing can be decided: with 2 runs of a cell at most, no p is below 0.33"
    for words in ((), ("--style", "lkml")):
        out = " ".join(cli("lab", "report", lab, *words).out.split())
        assert told in out
        assert "not decided" in out
        assert not {"worse", "better"} & set(out.replace("lower is better", "").split())


def test_for_a_mailing_list(cli: Cli, lab: Path) -> None:
    out = cli("lab", "report", lab, "--style", "lkml").out
    body, _, matrix = out.partition(
        "\nmatrix.toml (digest of its cells 0123456789abcdef, seed 7):\n"
    )
    assert all(len(line) <= 72 for line in body.splitlines())
    assert "Kernel: 6.1.0\n" in body
    assert "  old,free  12.5 ms  [10.0 to 15.0 ms]  n=6\n" in body
    assert "  wbscope lab matrix.toml -o lab\n" in body
    assert matrix.lstrip("\n").splitlines() == [
        f"  {line}" for line in (lab / "matrix.toml").read_text().splitlines()
    ]


def test_two_cells_are_compared_as_compare_does(cli: Cli, lab: Path) -> None:
    words = ("--cell", "old,low", "--against", "old,free")
    for more in ((), ("--json",)):
        mine = cli("lab", "report", lab, *words, *more)
        other = cli("compare", lab / "old,low", "--against", lab / "old,free", *more)
        assert mine.code == 0, mine.err
        assert mine.out == other.out


def test_what_cannot_be_told(cli: Cli, lab: Path, tmp_path: Path) -> None:
    unknown = cli("lab", "report", lab, "--cell", "old", "--json")
    assert unknown.code == 2
    assert unknown.error()["slug"] == "no-cell"
    assert "old,free old,low" in unknown.error()["have"]
    assert "'" in unknown.error()["fix"]  # the folder has a space
    no_metric = cli("lab", "report", lab, "--metric", "ops.latancy_ns", "--json")
    assert no_metric.error()["slug"] == "unknown-metric"
    assert no_metric.error()["fix"] == f"--metric {METRIC}"
    empty = new_lab(tmp_path / "empty", _AXES, {}, runs=2)
    assert cli("lab", "report", empty, "--json").error()["slug"] == "no-runs"
    assert cli("lab", "report", tmp_path, "--json").error()["slug"] == "no-lab"
    assert cli("lab", "report", lab, "--json", "--style", "lkml").code == 2
    (lab / "lab.json").write_text(
        (lab / "lab.json").read_text().replace('"limit": "low"', '"limit": "high"')
    )
    assert cli("lab", "report", lab, "--json").error()["slug"] == "no-lab"


def test_pictures_of_others_stay(cli: Cli, lab: Path, tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "cat.png").write_text("cat")
    assert cli("lab", "report", lab, "-o", pictures).code == 2
    assert cli("lab", "report", lab, "-o", pictures, "--force").code == 0
    assert (pictures / "cat.png").read_text() == "cat"


def test_without_matplotlib(cli: Cli, lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    ran = cli("lab", "report", lab, "-o", lab.parent / "pictures", "--json")
    assert (ran.code, ran.error()["slug"]) == (5, "missing-package")
    assert ran.error()["fix"] == "pip install matplotlib"
    assert cli("lab", "report", lab).code == 0
