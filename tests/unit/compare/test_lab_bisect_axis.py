# SPDX-License-Identifier: Apache-2.0
"""wbscope lab bisect along an axis: what it answers, how many runs it makes, how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.bisects import Made, bisect, made_runs
from support.labs import METRIC, write_run

Cli = Callable[..., Any]

_MATRIX = """
runs = 1
[setup]
kernel.folder = "."
workload = "true"
[axis.size]
a = { sysctl = { "vm.dirty_bytes" = "100" } }
b = { sysctl = { "vm.dirty_bytes" = "101" } }
c = { sysctl = { "vm.dirty_bytes" = "102" } }
d = { sysctl = { "vm.dirty_bytes" = "200" } }
e = { sysctl = { "vm.dirty_bytes" = "201" } }
"""
_OTHER_AXIS = "[axis.disk]\nfast = {}\nslow = { cpus = 1 }\n"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    return made_runs(monkeypatch)


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "matrix.toml"
    path.write_text(_MATRIX)
    return path


def test_the_first_bad_name_of_an_axis(cli: Cli, made: Made, matrix: Path, tmp_path: Path) -> None:
    ran = bisect(cli, matrix, tmp_path / "out", "--axis", "size")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[:3] == ["first bad: d", "last good: c", f"by {METRIC} (lower is better)"]
    assert lines[3].startswith("between the two, by fresh runs: +9")
    assert "p 0.0022, 6 runs of each" in " ".join(ran.out.split())
    assert "36 runs counted" in ran.out  # two ends, c, d; fresh ones of c and d
    assert len(made.latencies) == 36
    assert all(len(line) <= 80 for line in lines)
    # c is in the middle; then comes d, in the middle of c and e.
    assert ran.err.index("c: good") < ran.err.index("d: bad")
    document = json.loads((tmp_path / "out/bisect.json").read_text())
    assert document["schema"] == "wbscope.lab-bisect/1"
    assert (document["status"], document["last_good"], document["first_bad"]) == ("found", "c", "d")
    assert [(row["point"], row["verdict"]) for row in document["rows"]] == [
        ("c", "good"),
        ("d", "bad"),
    ]
    assert document["border"]["runs"] == 6
    assert document["ends"]["worse"] is True


def test_ends_and_border_are_made_in_turns(
    cli: Cli, made: Made, matrix: Path, tmp_path: Path
) -> None:
    assert bisect(cli, matrix, tmp_path / "out", "--axis", "size").code == 0
    assert made.latencies[:12] == [100, 201, 201, 100] * 3
    assert made.latencies[-12:] == [102, 200, 200, 102] * 3


def test_a_run_is_made_once(cli: Cli, made: Made, matrix: Path, tmp_path: Path) -> None:
    """Ctrl-C in the 20th run; the same answer as of a command that went through."""
    words = ("--axis", "size", "--json")
    whole = bisect(cli, matrix, tmp_path / "whole", *words)
    made.interrupt, made.latencies = 20, []
    stopped = bisect(cli, matrix, tmp_path / "out", *words)
    assert (stopped.code, stopped.out) == (130, "")
    assert not (tmp_path / "out/bisect.json").exists()
    assert bisect(cli, matrix, tmp_path / "out", *words).error()["slug"] == "output-exists"
    made.interrupt = None
    resumed = bisect(cli, matrix, tmp_path / "out", *words, "--resume")
    assert resumed.code == 0
    assert len(made.latencies) == 36
    first, second = whole.document(), resumed.document()
    assert second["status"] == "found"
    assert second["rows"] == first["rows"]
    again = bisect(cli, matrix, tmp_path / "out", *words, "--resume")
    assert (again.code, again.out) == (0, resumed.out)
    assert len(made.latencies) == 36


def test_nothing_to_find(cli: Cli, made: Made, matrix: Path, tmp_path: Path) -> None:
    """From the slow end to the fast one nothing gets worse; exit code 4, never 1."""
    words = ("--axis", "size", "--good", "e", "--bad", "a")
    ran = bisect(cli, matrix, tmp_path / "out", *words)
    assert ran.code == 4
    assert ran.out.startswith("nothing to find: the bad end is not significantly worse")
    assert "first bad" not in ran.out
    document = json.loads((tmp_path / "out/bisect.json").read_text())
    assert (document["status"], document["first_bad"]) == ("nothing", None)
    assert document["ends"]["worse"] is False


def test_a_flaky_name_is_skipped(cli: Cli, made: Made, matrix: Path, tmp_path: Path) -> None:
    made.fail = (102.0,)
    ran = bisect(cli, matrix, tmp_path / "out", "--axis", "size", "--json")
    assert ran.code == 4
    document = ran.document()
    assert (document["status"], document["range"]) == ("range", ["b", "d"])
    assert document["first_bad"] is None
    verdicts = {row["point"]: (row["verdict"], row["why"]) for row in document["rows"]}
    assert verdicts["c"] == ("skip", "c: run 1: the guest died")
    assert (tmp_path / "out/c/run-1.failed/console").read_text() == "panic\n"
    assert made.latencies.count(102.0) == 1


def test_no_more_runs_than_allowed(cli: Cli, made: Made, matrix: Path, tmp_path: Path) -> None:
    ran = bisect(cli, matrix, tmp_path / "out", "--axis", "size", "--max-runs", "11")
    assert (ran.code, made.latencies) == (4, [])
    assert ran.out.startswith("not decided whether they differ: the runs that were allowed are")
    ran = bisect(cli, matrix, tmp_path / "out", "--axis", "size", "--max-runs", "20", "--resume")
    assert (ran.code, len(made.latencies)) == (4, 18)
    assert "the first bad one is behind c, up to e" in ran.out


def test_a_damaged_run_is_skipped(cli: Cli, made: Made, matrix: Path, tmp_path: Path) -> None:
    made.damage = (102.0,)
    document = bisect(cli, matrix, tmp_path / "out", "--axis", "size", "--json").document()
    (row,) = (row for row in document["rows"] if row["point"] == "c")
    assert row["verdict"] == "skip"
    assert row["why"].startswith("c: run 1: ")
    assert document["first_bad"] is None


@pytest.mark.parametrize(
    ("words", "slug", "fix"),
    [
        (("--axis", "sise"), "no-axis", "--axis disk"),
        (("--axis", "size"), "no-end", "--good fast,a"),
        (("--axis", "size", "--good", "a"), "no-cell", "--good fast,a"),
        (("--axis", "size", "--good", "fast,a", "--bad", "slow,e"), "no-series", "--bad fast,e"),
        (("--axis", "size", "--good", "fast,a", "--bad", "fast,a"), "no-series", "--bad fast,e"),
        ((), "no-series", None),
        (("--axis", "size", "--git", "."), "removed-option", None),
        (("--git", "."), "removed-option", None),
        (("--build", "make"), "removed-option", None),
        (("--axis", "size", "--worse-by", "120%"), "bad-margin", "--worse-by 10%"),
    ],
)
def test_wrong_words(
    cli: Cli, made: Made, tmp_path: Path, words: Sequence[str], slug: str, fix: str | None
) -> None:
    path = tmp_path / "matrix.toml"
    path.write_text(_MATRIX.replace("[axis.size]", f"{_OTHER_AXIS}[axis.size]"))
    ran = bisect(cli, path, tmp_path / "out", *words, "--json")
    assert (ran.code, ran.error()["slug"]) == (2, slug)
    assert fix is None or ran.error()["fix"] == fix
    assert not (tmp_path / "out").exists()
    assert made.latencies == []


def test_the_other_axes_are_those_of_the_named_cell(cli: Cli, made: Made, tmp_path: Path) -> None:
    path = tmp_path / "matrix.toml"
    path.write_text(_MATRIX.replace("[axis.size]", f"{_OTHER_AXIS}[axis.size]"))
    words = ("--axis", "size", "--bad", "slow,e", "--json")
    document = bisect(cli, path, tmp_path / "out", *words).document()
    assert (document["last_good"], document["first_bad"]) == ("slow,c", "slow,d")


def test_a_metric_that_is_none(cli: Cli, made: Made, matrix: Path, tmp_path: Path) -> None:
    words = ("--axis", "size", "--json")
    ran = bisect(cli, matrix, tmp_path / "out", *words, metric="ops.latancy_ns")
    assert (ran.code, ran.error()["slug"]) == (2, "unknown-metric")
    assert ran.error()["fix"] == f"--metric {METRIC}"
    # The run that was made counts when the name is right.
    assert bisect(cli, matrix, tmp_path / "out", *words, "--resume").code == 0
    assert len(made.latencies) == 36


def test_numbers_that_mean_another_thing_are_not_compared(
    cli: Cli, made: Made, matrix: Path, tmp_path: Path
) -> None:
    """nr_vmscan_write counts other pages from 6.16 on: that is no change for the worse."""

    def write(folder: Path, latency: float) -> Path:
        run = write_run(folder, 1.0, "6.1.0" if latency < 200 else "7.2.0")
        (run / "vmstat.before").write_text("nr_vmscan_write 0\n")
        (run / "vmstat.after").write_text(f"nr_vmscan_write {latency:.0f}\n")
        return run

    made.write = write
    words = ("--axis", "size", "--json")
    metric = "vmstat.nr_vmscan_write_count"
    ran = bisect(cli, matrix, tmp_path / "out", *words, metric=metric)
    assert (ran.code, ran.error()["slug"]) == (4, "not-comparable")
    assert ran.error()["message"] == "means another thing from Linux 6.16 on"
    assert made.latencies == [100, 201]


def test_a_report_of_its_runs(cli: Cli, made: Made, matrix: Path, tmp_path: Path) -> None:
    """Cells have as many runs as it took, and none is missing."""
    assert bisect(cli, matrix, tmp_path / "out", "--axis", "size").code == 0
    document = cli("lab", "report", tmp_path / "out", "--json").document()
    counts = {row["cell"]: row["n"] for row in document["rows"]}
    assert counts == {"a": 6, "c": 12, "d": 12, "e": 6}
    assert not any(cell["missing"] for cell in document["cells"])
    ran = cli("lab", "report", tmp_path / "out", "--style", "lkml", "--save", tmp_path / "saved")
    told = " ".join(ran.out.split())
    assert "5 cells, 36 runs, as many as a bisection took" in told
    command = f"wbscope lab bisect matrix.toml --metric {METRIC} --axis size --worse-by 10%"
    assert f"  {command} -o lab\n" in ran.out
    assert cli("lab", "report", tmp_path / "saved", "--style", "lkml").out == ran.out


def test_an_end_that_fails_is_no_answer(cli: Cli, made: Made, matrix: Path, tmp_path: Path) -> None:
    """And no more runs are made, until it is put right."""
    made.fail = (201.0,)
    ran = bisect(cli, matrix, tmp_path / "out", "--axis", "size")
    assert (ran.code, made.latencies) == (4, [100, 201])
    assert ran.out.startswith("no answer, an end could not be measured: e: run 1: the guest died")
    assert ran.out.endswith("\n1 run counted.\n")
    assert " 36 runs" in ran.err.splitlines()[0]
    made.fail = ()
    assert bisect(cli, matrix, tmp_path / "out", "--axis", "size", "--resume").code == 0
    assert len(made.latencies) == 36 + 1
