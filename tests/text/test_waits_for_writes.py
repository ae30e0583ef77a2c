# SPDX-License-Identifier: Apache-2.0
"""Waits until data is on a disk, with hardly a dirty page: whose they are, and no limit helps."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.texttrace import TextRun, proven_findings

_LITTLE, _MUCH = 13, 4000  # pages
_LIMIT = 4096


class _Trace(TextRun):
    """Lines of a text, each at its time in seconds; 8:0 writes 200 KiB/s, in requests of 8 KiB, or
    as many bytes in larger ones.
    """

    def __init__(self, dirty: int, larger: int = 1) -> None:
        super().__init__()
        self._sectors = 16 * larger
        for i in range(100 // larger):
            self.request("kworker/0:1-25", 100 + i * larger / 25, 0.039 * larger, i)
        for i in range(20):
            counts = f"dirtied={1000 + i} written={1000 + i}"
            limits = f"bg_thresh={_LIMIT // 2} thresh={_LIMIT} limit={_LIMIT}"
            pages = f"dirty={dirty} writeback=0"
            self.event(
                100 + i / 5, "kworker/0:1-25", "global_dirty_state", f"{pages} {limits} {counts}"
            )

        # Throttling was recorded: one call that does not sleep.
        self.event(
            100,
            "cp-70",
            "balance_dirty_pages",
            f"bdi 8:0: limit={_LIMIT} setpoint={_LIMIT * 7 // 8} dirty={dirty}"
            f" bdi_setpoint={_LIMIT * 7 // 8} bdi_dirty={dirty} dirty_ratelimit=6000"
            " task_ratelimit=6000 dirtied=1 dirtied_pause=32 paused=0 pause=0 period=0 think=0"
            " cgroup_ino=1",
        )

    def request(self, task: str, ts: float, seconds: float, i: int, flags: str = "W") -> None:
        place = f"{1000 + i * self._sectors} + {self._sectors}"
        name = task.rsplit("-", 1)[0]
        self.event(
            ts, task, "block_rq_issue", f"8,0 {flags} {self._sectors * 512} () {place} [{name}]"
        )
        self.event(ts + seconds, "<idle>-0", "block_rq_complete", f"8,0 {flags} () {place} [0]")

    def sleep(self, task: str, ts: float, seconds: float) -> None:
        name, tid = task.rsplit("-", 1)
        one, idle = (
            f"comm={name} {{0}}_pid={tid} {{0}}_prio=120",
            "comm=swapper/0 {0}_pid=0 {0}_prio=120",
        )
        away, back = (f"{{0}}_{one}", f"{{0}}_{idle}")
        self.event(
            ts,
            task,
            "sched_switch",
            f"{away.format('prev')} prev_state=D ==> {back.format('next')}",
        )
        self.event(
            ts + seconds,
            "<idle>-0",
            "sched_switch",
            f"{back.format('prev')} prev_state=R ==> {away.format('next')}",
        )

    def fsync(self, task: str, ts: float, seconds: float) -> None:
        self.event(ts, task, "ext4_sync_file_enter", "dev 8,0 ino 12 parent 2 datasync 0")
        self.event(ts + seconds, task, "ext4_sync_file_exit", "dev 8,0 ino 12 ret 0")

    def throttled(self, task: str, ts: float) -> None:
        """For 20 ms, with nearly as much dirty as may be."""
        self.event(
            ts,
            task,
            "balance_dirty_pages",
            f"bdi 8:0: limit={_LIMIT} setpoint={_LIMIT * 7 // 8} dirty={_LIMIT - 8}"
            f" bdi_setpoint={_LIMIT * 7 // 8} bdi_dirty={_LIMIT - 8} dirty_ratelimit=6000"
            " task_ratelimit=0 dirtied=32 dirtied_pause=32 paused=0 pause=20 period=20 think=0"
            " cgroup_ino=1",
        )

    def folio(self, task: str, ts: float, seconds: float) -> None:
        self.event(ts, task, "folio_wait_writeback", "bdi 8:0: ino=13 index=2")
        self.sleep(task, ts + 0.001, seconds)


@pytest.mark.parametrize(("seconds", "severity"), [(1.5, "warning"), (0.3, "note")])
def test_no_limit_acts_where_little_is_dirty(tmp_path: Path, seconds: float, severity: str) -> None:
    """52 KiB; two seconds of the disk are 400 KiB, so that a limit of 1 MiB was proposed."""
    trace = _Trace(_LITTLE)
    trace.fsync("db-77", 101, seconds)
    by_id = proven_findings(trace.write(tmp_path))
    one = by_id["sync_waits"]
    assert one.severity == severity
    assert "db 77 waited" in one.text
    assert "in sync or fsync until what was dirty was written to 8:0" in one.text
    assert one.advice is not None
    assert one.advice.settings == ()
    assert one.advice.text.startswith("No limit helps where no more than 52.0 KiB are dirty: ")
    # Whoever waits half a second is told before any all-clear.
    assert ("nothing_wrong" in by_id) is (severity == "note")


@pytest.mark.parametrize(
    ("task", "ts", "seconds", "writers"),
    [
        ("cp-70", 101.5, 1.5, "cp"),
        ("db-77", 101.5, 1.5, None),  # its own pages, in the fsync itself
        ("cp-70", 103.0, 1.5, None),  # afterwards
        ("cp-70", 101.2, 0.3, None),  # nobody waits for long
    ],
)
def test_who_writes_beside_an_fsync(
    tmp_path: Path, task: str, ts: float, seconds: float, writers: str | None
) -> None:
    trace = _Trace(_LITTLE)
    trace.fsync("db-77", 101, seconds)
    trace.throttled(task, ts)
    assert proven_findings(trace.write(tmp_path))["sync_waits"].facts["writers"] == writers


def test_a_wait_for_a_page_is_no_sync(tmp_path: Path) -> None:
    """As truncate does it; that of a task in fsync is of its fsync."""
    trace = _Trace(_LITTLE)
    trace.folio("trunc-78", 101, 1.0)
    one = proven_findings(trace.write(tmp_path))["sync_waits"]
    assert one.title == "Tasks wait for pages under writeback"
    assert one.text.startswith("trunc 78 waited 1.00 s for pages under writeback (truncate, ")
    assert "fsync" not in one.text
    assert one.advice is None


def test_a_page_in_an_fsync_is_of_the_fsync(tmp_path: Path) -> None:
    trace = _Trace(_LITTLE)
    trace.event(101, "db-77", "ext4_sync_file_enter", "dev 8,0 ino 12 parent 2 datasync 0")
    trace.folio("db-77", 101.01, 1.0)
    trace.event(102.1, "db-77", "ext4_sync_file_exit", "dev 8,0 ino 12 ret 0")
    one = proven_findings(trace.write(tmp_path))["sync_waits"]
    assert "in sync or fsync until" in one.text
    assert "pages" not in one.text


def test_no_lower_limit_for_a_disk_of_small_requests(tmp_path: Path) -> None:
    """Requests of 8 KiB: with less dirty fewer of them merge."""
    trace = _Trace(_MUCH)
    trace.folio("trunc-78", 101, 1.0)
    one = proven_findings(trace.write(tmp_path))["many_seconds"]
    assert one.advice is not None
    assert one.advice.settings == ()
    assert one.advice.text.startswith("No lower limit: 8:0 writes requests of 8.00 KiB, ")


def test_truncate_waits_for_seconds_of_dirty_pages(tmp_path: Path) -> None:
    """15.6 MiB are 78 s of this disk."""
    trace = _Trace(_MUCH, larger=4)
    trace.folio("trunc-78", 101, 1.0)
    one = proven_findings(trace.write(tmp_path))["many_seconds"]
    assert "trunc 78 waited 1.00 s for pages under writeback (truncate, " in one.text
    assert one.advice is not None
    # The flusher begins before the limit.
    assert one.advice.settings == (
        ("vm.dirty_bytes", str(1 << 20)),
        ("vm.dirty_background_bytes", str(1 << 19)),
    )
    assert one.advice.expect == "stalls_by_task.max_ns lower"


def test_direct_writes_are_told(tmp_path: Path) -> None:
    """Four writes of 0.25 s, and a read of 0.4 s, too little for a finding: 1.4 s in all."""
    trace = _Trace(_LITTLE)
    for i in range(4):
        trace.request("direct-79", 101 + i / 2, 0.25, 5000 + i, "WS")
        trace.sleep("direct-79", 101.000001 + i / 2, 0.25)
    trace.request("reader-80", 101, 0.4, 9000, "R")
    trace.sleep("reader-80", 101.000001, 0.4)
    by_id = proven_findings(trace.write(tmp_path))
    told = by_id["direct_writes"]
    assert (told.severity, round(told.cost_task_ns / 1e6)) == ("note", 1000)
    assert told.text.startswith("direct 79 waited 1.00 s for direct I/O to 8:0")
    # 104 requests of 8 KiB; the counters of dirty pages know 19 pages.
    assert told.facts["written_bytes"] == 104 * 8192
    assert "disk_reads" not in by_id
    calm = "and dirty throttling delayed no write; other waits took 1.40 s."
    assert by_id["nothing_wrong"].text.endswith(calm)


def test_writes_in_an_fsync_are_no_direct_writes(tmp_path: Path) -> None:
    trace = _Trace(_LITTLE)
    trace.event(100.9, "db-77", "ext4_sync_file_enter", "dev 8,0 ino 12 parent 2 datasync 0")
    for i in range(4):
        trace.request("db-77", 101 + i / 4, 0.2, 5000 + i, "WS")
        trace.sleep("db-77", 101.000001 + i / 4, 0.2)
    trace.event(102.1, "db-77", "ext4_sync_file_exit", "dev 8,0 ino 12 ret 0")
    assert "direct_writes" not in proven_findings(trace.write(tmp_path))
