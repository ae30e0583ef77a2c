# SPDX-License-Identifier: Apache-2.0
"""Folders of runs: none is left out without a word, and a copy is no second run."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import check_error
from support.opsruns import ops_runs

Cli = Callable[..., Any]
TEN = [10 + number / 100 for number in range(10)]
POLICY = '[metrics."ops.stall_ns"]\nmargin = "5%"\n'


@pytest.fixture
def part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ten runs in part, of which 9 and 10 left nothing; ten in partb; a policy."""
    monkeypatch.chdir(tmp_path)
    ops_runs(tmp_path / "part", TEN)
    ops_runs(tmp_path / "partb", [value + 0.001 for value in TEN], later=100)
    for name in ("9", "10"):
        (tmp_path / "part" / name / "ops.txt").unlink()
    (tmp_path / "p.toml").write_text(POLICY)
    return tmp_path


COMMANDS = [
    ["gate", "--policy", "p.toml", "part", "--against", "partb"],
    ["gate", "--policy", "p.toml", "partb", "--against", "part"],
    ["gate", "--policy", "p.toml", "partb", "--baseline", "part"],
    ["gate", "--policy", "p.toml", "part", "--self-check"],
    ["gate", "part", "--budget", "ops.stall_ns <= 100s"],
    ["compare", "part", "--against", "partb"],
    ["compare", "--side", "old=partb", "--side", "new=part"],
    ["baseline", "save", "part", "-o", "new.json"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_empty_sub_folder_is_an_error(cli: Cli, part: Path, words: list[str]) -> None:
    ran = cli(*words)
    assert (ran.code, ran.out) == (3, "")
    check_error(ran.err, "no-trace", "part/9: ", "mv part/9 OTHER-FOLDER")
    assert "10" in ran.err.splitlines()[1]
    assert not (part / "new.json").exists()


def test_the_glob_and_the_folder_end_alike(cli: Cli, part: Path) -> None:
    runs = sorted(str(run.relative_to(part)) for run in (part / "part").iterdir())
    globbed = cli("gate", "--policy", "p.toml", *runs, "--against", "partb")
    folder = cli("gate", "--policy", "p.toml", "part", "--against", "partb")
    assert (globbed.code, folder.code) == (3, 3)
    assert all("error[no-trace]: part/" in ran.err for ran in (globbed, folder))


@pytest.mark.parametrize("broken", ["two traces", "a database", "damaged"])
def test_what_cannot_be_read_is_an_error(cli: Cli, part: Path, broken: str) -> None:
    for name in ("9", "10"):
        (part / "part" / name).rmdir()
    if broken == "two traces":
        (part / "part/9").mkdir()
        (part / "part/9/trace.pftrace").write_bytes(b"\n\x01x")
        (part / "part/9/trace.pftrace.gz").write_bytes(b"\n\x01x")
    elif broken == "a database":
        (part / "part/9.db").write_bytes(b"")
    else:
        (part / "part/9").mkdir()
        (part / "part/9/trace.dat").write_bytes(b"\x17\x08\x44tracing6\0")
    ran = cli("gate", "--policy", "p.toml", "part", "--against", "partb")
    assert ran.code == 3
    assert "part/9" in ran.err.splitlines()[0]


def test_what_is_no_folder_of_a_run_is_left_alone(cli: Cli, part: Path) -> None:
    for name in ("9", "10"):
        (part / "part" / name).rmdir()
    (part / "part/notes.txt").write_text("warm-up done\n")
    (part / "part/.git").mkdir()
    ran = cli("gate", "--policy", "p.toml", "part", "--against", "partb")
    assert ran.code == 0
    assert "n 8+10" in " ".join(ran.out.split())


def test_a_run_without_the_number_is_no_pass(cli: Cli, part: Path) -> None:
    for name in ("9", "10"):
        (part / "part" / name / "ops.txt").write_text("other 1 s\n")
    ran = cli("gate", "--policy", "p.toml", "part", "--against", "partb")
    assert ran.code == 4
    assert "known in 18 of 20 runs" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("expected", "code", "told"),
    [
        (10, 4, "A has 8 runs, the policy expects 10"),
        (8, 4, "B has 10 runs, the policy expects 8"),
        (9, 4, "A has 8 runs, the policy expects 9"),
    ],
)
def test_the_policy_counts_the_runs(
    cli: Cli, part: Path, expected: int, code: int, told: str
) -> None:
    for name in ("9", "10"):
        (part / "part" / name).rmdir()
    (part / "p.toml").write_text(f"expect_runs = {expected}\n{POLICY}")
    ran = cli("gate", "--policy", "p.toml", "part", "--against", "partb")
    assert ran.code == code
    assert told in " ".join(ran.out.split())
    assert ran.out.startswith("gate: REFUSED")
    assert f"expect_runs = {8 if '8 runs' in told else 10}" in " ".join(ran.out.split())


def test_as_many_runs_as_expected(cli: Cli, part: Path) -> None:
    (part / "p.toml").write_text(f"expect_runs = 10\ndrop_first = 2\n{POLICY}")
    ops_runs(part / "part", TEN)
    ran = cli("gate", "--policy", "p.toml", "part", "--against", "partb", "--json")
    assert (ran.code, json.loads(ran.out)["status"]) == (0, "PASS")
    assert cli("gate", "--policy", "p.toml", "part", "--self-check").code == 0
    assert cli("baseline", "save", "part", "--policy", "p.toml", "-o", "b.json").code == 0
    assert cli("gate", "--policy", "p.toml", "partb", "--baseline", "b.json").code == 0


def test_a_baseline_of_too_few_runs_is_not_saved(cli: Cli, part: Path) -> None:
    (part / "p.toml").write_text(f"expect_runs = 11\n{POLICY}")
    ran = cli("baseline", "save", "partb", "--policy", "p.toml", "-o", "b.json")
    assert ran.code == 4
    check_error(ran.err, "number-of-runs", "p.toml", "11", "10")
    assert not (part / "b.json").exists()


# What a recording is known by.


def _gate(cli: Cli, new: str, old: str) -> Any:
    return cli("gate", "--policy", "p.toml", new, "--against", old)


def test_recorded_again_in_the_same_folders(cli: Cli, part: Path) -> None:
    """Run 3 of both says 13 s: by chance, as whole seconds often do."""
    ops_runs(part / "runs", [12, 11, 13, 14, 12, 11])
    assert cli("baseline", "save", "runs", "-o", "base.json").code == 0
    ops_runs(part / "runs", [21, 22, 13, 20, 23, 21], later=1000)
    ran = _gate(cli, "runs", "base.json")
    assert (ran.code, ran.out.splitlines()[0]) == (1, "gate: FAIL: 1 FAIL of 1 metrics")
    assert "same-recording" not in ran.out


def test_the_same_folders_are_the_same_recordings(cli: Cli, part: Path) -> None:
    ops_runs(part / "runs", [12, 11, 13, 14, 12, 11])
    assert cli("baseline", "save", "runs", "-o", "base.json").code == 0
    for words in (("runs", "base.json"), ("runs", "runs"), ("runs/1", "base.json")):
        ran = _gate(cli, *words)
        assert ran.code == 4
        assert "refused[same-recording]" in ran.out


@pytest.mark.parametrize("keep_times", [True, False])
@pytest.mark.parametrize("values", [[12, 11, 13, 14, 16, 15], [value * 1.0123 for value in TEN]])
def test_a_copy_of_the_folder(cli: Cli, part: Path, values: list[float], keep_times: bool) -> None:
    ops_runs(part / "runs", values)
    shutil.copytree(part / "runs", part / "copy/x", copy_function=shutil.copy2)
    if not keep_times:
        for file in (part / "copy").rglob("ops.txt"):
            os.utime(file, ns=(1, 1))
    shutil.move(part / "copy/x/1", part / "copy/x/77")
    assert cli("baseline", "save", "runs", "-o", "base.json").code == 0
    for old in ("runs", "base.json"):
        ran = _gate(cli, "copy/x", old)
        assert ran.code == 4
        assert "are among the runs of B: nothing can differ" in " ".join(ran.out.split())
    told = cli("compare", "copy/x", "--against", "runs")
    assert "is the same recording as one of B" in " ".join(told.out.split())


def test_one_copied_run_is_found_by_its_digits(cli: Cli, part: Path) -> None:
    ops_runs(part / "old", [value * 1.01234567 for value in TEN])
    ops_runs(part / "new", [value * 1.02345678 for value in TEN], later=100)
    assert _gate(cli, "new", "old").code == 0
    shutil.copy(part / "old/3/ops.txt", part / "new/7/ops.txt")
    ran = _gate(cli, "new", "old")
    assert ran.code == 4
    assert "7 (3) of A are among the runs of B" in " ".join(ran.out.split())


def test_what_is_the_same_in_every_run_is_no_copy(cli: Cli, part: Path) -> None:
    """123456789 requests in all runs, and whole seconds."""
    for folder, values in (("old", [12, 11, 13, 12, 11, 12]), ("new", [12, 11, 13, 12, 12, 11])):
        ops_runs(part / folder, values)
        for run in (part / folder).iterdir():
            with (run / "ops.txt").open("a") as file:
                file.write("requests 123456789 count\n")
    (part / "p.toml").write_text('[metrics."ops.stall_ns"]\nmargin = "50%"\n')
    assert _gate(cli, "new", "old").code == 0


def test_copies_on_a_side_are_refused(cli: Cli, part: Path) -> None:
    ops_runs(part / "old", TEN)
    ops_runs(part / "new", [value * 1.001 for value in TEN[:5]], later=100)
    for number in range(1, 6):
        shutil.copytree(part / f"new/{number}", part / f"new/{number + 5}")
    ran = _gate(cli, "new", "old")
    assert ran.code == 4
    assert "1, 6 of A are one recording: it counts as one run" in " ".join(ran.out.split())


def test_a_file_that_says_when_it_was_made_is_the_recording(cli: Cli, part: Path) -> None:
    """Whole seconds, but the recorder's mark is beside them."""
    for folder in ("old", "new"):
        ops_runs(part / folder, [12, 12, 12, 13, 12, 12])
        for number, run in enumerate((part / folder).iterdir()):
            began = number + (1000 if folder == "new" else 0)
            (run / "meta.json").write_text(f'{{"started_ts_ns": {began}}}')
    (part / "p.toml").write_text('[metrics."ops.stall_ns"]\nmargin = "50%"\n')
    assert _gate(cli, "new", "old").code == 0
    shutil.copy(part / "old/2/meta.json", part / "new/5/meta.json")
    ran = _gate(cli, "new", "old")
    assert ran.code == 4
    assert "5 (2) of A are among the runs of B" in " ".join(ran.out.split())
