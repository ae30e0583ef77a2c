# SPDX-License-Identifier: Apache-2.0
"""What the sampler keeps for the one who finds it killed, and for the end."""

from __future__ import annotations

from pathlib import Path

import pytest
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
