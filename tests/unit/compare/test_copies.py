# SPDX-License-Identifier: Apache-2.0
"""Copies of a recording without a mark of its own: they are one run wherever they are counted."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from support.cli import check_error
from support.opsruns import ops_runs
from support.rundata import metric, run
from wbscope.compare.baseline import read_baseline
from wbscope.compare.comparison import TOO_FEW
from wbscope.compare.history import Place, add_runs, read_history
from wbscope.compare.sameness import copies_within

Cli = Callable[..., Any]


def _times(seed: int, n: int, level: float = 100.0) -> list[float]:
    """Each to nine digits, of which the last is none that printing leaves out."""
    chosen = random.Random(seed)
    return [round(chosen.gauss(level, level / 50), 5) + 7e-6 for _ in range(n)]


def _copied(folder: Path, times: int, to: Path) -> Path:
    """Each run of a folder, so many times, as cp does it: the files are new."""
    for number in range(times):
        for place in sorted(folder.iterdir()):
            shutil.copytree(place, to / f"{place.name}-{number}", copy_function=shutil.copyfile)
    return to


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text('[metrics."ops.stall_ns"]\nmargin = "10%"\n')
    return "p.toml"


@pytest.mark.parametrize("of_base", [False, True])
def test_a_side_of_nothing_but_copies_of_one_run(
    cli: Cli, tmp_path: Path, policy: str, of_base: bool
) -> None:
    """Nothing varies on that side, and the other one tells that it would."""
    real = ops_runs(tmp_path / "new", _times(1, 6))
    six = _copied(ops_runs(tmp_path / "one", _times(2, 1, 120.0), later=99), 6, tmp_path / "six")
    sides = (real, "--against", six) if of_base else (six, "--against", real)
    ran = cli("gate", "--policy", policy, *sides)
    assert (ran.code, "same-recording" in ran.out) == (4, True)
    assert "are one recording: it counts as one run" in " ".join(ran.out.split())


def test_a_copy_where_nothing_else_is_there_to_tell(cli: Cli, tmp_path: Path, policy: str) -> None:
    one = ops_runs(tmp_path / "one", _times(2, 1))
    both = _copied(one, 2, tmp_path / "both")
    assert cli("gate", "--policy", policy, *sorted(both.iterdir()), "--self-check").code == 4
    ran = cli("gate", "--policy", policy, both / "1-0", "--against", both / "1-1")
    assert (ran.code, "same-recording" in ran.out) == (4, True)


def test_a_history_takes_a_copy_once(cli: Cli, tmp_path: Path, policy: str) -> None:
    both = _copied(ops_runs(tmp_path / "one", _times(2, 1)), 2, tmp_path / "both")
    for number in (0, 1):
        saved = tmp_path / f"{number}.json"
        assert cli("baseline", "save", both / f"1-{number}", "-o", saved).code == 0
        place = Place(f"{number:040x}", datetime(2026, 1, 1 + number, tzinfo=UTC))
        new, known = add_runs(tmp_path / "h.db", read_baseline(saved), place)
        assert (len(new), len(known)) == (1 - number, number)
    assert len(read_history(tmp_path / "h.db")) == 1


def test_coarse_numbers_and_counts_may_be_the_same_each_time() -> None:
    """12 s twice, and a benchmark that allocates the same bytes each time, are no copies."""
    size, time = metric("ops.heap_bytes", unit="bytes"), metric("ops.stall_ns")
    same = [run(f"r{n}", {size: 1_234_567_890, time: 12e9}, source_id=f"c.p{n}") for n in (0, 1)]
    assert copies_within(same) == []
    fine = [run(f"r{n}", {size: 7, time: 12_345_678_901}, source_id=f"c.p{n}") for n in (0, 1)]
    assert copies_within(fine) == [fine]


def test_compare_counts_copies_once_and_says_so(cli: Cli, tmp_path: Path) -> None:
    """Three real runs a side, each of them twice: of 3 + 3 the least p is 0.1."""
    sides = []
    for seed, (name, level) in enumerate((("old", 100.0), ("new", 130.0))):
        real = ops_runs(tmp_path / f"{name}-real", _times(seed, 3, level), later=100 * seed)
        sides.append(_copied(real, 2, tmp_path / name))
    ran = cli("compare", sides[1], "--against", sides[0], "--json")
    (row,) = ran.document()["rows"]
    assert (row["outcome"], row["reason"]) == ("undecided", TOO_FEW)
    told = [one for one in ran.document()["warnings"] if one["slug"] == "same-recording"]
    assert len(told) == 6
    assert "left out, as both are one run" in told[0]["message"]
    assert "same recording" in cli("compare", sides[1], "--against", sides[0]).out


def test_a_merged_baseline_has_no_copies(cli: Cli, tmp_path: Path) -> None:
    real = ops_runs(tmp_path / "real", _times(3, 2))
    for name in ("a", "b"):
        shutil.copytree(real, tmp_path / name)
        for place in (tmp_path / name).glob("*/ops.txt"):
            os.utime(place)
        assert cli("baseline", "save", tmp_path / name, "-o", tmp_path / f"{name}.json").code == 0
    words = ("baseline", "merge", tmp_path / "a.json", tmp_path / "b.json", "-o")
    ran = cli(*words, tmp_path / "ab.json")
    assert ran.code == 2
    check_error(ran.err, "same-recording", "b.json: ")
    assert not (tmp_path / "ab.json").exists()


def test_results_of_one_file_that_are_alike_are_shown(cli: Cli, tmp_path: Path) -> None:
    """A coarse clock: each of four times is there twice, which a copied folder would look like."""
    rows = "".join(f"1.{digit},x\n" for digit in (1, 2, 3, 4, 4, 3, 2, 1))
    (tmp_path / "t.csv").write_text(f"time_s,what\n{rows}")
    saved = tmp_path / "t.json"
    assert cli("baseline", "save", tmp_path / "t.csv", "-o", saved).code == 0
    ran = cli("baseline", "show", saved)
    assert (ran.code, ran.err) == (0, "")
    assert cli("baseline", "merge", saved, saved, "-o", tmp_path / "two.json").code == 2


def test_copies_among_many_runs_take_no_time() -> None:
    """Each run once: comparing all with all would take minutes."""
    time = metric("ops.stall_ns")
    runs = [run(f"r{n}", {time: float(n)}, source_id=f"{n // 2}.p{n}") for n in range(30_000)]
    began = process_time()
    assert len(copies_within(runs)) == 15_000
    assert process_time() - began < 5


@pytest.mark.parametrize("verb", ["gate", "compare"])
def test_a_copied_folder_of_coarse_numbers_is_told(
    cli: Cli, tmp_path: Path, policy: str, verb: str
) -> None:
    """12 s and 13 s come again by themselves: no proof, so a warning and no refusal."""
    few = ops_runs(tmp_path / "few", [12.0, 12.0, 13.0, 12.0, 13.0, 12.0])
    copy = tmp_path / "copy"
    shutil.copytree(few, copy, copy_function=shutil.copyfile)
    other = ops_runs(tmp_path / "other", [12.0, 13.0, 12.0, 12.0, 13.0, 12.0])
    same = ops_runs(tmp_path / "same", [12.0] * 6), ops_runs(tmp_path / "same2", [12.0] * 6)
    words = ("gate", "--policy", policy) if verb == "gate" else ("compare",)

    def told(side: Path, base: Path) -> list[str]:
        ran = cli(*words, side, "--against", base, "--json")
        assert ran.code == 0
        document = ran.document()
        assert not document.get("refusals")
        return [o["message"] for o in document["warnings"] if o["slug"] == "same-recording"]

    for side, base in ((copy, few), (few, copy)):
        (message,) = told(side, base)
        assert "the 6 runs of A say what those of B say, in the same order" in message
        assert message.endswith("name other runs, or record more digits")
    # Another order, and what is 12 s each time.
    assert told(other, few) == []
    assert told(*same) == []


def test_three_coarse_runs_in_one_order_are_no_sign(cli: Cli, tmp_path: Path, policy: str) -> None:
    few = ops_runs(tmp_path / "few", [12.0, 12.0, 13.0])
    again = ops_runs(tmp_path / "again", [12.0, 12.0, 13.0], later=9)
    ran = cli("gate", "--policy", policy, again, "--against", few, "--json")
    assert "same-recording" not in {one["slug"] for one in ran.document()["warnings"]}
