# SPDX-License-Identifier: Apache-2.0
"""Mirrors, loop devices, suspended volumes and partitions: whose pages, how fast, what held them.

Each test has a run folder by hand: a trace as text, and beside it the files of /sys and debugfs.
117 MiB are dirty at any time (30,000 pages), of a limit of 156 MiB.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from support.texttrace import TextRun, proven_findings

_MIB = 1 << 20
_BIG = "big-200"


class _Run(TextRun):
    """With what each test has of requests and throttled writes."""

    def requests(self, device: str, begin: float, end: float) -> None:
        """1 MiB each quarter of a second, which takes nearly all of it: 4 MiB/s."""
        for i in range(int((end - begin) * 4)):
            ts, sector = begin + i / 4, len(self._lines) * 4096
            self.event(
                ts, "kworker/0:1-25", f"block_rq_issue: {device} W 1048576 () {sector} + 2048 [k]"
            )
            done = f"block_rq_complete: {device} W () {sector} + 2048 [0]"
            self.event(ts + 0.2499, "kworker/0:1-25", done)

    def throttled(
        self,
        bdi: str,
        ts: float,
        *,
        ms: int = 20,
        task: str = _BIG,
        own: int = 29800,
        held_ms: int | None = None,
    ) -> None:
        """One sleep; `own` pages of what is dirty are those of its bdi.

        With held_ms, of a call that has slept so long already: it is over the limit.
        """
        numbers = int((ts - 100) * 1000)
        self.event(
            ts - 0.0002,
            task,
            "global_dirty_state: dirty=10000 writeback=20000 bg_thresh=15000 thresh=40000"
            f" limit=40000 dirtied={numbers} written={numbers}",
        )
        dirty, rate = (30000, 100000) if held_ms is None else (40000, 0)
        self.event(
            ts,
            task,
            f"balance_dirty_pages: bdi {bdi}: limit=40000 setpoint=33750 dirty={dirty}"
            f" bdi_setpoint=33000 bdi_dirty={own} dirty_ratelimit=100000 task_ratelimit={rate}"
            f" dirtied=512 dirtied_pause=32 paused={held_ms or 0} pause={ms} period={ms} think=0"
            " cgroup_ino=1",
        )

    def blocked(self, comm: str, tid: int, begin: float, end: float) -> None:
        """A sleep that nothing interrupts."""
        self.event(
            begin,
            f"{comm}-{tid}",
            f"sched_switch: prev_comm={comm} prev_pid={tid} prev_prio=120 prev_state=D ==>"
            " next_comm=swapper/0 next_pid=0 next_prio=120",
        )
        self.event(
            end,
            "<idle>-0",
            "sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==>"
            f" next_comm={comm} next_pid={tid} next_prio=120",
        )

    def committed(self, device: str, begin: float, end: float) -> None:
        for ts, name in ((begin, "start"), (end, "end")):
            text = f"jbd2_{name}_commit: dev {device} transaction 7 sync 0"
            self.event(ts, "jbd2/sda1-8-90", text + (" head 6" if name == "end" else ""))


@pytest.mark.parametrize(("bdi", "mib"), [("btrfs-1", 40), ("9:0", 40), ("9:0", 60), ("9:0", None)])
def test_a_mirror_writes_the_same_twice(tmp_path: Path, bdi: str, mib: int | None) -> None:
    """Two disks get 40 MiB each in 10 s: pages of 40 MiB, once, or of 60, and the rest metadata."""
    run = _Run()
    for device in ("8,0", "8,16"):
        run.requests(device, 100, 110)
    for i in range(100):
        run.throttled(bdi, 100.1 + i / 10)
    run.files["stacks"] = f"{bdi} 8:0\n{bdi} 8:16\n"
    if mib is not None:
        for name, kib in (("bdi.before", 0), ("bdi.after", mib << 10)):
            run.files[name] = f"== {bdi}\nBdiWritten: {kib} kB\n"
    slow = proven_findings(run.write(tmp_path))["slow_device"]
    mib_per_s = 4 if mib == 40 else 8
    assert slow.facts["disk_bytes_per_s"] == pytest.approx(mib_per_s * _MIB, rel=0.001)
    assert slow.advice is not None
    assert f"Limit its writers to {mib_per_s}.00 MiB/s in all" in slow.advice.text


@pytest.mark.parametrize("is_one", [True, False])
def test_one_write_is_held_for_long_by_an_idle_disk(tmp_path: Path, is_one: bool) -> None:
    """The disk has nothing to do for 3 of 13 s: one call sleeps for 2.5 s of these, or 25 do."""
    run = _Run()
    run.requests("8,0", 100, 105)
    run.requests("8,0", 108, 113)
    for i in range(200):
        run.throttled("8:0", 100.01 + i / 40 + (0 if i < 100 else 5.5))
    for i in range(25):
        held_ms = i * 100 if is_one else 0
        run.throttled("8:0", 105.3 + i / 10, ms=100, own=39000, held_ms=held_ms)
    found = proven_findings(run.write(tmp_path))
    # Less than what it waited for the busy disk, 4 s.
    assert ("device_idle" in found) == is_one
    if is_one:
        assert found["device_idle"].severity == "warning"
        assert found["device_idle"].text == (
            "big 200 waited 2.50 s although 8:0 was idle for 100.0 % of that time: their pages were"
            " under writeback, but requests were held back above the disk, as io.max does."
        )


def _looped(writer: str) -> _Run:
    """big writes to a loop device, of whose pages 8,000 are dirty; 22,000 are those of 8:0."""
    run = _Run()
    for device in ("7,0", "8,0"):
        run.requests(device, 100, 110)
    for i in range(100):
        run.throttled("7:0", 100.1 + i / 10, own=8000)
        run.throttled("8:0", 100.15 + i / 10, own=22000, task=writer)
    return run


def test_pages_of_a_loop_device_are_not_those_of_others(tmp_path: Path) -> None:
    found = proven_findings(_looped("kworker/u4:2-31").write(tmp_path))
    assert "slow_bdi_starves" not in found
    slow = found["slow_device"]
    assert slow.facts["bdi"] == "7:0"
    assert slow.advice is not None
    # Direct I/O may make it faster.
    assert "No setting" not in slow.advice.text
    assert slow.advice.text.startswith("7:0 is at most as fast as the disk of its file")
    assert "loop_device" in found


def test_a_loop_device_beside_a_writer_of_its_disk(tmp_path: Path) -> None:
    found = proven_findings(_looped("other-300").write(tmp_path))
    assert found["slow_bdi_starves"].facts["bdi"] == "7:0"


@pytest.mark.parametrize("comm", ["md127_raid1", "md_home_raid10", "md0_resync", "dmcrypt_write/2"])
def test_a_thread_of_md_is_no_program(tmp_path: Path, comm: str) -> None:
    assert _waiting(comm, tmp_path) == "big 200"


def test_a_program_with_such_a_name_is_one(tmp_path: Path) -> None:
    assert _waiting("md5_check", tmp_path) == "big and md5_check"


def _waiting(comm: str, folder: Path) -> object:
    """Who waited for the journal, of big and of another task."""
    run = _Run()
    run.requests("8,0", 100, 110)
    run.blocked("big", 200, 102, 104)
    run.blocked(comm, 104, 102, 104)
    run.throttled("8:0", 101)
    run.committed("8,0", 101.9, 104.1)
    return proven_findings(run.write(folder))["journal_commit"].facts["tasks"]


_ALL_DATA = "ext4 /dev/sda1 rw,data=journal"


@pytest.mark.parametrize(
    ("journal", "mounts", "is_told"),
    [
        ("8:0", {"8:0": "ext4 /dev/sda rw,data=journal"}, True),
        ("8:0", {"8:0": "ext3 /dev/sda rw,nodelalloc,data=journal,commit=9"}, True),
        ("8:1", {"8:1": _ALL_DATA}, True),
        ("8:1", {"8:1": _ALL_DATA, "8:2": "xfs /dev/sda2 rw"}, True),
        ("8:2", {"8:1": _ALL_DATA, "8:2": "ext4 /dev/sda2 rw"}, False),
        ("8:0", {"8:16": "ext4 /dev/sdb rw,data=journal"}, False),
        ("8:0", {"8:0": "ext4 /dev/sda rw,data=ordered"}, False),
        ("8:0", {"8:0": "xfs /dev/sda rw,data=journal"}, False),
        ("8:0", {"8:0": "ext4 /dev/data=journal rw"}, False),
    ],
)
def test_a_journal_with_all_data(
    tmp_path: Path, journal: str, mounts: dict[str, str], is_told: bool
) -> None:
    run = _Run()
    run.requests("8,0", 100, 110)
    run.blocked("big", 200, 102, 104)
    run.throttled("8:0", 101)
    run.committed(journal.replace(":", ","), 101.9, 104.1)
    lines = [f"30 1 {number} / /{number} rw,relatime - {how}\n" for number, how in mounts.items()]
    run.files["mounts"] = "".join(lines)
    parts = [number for number in mounts if number in ("8:1", "8:2")]
    if parts:
        bdis = [f"8:0 sda{number[-1]} /{number} ext4\n" for number in parts]
        run.files["bdis"] = "".join(bdis)
    advice = proven_findings(run.write(tmp_path))["journal_commit"].advice
    assert advice is not None
    assert ("is mounted with data=journal" in advice.text) == is_told
    assert ("Lower the limit" in advice.text) != is_told


@pytest.mark.parametrize("has_bdis", [True, False])
def test_the_journal_of_a_partition(tmp_path: Path, has_bdis: bool) -> None:
    """jbd2 names the partition 8:1; pages and requests are those of the disk 8:0.

    There is another journal, on 8:2.
    """
    run = _Run()
    run.requests("8,0", 100, 110)
    for i in range(100):
        run.throttled("8:0", 100.1 + i / 10)
    run.blocked("big", 200, 110.2, 111.2)
    run.requests("8,0", 110, 112)
    run.committed("8,1", 110.1, 111.3)
    run.committed("8,2", 101.1, 101.2)
    for number in (1, 2):
        place = f"/part{number}"
        mount = f"2{number} 1 8:{number} / {place} rw,relatime shared:1 - ext4 /dev/sda{number} rw"
        run.files["mounts"] = run.files.get("mounts", "") + f"{mount}\n"
        if has_bdis:
            bdi = f"8:0 sda{number} {place} ext4\n"
            run.files["bdis"] = run.files.get("bdis", "") + bdi
    found = proven_findings(run.write(tmp_path))
    if not has_bdis:
        assert "journal_commit" not in found
        return
    assert found["journal_commit"].text == (
        "big 200 waited 1.00 s for the journal of sda (/part1, ...) to commit, the longest"
        " 1.00 s; the disk writes 4.00 MiB/s, and up to 117 MiB were dirty in all."
    )


def test_fsync_on_a_partition(tmp_path: Path) -> None:
    """ext4 names the partition; the disk has requests in all of that time."""
    run = _Run()
    run.requests("8,0", 100, 110)
    run.requests("8,16", 100, 110)
    for i in range(100):
        run.throttled("8:0", 100.1 + i / 10)
    for ts, text in (
        (104.0, "ext4_sync_file_enter: dev 8,1 ino 12 parent 2 datasync 0"),
        (106.0, "ext4_sync_file_exit: dev 8,1 ino 12 ret 0"),
    ):
        run.event(ts, "db-300", text)
    run.files["mounts"] = "29 1 8:1 / /data rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    run.files["bdis"] = "8:0 sda1 /data ext4\n"
    with wbscope.open(run.write(tmp_path)) as opened:
        rows = opened.sql("SELECT bdi, cause FROM wb_stall WHERE kind = 'fsync'").rows
    assert [tuple(row) for row in rows] == [("8:0", "device latency")]


def test_writes_of_a_partition_that_failed(tmp_path: Path) -> None:
    """Files and calls are named as the requests of the disk are: one finding, not three."""
    run = _Run()
    run.throttled("8:0", 100.1)
    for ts, text in (
        (104.0, "ext4_sync_file_enter: dev 8,1 ino 12 parent 2 datasync 0"),
        (105.0, "block_rq_issue: 8,0 W 4096 () 2048 + 8 [kworker/u8:2]"),
        (105.5, "block_rq_complete: 8,0 W () 2048 + 8 [-5]"),
        (105.6, "filemap_set_wb_err: dev=8:1 ino=0xc errseq=0x5"),
        (105.7, "filemap_set_wb_err: dev=8:2 ino=0xc errseq=0x5"),
        (106.0, "ext4_sync_file_exit: dev 8,1 ino 12 ret -5"),
    ):
        run.event(ts, "db-300", text)
    run.files["mounts"] = "".join(
        f"29 1 8:{n} / /{n} rw,relatime shared:1 - ext4 /dev/sda{n} rw\n" for n in (1, 2)
    )
    run.files["bdis"] = "8:0 sda1 /1 ext4\n8:0 sda2 /2 ext4\n"
    with wbscope.open(run.write(tmp_path)) as opened:
        (told,) = (one for one in opened.findings() if one.id == "failed_writes")
        rows = opened.sql("SELECT bdi, kind, what FROM _failed_write").rows
    assert sorted(tuple(row) for row in rows) == [
        ("8:0", "call", "ext4_sync_file"),
        ("8:0", "file", "ino 12 of 8:1"),
        ("8:0", "file", "ino 12 of 8:2"),
        ("8:0", "request", "W"),
    ]
    assert told.cost_task_ns == 2 * 10**9
    assert told.text == (
        "Writes failed and data is lost on sda (/1, ...); 1 request of 4.00 KiB in all ended with "
        "an error; writeback of 2 files failed; 1 call of ext4_sync_file by db 300 returned EIO; "
        "the first error came after 5.40 s."
    )


def test_a_kworker_of_a_loop_device_is_no_flusher(tmp_path: Path) -> None:
    """It was one before: kworkers are shared. Its fsync waits for the journal of the disk."""
    run = _looped("kworker/u4:2-31")
    work = (
        "bdi 8:0: sb_dev 0:0 nr_pages=900 sync_mode=0 kupdate=0 range_cyclic=1 background=1"
        " reason=background cgroup_ino=1"
    )
    for ts, name in ((100.6, "start"), (100.7, "written")):
        run.event(ts, "kworker/u4:2-31", f"writeback_{name}: {work}")
    for ts, text in (
        (104.0, "ext4_sync_file_enter: dev 8,0 ino 12 parent 2 datasync 0"),
        (106.0, "ext4_sync_file_exit: dev 8,0 ino 12 ret 0"),
    ):
        run.event(ts, "kworker/u4:2-31", text)
    run.committed("8,0", 103.9, 106.1)
    with wbscope.open(run.write(tmp_path)) as opened:
        causes = opened.sql("SELECT cause FROM wb_stall WHERE kind = 'fsync'").rows
        told = opened.sql("SELECT finding FROM wb_loss WHERE tid = 31").rows
    assert [row[0] for row in causes] == ["journal commit"]
    assert not told


def test_a_volume_that_does_nothing_beside_another(tmp_path: Path) -> None:
    """Both lie on 8:0, and have its rate; pages are dirty for 253:0. Another disk writes, too."""
    run = _Run()
    run.requests("8,0", 100, 110)
    run.requests("8,16", 100, 105)
    for i in range(100):
        run.throttled("253:0", 100.1 + i / 10, own=9000)
    run.files["stacks"] = "253:0 8:0\n253:1 8:0\n"
    assert proven_findings(run.write(tmp_path))["many_seconds"].text == (
        "35.2 MiB were dirty for 253:0, which writes 4.00 MiB/s."
    )
