# SPDX-License-Identifier: Apache-2.0
"""States of sched_switch: which bits an old kernel has for tasks that are idle, or have ended."""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from support.wait_events import MS, Waits

_NOLOAD, _PARKED_3_9, _PARKED, _IDLE = 0x400, 0x200, 0x40, 0x80


def _uname(kernel: str) -> str:
    return f"Linux synthetic {kernel}-test x86_64"


@pytest.mark.parametrize(
    ("kernel", "state", "wanted"),
    [
        ("6.1.0", 2, "D"),
        ("6.1.0", _IDLE, "I"),
        ("6.1.0", _PARKED, "I"),
        ("6.1.0", 0x20, "X"),
        ("6.1.0", 0x100, "R"),
        ("4.14.0", 0x10, "X"),
        ("4.13.0", 0x40, "X"),
        ("4.9.0", 2 | _NOLOAD, "I"),  # TASK_IDLE
        ("4.9.0", 2 | 0x80, "D"),  # TASK_KILLABLE
        ("4.9.0", 0x1000, "R"),
        ("4.4.0", _PARKED_3_9, "I"),
        ("4.1.0", 0x400, "R"),  # preempted
        ("3.8.0", 0x200, "R"),
        ("3.8.0", 0x40, "X"),
        ("4.4.0", 1, "S"),
        ("4.4.0", 4 | 0x80, "T"),
    ],
)
def test_states_by_kernel(tmp_path: Path, kernel: str, state: int, wanted: str) -> None:
    waits = Waits("sched_switch", cmdlines={11: "dd"}, uname=_uname(kernel))
    waits.sleep(10, 20, 11, state)
    waits.write(tmp_path)
    with wbscope.open(tmp_path) as run:
        rows = run.sql("SELECT is_on, left_state FROM wb_switch ORDER BY seq").records()
        found = [(row["is_on"], row["left_state"]) for row in rows]
        blocked = len(run.sql("SELECT seq FROM wb_blocked").records())
    assert found == [(0, wanted), (1, None)]
    assert blocked == (wanted == "D")


def test_an_idle_thread_of_an_old_kernel_is_not_blocked(tmp_path: Path) -> None:
    waits = Waits("sched_switch", cmdlines={11: "dd", 60: "kidle"}, uname=_uname("4.9.0"))
    waits.sleep(1, 4000, 60, 2 | _NOLOAD)
    waits.sleep(10, 20, 11, 2)
    waits.write(tmp_path)
    with wbscope.open(tmp_path) as run:
        rows = run.query("blocked_coverage").records()
        told = [finding.id for finding in run.findings()]
    assert [row["blocked_ns"] for row in rows] == [10 * MS]
    assert "unexplained" not in told


@pytest.mark.parametrize(("kernel", "dead"), [("4.4.0", 64), ("4.13.16", 64), ("6.1.0", 16)])
def test_what_a_task_does_after_its_exit_is_its_own(tmp_path: Path, kernel: str, dead: int) -> None:
    """It closes its files then: one writer, not two of one name."""
    waits = Waits(
        "sched_switch",
        "sched_process_exit",
        "balance_dirty_pages",
        cmdlines={11: "dd"},
        uname=_uname(kernel),
    )
    waits.switch(0, 0, 0, 11)
    for second in (1, 2, 3, 4, 5, 6, 7):
        if second == 5:
            waits.add(4500, 11, "sched_process_exit", comm="dd", pid=11, prio=120)
        waits.add(
            second * 1000, 11, "balance_dirty_pages", bdi="8:0", limit=100_000, setpoint=80_000,
            dirty=85_000, bdi_setpoint=40_000, bdi_dirty=42_000, dirty_ratelimit=4000,
            task_ratelimit=4000, dirtied=200, dirtied_pause=32, paused=0, pause=200, period=400,
            think=200, cgroup_ino=1,
        )  # fmt: skip
    waits.switch(9000, 11, dead, 0)
    waits.write(tmp_path)
    with wbscope.open(tmp_path) as run:
        rows = run.query("throttle_by_task").records()
        names = len(run.sql("SELECT task_id FROM wb_task WHERE tid = 11").records())
    assert [(row["tid"], row["calls_count"]) for row in rows] == [(11, 7)]
    assert names == 1
