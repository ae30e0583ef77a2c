# SPDX-License-Identifier: Apache-2.0
"""Requests whose end is lost, that are issued again, and those of zoned disks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.kernel_events import formats
from support.more_events import more_formats
from support.tracedat import Trace

_MS = 10**6
_START = 10_000 * _MS
_DEV = 259 << 20


class _Requests:
    """Requests of one disk; times are ms from 10 s."""

    def __init__(self, uname: str = "Linux synthetic 6.1.0-test x86_64") -> None:
        self.trace = Trace(
            [*formats("block_rq_complete"), *more_formats("block_rq_issue")], uname=uname
        )

    def issue(self, ms: int, sector: int, sectors: int, rwbs: str = "W") -> None:
        values = {"dev": _DEV, "sector": sector, "nr_sector": sectors, "rwbs": rwbs}
        self.trace.event(0, _START + ms * _MS, 5, "block_rq_issue", {**values, "comm": "k"})

    def complete(self, ms: int, sector: int, sectors: int, rwbs: str = "W") -> None:
        values = {"dev": _DEV, "sector": sector, "nr_sector": sectors, "rwbs": rwbs}
        self.trace.event(0, _START + ms * _MS, 0, "block_rq_complete", values)

    def asked(self, folder: Path, query: str) -> list[Mapping[str, Any]]:
        self.trace.write(folder / "trace.dat")
        with wbscope.open(folder) as run:
            return list(run.query(query).records())


@pytest.mark.parametrize("lost", [False, True])
def test_a_lost_end_is_no_request_for_ever(tmp_path: Path, lost: bool) -> None:
    """One request of 2 ms each 100 ms: a depth of 0.02."""
    requests = _Requests()
    for number in range(100):
        requests.issue(number * 100, number * 2048, 2048)
        if lost and 10 <= number < 14:
            if number == 13:
                requests.trace.lost(0, 4)
        else:
            requests.complete(number * 100 + 2, number * 2048, 2048)
    (row,) = requests.asked(tmp_path, "block_latency")
    count = 96 if lost else 100
    assert (row["count"], row["open_count"]) == (count, 100 - count)
    assert row["depth_mean_count"] == pytest.approx(count * 2 / 9902, rel=1e-6)
    assert row["depth_max_count"] == 1


def test_a_request_that_is_issued_again_is_in_flight_once(tmp_path: Path) -> None:
    requests = _Requests()
    for ms in (0, 10, 20):
        requests.issue(ms, 0, 8)
    requests.complete(30, 0, 8)
    (row,) = requests.asked(tmp_path, "block_latency")
    assert (row["count"], row["open_count"], row["depth_max_count"]) == (1, 2, 1)


def test_zone_appends_are_written_and_resets_move_nothing(tmp_path: Path) -> None:
    """20 MiB of appends, of which only the end tells the place; then a finish beside a flush."""
    requests = _Requests("Linux synthetic 7.2.13-test x86_64")
    for number in range(20):
        requests.issue(number * 10, 0, 2048, "ZA")
        requests.complete(number * 10 + 2, number * 2048, 2048, "ZA")
    for number, rwbs in enumerate(("ZR", "ZRA", "ZO", "ZC")):
        requests.issue(200 + number * 10, number * 524_288, 0, rwbs)
        requests.complete(205 + number * 10, number * 524_288, 0, rwbs)
    requests.issue(300, 0, 0, "ZF")
    requests.issue(301, 0, 0, "FF")
    requests.complete(302, 0, 0, "ZF")
    requests.complete(309, 0, 0, "FF")
    rows = {row["op"]: row for row in requests.asked(tmp_path, "block_latency")}
    ends = {op: (row["count"], row["open_count"]) for op, row in rows.items()}
    assert ends == {"write": (20, 0), "other": (5, 0), "flush": (1, 0)}
    assert (rows["write"]["bytes"], rows["write"]["latency_max_ns"]) == (20 << 20, 2 * _MS)
    assert rows["flush"]["latency_max_ns"] == 8 * _MS
    (device,) = requests.asked(tmp_path, "throughput_by_device")
    assert (device["written_bytes"], device["read_bytes"]) == (20 << 20, 0)


_KINDS = {
    "read": ("R", "RA", "RSM", "RF"),
    "write": ("W", "WS", "WFS", "FWFSM", "WSU", "ZA", "ZAS", "ZAF", "FZA"),
    "discard": ("D", "DS", "DE"),
    "other": ("N", "NS", "ZR", "ZRA", "ZF", "ZO", "ZC", "NF", ""),
}


def test_each_kind_of_request(tmp_path: Path) -> None:
    requests = _Requests()
    kinds = [(rwbs, kind) for kind, texts in _KINDS.items() for rwbs in texts]
    for number, (rwbs, _) in enumerate(kinds):
        requests.issue(number, number * 8, 8, rwbs)
    for number, rwbs in enumerate(("FF", "F", "FFS", "FWS", "NF", "ZF")):
        requests.complete(100 + number, 0, 0, rwbs)
    requests.trace.write(tmp_path / "trace.dat")
    with wbscope.open(tmp_path) as run:
        issued = run.sql("SELECT rwbs, op FROM wb_block_request ORDER BY seq").records()
        assert [(row["rwbs"], row["op"]) for row in issued] == kinds
        done = run.sql("SELECT op FROM raw_block_rq_complete ORDER BY ts").records()
        assert [row["op"] for row in done] == [*["flush"] * 5, "other"]
