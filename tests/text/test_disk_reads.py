# SPDX-License-Identifier: Apache-2.0
"""How fast a disk writes is not told by the time in which it only reads or discards."""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from support.textrun import TextRun, proven_findings

_SECTORS = 2048  # 1 MiB
_MIB = 1 << 20


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
