# SPDX-License-Identifier: Apache-2.0
"""The synthetic traces are real ones: trace-cmd reads what the writer writes."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest

from support.compression import compress
from support.formats import Value
from support.kernel_events import NAMES, formats, new_balance_dirty_pages
from support.report import ReportEvent, parse_report
from support.ringbuffer import Item, LostEvents, PageLayout, Record, encode_pages
from support.tools import require_program, run
from support.tracedat import Buffer, Trace

_SECOND = 1_000_000_000


def _sample(**settings: Any) -> Trace:
    """23 events on two CPUs with every kind of record the writer knows."""
    long_bytes = settings.get("long_bytes", 8)
    trace = Trace(
        formats(*NAMES, long_bytes=long_bytes),
        cpus=2,
        cmdlines={11: "dd", 12: "two words"},
        **settings,
    )
    trace.event(
        0,
        _SECOND,
        11,
        "balance_dirty_pages",
        {"bdi": "8:0", "limit": 100, "dirtied": 32, "cgroup_ino": 1},
    )
    trace.event(0, _SECOND + (1 << 28) + 5, 11, "sys_exit_write", {"ret": 4096})
    trace.discarded(0, 1_300_000_000)
    rq: dict[str, Value] = {
        "dev": (8 << 20) | 1,
        "sector": 77,
        "nr_sector": 8,
        "rwbs": "WS",
        "cmd": "x",
    }
    trace.event(0, 1_300_000_100, 12, "block_rq_complete", rq)
    trace.page_break(0, fill_tail=True)
    trace.event(0, 1_400_000_000, 12, "sys_exit_write", {"ret": 1}, stamp="extend")
    trace.event(
        0,
        1_500_000_000,
        12,
        "mm_vmscan_write_folio",
        {"pfn": 0x1234, "reclaim_flags": 9},
        stamp="absolute",
    )
    trace.event(0, 1_500_000_007, 12, "sys_exit_write", {"ret": 2})
    trace.lost(0, 23)
    trace.event(0, 1_600_000_000, 12, "sys_exit_write", {"ret": 3})
    trace.lost(0)
    trace.event(0, 1_700_000_000, 12, "sys_exit_write", {"ret": 4})
    for index in range(15):
        trace.event(
            1,
            _SECOND + 1 + index * 1000,
            5,
            "global_dirty_state",
            {"nr_dirty": index, "nr_written": 7},
        )
    return trace


def _report(trace: Trace, tmp_path: Path) -> list[str]:
    path = trace.write(tmp_path / "trace.dat")
    result = run([require_program("trace-cmd"), "report", "-t", path])
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.mark.parametrize(
    "settings",
    [
        {"compression": "none"},
        {"compression": "zstd"},
        {"version": 6},
        {"endian": "big"},
        {"version": 6, "endian": "big"},
        {"long_bytes": 4},
        {"version": 6, "endian": "big", "long_bytes": 4},
        {"page_bytes": 65536, "compression": "zstd"},
    ],
    ids=str,
)
def test_trace_cmd_reads_every_kind_of_file(settings: dict[str, Any], tmp_path: Path) -> None:
    lines = _report(_sample(**settings), tmp_path)
    events = list(parse_report(lines))
    assert len(events) == 23
    first, *rest = (event for event in events if event.cpu == 0)
    assert (first.ts, first.tid, first.comm, first.name) == (
        _SECOND,
        11,
        "dd",
        "balance_dirty_pages",
    )
    assert "bdi 8:0: limit=100 " in first.text
    assert "dirtied=32 " in first.text
    assert "cgroup_ino=1" in first.text
    assert rest == [
        ReportEvent(1_268_435_461, 0, 11, "dd", "sys_exit_write", "0x1000"),
        ReportEvent(
            1_300_000_100, 0, 12, "two words", "block_rq_complete", "8,1 WS (x) 77 + 8 [0]"
        ),
        ReportEvent(1_400_000_000, 0, 12, "two words", "sys_exit_write", "0x1"),
        ReportEvent(
            1_500_000_000,
            0,
            12,
            "two words",
            "mm_vmscan_write_folio",
            "page=0x1234 pfn=0x1234 flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC",
        ),
        ReportEvent(1_500_000_007, 0, 12, "two words", "sys_exit_write", "0x2"),
        ReportEvent(1_600_000_000, 0, 12, "two words", "sys_exit_write", "0x3"),
        ReportEvent(1_700_000_000, 0, 12, "two words", "sys_exit_write", "0x4"),
    ]
    states = [event for event in events if event.cpu == 1]
    assert [event.ts for event in states] == [_SECOND + 1 + index * 1000 for index in range(15)]
    assert [event.text.split()[0] for event in states] == [f"dirty={index}" for index in range(15)]
    assert [line for line in lines if "DROPPED" in line] == [
        "CPU:0 [23 EVENTS DROPPED]",
        "CPU:0 [EVENTS DROPPED]",
    ]


def test_instances_are_read_in_both_versions(tmp_path: Path) -> None:
    for version in (6, 7):
        trace = Trace(
            formats("sys_exit_write"), version=version, buffers=[Buffer(), Buffer("second")]
        )
        trace.event(0, 100, 3, "sys_exit_write", {"ret": 1})
        trace.event(0, 200, 4, "sys_exit_write", {"ret": 2}, buffer=1)
        lines = [line.split() for line in _report(trace, tmp_path) if "sys_exit_write" in line]
        assert [line[-1] for line in lines] == ["0x1", "0x2"]
        assert [line[0] for line in lines if line[-1] == "0x2"] == ["second:"]


def test_the_offset_option_moves_every_time(tmp_path: Path) -> None:
    trace = Trace(formats("sys_exit_write"), ts_offset=-40)
    trace.event(0, 100, 3, "sys_exit_write", {"ret": 1})
    assert [event.ts for event in parse_report(_report(trace, tmp_path))] == [60]


def test_new_field_order_is_printed_under_the_new_names(tmp_path: Path) -> None:
    trace = Trace([new_balance_dirty_pages()])
    trace.event(
        0,
        5,
        3,
        "balance_dirty_pages",
        {"wb_setpoint": 77, "cgroup_ino": 27, "dirtied": 9, "pause": -2},
    )
    (event,) = parse_report(_report(trace, tmp_path))
    assert "wb_setpoint=77 wb_dirty=0 " in event.text
    assert "dirtied=9 " in event.text
    assert "pause=-2 " in event.text
    assert event.text.endswith("cgroup_ino=27")


def test_a_page_of_two_records_byte_by_byte() -> None:
    """By hand: time, commit, then type_len 1 with delta 0 and 3, each before 4 bytes."""
    items: list[Item] = [LostEvents(2), Record(1000, b"abcd"), Record(1003, b"efgh")]
    little = encode_pages(items, PageLayout(64, 8, "little"))
    assert little[:8] == (1000).to_bytes(8, "little")
    assert little[8:16] == (0xC000_0010).to_bytes(8, "little")
    assert little[16:40] == b"\x01\0\0\0abcd\x61\0\0\0efgh" + (2).to_bytes(8, "little")
    big = encode_pages(items, PageLayout(64, 4, "big"))
    assert big[8:32] == b"\xc0\0\0\x10" + b"\x08\0\0\0abcd\x08\0\0\x03efgh" + (2).to_bytes(4, "big")
    assert len(little) == len(big) == 64


def test_what_cannot_be_written_is_refused() -> None:
    layout = PageLayout(64, 8, "little")
    with pytest.raises(ValueError, match="time runs backwards: 5 after 9"):
        encode_pages([Record(9, b"abcd"), Record(5, b"abcd")], layout)
    with pytest.raises(ValueError, match="cannot hold a record of 72"):
        encode_pages([Record(9, bytes(68))], layout)
    with pytest.raises(ValueError, match="has no field nonsense"):
        formats("sys_exit_write")[0].encode({"nonsense": 1}, 1, "little")
    with pytest.raises(ValueError, match="cannot write version 6 with compression zlib"):
        Trace(version=6, compression="zlib").encode()


def test_compressed_chunks_can_be_read_back(tmp_path: Path) -> None:
    """zlib by Python; zstd by its own program, over several blocks and both kinds of block."""
    data = bytes(300_000) + bytes(range(256)) * 600
    assert zlib.decompress(compress("zlib", data)) == data
    packed = tmp_path / "data.zst"
    packed.write_bytes(compress("zstd", data))
    unpacked = tmp_path / "data"
    result = run([require_program("zstd"), "-d", "-q", packed, "-o", unpacked])
    assert result.returncode == 0, result.stderr
    assert unpacked.read_bytes() == data
