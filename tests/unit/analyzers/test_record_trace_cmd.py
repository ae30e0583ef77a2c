# SPDX-License-Identifier: Apache-2.0
"""A trace-cmd that no signal ends, as one in state D: nobody waits for it for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from support.waits import GUARD_SECONDS, wait_until
from wbscope.record.backends import end_trace_cmd, trace_cmd_pids
from wbscope.record.finish import Recovered

_INSTANCE = f"wbscope-{os.getpid()}-00000000"
_NO_PID = 2**22 + 1  # above all that a kernel gives


def test_one_that_does_not_end_is_told(tmp_path: Path) -> None:
    (tmp_path / str(_NO_PID)).mkdir()
    (tmp_path / str(_NO_PID) / "cmdline").write_bytes(f"trace-cmd\0{_INSTANCE}\0".encode())
    left = end_trace_cmd(_INSTANCE, 0, kill_seconds=0.1, proc=tmp_path)
    assert left == [_NO_PID]
    told = f"trace-cmd (pid {_NO_PID}) did not end when it was killed"
    assert told in str(Recovered("i", pids_left=tuple(left)))


def test_one_that_ends_is_not() -> None:
    sleeps = f"import time; time.sleep({10 * GUARD_SECONDS})"
    with subprocess.Popen(["trace-cmd", "-c", sleeps, _INSTANCE], executable=sys.executable) as one:
        wait_until(lambda: trace_cmd_pids(_INSTANCE), "the program")
        assert end_trace_cmd(_INSTANCE, 0) == []
        assert one.wait(GUARD_SECONDS) == -signal.SIGKILL
    assert "trace-cmd" not in str(Recovered("i"))
