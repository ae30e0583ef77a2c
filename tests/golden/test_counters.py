# SPDX-License-Identifier: Apache-2.0
"""Counters that wrap or begin anew, and what tasks wait for in calls that sync."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.kernel_events import formats
from support.tracedat import Trace
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

# Counters that wrap, and those that begin anew: a disk or a mount that comes again.
#
# Samples lie at 10, 11, 12 and 13 s, the trace goes from 10 to 14 s.

_S = 10**9
_MS = 10**6
_WRAP = 1 << 32
_SECTOR = 512


def _series(samples: Mapping[int, Mapping[str, str]]) -> str:
    return "".join(
        f"# ts={second * _S}\n" + "".join(f"== {name}\n{text}" for name, text in parts.items())
        for second, parts in samples.items()
    )


def _stat(ios: tuple[int, int], sectors: tuple[int, int], ticks: tuple[int, int]) -> str:
    """Reads and writes of each; ms busy and in the queue."""
    reads, writes = ios
    read_sectors, write_sectors = sectors
    busy, queue = ticks
    numbers = (reads, 0, read_sectors, 50, writes, 0, write_sectors, 90, 0, busy, queue)
    return "".join(f" {number:8}" for number in numbers) + "\n"


def _bdi(dirty: int, dirtied: int, written: int) -> str:
    return (
        f"BdiWriteback: 0 kB\nBdiReclaimable: {dirty} kB\nBdiDirtyThresh: 1000 kB\n"
        f"BdiDirtied: {dirtied} kB\nBdiWritten: {written} kB\nBdiWriteBandwidth: 1000 kBps\n"
    )


def _rows(
    folder: Path, sql: str, files: Mapping[str, str], *, long_bytes: int = 8
) -> Sequence[Mapping[str, Any]]:
    trace = Trace(
        formats("global_dirty_state", long_bytes=long_bytes),
        long_bytes=long_bytes,
        cmdlines={11: "dd"},
    )
    for second in range(10, 15):
        trace.event(0, second * _S, 11, "global_dirty_state", {"nr_dirty": 1})
    return _asked(trace, folder, sql, files)


def _asked(
    trace: Trace, folder: Path, asked: str, files: Mapping[str, str]
) -> Sequence[Mapping[str, Any]]:
    trace.write(folder / "trace.dat")
    for name, text in files.items():
        (folder / name).write_text(text)
    with wbscope.open(folder) as run:
        answer = run.sql(asked) if " " in asked else run.query(asked)
        return list(answer.records())


_BLOCK = (
    "SELECT ts, dur_ns, writes_count, written_bytes, busy_ns, queued_ns FROM wb_usage"
    " WHERE source = 'block' ORDER BY ts"
)


def test_ticks_of_a_disk_wrap(tmp_path: Path) -> None:
    """%8u on every kernel: at a depth of 64 time_in_queue wraps after 18 hours."""
    samples = {
        10: {"vda": _stat((0, 10), (0, 2048), (_WRAP - 500, _WRAP - 30_000))},
        11: {"vda": _stat((0, 20), (0, 4096), (400, 34_000))},
    }
    (row,) = _rows(tmp_path, _BLOCK, {"block.samples": _series(samples)})
    assert (row["busy_ns"], row["queued_ns"]) == (900 * _MS, 64_000 * _MS)
    assert (row["writes_count"], row["written_bytes"]) == (10, 2048 * _SECTOR)


@pytest.mark.parametrize("long_bytes", [4, 8])
def test_sectors_wrap_where_a_long_has_four_bytes(tmp_path: Path, long_bytes: int) -> None:
    samples = {
        10: {"vda": _stat((0, _WRAP - 4), (0, _WRAP - 2048), (0, 0))},
        11: {"vda": _stat((0, 6), (0, 2048), (400, 500))},
    }
    files = {"block.samples": _series(samples)}
    rows = _rows(tmp_path, _BLOCK, files, long_bytes=long_bytes)
    found = [(row["writes_count"], row["written_bytes"]) for row in rows]
    assert found == ([(10, 4096 * _SECTOR)] if long_bytes == 4 else [])


def test_a_disk_that_comes_again_under_its_name(tmp_path: Path) -> None:
    old = _stat((100_000, 100_000), (80_000_000, 80_000_000), (500_000, 500_000))
    samples = {
        10: {"sdb": f"dev 8:16\n{old}"},
        11: {"sdb": f"dev 8:16\n{_stat((0, 10), (0, 2048), (5, 5))}"},
        12: {"sdb": f"dev 8:16\n{_stat((0, 20), (0, 4096), (105, 205))}"},
    }
    files = {"block.samples": _series(samples)}
    (row,) = _rows(tmp_path, _BLOCK, files)
    assert (row["ts"], row["dur_ns"], row["busy_ns"]) == (12 * _S, _S, 100 * _MS)
    (rate,) = _rows(tmp_path, "disk_rates", files)
    assert (rate["written_bytes"], rate["busy_ns"]) == (2048 * _SECTOR, 100 * _MS)
    assert rate["disk_bytes_per_s"] == 2048 * _SECTOR * 10


def test_a_mount_that_comes_again_under_its_number(tmp_path: Path) -> None:
    samples = {
        10: {"0:45": _bdi(100, 5_000_000, 5_000_000)},
        11: {"0:45": _bdi(100, 5_010_240, 5_010_240)},
        12: {"0:45": _bdi(100, 1024, 512)},
        13: {"0:45": _bdi(0, 11_264, 10_752)},
    }
    files = {"bdi.samples": _series(samples)}
    sql = (
        "SELECT dur_ns, dirtied_bytes, written_bytes, dirty_bytes FROM wb_usage"
        " WHERE source = 'bdi' ORDER BY ts"
    )
    rows = _rows(tmp_path, sql, files)
    size = 10_240 << 10
    assert [tuple(row.values()) for row in rows] == [
        (None, None, None, 100 << 10),
        (_S, size, size, 100 << 10),
        (None, None, None, 100 << 10),
        (_S, size, size, 0),
    ]
    (written,) = _rows(tmp_path, "SELECT bytes FROM _bdi_written", files)
    assert written["bytes"] == 2 * size
    (window, other) = _rows(tmp_path, "bdi_samples", files)
    assert (window["written_bytes_per_s"], other["written_bytes_per_s"]) == (size, size)


def test_redirtied_pages_are_still_told(tmp_path: Path) -> None:
    """No more than were dirty; pages that were not are another mount's."""
    samples = {
        10: {"0:45": _bdi(100, 5000, 500), "0:46": _bdi(100, 5000, 0)},
        11: {"0:45": _bdi(100, 4950, 500), "0:46": _bdi(100, 4000, 0)},
    }
    sql = (
        "SELECT dirtied_bytes FROM wb_usage"
        " WHERE source = 'bdi' AND ts > 10000000000 ORDER BY device"
    )
    rows = _rows(tmp_path, sql, {"bdi.samples": _series(samples)})
    assert [row["dirtied_bytes"] for row in rows] == [-50 << 10, None]


def test_counters_of_vmstat_wrap_where_a_long_has_four_bytes(tmp_path: Path) -> None:
    """pgpgout are sectors in an unsigned long, over 2: 31 bits."""
    files = {
        "vmstat.before": f"nr_dirtied {_WRAP - 100}\nnr_written {_WRAP - 100}\n"
        f"pgpgout {_WRAP // 2 - 1000}\npgscan_kswapd 50\nnr_dirty 900\nnr_free_pages 7\n",
        "vmstat.after": "nr_dirtied 900\nnr_written 800\n"
        "pgpgout 3000\npgscan_kswapd 5\nnr_dirty 100\nnr_free_pages 8\n",
    }
    sql = "SELECT name, gained_count FROM wb_vmstat"
    for long_bytes, wanted in (
        (4, {"nr_dirtied": 1000, "nr_written": 900, "pgpgout": 4000}),
        (8, {"nr_dirtied": 1000 - _WRAP, "nr_written": None, "pgpgout": None}),
    ):
        folder = tmp_path / str(long_bytes)
        folder.mkdir()
        rows = _rows(folder, sql, files, long_bytes=long_bytes)
        found = {row["name"]: row["gained_count"] for row in rows}
        # What can only grow and did not says nothing; a level may fall.
        assert found == wanted | {"pgscan_kswapd": None, "nr_dirty": -800, "nr_free_pages": 1}


def test_samples_of_vmstat_wrap_too(tmp_path: Path) -> None:
    samples = {
        10: {"vmstat": f"nr_written {_WRAP - 100}\npswpout 70\n"},
        11: {"vmstat": "nr_written 900\npswpout 0\n"},
        12: {"vmstat": "nr_written 1900\npswpout 10\n"},
    }
    text = "".join(f"# ts={second * _S}\n{parts['vmstat']}" for second, parts in samples.items())
    rows = _rows(tmp_path, "vmstat_samples", {"vmstat.samples": text}, long_bytes=4)
    found = {(r["window_start_ns"], r["name"]): r["gained_pages_per_s"] for r in rows}
    assert found == {
        (10 * _S, "nr_written"): 1000.0,
        (12 * _S, "nr_written"): 1000.0,
        (10 * _S, "pswpout"): None,
        (12 * _S, "pswpout"): 10.0,
    }


_FIRST = f"== vda\ndev 254:0\n{_stat((0, 10), (0, 2048), (500, 500))}"
_LAST = f"== vda\ndev 254:0\n{_stat((0, 110), (0, 2048 + 100 * 2048), (700, 700))}"
_ZRAM = "== zram0\ndev 253:0\n"
_USB = f"== sdb\ndev 8:16\n{_stat((0, 10), (0, 900_000), (500, 500))}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        (
            _ZRAM + _stat((0, 1000), (0, 8000), (0, 0)),
            _ZRAM + _stat((0, 90_000), (0, 720_000), (0, 0)),
        ),
        (_USB, ""),
        ("", _USB),
        (_USB, f"== sdb\ndev 8:16\n{_stat((0, 1), (0, 8), (5, 5))}"),
    ],
    ids=["one disk", "zram has no requests", "gone", "came", "came again"],
)
def test_check_compares_disks_that_both_files_and_events_have(
    tmp_path: Path, before: str, after: str
) -> None:
    trace = Trace(formats("block_rq_complete", "block_rq_issue"))
    for number in range(100):
        ts = 10 * _S + number * 10 * _MS
        values = {"dev": 254 << 20, "sector": number * 2048, "nr_sector": 2048, "rwbs": "W"}
        trace.event(0, ts, 5, "block_rq_issue", {**values, "comm": "kworker"})
        trace.event(0, ts + 2 * _MS, 0, "block_rq_complete", values)
    files = {"block.before": _FIRST + before, "block.after": _LAST + after}
    rows = _asked(trace, tmp_path, "check", files)
    (row,) = [row for row in rows if row["source"] == "block stat"]
    size = 100 * 2048 * _SECTOR
    assert (row["trace_value"], row["other_value"], row["verdict"]) == (size, size, "agrees")


# What tasks wait for in calls that sync, and who waits for a journal.
#
# Times are ms from 10 s; a request is 8 sectors = 4096 bytes.

_BLOCK_EVENTS = ("block_rq_issue", "block_rq_complete")
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
    waits = Waits(*SYNC_CALLS, *EXT4_SYNC, *_BLOCK_EVENTS, cmdlines=_COMMS)
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
    waits = Waits(*SYNC_CALLS, *EXT4_SYNC, *_BLOCK_EVENTS, cmdlines=_COMMS)
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
        "Flushers (kworker/u8:1 and kworker/u8:2) waited 800 ms in all while the journal of 8:0 "
        "committed (longest 500 ms), and submitted no dirty pages meanwhile."
    )


def test_without_events_of_writeback_any_worker_may_be_a_flusher(tmp_path: Path) -> None:
    """But for that of the block layer: 500, 300 and 600 ms."""
    (one,) = _found(_flushers(told=False), tmp_path, "flusher_waits_journal")
    assert round(one.cost_task_ns / MS) == 1400


def _flushers(*, told: bool) -> Waits:
    work = ("writeback_start",) if told else ()
    waits = Waits(*COMMIT, *_BLOCK_EVENTS, *work, "sched_switch", cmdlines=_COMMS)
    waits.request(20, 64, issue=0, complete=600, rwbs="W")
    waits.span(0, 600, 9, COMMIT, dev=device(8, 0))
    for tid, start, end in ((20, 1, 501), (21, 101, 401), (22, 2, 602), (23, 3, 603)):
        if told and tid in (20, 21):
            waits.add(start, tid, "writeback_start", name="8:0", nr_pages=1024)
        waits.sleep(start + 0.01, end, tid)
    return waits


_LESS_OFTEN = (
    "No limit helps where no more than 400 KiB are dirty: let programs call fsync() less often, or "
    "give them a file system of their own."
)
_BY_ITSELF = (
    "No task called fsync or the like: the journal of 8:0 commits by itself, every 5 s or as its "
    "mount option commit= says, and when it is full. Put data that cannot wait on a file system of "
    "its own."
)
_UNKNOWN = (
    "No limit helps, and the trace does not show what made the journal of 8:0 commit: wbscope"
    " record --profile deep shows whether a task calls fsync, or it is the timer."
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
    waits = Waits(*calls, *EXT4_SYNC, *WRITE, *COMMIT, *_BLOCK_EVENTS, _STATE, cmdlines=_COMMS)
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


@pytest.mark.parametrize(("end", "told"), [(300, "80.0 % of that time."), (150, "95.0 %")])
def test_a_sync_beside_an_idle_disk(tmp_path: Path, end: int, told: str) -> None:
    """One second, and a request for 200 or 50 ms of it."""
    waits = Waits(*FSYNC, *EXT4_SYNC, *_BLOCK_EVENTS, cmdlines=_COMMS)
    _fsync(waits, 0, 1000, 1, (8, 0))
    waits.request(20, 64, issue=100, complete=end, rwbs="W")
    (one,) = _found(waits, tmp_path, "sync_waits")
    assert one.title == "Tasks wait in sync while the disk has little to do"
    assert f"; the disk was idle for {told}" in one.text
    assert ("io.max" in one.text) == (one.confidence == "inferred") == (end == 150)
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
    waits = Waits(*FSYNC, *EXT4_SYNC, *COMMIT, *_BLOCK_EVENTS, "sched_switch", cmdlines=_COMMS)
    for minor in (0, 16, *others):
        waits.request(20, 64, issue=0, complete=700, rwbs="W", dev=(8, minor))
    waits.span(0, 610, 9, COMMIT, dev=device(253, 0))
    _fsync(waits, 0, 600, 1, (253, 0))
    waits.sleep(1, 601, 2)
    (tmp_path / "stacks").write_text("253:0 8:0\n253:0 8:16\n")
    found = _found(waits, tmp_path, "journal_commit", proven=False)
    assert {one.facts["bdi"] for one in found} == bdis
    assert sum(one.cost_task_ns for one in found) == 1200 * MS
