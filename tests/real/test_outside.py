# SPDX-License-Identifier: Apache-2.0
"""Waits outside of throttling, in traces that can be checked by hand: what each finding tells of
them, what the all-clear is about, and what time is a task's own. Times are ms."""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from support.wait_events import COMMIT, MS, WRITE, Waits, device
from wbscope.explain.proving import prove
from wbscope.library.finding import Finding

_DISK = ("block_rq_issue", "block_rq_complete")
_SLEEP = ("balance_dirty_pages", "sched_switch", *_DISK)
_READER, _OTHER, _WRITER, _FLUSHER, _BURN = 80, 81, 82, 7, 9
_NAMES = {
    _READER: "rd",
    _OTHER: "other",
    _WRITER: "wr",
    _FLUSHER: "kworker/u4:1",
    _BURN: "burn",
    25: "kworker/0:1",
}
Row = dict[str, object]


def _waits(*names: str) -> Waits:
    """Throttling was recorded: the writer is asked twice, and does not sleep."""
    waits = Waits(*names, "global_dirty_state", cmdlines=_NAMES)
    for ms in (0, 5000):
        _pause(waits, ms, 0)
        _state(waits, ms)
    return waits


def _state(waits: Waits, ms: float) -> None:
    limits = {"background_thresh": 500, "dirty_thresh": 1000, "dirty_limit": 1000}
    waits.add(ms, 25, "global_dirty_state", nr_dirty=10, **limits)


def _pause(waits: Waits, ms: float, pause: int, paused: int = 0) -> None:
    values = {"cgroup_ino": 1, "dirty_ratelimit": 1000, "task_ratelimit": 100, "dirtied": 8}
    values |= {"pause": pause, "paused": paused, "period": pause}
    waits.add(ms, _WRITER, "balance_dirty_pages", bdi="8:0", **values)


def _reads(waits: Waits, rwbs: str) -> None:
    """Ten of 200 ms; the reader sleeps from 0.1 ms behind each until it is there."""
    for i in range(10):
        start = 100 + 300 * i
        waits.request(_READER, 1000 + 100 * i, issue=start, complete=start + 200, rwbs=rwbs)
        waits.sleep(start + 0.1, start + 200, _READER)


def _found(waits: Waits, folder: Path) -> tuple[dict[str, Finding], list[Row]]:
    """Findings, each proven by its evidence, and the rows of lost_time."""
    waits.write(folder)
    with wbscope.open(folder) as run:
        found = run.findings()
        for one in found:
            assert all(proven.holds for proven in prove(run, one)), one
        return {one.id: one for one in found}, run.query("lost_time").records()


def test_an_all_clear_says_what_was_not_recorded(tmp_path: Path) -> None:
    """Without sched_switch and system calls nobody knows what else held a task up."""
    for name, events in (("blind", ()), ("sleeps", ("sched_switch",)), ("calls", WRITE)):
        folder = tmp_path / name
        folder.mkdir()
        waits = _waits("balance_dirty_pages", *events)
        if name == "sleeps":
            waits.sleep(100, 100.5, _OTHER)
        found, _ = _found(waits, folder)
        calm = found["nothing_wrong"]
        is_blind = name == "blind"
        assert calm.confidence == ("inferred" if is_blind else "measured")
        assert (calm.title == "Nothing is wrong") is not is_blind
        unseen = "; whether anything else held a task up was not recorded."
        assert calm.text.endswith(unseen) is is_blind


@pytest.mark.parametrize("calls", [(), WRITE])
def test_how_long_a_write_was_held_is_a_lower_bound(calls: tuple[str, ...], tmp_path: Path) -> None:
    """A pause of 600 ms; what the same write waited for besides, only its own events tell."""
    waits = Waits("balance_dirty_pages", "global_dirty_state", *calls, cmdlines=_NAMES)
    _state(waits, 0)
    _pause(waits, 0, 600)
    _pause(waits, 601, 0)
    found, _ = _found(waits, tmp_path)
    least = "" if calls else "at least "
    assert found["slow_device"].text.endswith(f"; one write was held for {least}600 ms.")


def test_what_stood_still_is_without_kernel_threads(tmp_path: Path) -> None:
    """The flusher waits 960 ms for the journal, the reader 199.9 ms for a read."""
    waits = _waits(*_SLEEP, *COMMIT)
    waits.span(100, 1100, 9, COMMIT, dev=device(8, 0))
    waits.sleep(120, 1080, _FLUSHER)
    waits.request(_READER, 1000, issue=2000, complete=2200, rwbs="R")
    waits.sleep(2000.1, 2200, _READER)
    found, _ = _found(waits, tmp_path)
    assert found["flusher_waits_journal"].cost_task_ns == 960 * MS
    told = found["overview"]
    assert (told.facts["tasks_count"], told.facts["lost_ns"]) == (1, 1999 * MS // 10)
    assert told.text.endswith("; 1 task stood still for 200 ms in all.")
