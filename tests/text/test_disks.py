# SPDX-License-Identifier: Apache-2.0
"""Several disks, swap, discards: whose backlog it is, and whose waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import wbscope
from support.texttrace import TextRun, proven_findings
from wbscope.library.finding import Finding

# Dirty pages of a fast disk are no backlog of a slow one, and its limit is not theirs.

_MIB = 1 << 20
_PAGES = 256  # in a MiB


class _Trace(TextRun):
    def request(self, ts: float, seconds: float, device: str, sector: int, count: int) -> None:
        end = f"{device} W () {sector} + {count} [0]"
        begin = f"{device} W {count * 512} () {sector} + {count} [kworker]"
        self.event(ts, "kworker/0:1-25", "block_rq_issue", begin)
        self.event(ts + seconds, "kworker/0:1-25", "block_rq_complete", end)

    def throttled(self, ts: float, task: str, bdi: str, wb_mib: float) -> None:
        """117 MiB are dirty, of a limit of 156 MiB; wb_mib of them for the bdi."""
        self.event(
            ts - 0.0002,
            task,
            "global_dirty_state",
            "dirty=10000 writeback=20000 bg_thresh=15000 thresh=40000 limit=40000"
            f" dirtied={int((ts - 100) * 25600)} written={int((ts - 100) * 25600)}",
        )
        self.event(
            ts,
            task,
            "balance_dirty_pages",
            f"bdi {bdi}: limit=40000 setpoint=33750 dirty=30000 bdi_setpoint=33000"
            f" bdi_dirty={int(wb_mib * _PAGES)} dirty_ratelimit=100000 task_ratelimit=100000"
            " dirtied=512 dirtied_pause=32 paused=0 pause=20 period=20 think=0 cgroup_ino=1",
        )


def _findings(trace: _Trace, folder: Path) -> Iterator[Finding]:
    with wbscope.open(trace.write(folder)) as run:
        yield from run.findings()


@pytest.mark.parametrize("has_fast", [True, False])
def test_whose_pages_they_are(tmp_path: Path, has_fast: bool) -> None:
    """A stick of 1 MiB/s wrote 2 MiB; all others of 117 MiB are those of a disk of 100 MiB/s."""
    trace = _Trace()
    for i in range(1000 if has_fast else 0):
        trace.request(100 + i / 100, 0.0099, "8,0", 1000 + i * 2048, 2048)
    for i in range(16):
        trace.request(101 + i / 8, 0.124, "8,16", 1000 + i * 256, 256)
    for i in range(200):
        trace.throttled(100.01 + i / 20, "big-200", "8:0", 116)
    trace.throttled(101.5, "stick-300", "8:16", 0.6)
    trace.event(101.1, "edit-77", "ext4_sync_file_enter", "dev 8,16 ino 12 parent 2 datasync 0")
    trace.event(102.0, "edit-77", "ext4_sync_file_exit", "dev 8,16 ino 12 ret 0")
    by_id = {one.id: one for one in _findings(trace, tmp_path)}
    if not has_fast:
        # Nobody else wrote, as far as the trace tells: the stick has to write all of it.
        assert by_id["many_seconds"].facts["dirty_max_bytes"] == 30000 * 4096
        return
    assert "many_seconds" not in by_id
    waited = by_id["sync_waits"]
    assert waited.facts["cost_task_ns"] == 900_000_000
    assert waited.advice is not None
    assert waited.advice.settings == ()
    assert "8:16 alone" in waited.advice.text


def test_a_copy_to_a_stick_beside_a_disk(tmp_path: Path) -> None:
    """100 MiB are dirty for a stick of 4 MiB/s, which takes 25 s to write them."""
    trace = _Trace()
    for i in range(1000):
        trace.request(100 + i / 100, 0.0099, "8,0", 1000 + i * 2048, 2048)
    for i in range(80):
        trace.request(100 + i / 8, 0.124, "8,16", 1000 + i * 1024, 1024)
    for i in range(200):
        trace.throttled(100.01 + i / 20, "cp-300", "8:16", 100)
    (one,) = (one for one in _findings(trace, tmp_path) if one.id == "many_seconds")
    assert one.facts["held_bytes"] == 100 * _MIB
    assert one.facts["disk_bytes_per_s"] == pytest.approx(4.03 * _MIB, rel=0.01)
    assert one.text == "100 MiB were dirty for 8:16, which writes 4.03 MiB/s."
    assert one.advice is not None
    assert one.advice.settings == ()


# How fast a disk writes is not told by the time in which it only reads or discards.

_SECTORS = 2048  # 1 MiB


def _request(run: TextRun, op: str, device: str, begin: float, end: float) -> None:
    sector = int(begin * 1000) * _SECTORS
    issued = f"{device} {op} {_SECTORS * 512} () {sector} + {_SECTORS} [fio]"
    run.event(begin, "fio-40", "block_rq_issue", issued)
    run.event(end, "fio-40", "block_rq_complete", f"{device} {op} () {sector} + {_SECTORS} [0]")


def _rates(folder: Path) -> dict[str, tuple[float, int, int]]:
    with wbscope.open(folder) as run:
        rows = run.query("disk_rates").records()
    return {
        row["bdi"]: (row["disk_bytes_per_s"], row["written_bytes"], row["busy_ns"]) for row in rows
    }


def _mixed(run: TextRun) -> None:
    """8:0, each second: a write of 50 ms, then a read of 700 ms whose first 25 ms it covers."""
    for second in range(100, 106):
        _request(run, "W", "8,0", second, second + 0.05)
        _request(run, "R", "8,0", second + 0.025, second + 0.725)


def test_a_disk_that_reads_for_most_of_its_time(tmp_path: Path) -> None:
    run = TextRun()
    _mixed(run)
    # Its 4 MiB in 4 s are all that 8:16 does.
    for second in range(100, 104):
        _request(run, "W", "8,16", second, second + 1)
    assert _rates(run.write(tmp_path)) == {
        "8:0": (pytest.approx(20 * _MIB), 6 * _MIB, 300_000_000),
        "8:16": (pytest.approx(1 * _MIB), 4 * _MIB, 4_000_000_000),
    }


def test_a_volume_on_it_and_on_one_that_reads_nothing(tmp_path: Path) -> None:
    """One of them has a write for 50 ms of each second, the other for 100 ms, 25 of them shared."""
    run = TextRun()
    _mixed(run)
    for second in range(100, 106):
        _request(run, "W", "8,16", second + 0.025, second + 0.125)
    run.files["stacks"] = "253:0 8:0\n253:0 8:16\n"
    rate, written, busy_ns = _rates(run.write(tmp_path))["253:0"]
    assert (written, busy_ns) == (12 * _MIB, 750_000_000)
    assert rate == pytest.approx(16 * _MIB)


@pytest.mark.parametrize("op", ["R", "D"])
def test_other_requests_make_no_disk_slow(tmp_path: Path, op: str) -> None:
    """After 10 s it begins to read or discard between its writes, which take 1 ms more."""
    run = TextRun()
    for second in range(100, 120):
        _request(run, "W", "8,0", second, second + (0.05 if second < 110 else 0.051))
        if second >= 110:
            _request(run, op, "8,0", second + 0.051, second + 0.951)
    folder = run.write(tmp_path)
    assert "rate_changed" not in proven_findings(folder)
    with wbscope.open(folder) as opened:
        (row,) = opened.query("disk_rates").records()
    assert row["changed_after_ns"] is None
    assert row["disk_bytes_per_s"] == pytest.approx(20 * _MIB / 1.01)


# A finding about a device has to tell of most of the time that its writers were held up.
#
# By hand: dd is held up for five sleeps of 200 ms, as intended, one each 300 ms. `few` of them are
# for one reason; in the others the disk writes, 64 KiB in 210 ms: it is what limits. Two of five
# are 400 of 1000 ms, less than half; three are more; and of four sleeps two are just half.

_MS = 1_000_000
_LIMIT, _SETPOINT = 10_000, 8_750  # pages; free run ends at 7500
_OVER = 9_500  # x = -0.6, so the machine's factor is 1 - 0.216
_SHARES = pytest.mark.parametrize(("few", "others"), [(2, 3), (2, 2), (3, 2)])


class _SharesTrace(TextRun):
    def __init__(self) -> None:
        super().__init__()
        # Both disks had a request before anybody waited: theirs are recorded.
        self.request(99.0, "8,0")
        self.request(99.0, "8,16")

    def request(self, ts: float, device: str) -> None:
        """Of 64 KiB in 210 ms, as a sleep of 200 ms begins at 5 ms: 305 KiB/s."""
        sector = int(ts * 1000)
        begin = f"{device} W 65536 () {sector} + 128 [kworker]"
        self.event(ts, "kworker/0:1-25", "block_rq_issue", begin)
        end = f"{device} W () {sector} + 128 [0]"
        self.event(ts + 0.21, "kworker/0:1-25", "block_rq_complete", end)

    def held(
        self,
        ts: float,
        *,
        writeback: int,
        dirty: int = _OVER,
        own: int = _OVER,
        wb_setpoint: int = _SETPOINT,
        rate: int = 784,
        task: str = "dd-11",
        bdi: str = "8:0",
    ) -> None:
        """200 ms, with so many pages dirty and under writeback."""
        self.event(
            ts + 0.004,
            task,
            "global_dirty_state",
            f"dirty={dirty - writeback} writeback={writeback} bg_thresh=5000 thresh={_LIMIT}"
            f" limit={_LIMIT} dirtied={int(ts * 100)} written={int(ts * 100)}",
        )
        self.event(
            ts + 0.005,
            task,
            "balance_dirty_pages",
            f"bdi {bdi}: limit={_LIMIT} setpoint={_SETPOINT} dirty={dirty}"
            f" bdi_setpoint={wb_setpoint} bdi_dirty={own} dirty_ratelimit=1000"
            f" task_ratelimit={rate} dirtied=8 dirtied_pause=32 paused=0 pause=200 period=200"
            " think=0 cgroup_ino=1",
        )


def _times(few: int, others: int) -> tuple[list[float], list[float]]:
    times = [100 + 0.3 * i for i in range(few + others)]
    return times[:few], times[few:]


def _cost(found: dict[str, Finding], rule: str) -> int | None:
    return found[rule].cost_task_ns if rule in found else None


@_SHARES
def test_strict_limit(tmp_path: Path, few: int, others: int) -> None:
    """Below free run only the wb's own limit holds it up; that is 100 pages, 1.3 s of this disk."""
    trace = _SharesTrace()
    for times, is_busy in zip(_times(few, others), (False, True), strict=True):
        for ts in times:
            trace.held(ts, writeback=50, dirty=500, own=100, wb_setpoint=88, rate=0)
            if is_busy:
                trace.request(ts, "8,0")
    found = proven_findings(trace.write(tmp_path))
    # With a busy disk, too.
    assert _cost(found, "slow_device") is None
    assert _cost(found, "strict_limit") == (few + others) * 200 * _MS


@_SHARES
def test_device_idle(tmp_path: Path, few: int, others: int) -> None:
    trace = _SharesTrace()
    for times, is_busy in zip(_times(few, others), (False, True), strict=True):
        for ts in times:
            trace.held(ts, writeback=4000)
            if is_busy:
                trace.request(ts, "8,0")
    found = proven_findings(trace.write(tmp_path))
    assert _cost(found, "slow_device") == others * 200 * _MS
    assert _cost(found, "device_idle") == (few * 200 * _MS if few >= others else None)


@_SHARES
def test_no_writeback(tmp_path: Path, few: int, others: int) -> None:
    trace = _SharesTrace()
    for times, is_busy in zip(_times(few, others), (False, True), strict=True):
        for ts in times:
            trace.held(ts, writeback=4000 if is_busy else 0)
            if is_busy:
                trace.request(ts, "8,0")
    found = proven_findings(trace.write(tmp_path))
    assert _cost(found, "slow_device") == others * 200 * _MS
    assert _cost(found, "no_writeback") == (few * 200 * _MS if few >= others else None)


@_SHARES
def test_slow_bdi_starves(tmp_path: Path, few: int, others: int) -> None:
    """While 9000 of the 9500 pages are those of 8:16, and then while they are its own."""
    trace = _SharesTrace()
    starved, slowed = _times(few, others)
    for ts in starved:
        trace.held(ts - 0.01, writeback=4000, own=9000, task="cp-12", bdi="8:16")
        trace.request(ts - 0.01, "8,16")
        trace.held(ts, writeback=4000, own=500, wb_setpoint=4375)
        trace.request(ts, "8,0")
    for ts in slowed:
        trace.held(ts, writeback=4000, own=9000)
        trace.request(ts, "8,0")
    one = proven_findings(trace.write(tmp_path), one_each=False)["slow_bdi_starves"]
    assert (one.cost_task_ns, one.facts["holder_bdi"]) == (few * 200 * _MS, "8:16")
    assert one.severity == ("severe" if few >= others else "warning")


# Swap on a disk of its own: no dirty limit governs it, and no file waits behind it.

_FLUSHER, _KSWAPD, _SHM = "kworker/u4:1-25", "kswapd0-30", "shm-131"
_TAIL = "sync_mode=0 kupdate=0 range_cyclic=1 background=1 reason=background cgroup_ino=1"


class _SwapTrace(TextRun):
    def request(self, ts: float, seconds: float, device: str, kib: int) -> None:
        where = f"() {int(ts * 1000)} + {kib * 2}"
        self.event(ts, _FLUSHER, "block_rq_issue", f"{device} W {kib * 1024} {where} [kworker]")
        self.event(ts + seconds, _FLUSHER, "block_rq_complete", f"{device} W {where} [0]")

    def state(self, ts: float, thresh: int) -> None:
        """The smoothed limit stays behind, as nobody has set another one."""
        self.event(
            ts,
            _FLUSHER,
            "global_dirty_state",
            f"dirty=10000 writeback=20000 bg_thresh={thresh // 2} thresh={thresh} limit=40000"
            f" dirtied={int((ts - 100) * 1000)} written={int((ts - 100) * 1000)}",
        )


def _swap_findings(
    folder: Path, swaps: Sequence[str] = (), full_from: float = 101.5
) -> dict[str, Finding]:
    """8:0 has the files, 8:16 swap: it writes 2 MiB in 6.4 s; reclaim gave away 600 pages.

    The limit is 156 MiB, and 1.56 MiB from when memory is full. A task waits for a folio of the
    swap cache (1 s), and in direct reclaim (2 s).
    """
    trace = _SwapTrace()
    for ts, left in ((100.1, 9000), (100.2, 8000)):
        name = "writeback_start" if left == 9000 else "writeback_written"
        trace.event(ts, _FLUSHER, name, f"bdi 8:0: sb_dev 0:0 nr_pages={left} {_TAIL}")
    for i in range(8):
        trace.request(100.2 + i / 10, 0.01, "8,0", 512)
    for i in range(16):
        trace.request(100.3 + i / 2, 0.4, "8,16", 128)
    for i in range(600):
        flags = "flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC"
        trace.event(101 + i / 1000, _KSWAPD, "mm_vmscan_write_folio", f"pfn=0x{i:x} {flags}")
    for i in range(80):
        trace.state(100 + i / 10, 40000 if 100 + i / 10 < full_from else 400)
    switch = "prev_comm=%s prev_pid=%d prev_prio=120 prev_state=%s ==> next_comm=%s next_pid=%d"
    away, back = ("shm", 131, "D", "swapper/0", 0), ("swapper/0", 0, "R", "shm", 131)
    trace.event(102, _SHM, "folio_wait_writeback", "bdi (unknown): ino=0 index=7")
    trace.event(102.0001, _SHM, "sched_switch", switch % away + " next_prio=120")
    trace.event(103.0001, "<idle>-0", "sched_switch", switch % back + " next_prio=120")
    trace.event(104, _SHM, "mm_vmscan_direct_reclaim_begin", "order=0 gfp_flags=GFP_KERNEL")
    trace.event(106, _SHM, "mm_vmscan_direct_reclaim_end", "nr_reclaimed=32")
    for sample, count in (("before", 0), ("after", 600)):
        text = f"nr_vmscan_write {count}\nnr_vmscan_immediate_reclaim {count}\npswpout {count}\n"
        trace.files[f"vmstat.{sample}"] = text
    if swaps:
        trace.files["swaps"] = "\n".join(("Filename Type Size Used Priority", *swaps, ""))
        trace.files["bdis"] = "8:0 sda /data ext4\n8:16 sdb - swap\n"
    with wbscope.open(trace.write(folder)) as run:
        return {one.id: one for one in run.findings()}


@pytest.mark.parametrize("swaps", [(), ("/dev/sdb partition 1 0 -2",)], ids=["untold", "told"])
def test_files_do_not_wait_behind_it(tmp_path: Path, swaps: Sequence[str]) -> None:
    found = _swap_findings(tmp_path, swaps)
    one = found["swap_competes"]
    assert (one.title, one.cost_task_ns) == ("Tasks wait for swap", 1_000_000_000)
    assert one.confidence == ("measured" if swaps else "inferred")
    assert one.facts["swap_bdi"] == "8:16"
    disk = "sdb (-)" if swaps else "8:16"
    assert one.text == (
        f"shm 131 waited 1.00 s for memory: 600 pages of swap went to {disk}, a disk of its own."
    )
    assert one.advice is not None
    assert "another device" not in one.advice.text
    # What it writes is no dirty page of a file.
    assert "many_seconds" not in found


def test_a_disk_without_swap_counts(tmp_path: Path) -> None:
    """Swap is a file on the other disk: what is written to 8:16 are pages of files."""
    found = _swap_findings(tmp_path, ["/data/swap file 1 0 -2"])
    assert found["many_seconds"].facts["bdi"] == "8:16"


@pytest.mark.parametrize(("full_from", "proposed"), [(106.0, 40 << 20), (101.5, None)])
def test_the_limit_that_was_set_is_lowered(
    tmp_path: Path, full_from: float, proposed: int | None
) -> None:
    """156 MiB for three quarters of the time: a quarter of it is 39.06 MiB, rounded up.

    For a fifth of the time: 40 MiB were no lower limit.
    """
    one = _swap_findings(tmp_path, full_from=full_from)["reclaim_meets_dirty"]
    assert one.facts["proposed_bytes"] == proposed
    assert one.advice is not None
    assert [knob for knob, _ in one.advice.settings][:1] == (["vm.dirty_bytes"] if proposed else [])
