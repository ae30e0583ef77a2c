# SPDX-License-Identifier: Apache-2.0
"""The runs of a lab: finished ones stay, failed ones are told, files of others are left alone."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from wbscope.base.errors import InputError, SetupError, UsageError
from wbscope.lab.judging import Progress, Summary, make_runs
from wbscope.lab.matrix import Matrix, read_matrix
from wbscope.lab.places import Failure
from wbscope.lab.store import opened, read_finished, read_lab

_MATRIX = """
runs = 2
[setup]
kernel.folder = "."
workload = "true"
[axis.kind]
a = {}
b = { cpus = 1 }
"""


class _Places:
    """Instead of guests: `fail` and `kill` name the runs, by their place in the order of asking."""

    def __init__(self, fail: tuple[int, ...] = (), kill: int | None = None) -> None:
        self.asked = 0
        self._fail, self._kill = fail, kill

    def check(self, setup: object) -> None:
        del setup

    def make(self, setup: object, work: Path, limit_s: float, boots: int) -> Path:
        del setup, limit_s, boots
        self.asked += 1
        run = work / "run"
        run.mkdir()
        (run / "trace.dat").write_text("events")
        if self.asked == self._kill:
            os._exit(9)
        if self.asked in self._fail:
            raise Failure("the workload exited with 3: no space", {"said": "no space\n"})
        (run / "meta.json").write_text(json.dumps({"ended": "complete"}))
        return run


@pytest.fixture
def matrix(tmp_path: Path) -> Matrix:
    path = tmp_path / "matrix.toml"
    path.write_text(_MATRIX)
    return read_matrix(path)


def _make(matrix: Matrix, folder: Path, places: Any, resume: bool = False) -> Summary:
    told: list[Progress] = []
    with opened(folder, matrix, resume) as store:
        summary = make_runs(matrix, store, places, told.append)
    assert len(told) == places.asked
    return summary


def _whole(folder: Path) -> list[str]:
    return sorted(str(path.parent.relative_to(folder)) for path in folder.glob("*/*/meta.json"))


def test_every_run_knows_its_cell(matrix: Matrix, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    summary = _make(matrix, lab, _Places())
    assert (summary.made, summary.kept, summary.failed) == (4, 0, {})
    assert _whole(lab) == ["a/run-1", "a/run-2", "b/run-1", "b/run-2"]
    metas = [json.loads((lab / name / "meta.json").read_text())["lab"] for name in _whole(lab)]
    assert [(meta["cell"], meta["number"]) for meta in metas] == [
        ("a", 1), ("a", 2), ("b", 1), ("b", 2),
    ]  # fmt: skip
    assert len({meta["session"] for meta in metas}) == 1
    assert sorted(meta["place_in_order"] for meta in metas) == [1, 2, 3, 4]
    assert [cell["name"] for cell in read_lab(lab)["cells"]] == ["a", "b"]


def test_a_failed_run_is_one_row(matrix: Matrix, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    summary = _make(matrix, lab, _Places(fail=(2,)))
    assert (summary.made, len(summary.failed)) == (3, 1)
    ((name, why),) = summary.failed.items()
    assert why == "the workload exited with 3: no space"
    assert (lab / f"{name}.failed/said").read_text() == "no space\n"
    again = _make(matrix, lab, _Places(), resume=True)
    assert (again.made, again.kept, again.failed) == (1, 3, {})
    assert not list(lab.glob("*/*.failed"))


@pytest.mark.parametrize("fails_again", [True, False])
def test_a_kill_while_an_old_failure_is_cleared(
    matrix: Matrix, tmp_path: Path, fails_again: bool
) -> None:
    """What is left of it has no reason any more; the next try goes on."""
    folder = tmp_path / "lab"
    _make(matrix, folder, _Places(fail=(2,)))
    (failed,) = folder.glob("*/*.failed")
    (failed / "why.json").unlink()
    assert list(failed.iterdir())
    summary = _make(matrix, folder, _Places(fail=(1,) if fails_again else ()), resume=True)
    assert len(summary.failed) == fails_again
    assert len(_whole(folder)) == 4 - fails_again
    assert [path.is_dir() for path in folder.glob("*/*.failed")] == [True] * fails_again
    assert (failed / "why.json").exists() == fails_again
    assert not list(folder.glob("*/.*"))


def test_a_kill_loses_no_finished_run(matrix: Matrix, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    child = multiprocessing.get_context("fork").Process(
        target=_make, args=(matrix, lab, _Places(kill=3))
    )
    child.start()
    child.join()
    assert child.exitcode == 9
    finished = {name: (lab / name / "meta.json").stat().st_mtime_ns for name in _whole(lab)}
    assert len(finished) == 2
    places = _Places()
    summary = _make(matrix, lab, places, resume=True)
    assert (places.asked, summary.made, summary.kept) == (2, 2, 2)
    assert len(_whole(lab)) == 4
    for name, changed in finished.items():
        assert (lab / name / "meta.json").stat().st_mtime_ns == changed
    assert not list(lab.glob("*/.*"))  # what the killed one left


def test_more_runs_of_the_same_cells(matrix: Matrix, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    _make(matrix, lab, _Places())
    matrix.path.write_text(matrix.path.read_text().replace("runs = 2", "runs = 3"))
    summary = _make(read_matrix(matrix.path), lab, _Places(), resume=True)
    assert (summary.made, summary.kept) == (2, 4)
    assert read_finished(lab).wanted == 3


class _FullDisk(_Places):
    """The second run finds no room."""

    def make(self, setup: object, work: Path, limit_s: float, boots: int) -> Path:
        if self.asked == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().make(setup, work, limit_s, boots)


def test_a_full_disk_ends_the_matrix(matrix: Matrix, tmp_path: Path) -> None:
    """One error, not a failed run for each that is left; what is made stays."""
    lab = tmp_path / "lab"
    told: list[Progress] = []
    with pytest.raises(SetupError) as caught, opened(lab, matrix, False) as store:
        make_runs(matrix, store, _FullDisk(), told.append)  # type: ignore[arg-type]
    assert caught.value.slug == "cannot-write"
    assert caught.value.message == "a run cannot be made there: No space left on device"
    assert caught.value.fix == "make room, then go on with resume=True"
    assert len(_whole(lab)) == 1
    assert not list(lab.glob("*/*.failed"))
    assert _make(matrix, lab, _Places(), resume=True).made == 3


def test_no_room_is_seen_before_a_run(
    matrix: Matrix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=3 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    places = _Places()
    with pytest.raises(SetupError, match="3 MiB are free, wanted 256 MiB"):
        _make(matrix, tmp_path / "lab", places)
    assert places.asked == 0


def test_other_folders_are_refused(matrix: Matrix, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    lab.mkdir()
    (lab / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="files in it that no lab wrote"):
        _make(matrix, lab, _Places())
    assert [path.name for path in lab.iterdir()] == ["thesis.txt"]
    with pytest.raises(InputError, match="is no folder of a lab"):
        read_lab(lab)
    _make(matrix, tmp_path / "mine", _Places())
    with pytest.raises(UsageError) as caught:
        _make(matrix, tmp_path / "mine", _Places())
    assert caught.value.fix == "go on with resume=True"
    matrix.path.write_text(_MATRIX.replace("cpus = 1", "cpus = 3"))
    with pytest.raises(UsageError, match="runs of another matrix"):
        _make(read_matrix(matrix.path), tmp_path / "mine", _Places(), resume=True)


def test_files_of_others_beside_the_runs_stay(matrix: Matrix, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    _make(matrix, lab, _Places(fail=(1,)))
    (failed,) = lab.glob("*/*.failed")
    notes = [lab / "notes.txt", failed.parent / "notes.txt"]
    for path in notes:
        path.write_text("mine")
    # No failure of ours: it has no why.json.
    theirs = failed.with_name("run-2.failed")
    theirs.mkdir()
    (theirs / "keep").write_text("mine")
    _make(matrix, lab, _Places(), resume=True)
    assert not failed.exists()
    assert all(path.exists() for path in (*notes, theirs / "keep"))


def test_two_commands_do_not_write_to_one_lab(matrix: Matrix, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    with opened(lab, matrix, False):
        with pytest.raises(SetupError) as caught, opened(lab, matrix, True):
            pass
        assert caught.value.slug == "lab-in-use"
