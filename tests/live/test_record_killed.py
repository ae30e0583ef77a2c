# SPDX-License-Identifier: Apache-2.0
"""Killed at any moment: tracing is off, everything as it was, what was recorded is readable."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.live import Recorder, instances, report_counts, wait_until

# For a longer campaign: WBSCOPE_KILLS=100.
_KILLS = int(os.environ.get("WBSCOPE_KILLS", "4"))
_LATEST_SECONDS = 1.6
_COMMAND = "dd if=/dev/zero of=$0/k bs=1M count=13 2>/dev/null; sleep 0.4"
_OPTIONS = ("--backend", "tracefs", "--no-report", "--sysctl", "vm.dirty_bytes=32M", "-o", "run")
_REGISTER = Path("/run/wbscope")


def _kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _put_back() -> bool:
    return not instances() and not list(_REGISTER.glob("*.json"))


def _tracing_stopped() -> bool:
    for instance in instances():
        try:
            on = (instance / "tracing_on").read_text().strip() == "1"
            if on and (instance / "events/enable").read_text().strip() != "0":
                return False
        except OSError:
            continue  # it is being removed
    return True


def _check_run(recorder: Recorder) -> None:
    """There is a whole run or none, and nothing else that holds events."""
    run = recorder.folder / "run"
    assert not list(recorder.folder.glob(".run.*/.head"))
    if run.exists():
        assert recorder.meta("run")["ended"]
        recorder.counts("run")
        report_counts(run / "trace.dat")


def _wait_for_start(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("recording"):
            return


@pytest.mark.parametrize("number", range(_KILLS))
@pytest.mark.parametrize("which", ["front", "recorder", "both"])
def test_kill(recorder: Recorder, disk: Path, which: str, number: int) -> None:
    chance = random.Random(f"{which}{number}")
    process = recorder.start(*_OPTIONS, "--", "sh", "-c", _COMMAND, disk)
    time.sleep(chance.uniform(0, _LATEST_SECONDS))
    supervisors = recorder.supervisors(process.pid)
    if which != "front":
        _kill(supervisors)
    if which != "recorder":
        _kill([process.pid])
    process.wait(60)
    if which == "both":
        # Nobody is left, so the kernel stops tracing; the next command does the rest.
        assert wait_until(_tracing_stopped, 10)
        done = recorder.record("--recover")
        assert done.returncode == 0, done.stderr
    # A recorder that has just started finds that it is alone.
    assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in supervisors), 30)
    assert wait_until(_put_back, 30)
    _check_run(recorder)


def test_ctrl_c_ends_the_command_and_writes_the_run(recorder: Recorder) -> None:
    process = recorder.start(
        *("--backend", "tracefs", "--no-report", "-o", "run", "--", "sleep", "60")
    )
    _wait_for_start(process)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == 130
    meta = recorder.meta("run")
    assert meta["ended"] == "interrupted"
    assert meta["command_signal"] == signal.SIGINT
    recorder.counts("run")


def test_ctrl_c_while_it_starts(recorder: Recorder) -> None:
    process = recorder.start("--backend", "tracefs", "-o", "run", "--", "sleep", "60")
    assert wait_until(lambda: recorder.supervisors(process.pid), 20)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == 130
    assert wait_until(_put_back, 10)
    assert not list(recorder.folder.glob(".run.*"))


def test_plain_kill_ends_the_command_too(recorder: Recorder) -> None:
    process = recorder.start(
        *("--backend", "tracefs", "--no-report", "-o", "run", "--", "sleep", "60")
    )
    _wait_for_start(process)
    process.terminate()
    assert process.wait(30) == 130
    assert recorder.meta("run")["ended"] == "interrupted"


def test_ctrl_c_is_the_end_without_a_command(recorder: Recorder) -> None:
    process = recorder.start("--backend", "tracefs", "--no-report", "-o", "run")
    _wait_for_start(process)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == 0
    assert recorder.meta("run")["ended"] == "complete"
