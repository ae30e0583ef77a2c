# SPDX-License-Identifier: Apache-2.0
"""What the sampler keeps for the one who finds it killed, and for the end."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
from support.waits import GUARD_SECONDS
from wbscope.base.errors import SetupError
from wbscope.record import series
from wbscope.record.names import read_names
from wbscope.record.series import Sampler


def test_the_last_names_and_cgroups_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number that was given to another one meanwhile has the later name."""
    sampler = Sampler(tmp_path, tmp_path, "boot", 1.0)
    for tasks, cgroups in (
        ({11: "sh", 12: "cp"}, {5: "/first", 6: "/stays"}),
        ({11: "dd"}, {5: "/second"}),
        ({11: "dd"}, {5: "/third"}),
    ):
        monkeypatch.setattr(series, "task_names", lambda tasks=tasks: tasks)
        monkeypatch.setattr(series, "cgroup_paths", lambda cgroups=cgroups: cgroups)
        sampler.finish()
        assert read_names(tmp_path) == {12: "cp"} | tasks
        lines = (tmp_path / "cgroups").read_text().splitlines()
        assert dict(line.split() for line in lines) == {"5": cgroups[5], "6": "/stays"}


def _fails(*_: object) -> NoReturn:
    raise RuntimeError("a folder that nobody thought of")


@pytest.mark.parametrize("what", ["cgroup_paths", "task_names", "reserve_names"])
def test_a_sampler_that_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Nobody waits for it: the recorder hears of it, and puts back what it has set."""
    monkeypatch.setattr(series, what, _fails)
    sampler = Sampler(tmp_path, tmp_path, "boot", 1.0)
    with pytest.raises(SetupError, match="RuntimeError: a folder that nobody thought of"):
        sampler.start()


def test_a_sampler_that_ends_while_it_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What there is stays, and the run says that its series are not whole."""
    monkeypatch.setattr(series, "task_names", lambda: {11: "dd"})
    sampler = Sampler(tmp_path, tmp_path, "boot", 0.01)
    sampler.start()
    monkeypatch.setattr(series, "cgroup_paths", _fails)
    sampler.go(True)
    sampler._thread.join(GUARD_SECONDS)
    assert not sampler._thread.is_alive()
    sampler.finish()
    told = "the sampler ended too early: RuntimeError: a folder that nobody thought of"
    assert sampler.problems() == [told]
    assert read_names(tmp_path) == {11: "dd"}


def test_samples_are_half_as_often_after_each_600(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a clock of its own, which goes on while the sampler waits: no second passes."""
    now, taken = [0.0], []
    sampler = Sampler(tmp_path, tmp_path, "boot", 1.0)

    def wait(seconds: float) -> None:
        now[0] += seconds

    def sample(name: str, _: object) -> None:
        if name == "meminfo":  # of each sample
            taken.append(now[0])

    ended = SimpleNamespace(is_set=lambda: len(taken) > 1200, wait=wait)
    monkeypatch.setattr(series, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(series, "cgroup_paths", dict)
    monkeypatch.setattr(sampler, "_ended", ended)
    monkeypatch.setattr(sampler, "_sample", sample)
    for name in ("_save", "_look_for_cgroups"):
        monkeypatch.setattr(sampler, name, lambda: None)
    sampler.go(filtered=True)
    sampler._run()
    assert taken[:600] == list(range(600))
    # From 599 s on each 2 s, 600 times: up to 599 + 2 * 600.
    assert taken[600:1200] == list(range(601, 1800, 2))
    assert taken[1200:] == [1799 + 4]
