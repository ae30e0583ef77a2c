# SPDX-License-Identifier: Apache-2.0
"""Waits outside of throttling, in traces that can be checked by hand: what each finding tells of
them, what the all-clear is about, and what time is a task's own. Times are ms."""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from support.wait_events import COMMIT, MEMCG, MS, WRITE, Waits, device
from wbscope.explain.remedy import prove
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


@pytest.mark.parametrize(
    ("rwbs", "kind", "confidence"),
    [("RA", "blocked outside throttling", "inferred"), ("R", "block queue", "measured")],
)
def test_a_task_waits_for_its_reads(rwbs: str, kind: str, confidence: str, tmp_path: Path) -> None:
    """10 times 199.9 ms; that somebody waits for a read ahead, nothing says itself."""
    waits = _waits(*_SLEEP)
    _reads(waits, rwbs)
    found, rows = _found(waits, tmp_path)
    told = found["disk_reads"]
    assert (told.severity, told.confidence) == ("warning", confidence)
    assert told.cost_task_ns == 1999 * MS
    assert told.text == (
        "rd 80 waited 2.00 s for reads of 8:0, the longest 200 ms: the disk read 40.0 KiB in 10"
        " requests of 4.00 KiB, the median of which took 200 ms."
    )
    assert [(row["finding"], row["kind"], row["bdi"]) for row in rows] == [
        ("disk_reads", kind, "8:0")
    ]
    assert "unexplained" not in found
    assert "nothing_wrong" not in found  # the reader was asleep for most of its life


def test_reads_of_each_disk_where_there_are_two(tmp_path: Path) -> None:
    """Of two disks the wait alone does not tell which; its read does. 600 ms behind 8:16."""
    waits = _waits(*_SLEEP)
    waits.request(25, 64, issue=50, complete=60, rwbs="W")
    waits.request(_READER, 1000, issue=100, complete=701, rwbs="RA", dev=(8, 16))
    waits.sleep(101, 701, _READER)
    found, rows = _found(waits, tmp_path)
    assert found["disk_reads"].text.startswith("rd 80 waited 600 ms for reads of 8:16, ")
    assert [row["bdi"] for row in rows] == ["8:16"]


@pytest.mark.parametrize("complete", [400, 700])
def test_a_read_that_is_over_before_half_of_the_sleep_explains_nothing(
    complete: int, tmp_path: Path
) -> None:
    """A sleep of 1000 ms from 101 on: 299 ms of it with a read, or 599."""
    waits = _waits(*_SLEEP)
    waits.request(_READER, 1000, issue=100, complete=complete, rwbs="RA")
    waits.sleep(101, 1101, _READER)
    found, _ = _found(waits, tmp_path)
    assert ("disk_reads" in found) is (complete == 700)
    assert ("unexplained" in found) is (complete == 400)


@pytest.mark.parametrize("calls", [(), WRITE])
def test_what_nothing_tells(calls: tuple[str, ...], tmp_path: Path) -> None:
    """1000 ms, 950 of them with a write of a kworker; deep has calls, and is not advised then."""
    waits = _waits(*_SLEEP, *calls)
    waits.request(25, 64, issue=100, complete=1100, rwbs="W")
    waits.sleep(150, 1150, _OTHER)
    found, rows = _found(waits, tmp_path)
    told = found["unexplained"]
    assert told.severity == "warning"
    assert told.text == (
        "What blocked other 81 for 1.00 s (longest 1.00 s) was not recorded;"
        " a disk was busy for most of 1.00 s of it."
    )
    assert (told.advice is None) is bool(calls)
    assert [(row["cause"], row["bdi"]) for row in rows] == [("device latency", "8:0")]


def test_no_disk_is_named_that_had_nothing_to_do(tmp_path: Path) -> None:
    """Two sleeps of 300 ms with no request: a note, and no device, though there is only one."""
    waits = _waits(*_SLEEP)
    waits.request(25, 64, issue=50, complete=60, rwbs="W")
    for start in (100, 600):
        waits.sleep(start, start + 300, _OTHER)
    found, rows = _found(waits, tmp_path)
    told = found["unexplained"]
    assert told.severity == "note"
    assert told.text == ("What blocked other 81 for 600 ms (longest 300 ms) was not recorded.")
    assert [(row["cause"], row["bdi"]) for row in rows] == [("unknown", None)]
    # It was asleep for nearly all the time that it was seen, and nothing says why.
    calm = found["nothing_wrong"]
    assert (calm.severity, calm.confidence) == ("note", "cannot tell")
    assert calm.facts["task"] == "other 81"


def test_memory_high_is_likely_behind_reclaim(tmp_path: Path) -> None:
    """600 and 900 ms, each 1 ms behind a reclaim. Not: 9 ms long; 30 ms behind one."""
    waits = _waits(*_SLEEP, *MEMCG)
    waits.request(25, 64, issue=50, complete=60, rwbs="W")
    for start, wait, length in ((100, 1, 600), (800, 1, 900), (2000, 1, 9), (2100, 30, 300)):
        waits.span(start, start + 5, _OTHER, MEMCG)
        waits.sleep(start + 5 + wait, start + 5 + wait + length, _OTHER)
    found, rows = _found(waits, tmp_path)
    told = found["memcg_high"]
    assert (told.severity, told.confidence) == ("warning", "inferred")
    assert told.cost_task_ns == 1500 * MS
    assert told.text.startswith("other 81 slept 1.50 s right after the reclaim of their memory")
    assert "(longest 900 ms): most likely" in told.text
    lost = [
        (row["finding"], row["stalls_count"], row["bdi"])
        for row in rows
        if row["kind"] == "blocked outside throttling"
    ]
    assert lost == [("memcg_high", 2, None), (None, 2, None)]


@pytest.mark.parametrize(("last", "severity"), [(1500, "warning"), (4000, "note"), (5000, None)])
def test_a_writer_has_no_cpu(last: int, severity: str | None, tmp_path: Path) -> None:
    """Off its CPU from 100 to 500 and from 600 to 1100, of the time until `last`; by hand 900 of
    1400, 3900 and 4900 ms: 64, 23 and 18 %. What only burns CPU writes nothing."""
    waits = _waits("balance_dirty_pages", "sched_switch")
    waits.switch(100, _WRITER, 0, _BURN)
    waits.switch(500, _BURN, 0, _WRITER)
    waits.switch(600, _WRITER, 256, _BURN)
    waits.switch(1100, _BURN, 0, _WRITER)
    waits.switch(last, _WRITER, 1, 0)
    found, _ = _found(waits, tmp_path)
    told = found.get("no_cpu")
    assert (told and told.severity) == severity
    if told is not None:
        assert (told.cost_task_ns, told.facts["ready_ns"]) == (0, 900 * MS)
        assert told.facts["seen_ns"] == (last - 100) * MS
        assert told.text.startswith("wr 82 was ready to run and had no CPU for 900 ms of ")
        assert told.text.endswith("; longest 500 ms).")


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
        assert (calm.severity, calm.confidence) == (
            ("note", "cannot tell") if is_blind else ("ok", "measured")
        )
        assert (calm.advice is not None) is is_blind
        unseen = "; whether tasks waited for anything else was not recorded."
        assert calm.text.endswith(unseen) is is_blind


def test_how_long_a_write_was_held_is_told_of_the_cause(tmp_path: Path) -> None:
    """A pause of 600 ms; what the same write waited for besides, its own events would tell."""
    waits = Waits("balance_dirty_pages", "global_dirty_state", cmdlines=_NAMES)
    _state(waits, 0)
    _pause(waits, 0, 600)
    _pause(waits, 601, 0)
    found, _ = _found(waits, tmp_path)
    assert "; one write was blocked for 600 ms of that; " in found["cause_unknown"].text


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
    assert told.text.endswith("; 1 task waited 200 ms in all.")


_GAINED = {"pgpgin": 10_000, "workingset_refault_file": 500}


@pytest.mark.parametrize(
    ("changed", "is_told"),
    [
        ({}, True),  # 500 pages are 2000 KiB, a fifth of what was read
        ({"workingset_refault_file": 499}, False),
        ({"pgpgin": 1000, "workingset_refault_file": 255}, False),  # less than 1 MiB
        ({"workingset_refault_file": 0, "workingset_refault": 600}, False),
    ],
)
def test_what_is_read_again(changed: dict[str, int], is_told: bool, tmp_path: Path) -> None:
    waits = _waits("balance_dirty_pages")
    gained = _GAINED | changed
    for name, factor in (("before", 0), ("after", 1)):
        lines = (f"{key} {7 + factor * value}\n" for key, value in gained.items())
        (tmp_path / f"vmstat.{name}").write_text("".join(lines))
    found, _ = _found(waits, tmp_path)
    assert ("read_again" in found) is is_told
    if is_told:
        assert found["read_again"].text == (
            "1.95 MiB of the 9.77 MiB that were read from disks had been in memory before, and"
            " reclaim had dropped them (workingset_refault_file)."
        )


def test_the_older_name_of_what_is_read_again(tmp_path: Path) -> None:
    for name, value in (("before", 0), ("after", 1000)):
        text = f"pgpgin {5 * value}\nworkingset_refault {value}\n"
        (tmp_path / f"vmstat.{name}").write_text(text)
    found, _ = _found(_waits("balance_dirty_pages"), tmp_path)
    assert found["read_again"].facts["refault_bytes"] == 1000 * 4096


# Who ended a wait: by sched_waking beside sched_switch, or by the event that record makes. The
# flags are those of the waker's context: 0, 8 (an interrupt), 16 (a soft one).

_LOCKED, _HOLDER, _FREEZER, _JOURNAL = 83, 84, 85, 86
_WOKEN = {_LOCKED: "app", _HOLDER: "dd", _FREEZER: "fsfreeze", _JOURNAL: "jbd2/sda-8"}
_BY_SWITCH = ("sched_switch", "sched_waking")
_BY_RECORD = ("wbscope_12_0123abcd_blocked",)


def _wait(
    how: tuple[str, ...], start: float, end: float, waker: int, flags: int = 0, tid: int = _LOCKED
) -> Waits:
    """A task that is blocked for so long, and woken 0.2 ms before it runs again."""
    waits = Waits(*how, "balance_dirty_pages", "global_dirty_state", *_DISK, *COMMIT,
                  cmdlines=_NAMES | _WOKEN)  # fmt: skip
    for ms in (0, 5000):
        _pause(waits, ms, 0)
        _state(waits, ms)
    if how == _BY_SWITCH:
        waits.sleep(start, end, tid)
        waits.add(end - 0.2, waker, "sched_waking", comm="app", pid=tid, common_flags=flags)
    else:
        told = round((end - 0.2 - start) * MS)
        waits.add(end - 0.2, waker, how[0], pid=tid, blocked_ns=told, common_flags=flags)
    return waits


def _hold(waits: Waits, start: float, end: float) -> None:
    """The holder is throttled in pauses of 100 ms."""
    for i in range(int((end - start) // 100)):
        values = {"cgroup_ino": 1, "dirty_ratelimit": 1000, "task_ratelimit": 100, "dirtied": 8}
        values |= {"pause": 100, "period": 100, "limit": 1000, "setpoint": 800, "dirty": 990}
        waits.add(start + 100 * i, _HOLDER, "balance_dirty_pages", bdi="8:0", **values)


@pytest.mark.parametrize("how", [_BY_SWITCH, _BY_RECORD])
def test_a_throttled_task_holds_what_another_waits_for(
    how: tuple[str, ...], tmp_path: Path
) -> None:
    """From 1000 to 2001 ms, while dd sleeps ten times 100 ms; a commit goes on as long."""
    waits = _wait(how, 1000, 2003, _HOLDER)
    _hold(waits, 1000, 2001)
    waits.span(1000, 2002, _JOURNAL, COMMIT, dev=device(8, 0))
    found, rows = _found(waits, tmp_path)
    told = found["throttled_holder"]
    assert (told.severity, told.confidence) == ("severe", "measured")
    assert told.text == (
        "app 83 waited 1.00 s (longest 1.00 s) for a lock of dd 84, which was itself throttled on"
        " 8:0 for most of that."
    )
    assert not {"journal_commit", "unexplained", "held_by_task"} & set(found)
    assert [row["cause"] for row in rows if row["tid"] == _LOCKED] == ["held by a throttled task"]


@pytest.mark.parametrize("how", [_BY_SWITCH, _BY_RECORD])
@pytest.mark.parametrize(
    ("waker", "finding", "confidence"),
    [(_FREEZER, "frozen", "inferred"), (_OTHER, "held_by_task", "inferred")],
)
def test_a_program_ends_a_wait(
    how: tuple[str, ...], waker: int, finding: str, confidence: str, tmp_path: Path
) -> None:
    """What the disk did meanwhile proves nothing."""
    waits = _wait(how, 1000, 2000, waker)
    waits.request(25, 64, issue=1000, complete=1990, rwbs="W")
    found, _ = _found(waits, tmp_path)
    told = found[finding]
    assert (told.severity, told.confidence) == ("warning", confidence)
    assert told.text.startswith("app 83 waited 1.00 s (longest 1.00 s)")
    assert f"until {(_NAMES | _WOKEN)[waker]} {waker}" in told.text


@pytest.mark.parametrize("how", [_BY_SWITCH, _BY_RECORD])
@pytest.mark.parametrize("flags", [8, 16, 24])
def test_an_interrupt_in_the_place_of_a_program_holds_nothing(
    how: tuple[str, ...], flags: int, tmp_path: Path
) -> None:
    """It runs in dd, which had a pause before; what it ended is a wait for the disk, if any."""
    waits = _wait(how, 1000, 2001, _HOLDER, flags)
    _hold(waits, 1000, 2001)
    found, rows = _found(waits, tmp_path)
    assert not {"throttled_holder", "held_by_task", "frozen"} & set(found)
    assert "unexplained" in found
    assert [row["cause"] for row in rows if row["tid"] == _LOCKED] == ["unknown"]


@pytest.mark.parametrize(
    ("waker", "flags", "cause", "confidence"),
    [
        (_JOURNAL, 0, "journal commit", "measured"),
        (0, 8, "device latency", None),
        (25, 0, "device latency", None),
    ],
)
def test_a_commit_is_the_cause_only_of_what_its_thread_ends(
    waker: int, flags: int, cause: str, confidence: str | None, tmp_path: Path
) -> None:
    """A commit and a request of the disk go on all the time; the waker tells which it was."""
    waits = _wait(_BY_RECORD, 1000, 2000, waker, flags)
    waits.span(900, 2100, _JOURNAL, COMMIT, dev=device(8, 0))
    waits.request(25, 64, issue=900, complete=2090, rwbs="W")
    found, rows = _found(waits, tmp_path)
    assert [row["cause"] for row in rows if row["tid"] == _LOCKED] == [cause]
    told = found.get("journal_commit")
    assert (told and told.confidence) == confidence


def test_without_wakers_a_commit_is_inferred(tmp_path: Path) -> None:
    waits = Waits("sched_switch", "balance_dirty_pages", *COMMIT, cmdlines=_NAMES | _WOKEN)
    for ms in (0, 5000):
        _pause(waits, ms, 0)
    waits.sleep(1000, 2000, _LOCKED)
    waits.span(900, 2100, _JOURNAL, COMMIT, dev=device(8, 0))
    found, _ = _found(waits, tmp_path)
    assert found["journal_commit"].confidence == "inferred"


def test_what_a_program_submits_itself_is_past_the_page_cache(tmp_path: Path) -> None:
    """300 of its writes of 8 sectors beside ten of an fsync."""
    waits = _waits(*_SLEEP, "sys_enter_fsync", "sys_exit_fsync")
    for i in range(200):
        start = 100 + 10 * i
        waits.request(_OTHER, 8 * i, issue=start, complete=start + 9, rwbs="WS")
    for i in range(100):
        waits.request(_OTHER, 80000 + 8 * i, issue=2100 + i, complete=2200 + i, rwbs="WS")
    waits.span(500, 1500, _READER, ("sys_enter_fsync", "sys_exit_fsync"))
    for i in range(10):
        waits.request(25, 90000 + 8 * i, issue=510 + i, complete=1400 + i, rwbs="WS")
    waits.sleep(520, 1490, _READER)
    found, _ = _found(waits, tmp_path)
    told = found["past_page_cache"]
    assert told.text == (
        "1 call of fsync took 1.00 s. rd 80 waited 1.00 s for 8:0, 96.8 % of"
        " whose writes other 81 submitted past the page cache (1.17 MiB)."
    )
