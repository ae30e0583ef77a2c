# SPDX-License-Identifier: Apache-2.0
"""How fast a device writes where its disk does not tell: dm-crypt, compression, a change of rate.

Each test has a run folder by hand: a trace as text, and beside it the files of /sys and debugfs.
117 MiB are dirty at any time (30,000 pages), of a limit of 156 MiB.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.texttrace import TextRun, proven_findings

_MIB = 1 << 20
_DIRTY = 30000 * 4096


class _Run(TextRun):
    """With what a slow disk has."""

    def request(self, ts: float, seconds: float, device: str, mib: float = 1) -> None:
        """A write request; no two begin at the same place."""
        sector, count = len(self._lines) * 4096, int(mib * 2048)
        for at, event, told in (
            (ts, "block_rq_issue", f"{count * 512} ()"),
            (ts + seconds, "block_rq_complete", "()"),
        ):
            end = "[kworker]" if event == "block_rq_issue" else "[0]"
            payload = f"{device} W {told} {sector} + {count} {end}"
            self.event(at, "kworker/0:1-25", event, payload)

    def looked(self, ts: float, task: str, written_mib_per_s: float) -> None:
        pages = int((ts - 100) * written_mib_per_s * 256)
        self.event(
            ts,
            task,
            "global_dirty_state",
            "dirty=10000 writeback=20000 bg_thresh=15000 thresh=40000 limit=40000"
            f" dirtied={pages} written={pages}",
        )

    def throttled(self, bdi: str, count: int, written_mib_per_s: float = 100) -> None:
        """big-200 sleeps for 20 ms 20 times a second; nearly all that is dirty is its bdi's."""
        for i in range(count):
            ts = 100.01 + i / 20
            self.looked(ts - 0.0002, "big-200", written_mib_per_s)
            self.event(
                ts,
                "big-200",
                "balance_dirty_pages",
                f"bdi {bdi}: limit=40000 setpoint=33750 dirty=30000 bdi_setpoint=33000"
                " bdi_dirty=29800 dirty_ratelimit=100000 task_ratelimit=100000"
                " dirtied=512 dirtied_pause=32 paused=0 pause=20 period=20 think=0 cgroup_ino=1",
            )

    def lost(self) -> None:
        self._lines.append((100.005, "CPU:0 [LOST 12 EVENTS]"))

    def counted(self, disk: str, seconds: int, mib: int, busy_ms: int, queued_ms: int) -> None:
        """/sys/block/*/stat each second: so much is added in each."""
        self.files["block.samples"] = "".join(
            f"# ts={(100 + i) * 10**9}\n== {disk}\n"
            f" 0 0 0 0 {i} 0 {i * mib * 2048} {i * queued_ms} 0 {i * busy_ms} {i * queued_ms}\n"
            for i in range(seconds + 1)
        )

    def pages(self, **written_mib: int) -> None:
        """The statistics of bdis before and after, in debugfs."""
        for name, share in (("bdi.before", 0), ("bdi.after", 1)):
            self.files[name] = "".join(
                f"== {bdi.replace('_', '-')}\nBdiWritten: {mib * 1024 * share} kB\n"
                for bdi, mib in written_mib.items()
            )


def _rows(run: wbscope.Run, statement: str) -> list[dict[str, Any]]:
    result = run.sql(statement)
    return [dict(zip(result.columns, row, strict=True)) for row in result.rows]


def _stacked(bdi: str) -> _Run:
    """The disk 8:0 gets 2 MiB a second in 20 ms: 100 MiB/s, and is idle for 98 % of 10 s."""
    run = _Run()
    for i in range(20):
        run.request(100 + i / 2, 0.01, "8,0")
    run.throttled(bdi, 190)
    run.files["stacks"] = "253:0 8:0\nbtrfs-1 253:0\n"
    return run


@pytest.mark.parametrize("bdi", ["253:0", "btrfs-1"])
def test_what_lies_on_a_disk_is_slow_itself(tmp_path: Path, bdi: str) -> None:
    """dm-0 was busy for all of 10 s and wrote 20 MiB: 2 MiB/s, whatever its disk could do."""
    run = _stacked(bdi)
    run.counted("dm-0", 10, mib=2, busy_ms=1000, queued_ms=4000)
    found = proven_findings(run.write(tmp_path))
    assert "device_idle" not in found
    slow = found["slow_device"]
    assert slow.text == (
        f"big 200 waited 3.80 s for {bdi}, which writes 2.00 MiB/s;"
        " it is slow itself: the disks below it were busy for 2.0 % of its time;"
        " one write was blocked for 20.0 ms of that."
    )
    assert slow.confidence == "measured"
    # 30,000 pages of 4096 bytes at 2 MiB/s.
    assert found["many_seconds"].facts["dirty_max_ns"] == _DIRTY * 10**9 // (2 * _MIB)
    advice = found["many_seconds"].advice
    assert advice is not None
    # One MiB more than two seconds of it.
    assert "Lower the limit to 5.00 MiB" in advice.text


def test_samples_reach_back(tmp_path: Path) -> None:
    """The kernel counts the time of a bio when it ends: 9 s in the last of 9 samples."""
    run = _stacked("253:0")
    text = "".join(
        f"# ts={(100 + i) * 10**9}\n== dm-0\n"
        f" 0 0 0 0 {i // 9} 0 {i // 9 * 36864} 0 0 {i // 9 * 9000} {i // 9 * 9000}\n"
        for i in range(10)
    )
    run.files["block.samples"] = text
    folder = run.write(tmp_path)
    slow = proven_findings(folder)["slow_device"]
    # 36864 sectors are 18 MiB, in 9 s.
    assert slow.facts["disk_bytes_per_s"] == 2 * _MIB
    with wbscope.open(folder) as opened:
        rows = opened.sql(
            "SELECT from_ts, to_ts FROM wb_busy WHERE device = '253:0' AND to_ts - from_ts > 1e9"
        ).rows
    # The first request of the disk is a stretch of its own.
    assert [tuple(row) for row in rows] == [(100_010_000_000, 109_000_000_000)]


@pytest.mark.parametrize("told", ["nothing", "jiffies"])
def test_nothing_tells_what_lies_on_a_disk_had_to_do(tmp_path: Path, told: str) -> None:
    """Old kernels count a jiffy for each bio: 1 s a second, where bios waited for 20 ms in it."""
    run = _stacked("253:0")
    if told == "jiffies":
        run.counted("dm-0", 10, mib=2, busy_ms=1000, queued_ms=20)
    idle = proven_findings(run.write(tmp_path))["device_idle"]
    assert idle.text.endswith("held back above the disk, as 253:0 itself may do, or io.max does.")
    assert idle.advice is not None
    assert idle.advice.text == (
        "Raise or lift the limit, if there is one: the trace does not show whether 253:0 had bios."
        " If it has to stay, let the program write no faster."
    )


def test_what_lies_on_a_disk_was_idle_too(tmp_path: Path) -> None:
    run = _stacked("253:0")
    run.counted("dm-0", 10, mib=2, busy_ms=20, queued_ms=20)
    idle = proven_findings(run.write(tmp_path))["device_idle"]
    assert idle.text.endswith(
        "held back above the disk, as 253:0 does while suspended, or io.max does."
    )
    assert idle.advice is not None
    assert "while 253:0 was busy it wrote 100 MiB/s" in idle.advice.text


def _compressed(written_mib: int, mib_per_s: float = 20) -> _Run:
    """The disk got 10 MiB in 2 s of 10; the machine wrote pages of 20 MiB a second."""
    run = _Run()
    for i in range(10):
        run.request(100 + i, 0.2, "8,0")
    run.throttled("btrfs-1", 200, written_mib_per_s=mib_per_s)
    run.files["stacks"] = "btrfs-1 8:0\n"
    run.pages(btrfs_1=written_mib)
    return run


def test_pages_that_are_compressed(tmp_path: Path) -> None:
    """10 MiB of pages of 199 MiB between the first and the last look reached the disk: 5 %."""
    found = proven_findings(_compressed(200).write(tmp_path))
    # That the disk had nothing to do tells nothing.
    assert "device_idle" not in found
    slow = found["slow_device"]
    assert slow.facts["disk_bytes_per_s"] == pytest.approx(20 * _MIB, rel=0.001)
    assert slow.confidence == "inferred"
    many = found["many_seconds"]
    # 117.2 MiB at 20 MiB/s, not at the 5 MiB/s of the disk.
    assert many.text == (
        "117 MiB were dirty, which btrfs-1 takes 5.86 s to write; its pages are compressed, or not"
        " all are written: 5.0 % of their bytes reached the disk."
    )
    assert many.confidence == "inferred"
    assert many.advice is not None
    assert "Lower the limit to 41.0 MiB" in many.advice.text


@pytest.mark.parametrize("why", ["few pages", "lost events", "another bdi", "held back"])
def test_pages_that_are_not_compressed(tmp_path: Path, why: str) -> None:
    """Metadata beside the pages; completions that are lost; pages of another bdi, such as NFS;
    pages that were held back above the disk, and written when the trace had ended."""
    run = _compressed(10 if why == "few pages" else 200, 1 if why == "held back" else 20)
    if why == "lost events":
        run.lost()
    if why == "another bdi":
        run.pages(btrfs_1=10, **{"0:45": 190})
    with wbscope.open(run.write(tmp_path)) as opened:
        (row,) = _rows(opened, "SELECT * FROM wb_disk_rate WHERE bdi = 'btrfs-1'")
    assert row["reached_ratio"] is None
    assert row["disk_bytes_per_s"] == 5 * _MIB
    assert row["basis"] == "requests"


def test_a_disk_below_has_no_pages_of_its_own(tmp_path: Path) -> None:
    """A volume of a fast and a slow disk: its pages are dirty for the volume."""
    run = _Run()
    for i in range(20):
        run.request(100 + i / 20, 0.049, "8,0")
    for i in range(40):
        run.request(101 + i / 4, 0.249, "8,16")
    for i in range(200):
        run.looked(100.01 + i / 20, "big-200", 6)
    run.files["stacks"] = "253:0 8:0\n253:0 8:16\n"
    folder = run.write(tmp_path)
    with wbscope.open(folder) as opened:
        many = [one for one in opened.findings() if one.id == "many_seconds"]
        assert [one.facts["bdi"] for one in many] == ["253:0"]
    # Its own file system writes to the disk, too: then it has a row.
    both = tmp_path / "both"
    both.mkdir()
    run.throttled("8:16", 20)
    with wbscope.open(run.write(both)) as opened:
        rows = opened.sql("SELECT bdi FROM wb_disk_backlog ORDER BY bdi").rows
    assert [row[0] for row in rows] == ["253:0", "8:16"]


def test_no_more_was_dirty_than_the_machine_had(tmp_path: Path) -> None:
    """A disk wrote 200 MiB at 10 MiB/s, and 117 MiB were dirty at most: these take 11.7 s."""
    run = _Run()
    for i in range(200):
        run.request(100 + i / 10, 0.0999, "8,16")
        run.request(100 + i / 10, 0.02, "8,0", mib=2)
    for i in range(400):
        run.looked(100.01 + i / 20, "big-200", 30)
    with wbscope.open(run.write(tmp_path)) as opened:
        (many,) = (one for one in opened.findings() if one.id == "many_seconds")
    assert many.text == "117 MiB were dirty, perhaps all for 8:16, which writes 10.0 MiB/s."


@pytest.mark.parametrize(("more", "is_alone"), [(0, True), (100, False)])
def test_the_disk_of_a_loop_device(tmp_path: Path, more: int, is_alone: bool) -> None:
    """What the loop device writes its disk writes, too: that is nobody else's."""
    run = _Run()
    for i in range(40):
        run.request(100 + i / 4, 0.249, "7,0")
        run.request(100 + i / 4, 0.2, "8,0")
    for i in range(more):
        run.request(110 + i / 10, 0.05, "8,0")
    for i in range(300):
        run.looked(100.01 + i / 20, "big-200", 4)
    with wbscope.open(run.write(tmp_path)) as opened:
        (row,) = _rows(opened, "SELECT * FROM wb_disk_backlog WHERE bdi = '7:0'")
    assert (row["other_bdi"] is None) == is_alone
    # One MiB more than two seconds at 1 MiB in 249 ms, 8.03 MiB.
    assert row["proposed_bytes"] == (9 * _MIB if is_alone else None)


def _changed(fast: tuple[float, int], slow: tuple[float, int], *, is_rising: bool = False) -> _Run:
    """4 s and 20 s with requests of 1 MiB, each with the seconds it takes and the depth."""
    run = _Run()
    parts = ((slow, 20), (fast, 4)) if is_rising else ((fast, 4), (slow, 20))
    begin = 100.0
    for (seconds, depth), length in parts:
        # 24 ms of each 25, or 240 of each 250.
        step = seconds / 0.96
        for i in range(round(length / step)):
            for _ in range(depth):
                run.request(begin + i * step, seconds, "8,0")
        begin += length
    run.throttled("8:0", 480, written_mib_per_s=10)
    return run


def test_a_disk_becomes_slow(tmp_path: Path) -> None:
    """1 MiB takes 24 ms for 4 s, 240 ms for 20 s: 41.7 MiB/s and 4.17 MiB/s while it is busy."""
    found = proven_findings(_changed((0.024, 1), (0.24, 1)).write(tmp_path))
    assert found["rate_changed"].text == (
        "8:0 wrote 41.7 MiB/s while it was busy until 4.00 s from the start, and 4.17 MiB/s from"
        " then on."
    )
    # 117.2 MiB at 4.17 MiB/s; at the mean of both, 240 MiB in 23.04 s, they were 11.3 s.
    assert found["many_seconds"].facts["dirty_max_ns"] == pytest.approx(28.125e9, rel=1e-6)
    advice = found["many_seconds"].advice
    assert advice is not None
    assert "Lower the limit to 9.00 MiB" in advice.text


def test_a_disk_becomes_fast(tmp_path: Path) -> None:
    found = proven_findings(_changed((0.024, 1), (0.24, 1), is_rising=True).write(tmp_path))
    assert found["rate_changed"].text == (
        "8:0 wrote 4.17 MiB/s while it was busy until 20.0 s from the start, and 41.7 MiB/s from"
        " then on."
    )
    # 240 MiB in 23.04 s.
    assert found["many_seconds"].facts["dirty_max_ns"] == pytest.approx(
        _DIRTY * 23.04e9 / (240 * _MIB), rel=1e-6
    )


def test_fewer_requests_at_a_time_are_no_slow_disk(tmp_path: Path) -> None:
    """Ten at a time and then one: each takes as long as before, and a bit less."""
    assert "rate_changed" not in proven_findings(_changed((0.24, 10), (0.23, 1)).write(tmp_path))


def test_smaller_requests_are_no_slow_disk(tmp_path: Path) -> None:
    """1 MiB in 24 ms, then 4 KiB in 30 ms, as an fsync of a small file."""
    run = _Run()
    for i in range(160):
        run.request(100 + i / 40, 0.024, "8,0")
    for i in range(200):
        run.request(104 + i / 20, 0.03, "8,0", mib=1 / 256)
    run.throttled("8:0", 280, written_mib_per_s=10)
    assert "rate_changed" not in proven_findings(run.write(tmp_path))


def test_noise_is_no_change(tmp_path: Path) -> None:
    """Fast and slow seconds in turn; then a slow end, of which a third is fast."""
    run = _Run()
    for second in range(24):
        is_fast = second % 2 == 0 if second < 12 else second % 3 == 0
        for i in range(40 if is_fast else 4):
            length = 1 / (40 if is_fast else 4)
            run.request(100 + second + i * length, length * 0.96, "8,0")
    run.throttled("8:0", 480, written_mib_per_s=10)
    assert "rate_changed" not in proven_findings(run.write(tmp_path))
