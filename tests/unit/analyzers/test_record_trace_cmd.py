# SPDX-License-Identifier: Apache-2.0
"""A trace-cmd that no signal ends, as one in state D: nobody waits for it for ever."""

from __future__ import annotations

import pytest
from wbscope.record import backends
from wbscope.record.backends import end_trace_cmd
from wbscope.record.finish import Recovered

_NO_PID = 2**22 + 1  # above all that a kernel gives


def test_one_that_does_not_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "trace_cmd_pids", lambda _: [_NO_PID])
    monkeypatch.setattr(backends, "_KILL_SECONDS", 0.1)
    left = end_trace_cmd("wbscope-1-00000000", 0)
    assert left == [_NO_PID]
    told = f"trace-cmd (pid {_NO_PID}) did not end when it was killed"
    assert told in str(Recovered("i", pids_left=tuple(left)))


def test_one_that_ends_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [[_NO_PID], [_NO_PID], []]
    monkeypatch.setattr(backends, "trace_cmd_pids", lambda _: found.pop(0))
    assert end_trace_cmd("wbscope-1-00000000", 0) == []
    assert "trace-cmd" not in str(Recovered("i"))
