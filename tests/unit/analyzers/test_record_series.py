# SPDX-License-Identifier: Apache-2.0
"""What the sampler keeps for the one who finds it killed, and for the end."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from support.waits import wait_until
from wbscope.base.errors import SetupError
from wbscope.record.series import Sampler
from wbscope.record.tasks import read_names

_LONG_SECONDS = 1e6  # beside this, what a sample takes is nothing


def _proc(tmp_path: Path, tasks: Mapping[int, str]) -> Path:
    """A machine where these live."""
    proc = tmp_path / "proc"
    shutil.rmtree(proc, ignore_errors=True)
    for tid, name in tasks.items():
        (proc / f"{tid}/task/{tid}").mkdir(parents=True)
        (proc / f"{tid}/task/{tid}/comm").write_text(f"{name}\n")
    (tmp_path / "cgroup").mkdir(exist_ok=True)
    (proc / "self").mkdir(parents=True)
    (proc / "self/mounts").write_text(f"cgroup2 {tmp_path}/cgroup cgroup2 rw 0 0\n")
    return proc


def test_the_last_names_and_cgroups_are_kept(tmp_path: Path) -> None:
    """A number that was given to another one meanwhile has the later name."""
    run, top = tmp_path / "run", tmp_path / "cgroup"
    for folder in (run, top / "first", top / "stays"):
        folder.mkdir(parents=True)
    known = {path.stat().st_ino: path for path in (top, top / "stays")}
    inode = (top / "first").stat().st_ino
    sampler = Sampler(run, tmp_path, "boot", 1.0, tmp_path / "proc")
    for tasks, cgroup in (
        ({11: "sh", 12: "cp"}, "first"),
        ({11: "dd"}, "second"),
        ({11: "dd"}, "third"),
    ):
        _proc(tmp_path, tasks)
        sampler.finish()
        assert read_names(run) == {12: "cp"} | tasks
        lines = (run / "cgroups").read_text().splitlines()
        found = {int(number): Path(path) for number, path in (line.split() for line in lines)}
        assert found == known | {inode: top / cgroup}
        for old, new in (("stays", "../gone"), ("second", "third"), ("first", "second")):
            if (top / old).exists():
                (top / old).rename(top / new)


def _break(tmp_path: Path, what: str) -> None:
    """Put into /proc what no kernel has there."""
    if what == "cgroups":
        (tmp_path / "proc/self/mounts").write_text("cgroup2\n")
    else:
        (tmp_path / "proc/11/task/no number").mkdir()
        (tmp_path / "proc/11/task/no number/comm").touch()


@pytest.mark.parametrize("what", ["cgroups", "tasks"])
def test_a_sampler_that_ends_at_once(tmp_path: Path, what: str) -> None:
    """Nobody waits for it: the recorder hears of it, and puts back what it has set."""
    proc = _proc(tmp_path, {11: "dd"})
    (tmp_path / "run").mkdir()
    _break(tmp_path, what)
    sampler = Sampler(tmp_path / "run", tmp_path, "boot", 1.0, proc)
    with pytest.raises(SetupError, match="ValueError: ") as caught:
        sampler.start()
    assert caught.value.slug == "sampler-died"


def test_a_sampler_that_ends_while_it_samples(tmp_path: Path) -> None:
    """What there is stays, and the run says that its series are not whole."""
    proc = _proc(tmp_path, {11: "dd"})
    (tmp_path / "run").mkdir()
    sampler = Sampler(tmp_path / "run", tmp_path, "boot", 0.01, proc)
    sampler.start()
    _break(tmp_path, "cgroups")
    sampler.go(True)
    wait_until(sampler.problems, "the end of the sampler")
    sampler.finish()
    (told,) = sampler.problems()
    assert "ValueError: " in told
    assert read_names(tmp_path / "run") == {11: "dd"}


def test_samples_are_half_as_often_after_each_600(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for the next sample here: how long the sampler would have is noted."""
    proc = _proc(tmp_path, {11: "dd"})
    real, due = threading.Event.wait, [0.0]

    def wait(event: threading.Event, timeout: float | None = None) -> bool:
        if timeout is None or timeout < _LONG_SECONDS / 2:
            return real(event, timeout)
        due.append(timeout)  # since the first sample, which is as good as now
        if len(due) > 1201:
            event.set()
        return event.is_set()

    monkeypatch.setattr(threading.Event, "wait", wait)
    (tmp_path / "run").mkdir()
    sampler = Sampler(tmp_path / "run", tmp_path, "boot", _LONG_SECONDS, proc)
    sampler.start()
    sampler.go(filtered=False)
    wait_until(lambda: len(due) > 1201, "the last sample")
    sampler.finish()
    assert sampler.problems() == []
    gaps = [round((later - now) / _LONG_SECONDS) for now, later in pairwise(due)]
    assert gaps == [1] * 599 + [2] * 600 + [4] * 2
