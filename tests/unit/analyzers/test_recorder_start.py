# SPDX-License-Identifier: Apache-2.0
"""A recorder that is interrupted while it starts leaves nothing."""

from __future__ import annotations

import queue
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest
from wbscope.record.recorder import _started
from wbscope.record.register import Plan


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    started = []

    def interrupted(*_: Any, pass_fds: list[int], **__: Any) -> NoReturn:
        assert [path.name for path in folder.iterdir()]
        started.extend(pass_fds)
        raise error

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    folder = tmp_path / "private"
    other = tmp_path / "private-of-another"
    other.mkdir()
    plan = cast(Plan, SimpleNamespace(folder=str(folder), to_json=lambda: "{}"))
    with pytest.raises(error):
        _started(plan, queue.Queue(), lambda _: None)
    assert started
    assert list(tmp_path.iterdir()) == [other]
