# SPDX-License-Identifier: Apache-2.0
"""Names of tasks, from what the recorder saved and from what events say."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.loaded import LoadedRun
from support.texttrace import load_lines
from support.tools import ingester_path, run
from support.wait_events import Waits

_DD, _SHELL, _IDLE = 40, 41, 0
_RUNNING, _SLEEPING = 0, 1


def _dd_of_a_shell(saved: str | None, *, leaves: bool) -> Waits:
    """A fork of sh that calls exec on the CPU: sched_switch tells dd only where it leaves."""
    names = {_SHELL: "sh"} if saved is None else {_SHELL: "sh", _DD: saved}
    waits = Waits("sched_switch", "balance_dirty_pages", cmdlines=names)
    waits.name(_DD, "sh")
    waits.switch(1, _IDLE, _RUNNING, _DD)
    waits.add(2, _DD, "balance_dirty_pages")
    if leaves:
        waits.name(_DD, "dd")
        waits.switch(3, _DD, _SLEEPING, _IDLE)
    waits.switch(4, _IDLE, _RUNNING, _SHELL)
    waits.switch(5, _SHELL, _SLEEPING, _IDLE)
    return waits


@pytest.mark.parametrize("writer", ["pages", "sqlite"])
@pytest.mark.parametrize(
    ("saved", "leaves", "name"),
    [
        (None, True, "dd"),  # 128 other names were saved since: its last sight is as prev_comm
        (None, False, "sh"),
        ("sh", True, "dd"),  # the kernel could not save the name when it left
        ("dd", True, "dd"),
        ("dd", False, "dd"),  # saved after its last sight
        ("other", True, "other"),  # renamed after its last sight
    ],
)
def test_the_last_name_is_known(
    saved: str | None, leaves: bool, name: str, writer: str, tmp_path: Path
) -> None:
    _dd_of_a_shell(saved, leaves=leaves).write(tmp_path)
    output = tmp_path / "run.db"
    command = [ingester_path(), "sqlite", tmp_path / "trace.dat", "--all", "-o", output]
    done = run([*command, "--writer", writer])
    assert done.returncode == 0, done.stderr
    rows = LoadedRun(output).rows("SELECT tid, comm FROM task ORDER BY tid")
    assert rows == [(_IDLE, "<idle>"), (_DD, name), (_SHELL, "sh")]


_LEFT = (
    "sched_switch: prev_comm=dd prev_pid=40 prev_prio=120 prev_state=Z ==>"
    " next_comm=sh next_pid=41 next_prio=120"
)


@pytest.mark.parametrize(
    "last",
    [
        "sched_wakeup: comm=dd pid=40 prio=120 target_cpu=000",
        "sched_wakeup: pid=40 prio=120 target_cpu=000",  # a line that lacks the name
        "sched_process_wait: comm=sh pid=40 prio=120",  # sh waits for 40
    ],
)
def test_what_names_no_task(last: str, tmp_path: Path) -> None:
    lines = [
        "sh-41 [000] 99.000000: sched_wakeup: comm=sh pid=40 prio=120 target_cpu=000",
        f"dd-40 [000] 100.000000: {_LEFT}",
        f"sh-41 [000] 101.000000: {last}",
    ]
    loaded = load_lines(lines, tmp_path, "--all")
    assert loaded.sql("SELECT tid, comm FROM task ORDER BY tid") == [(40, "dd"), (41, "sh")]
