# SPDX-License-Identifier: Apache-2.0
"""Counters that wrap, and those that begin anew: a disk or a mount that comes again.

Samples lie at 10, 11, 12 and 13 s, the trace goes from 10 to 14 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.kernel_events import formats
from support.more_events import more_formats
from support.tracedat import Trace

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
    trace = Trace([*formats("block_rq_complete"), *more_formats("block_rq_issue")])
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
