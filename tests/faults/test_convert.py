# SPDX-License-Identifier: Apache-2.0
"""A conversion that is killed, stopped or without room: the earlier result, or a whole new one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest
from support.faults import EARLIER, memory_disk
from support.progress import Steps, wait_for_group
from support.runs import example
from support.tools import ingester_path, wbscope_path
from support.waits import GUARD_SECONDS

_SEED = 43
_KILLS = 12
_TRIES_FOR_A_KILL = 4


def _command(which: str, output: Path) -> list[str | Path]:
    program = ingester_path() if which == "ingester" else wbscope_path()
    return [program, "convert", example("deep").trace, "-o", output, "--force"]


def _run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=GUARD_SECONDS
    )


def _start(command: list[str | Path]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)


@pytest.mark.parametrize("which", ["ingester", "wbscope"])
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_signals_at_random_moments(tmp_path: Path, which: str, sent: signal.Signals) -> None:
    """One that comes too late changes nothing: there is another one."""
    chance = random.Random(_SEED)
    output = tmp_path / "x.pftrace"
    first = _start(_command(which, output))
    every = Steps(first).whole()
    assert first.wait() == 0
    whole = output.stat().st_size
    codes = []
    wanted = _KILLS if which == "ingester" else _KILLS // 4
    for _ in range(wanted * _TRIES_FOR_A_KILL):
        if len(codes) == wanted:
            break
        output.write_bytes(EARLIER)
        process = _start(_command(which, output))
        steps = Steps(process)
        if which == "wbscope":  # Python's own start ends as Python does
            while len(os.listdir(tmp_path)) == 1 and steps.reach(steps.count() + 1):
                pass
        if not steps.reach(chance.randint(min(steps.count(), every), every)):
            process.wait()
            continue
        os.killpg(process.pid, sent)
        code = process.wait(GUARD_SECONDS)
        codes.append(code)
        if code == 130:  # of this round: one that the signal itself ended leaves its part
            assert os.listdir(tmp_path) == [output.name]
        elif sent != signal.SIGKILL:
            wait_for_group(process.pid)  # a child may be dying still
        assert output.read_bytes() == EARLIER or output.stat().st_size == whole
    assert {*codes} & {-signal.SIGKILL, 130}
    assert {*codes} <= {0, 130, -sent}  # a signal before there is a handler
    wait_for_group(process.pid)
    assert _run(_command(which, output)).returncode == 0
    assert os.listdir(tmp_path) == [output.name]


@pytest.mark.parametrize("kibibytes", [8, 512, 3072])
def test_full_disk(kibibytes: int) -> None:
    with memory_disk(f"size={kibibytes}k,mode=0777") as disk:
        output = disk / "x.pftrace"
        output.write_bytes(EARLIER)
        for which in ("ingester", "wbscope"):
            ended = _run(_command(which, output))
            assert ended.returncode == 5, ended.stderr
            assert ended.stderr.startswith("error[cannot-write]: "), ended.stderr
            assert (os.listdir(disk), output.read_bytes()) == ([output.name], EARLIER)
