# SPDX-License-Identifier: Apache-2.0
"""What tasks wait for in calls that sync, and who waits for a journal.

Times are ms from 10 s; a request is 8 sectors = 4096 bytes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from support.wait_events import (
    COMMIT,
    EXT4_SYNC,
    FSYNC,
    MS,
    SYNC_CALLS,
    SYNC_FILE_RANGE,
    WRITE,
    Waits,
    device,
)
from wbscope.explain.remedy import prove
from wbscope.library.finding import Finding

_BLOCK = ("block_rq_issue", "block_rq_complete")
_STATE = "global_dirty_state"
_COMMS = {1: "one", 2: "two", 9: "jbd2/sda-8", 20: "kworker/u8:1", 21: "kworker/u8:2"}
_COMMS |= {22: "kworker/0:1H", 23: "kworker/0:3"}


def _found(waits: Waits, folder: Path, rule: str, *, proven: bool = True) -> list[Finding]:
    """What the rule says of the trace; its numbers are those of the queries that it names."""
    waits.write(folder)
    with wbscope.open(folder) as run:
        found = [one for one in run.findings() if one.id == rule]
        for one in found if proven else ():
            assert all(number.holds for number in prove(run, one)), one
    return found


def _fsync(waits: Waits, start: float, end: float, tid: int, dev: tuple[int, int]) -> None:
    waits.span(start, end, tid, FSYNC)
    waits.span(start, end, tid, EXT4_SYNC, dev=device(*dev))


def _behind() -> Waits:
    """Three calls, 600 ms, 700 ms and 2.5 s; the disk has a request all the time."""
    waits = Waits(*SYNC_CALLS, *EXT4_SYNC, *_BLOCK, cmdlines=_COMMS)
    waits.request(20, 64, issue=0, complete=5000, rwbs="W")
    for start, end in ((0, 600), (1000, 1700), (2000, 4500)):
        waits.span(start, end, 1, SYNC_FILE_RANGE)
    return waits


def test_who_writes_behind_goes_at_the_speed_of_the_disk(tmp_path: Path) -> None:
    (one,) = _found(_behind(), tmp_path, "write_behind")
    assert (one.severity, one.cost_task_ns, one.advice) == ("note", 1300 * MS, None)
    assert one.text == (
        "one 1 waited 1.30 s in sync_file_range, the longest 700 ms: writing behind goes at the "
        "speed of 8:0."
    )


def test_a_call_of_seconds_holds_nobody_back_in_time(tmp_path: Path) -> None:
    (one,) = _found(_behind(), tmp_path, "sync_waits")
    assert (one.severity, one.cost_task_ns) == ("warning", 2500 * MS)


def test_pieces_that_are_written_behind_are_no_storm_of_fsync(tmp_path: Path) -> None:
    """20 in a second, of a device that the page under writeback in each names."""
    waits = Waits(*SYNC_CALLS, *EXT4_SYNC, *_BLOCK, cmdlines=_COMMS)
    waits.request(20, 64, issue=0, complete=1000, rwbs="W")
    for start in range(0, 1000, 50):
        waits.span(start, start + 40, 1, SYNC_FILE_RANGE)
    _fsync(waits, 0, 300, 2, (8, 0))
    waits.write(tmp_path)
    with wbscope.open(tmp_path) as run:
        found = {one.id: one.cost_task_ns for one in run.findings()}
    assert "fsync_storm" not in found
    assert (found["write_behind"], found["sync_waits"]) == (800 * MS, 300 * MS)


def test_the_flushers_stand_still_not_the_disk(tmp_path: Path) -> None:
    """Two are blocked, for 500 and 300 ms; one worker is of the block layer, one does else."""
    (one,) = _found(_flushers(told=True), tmp_path, "flusher_waits_journal")
    assert one.text == (
        "Flushers (kworker/u8:1 and kworker/u8:2) stood still for 800 ms in all while the journal "
        "of 8:0 committed, the longest time for 500 ms, and gave the disk no more dirty pages "
        "meanwhile."
    )


def test_without_events_of_writeback_any_worker_may_be_a_flusher(tmp_path: Path) -> None:
    """But for that of the block layer: 500, 300 and 600 ms."""
    (one,) = _found(_flushers(told=False), tmp_path, "flusher_waits_journal")
    assert round(one.cost_task_ns / MS) == 1400


def _flushers(*, told: bool) -> Waits:
    work = ("writeback_start",) if told else ()
    waits = Waits(*COMMIT, *_BLOCK, *work, "sched_switch", cmdlines=_COMMS)
    waits.request(20, 64, issue=0, complete=600, rwbs="W")
    waits.span(0, 600, 9, COMMIT, dev=device(8, 0))
    for tid, start, end in ((20, 1, 501), (21, 101, 401), (22, 2, 602), (23, 3, 603)):
        if told and tid in (20, 21):
            waits.add(start, tid, "writeback_start", name="8:0", nr_pages=1024)
        waits.sleep(start + 0.01, end, tid)
    return waits


_LESS_OFTEN = (
    "No limit helps where no more than 400 KiB are dirty: let what calls fsync() call it less "
    "often, or give it a file system of its own."
)
_BY_ITSELF = (
    "Nobody called fsync or the like: the journal of 8:0 commits by itself, every 5 s or as its "
    "mount option commit= says, and when it is full. What cannot wait for that needs a file "
    "system of its own."
)


_UNKNOWN = (
    "No limit helps, and who made the journal of 8:0 commit was not recorded: wbscope record"
    " --profile deep tells whether somebody calls fsync, or it is the timer."
)


@pytest.mark.parametrize(
    ("without", "asked", "advice"),
    [("", False, _BY_ITSELF), ("", True, _LESS_OFTEN), ("syncfs", False, _UNKNOWN)],
    ids=["nobody", "somebody", "not recorded"],
)
def test_fsync_is_blamed_where_it_was_called(
    tmp_path: Path, without: str, asked: bool, advice: str
) -> None:
    """100 pages were dirty of a limit of 16 MiB; write() waits for a commit, the disk is busy."""
    calls = [name for name in SYNC_CALLS if not without or without not in name]
    waits = Waits(*calls, *EXT4_SYNC, *WRITE, *COMMIT, *_BLOCK, _STATE, cmdlines=_COMMS)
    waits.span(0, 600, 1, WRITE)
    waits.span(0, 600, 9, COMMIT, dev=device(8, 0))
    waits.request(20, 64, issue=0, complete=600, rwbs="W")
    limits = {"background_thresh": 2048, "dirty_thresh": 4096, "dirty_limit": 4096}
    for ms in (0, 650):
        waits.add(ms, 20, _STATE, nr_dirty=100, nr_dirtied=100, nr_written=0, **limits)
    if asked:
        _fsync(waits, 700, 700.1, 2, (8, 0))
    (one,) = _found(waits, tmp_path, "journal_commit")
    assert one.cost_task_ns == 600 * MS
    assert one.advice is not None
    assert one.advice.text == advice


def test_a_sync_beside_an_idle_disk(tmp_path: Path) -> None:
    """One second, and a request for 200 ms of it."""
    waits = Waits(*FSYNC, *EXT4_SYNC, *_BLOCK, cmdlines=_COMMS)
    _fsync(waits, 0, 1000, 1, (8, 0))
    waits.request(20, 64, issue=100, complete=300, rwbs="W")
    (one,) = _found(waits, tmp_path, "sync_waits")
    assert one.title == "Tasks wait in sync while the disk has little to do"
    assert one.text.endswith("; the disk had nothing to do for 80.0 % of that time.")
    assert one.advice is not None
    assert one.advice.text.startswith("With 8:0 idle for so long, neither a limit nor a faster ")
    assert one.advice.settings == ()


@pytest.mark.parametrize(("others", "bdis"), [((), {"253:0"}), ((32,), {"253:0", None})])
def test_one_journal_on_two_disks(
    tmp_path: Path, others: tuple[int, ...], bdis: set[str | None]
) -> None:
    """fsync of 600 ms names its device; another task is blocked as long, and nothing names it.

    With a third disk that nothing lies on it may wait for that.
    """
    waits = Waits(*FSYNC, *EXT4_SYNC, *COMMIT, *_BLOCK, "sched_switch", cmdlines=_COMMS)
    for minor in (0, 16, *others):
        waits.request(20, 64, issue=0, complete=700, rwbs="W", dev=(8, minor))
    waits.span(0, 610, 9, COMMIT, dev=device(253, 0))
    _fsync(waits, 0, 600, 1, (253, 0))
    waits.sleep(1, 601, 2)
    (tmp_path / "stacks").write_text("253:0 8:0\n253:0 8:16\n")
    found = _found(waits, tmp_path, "journal_commit", proven=False)
    assert {one.facts["bdi"] for one in found} == bdis
    assert sum(one.cost_task_ns for one in found) == 1200 * MS
